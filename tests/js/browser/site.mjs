// @ts-check
// What the pages of these tests are served: the package and the checks, under a strict
// Content-Security-Policy, and models on servers of other origins, which give the
// answers that each check needs.

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { calls, recorded, serve, sse, textAnswer } from "../server.mjs";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** All that the package needs of a page's policy, and nothing more for scripts. */
export const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src *";
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

/** Starts the site and the model servers. */
export async function startSite() {
  /** @type {(() => unknown)[]} */
  const ends = [];
  const test = { after: (/** @type {() => unknown} */ end) => void ends.push(end) };
  /**
   * The files of the project that the page may load; how often each was requested, by path.
   * @type {Map<string, number>}
   */
  const requestCounts = new Map();
  const site = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://x").pathname);
    requestCounts.set(path, (requestCounts.get(path) ?? 0) + 1);
    response.setHeader("content-security-policy", request.url === "/?bare" ? POLICY.replace(" 'wasm-unsafe-eval'", "") : POLICY);
    if (path === "/") return void response.setHeader("content-type", "text/html").end('<!doctype html><title>turnwheel</title><script type="module" src="/tests/js/browser/page.mjs"></script>');
    const file = join(ROOT, path);
    const known = (path.startsWith("/pkg/") || path.startsWith("/tests/js/")) && existsSync(file);
    if (!known) return void response.writeHead(404).end();
    response.setHeader("content-type", /** @type {any} */ (TYPES)[extname(file)] ?? "text/plain");
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
  ends.push(() => (site.closeAllConnections(), new Promise((resolve) => site.close(resolve))));
  const port = /** @type {any} */ (site.address()).port;

  const half = textAnswer(["half ", "never"]);
  const silent = { body: half, silent: half.indexOf("\n\n") + 2 };
  let isRead = () => {};
  const broken = textAnswer(["one ", "two"]);
  /** Answers by the first word of the path: the n-th of a list to the n-th request for it. @type {Record<string, any[]>} */
  const ANSWERS = {
    unicode: [{ body: recorded("llamacpp-unicode"), cut: 7 }],
    tools: [calls(["a", '{"n":1}'], ["b", '{"n":2}']), textAnswer("both are done")],
    arguments: [{ body: sse(...Array.from({ length: 12 }, (_, i) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...(i === 0 && { id: "w", type: "function" }), function: { ...(i === 0 && { name: "write" }), arguments: i === 0 ? '{"text":"' : i === 11 ? '"}' : "abcd" } }] } }] })), { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] }), cut: 150 }],
    redirected: [{ status: 307, headers: { location: "/taken/v1/chat/completions" } }], taken: [textAnswer("taken")],
    silent: [silent], "silent-too": [silent], "silent-three": [silent],
    refused: [{ status: 401, body: JSON.stringify({ error: { message: "Incorrect API key provided: sk-browser-0123456789." } }) }],
    patience: [{ status: 429, headers: { "retry-after": "3" }, body: "{}" }, textAnswer("here I am")],
    broken: [{ body: broken, after: broken.indexOf("\n\n") + 2, until: () => new Promise((resolve) => (isRead = () => resolve(undefined))) }, broken],
  };
  /**
   * The next client starts with the first answer again: page and worker make the same requests.
   * @type {Map<string, number>}
   */
  let turns = new Map();
  const models = await serve(test, (request) => {
    const name = request.path.split("/")[1];
    if (name === "read") return (isRead(), { body: "" });
    if (name === "closed") {
      const last = models.requests.findLast((one) => one.path.startsWith(`/${request.text}/`));
      return { headers: { "content-type": "text/plain" }, stream: () => last?.closed };
    }
    const turn = turns.get(name) ?? 0;
    turns.set(name, turn + 1);
    return ANSWERS[name]?.[turn];
  }, { cors: true });
  const closed = await serve(test, () => textAnswer("never read"));
  const at = { models: models.url, closed: closed.url, nobody: "http://127.0.0.1:9" };

  return {
    /** With `?bare` the page's policy does not allow wasm. */
    port, at, requestCounts, closed,
    /** The next client is answered from the beginning. */
    anew: () => void (turns = new Map()),
    async end() {
      for (const end of ends.reverse()) await end();
    },
  };
}
