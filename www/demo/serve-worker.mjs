// @ts-check
// Runs the demo's Worker in Cloudflare's runtime, through miniflare, on this machine only.

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

/** @param {string[]} origins of the pages that may use it @returns {Promise<{ url: string, dispose(): Promise<void> }>} */
export async function serveWorker(origins) {
  const { outputFiles } = await build({ entryPoints: [here("worker.js")], bundle: true, write: false, format: "esm", target: "es2022", logLevel: "error", external: ["*.wasm", "cloudflare:*"] });
  const script = outputFiles[0]?.text ?? "";
  const imported = /from "([^"]+\.wasm)"/.exec(script)?.[1] ?? "";
  const server = new Miniflare({
    cf: false, compatibilityDate: "2026-07-01", host: "127.0.0.1", port: 0,
    bindings: { ORIGINS: origins },
    // Conversations exist in memory only.
    durableObjects: { CONVERSATIONS: { className: "Conversation", useSQLite: true, unsafePreventEviction: true } },
    modules: [
      { type: "ESModule", path: "worker.js", contents: script.replace(imported, "./turnwheel.wasm") },
      { type: "CompiledWasm", path: "turnwheel.wasm", contents: await readFile(here("../../pkg/turnwheel.wasm")) },
    ],
  });
  const url = await server.ready;
  return { url: url.origin, dispose: () => server.dispose() };
}
