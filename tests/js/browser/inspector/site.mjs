// @ts-check
// A site with one inspector, under the policy that the docs name, and an agent elsewhere at /agent.

import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
export const POLICY = "script-src 'self' 'wasm-unsafe-eval'; style-src 'self'";
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", ".css": "text/css" };
const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>inspector</title><link rel="stylesheet" href="/page.css"><script type="module" src="/tests/js/browser/inspector/page.mjs"></script>
<main><h1>Inspector</h1><turnwheel-inspector></turnwheel-inspector></main></html>`;
const STYLE = "html, body { margin: 0; height: 100%; background: Canvas; color: CanvasText; } main { display: flex; flex-direction: column; height: 100%; padding: 10px; box-sizing: border-box; } h1 { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); } turnwheel-inspector { flex: 1; }";

/** @param {(request: Request) => Promise<Response>} [handler] of /agent */
export async function startSite(handler) {
  const site = createServer(async (request, response) => {
    const { pathname: path } = new URL(request.url ?? "/", "http://x");
    response.setHeader("content-security-policy", POLICY);
    if (path === "/") return void response.setHeader("content-type", "text/html").end(PAGE);
    if (path === "/page.css") return void response.setHeader("content-type", "text/css").end(STYLE);
    if (path.startsWith("/agent") && handler) return answer(handler, request, response);
    const file = join(ROOT, normalize(path));
    const known = (path.startsWith("/pkg/") || path.startsWith("/tests/js/")) && existsSync(file);
    if (!known) return void response.writeHead(404).end();
    response.setHeader("content-type", /** @type {any} */ (TYPES)[extname(file)] ?? "text/plain");
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {any} */ (site.address());
  return { url: `http://127.0.0.1:${port}/`, end: () => (site.closeAllConnections(), new Promise((resolve) => site.close(resolve))) };
}

/** @param {(request: Request) => Promise<Response>} handler @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
async function answer(handler, request, response) {
  const { url, method = "GET", headers } = request;
  const body = method === "POST" ? Readable.toWeb(request) : undefined;
  const answered = await handler(new Request(`http://${headers.host}${url}`, /** @type {any} */ ({ method, headers, body, duplex: "half" })));
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  response.flushHeaders();
  if (!answered.body) return void response.end();
  const readable = Readable.fromWeb(/** @type {any} */ (answered.body)).on("error", () => {});
  response.on("close", () => readable.destroy());
  readable.pipe(response);
}
