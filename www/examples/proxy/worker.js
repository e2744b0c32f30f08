// @ts-check
// Keeps the providers' keys out of the page: a handler for Cloudflare Workers, Deno, Bun or any other host that takes a
// Request and returns a Response. Anyone who can reach it spends your money: authenticate the request in `isAuthorized`.

/** The address of each provider, the paths that may be called, and the header for its key. @type {Record<string, [url: string, path: RegExp, header: string, key: string, prefix?: string]>} */
const PROVIDERS = {
  openai: ["https://api.openai.com/v1", /^\/(chat\/completions|responses)$/, "authorization", "OPENAI_API_KEY", "Bearer "],
  anthropic: ["https://api.anthropic.com", /^\/v1\/messages$/, "x-api-key", "ANTHROPIC_API_KEY"],
  gemini: ["https://generativelanguage.googleapis.com/v1beta", /^\/models\/[\w.-]+:streamGenerateContent$/, "x-goog-api-key", "GEMINI_API_KEY"],
};

/** The headers that are forwarded to the provider. No others are: no cookies, no keys. */
const FORWARDED_HEADERS = ["content-type", "anthropic-version", "anthropic-beta"];

/** @param {Request} request @param {Record<string, string>} env */
const isAuthorized = (request, env) => (env.ALLOWED_ORIGINS ?? "").split(" ").includes(request.headers.get("origin") ?? "");

/** @param {Request} request @param {Record<string, string>} env the keys, and `ALLOWED_ORIGINS` @param {typeof fetch} [send] */
export async function proxy(request, env, send = fetch) {
  if (!isAuthorized(request, env)) return new Response("this page may not ask here", { status: 403 });
  const cors = {
    "access-control-allow-origin": request.headers.get("origin") ?? "",
    "access-control-allow-headers": FORWARDED_HEADERS.join(", "),
    // These let a page wait as long as the provider requests.
    "access-control-expose-headers": "retry-after, retry-after-ms, x-should-retry",
    vary: "origin",
  };
  if (request.method === "OPTIONS") return new Response(null, { status: 204, headers: cors });
  const { pathname, search } = new URL(request.url);
  const [, name = "", path = ""] = /^\/(\w+)(\/.*)$/.exec(pathname) ?? [];
  const [url, allowed, header, key, prefix = ""] = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : [];
  if (!url || !key || !header || request.method !== "POST" || !allowed?.test(path)) return new Response("there is nothing here", { status: 404, headers: cors });
  const headers = new Headers({ [header]: prefix + env[key] });
  for (const headerName of FORWARDED_HEADERS) if (request.headers.has(headerName)) headers.set(headerName, request.headers.get(headerName) ?? "");
  const body = await request.arrayBuffer();
  /** @type {Response} */
  let response;
  try {
    response = await send(url + path + search, { method: "POST", headers, body, signal: request.signal });
  } catch {
    // Without the CORS headers the page would see a failure of its own network.
    return new Response(`${name} cannot be reached`, { status: 502, headers: cors });
  }
  const responseHeaders = new Headers(cors);
  for (const headerName of ["content-type", "retry-after", "retry-after-ms", "x-should-retry"]) if (response.headers.has(headerName)) responseHeaders.set(headerName, response.headers.get(headerName) ?? "");
  return new Response(response.body, { status: response.status, headers: responseHeaders });
}

export default { fetch: (/** @type {Request} */ request, /** @type {Record<string, string>} */ env) => proxy(request, env) };
