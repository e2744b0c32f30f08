// @ts-check
// Keeps the providers' keys out of the page: a handler for Cloudflare Workers, Deno, Bun or any other host that takes a
// Request and returns a Response. Whoever gets through spends your money, so it answers nobody until it is told who may
// ask: authenticate your users in `callerOf`.

/** The address of each provider, the paths that may be called, and the header for its key. @type {Record<string, [url: string, path: RegExp, header: string, key: string, prefix?: string]>} */
const PROVIDERS = {
  openai: ["https://api.openai.com/v1", /^\/(chat\/completions|responses)$/, "authorization", "OPENAI_API_KEY", "Bearer "],
  anthropic: ["https://api.anthropic.com", /^\/v1\/messages$/, "x-api-key", "ANTHROPIC_API_KEY"],
  gemini: ["https://generativelanguage.googleapis.com/v1beta", /^\/models\/([\w.-]+):streamGenerateContent$/, "x-goog-api-key", "GEMINI_API_KEY"],
};

/** The headers that are forwarded to the provider. No others are: no cookies, no keys. */
const FORWARDED_HEADERS = ["content-type", "anthropic-version", "anthropic-beta"];
const RETURNED_HEADERS = ["content-type", "retry-after", "retry-after-ms", "x-should-retry"];
const MAX_BODY_BYTES = 4_000_000;
/** How many requests one caller may send in a minute, and how many callers are remembered. */
const PER_MINUTE = 60;
const MAX_CALLERS = 10_000;

/**
 * `ALLOWED_ORIGINS` is a list with blanks in between; without it, nobody is answered. `ALLOWED_MODELS` is one too; without
 * it, every model may be asked. `LIMIT` is a rate limit of Cloudflare's, which counts for all instances together.
 * @typedef {{ ALLOWED_ORIGINS?: string, ALLOWED_MODELS?: string, LIMIT?: { limit(options: { key: string }): Promise<{ success: boolean }> } } & { [key: string]: any }} Env
 */

/** Who asks, for the limit; nothing if nobody may. Check your session or token here. @param {Request} request @param {Env} env */
function callerOf(request, env) {
  const origin = request.headers.get("origin");
  if (origin === null || !listOf(env.ALLOWED_ORIGINS).includes(origin)) return;
  // Cloudflare says from where a request comes; elsewhere, a client could write what it likes into that header.
  return ("cf" in request && request.headers.get("cf-connecting-ip")) || "everybody";
}

/** @param {unknown} text */
const listOf = (text) => (typeof text === "string" ? text.split(" ").filter((item) => item !== "") : []);

/** @param {Request} request @param {Env} env @param {typeof fetch} [send] */
export async function proxy(request, env, send = fetch) {
  const models = listOf(env.ALLOWED_MODELS);
  if (listOf(env.ALLOWED_ORIGINS).length === 0) return new Response("this proxy is not set up: it needs ALLOWED_ORIGINS", { status: 503 });
  const caller = callerOf(request, env);
  if (caller === undefined) return new Response("this page may not ask here", { status: 403 });
  const cors = {
    "access-control-allow-origin": request.headers.get("origin") ?? "",
    "access-control-allow-headers": FORWARDED_HEADERS.join(", "),
    // These let a page wait as long as the provider requests.
    "access-control-expose-headers": "retry-after, retry-after-ms, x-should-retry",
    vary: "origin",
  };
  if (request.method === "OPTIONS") return new Response(null, { status: 204, headers: cors });
  const refuse = (/** @type {number} */ status, /** @type {string} */ text, /** @type {Record<string, string>} */ more = {}) => new Response(text, { status, headers: { ...cors, ...more } });
  const { pathname } = new URL(request.url);
  const [, name = "", path = ""] = /^\/(\w+)(\/.*)$/.exec(pathname) ?? [];
  const [url, allowed, header, key, prefix = ""] = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : [];
  const match = allowed?.exec(path);
  if (!url || !key || !header || request.method !== "POST" || !match) return refuse(404, "there is nothing here");
  if (typeof env[key] !== "string" || env[key] === "") return refuse(503, `this proxy has no key for ${name}`);
  if (!(await mayAsk(caller, env))) return refuse(429, "too many requests", { "retry-after": "60" });
  const text = await readBody(request);
  if (text === undefined) return refuse(413, `a request may have ${MAX_BODY_BYTES} bytes`);
  const asked = objectOf(text);
  if (!asked) return refuse(400, "a request is a JSON object");
  const model = name === "gemini" ? match[1] : asked.model;
  if (models.length > 0 && !(typeof model === "string" && models.includes(model))) return refuse(403, "this model may not be asked");
  // Written anew: a name that stands there twice might be read here as one model, and there as the other.
  const body = JSON.stringify(asked);
  const headers = new Headers({ [header]: prefix + env[key] });
  for (const headerName of FORWARDED_HEADERS) if (request.headers.has(headerName)) headers.set(headerName, request.headers.get(headerName) ?? "");
  /** @type {Response} */
  let response;
  try {
    // The key goes to the provider and to nobody whom it names.
    response = await send(url + path + (name === "gemini" ? "?alt=sse" : ""), { method: "POST", headers, body, signal: request.signal, redirect: "manual" });
  } catch {
    // Without the CORS headers the page would see a failure of its own network.
    return refuse(502, `${name} cannot be reached`);
  }
  if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) return refuse(502, `${name} cannot be reached`);
  const responseHeaders = new Headers(cors);
  for (const headerName of RETURNED_HEADERS) if (response.headers.has(headerName)) responseHeaders.set(headerName, response.headers.get(headerName) ?? "");
  return new Response(response.body, { status: response.status, headers: responseHeaders });
}

/** @param {string} text @returns {Record<string, unknown> | undefined} */
function objectOf(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the body; returns nothing if it is too long, whatever its headers say. @param {Request} request */
async function readBody(request) {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  const reader = request.body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MAX_BODY_BYTES) return void reader.cancel().catch(() => {});
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

/** What each caller may still send: it fills up within a minute. @type {Map<string, { tokens: number, at: number }>} */
const buckets = new Map();

/** Whether a caller may ask now. Without Cloudflare's limit, each instance counts for itself. @param {string} caller @param {Env} env */
async function mayAsk(caller, env) {
  if (env.LIMIT) return (await env.LIMIT.limit({ key: caller })).success;
  const now = Date.now();
  const { tokens, at } = buckets.get(caller) ?? { tokens: PER_MINUTE, at: now };
  const left = Math.min(PER_MINUTE, tokens + ((now - at) * PER_MINUTE) / 60_000);
  // The one that asked last is the last in the map, so the first has rested longest.
  buckets.delete(caller);
  if (buckets.size >= MAX_CALLERS) buckets.delete(/** @type {string} */ (buckets.keys().next().value));
  buckets.set(caller, { tokens: left < 1 ? left : left - 1, at: now });
  return left >= 1;
}

export default { fetch: (/** @type {Request} */ request, /** @type {Env} */ env) => proxy(request, env) };
