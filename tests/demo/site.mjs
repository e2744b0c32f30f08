// The demo page as `cargo xtask demo` serves it: the page's folder, the built package and llama.cpp, on loopback.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm", ".json": "application/json", ".webmanifest": "application/manifest+json" };

/** Where a path of the page is in the repository. */
function fileOf(path) {
  if (path.startsWith("/pkg/")) return join(root, path);
  if (path.startsWith("/wllama/")) return join(root, "node_modules/@wllama/wllama/esm", path.slice("/wllama".length));
  return join(root, "www/demo", path === "/" ? "index.html" : path);
}

/** @param {{ site?: () => object, weights?: string }} [options] what site.json says, and the file at /weights.gguf */
export const serveDemo = ({ site, weights } = {}) => serveFiles((path) => {
  if (path === "/site.json" && site) return Buffer.from(JSON.stringify(site()));
  return path === "/weights.gguf" && weights ? weights : fileOf(path);
});

/**
 * Serves files until `end`. With `compressed` as static hosts do it.
 * @param {(path: string) => string | Buffer} fileAt @param {{ compressed?: boolean, port?: number }} [options]
 * @returns {Promise<{ url: string, end(): Promise<void> }>}
 */
export async function serveFiles(fileAt, { compressed = false, port = 0 } = {}) {
  const server = createServer(async (request, response) => {
    try {
      const found = fileAt(normalize(decodeURIComponent(new URL(request.url, "http://x").pathname)));
      const body = typeof found === "string" ? await readFile(found) : found;
      const type = TYPES[typeof found === "string" ? extname(found) : ".json"] ?? "application/octet-stream";
      const isSmall = compressed && body.length < 3e6 && /br/.test(request.headers["accept-encoding"] ?? "");
      response.writeHead(200, { "content-type": type, ...(isSmall && { "content-encoding": "br" }) });
      response.end(isSmall ? brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }) : body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    async end() {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}
