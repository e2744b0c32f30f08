// Serves the demo page, the built package and the Worker on loopback, and drives the page in Chromium, with
// the loop on the page and in the Worker.
// usage: node tests/demo/run.mjs [SCREENSHOT_DIR]
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { serveWorker } from "../../www/demo/serve-worker.mjs";
import { serveDemo } from "./site.mjs";

/** @type {Awaited<ReturnType<typeof serveWorker>>} */
let worker;
const page = await serveDemo({ site: () => ({ worker: worker.url }) });
worker = await serveWorker([new URL(page.url).origin]);
const script = fileURLToPath(new URL("../js/browser/demo.mjs", import.meta.url));
// Both at the same time: they mostly wait.
const codes = await Promise.all(["page", "worker"].map((place) => new Promise((resolve) => {
  spawn(process.execPath, [script, page.url, place, ...process.argv.slice(2)], { stdio: "inherit" }).on("exit", resolve);
})));
await page.end();
await worker.dispose();
process.exit(codes.every((code) => code === 0) ? 0 : 1);
