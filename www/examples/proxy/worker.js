// @ts-check
// Keeps the providers' keys out of the page: a handler for Cloudflare Workers, Deno, Bun or anything else that takes a
// Request and gives a Response. Whoever can reach it spends your money: find out in `mayAsk` who is asking.

/** Where each provider is, what of it may be called, and the header its key goes into. @type {Record<string, [url: string, path: RegExp, header: string, key: string, prefix?: string]>} */
const PROVIDERS = {
  openai: ["https://api.openai.com/v1", /^\/(chat\/completions|responses)$/, "authorization", "OPENAI_API_KEY", "Bearer "],
  anthropic: ["https://api.anthropic.com", /^\/v1\/messages$/, "x-api-key", "ANTHROPIC_API_KEY"],
  gemini: ["https://generativelanguage.googleapis.com/v1beta", /^\/models\/[\w.-]+:streamGenerateContent$/, "x-goog-api-key", "GEMINI_API_KEY"],
};

/** What of the page's request goes on. Nothing else does: neither cookies nor keys. */
const SENT = ["content-type", "anthropic-version", "anthropic-beta"];

/** @param {Request} request @param {Record<string, string>} env */
const mayAsk = (request, env) => (env.ALLOWED_ORIGINS ?? "").split(" ").includes(request.headers.get("origin") ?? "");

/** @param {Request} request @param {Record<string, string>} env the keys, and `ALLOWED_ORIGINS` @param {typeof fetch} [forward] */
export async function proxy(request, env, forward = fetch) {
  if (!mayAsk(request, env)) return new Response("this page may not ask here", { status: 403 });
  const cors = {
    "access-control-allow-origin": request.headers.get("origin") ?? "",
    "access-control-allow-headers": SENT.join(", "),
    // With these a page waits as long as the provider asks.
    "access-control-expose-headers": "retry-after, retry-after-ms, x-should-retry",
    vary: "origin",
  };
  if (request.method === "OPTIONS") return new Response(null, { status: 204, headers: cors });
  const { pathname, search } = new URL(request.url);
  const [, name = "", path = ""] = /^\/(\w+)(\/.*)$/.exec(pathname) ?? [];
  const [url, allowed, header, key, prefix = ""] = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : [];
  if (!url || !key || !header || request.method !== "POST" || !allowed?.test(path)) return new Response("there is nothing here", { status: 404, headers: cors });
  const headers = new Headers({ [header]: prefix + env[key] });
  for (const sent of SENT) if (request.headers.has(sent)) headers.set(sent, request.headers.get(sent) ?? "");
  const body = await request.arrayBuffer();
  /** @type {Response} */
  let answer;
  try {
    answer = await forward(url + path + search, { method: "POST", headers, body, signal: request.signal });
  } catch {
    // Without the headers the page would not hear of it, and take it for its own network.
    return new Response(`${name} cannot be reached`, { status: 502, headers: cors });
  }
  const given = new Headers(cors);
  for (const kept of ["content-type", "retry-after", "retry-after-ms", "x-should-retry"]) if (answer.headers.has(kept)) given.set(kept, answer.headers.get(kept) ?? "");
  return new Response(answer.body, { status: answer.status, headers: given });
}

export default { fetch: (/** @type {Request} */ request, /** @type {Record<string, string>} */ env) => proxy(request, env) };
