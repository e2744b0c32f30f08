// @ts-check
// Serves the demo page on this machine only, until Ctrl-C, or until its standard input closes.
// `cargo xtask demo` runs it.
//   node www/demo/serve.mjs PACKAGE [--port N] [--model ID] [--base-url URL]
// The page is at `/`, the package at `/pkg/` and llama.cpp at `/wllama/`.

import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { context } from "esbuild";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const HOST = "127.0.0.1";
const FIRST_PORT = 8080;

/**
 * Serves the page until `end`.
 * @param {string} pack the folder of the package @param {number} [port] by default 8080, or any free one
 * @returns {Promise<{ url: string, end(): Promise<void> }>}
 */
export async function servePage(pack, port) {
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-demo-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.on("exit", remove);
  // esbuild serves one folder: this one has links to all that the page is made of, so that a change is seen at once.
  for (const name of readdirSync(here("."))) symlinkSync(here(name), join(folder, name));
  symlinkSync(resolve(pack), join(folder, "pkg"));
  symlinkSync(here("../../node_modules/@wllama/wllama/esm"), join(folder, "wllama"));
  const server = await context({ logLevel: "silent" });
  const listen = (/** @type {number} */ at) => server.serve({ servedir: folder, host: HOST, port: at });
  const listening = port === undefined ? await listen(FIRST_PORT).catch(() => listen(0)) : await listen(port);
  return {
    url: `http://${HOST}:${listening.port}/`,
    async end() {
      process.off("exit", remove);
      remove();
      await server.dispose();
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals: [pack = here("../../pkg")] } = parseArgs({
    allowPositionals: true,
    options: { port: { type: "string" }, model: { type: "string" }, "base-url": { type: "string" } },
  });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit());
  // It does not outlive the process that started it.
  process.stdin.on("end", () => process.exit()).resume();
  const port = values.port === undefined ? undefined : Number(values.port);
  const { url } = await servePage(pack, port).catch((/** @type {Error} */ error) => {
    console.error(`error: cannot listen${port === undefined ? "" : ` on port ${port}; \`--port 0\` takes a free one`}: ${error.message}`);
    process.exit(1);
  });
  const query = new URLSearchParams();
  if (values.model !== undefined) query.set("model", values.model);
  if (values["base-url"] !== undefined) query.set("baseUrl", values["base-url"]);
  console.log(query.size > 0 ? `${url}?${query}` : url);
  console.error("the demo page; Ctrl-C ends it");
}
