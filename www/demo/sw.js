// Makes a folder of `cargo xtask demo --out` work without a network. The line before this one, which the build writes, is FOLDER:
// the version, the files that are fetched at once, and those that are kept once somebody has used them. A new version of
// the folder is another file here, so that browsers notice it; what the old one has kept goes.

const PREFIX = `turnwheel-demo ${self.registration.scope} `;
const PAGE = PREFIX + FOLDER.version;
const LATER = `${PREFIX}later ${FOLDER.laterVersion}`;

self.addEventListener("install", (event) => {
  event.waitUntil((async () => {
    const cache = await caches.open(PAGE);
    // Asked of the server, which may answer that nothing has changed.
    await cache.addAll(FOLDER.files.map((file) => new Request(file, { cache: "no-cache" })));
    await self.skipWaiting();
  })());
});

self.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== PAGE && name !== LATER);
    await Promise.all(old.map((name) => caches.delete(name)));
    await self.clients.claim();
  })());
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || !url.href.startsWith(self.registration.scope)) return;
  const file = `./${url.href.slice(self.registration.scope.length).replace(/[?#].*/, "")}`;
  if (FOLDER.files.includes(file)) event.respondWith(kept(PAGE, file, request));
  else if (FOLDER.later.includes(file)) event.respondWith(kept(LATER, file, request));
});

/** What was kept of a file; if the browser has thrown it away, the file. */
async function kept(name, file, request) {
  const cache = await caches.open(name);
  const found = await cache.match(file);
  if (found) return found;
  const response = await fetch(request);
  if (response.ok) await cache.put(file, response.clone());
  return response;
}
