// The build writes SITE above: the version, and the files of the site. All of them are stored at the first visit, so the second
// needs no network. The demo has a service worker of its own.
/* global SITE */

const CACHE = `turnwheel-site-${new URL(registration.scope).pathname}-`;
const NAME = CACHE + SITE.version;

addEventListener("install", (event) => event.waitUntil((async () => {
  await (await caches.open(NAME)).addAll(SITE.files.map((file) => new Request(file, { cache: "no-cache" })));
  await self.skipWaiting();
})()));

addEventListener("activate", (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name.startsWith(CACHE) && name !== NAME) await caches.delete(name);
  await self.clients.claim();
})()));

addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  const { scope } = registration;
  if (event.request.method !== "GET" || !url.href.startsWith(scope) || url.href.startsWith(`${scope}demo/`)) return;
  const file = url.href.slice(scope.length).replace(/[?#].*/, "").replace(/(^|\/)$/, "$1index.html");
  event.respondWith((async () => (await (await caches.open(NAME)).match(`${scope}${file}`)) ?? fetch(event.request))());
});
