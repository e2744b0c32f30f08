// Serves the demo page, the built package and the Worker on loopback, and drives the page in Chromium, with
// the loop on the page and in the Worker.
// usage: node tests/demo/run.mjs [SCREENSHOT_DIR]
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { serveWorker } from "../../www/demo/serve-worker.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm", ".json": "application/json" };

/** @type {Awaited<ReturnType<typeof serveWorker>>} */
let worker;
const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
  const file = path.startsWith("/pkg/") ? join(root, path) : join(root, "www/demo", path === "/" ? "index.html" : path);
  if (request.url === "/worker.json") return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ url: worker.url }));
  try {
    const body = await readFile(file);
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});

server.listen(0, "127.0.0.1", async () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  worker = await serveWorker([new URL(url).origin]);
  const script = join(root, "tests/js/browser/demo.mjs");
  // Both at the same time: they mostly wait.
  const codes = await Promise.all(["page", "worker"].map((place) => new Promise((resolve) => {
    spawn(process.execPath, [script, url, place, ...process.argv.slice(2)], { stdio: "inherit" }).on("exit", resolve);
  })));
  server.close();
  await worker.dispose();
  process.exit(codes.every((code) => code === 0) ? 0 : 1);
});
