// @ts-check
// A Worker of these tests, or of the example, as one file: `turnwheel` is the package that was built.

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { wasm } from "../checkpoint/bundle.mjs";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
/** @type {Record<string, string>} */
const ENTRIES = { turnwheel: "entry/workerd.js", "turnwheel/server": "server.js", "turnwheel/stores": "stores.js", "turnwheel/remote": "remote.js", "turnwheel/cloudflare": "cloudflare.js" };

/** @param {string} script a path beside this file, or a whole one @returns {Promise<string>} */
async function bundle(script) {
  const { outputFiles } = await build({
    entryPoints: [here(script)], bundle: true, write: false, format: "esm", logLevel: "silent", external: ["*.wasm", "cloudflare:*"],
    plugins: [{ name: "package", setup(build) {
      build.onResolve({ filter: /^turnwheel(\/|$)/ }, ({ path }) => ({ path: here(`../../../pkg/${ENTRIES[path]}`) }));
      build.onResolve({ filter: /entry\/node\.js$/ }, () => ({ path: here("../../../pkg/entry/workerd.js") }));
    } }],
  });
  return /** @type {any} */ (outputFiles[0]).text;
}

/** The Worker in Miniflare, its objects bound as CHAT. @param {string} script @param {any} [options] */
export async function start(script, options = {}) {
  const code = await bundle(script);
  const isServed = code.includes("turnwheel-server.wasm");
  return new Miniflare({
    cf: false, compatibilityDate: "2026-07-01", durableObjects: { CHAT: { className: "Chat", useSQLite: true } },
    modules: [
      { type: "ESModule", path: "worker.js", contents: code.replaceAll(/"[^"]*\/(turnwheel(-server)?\.wasm)"/g, '"./$1"') },
      { type: "CompiledWasm", path: "turnwheel.wasm", contents: await wasm() },
      ...(isServed ? [/** @type {const} */ ({ type: "CompiledWasm", path: "turnwheel-server.wasm", contents: await readFile(here("../../../pkg/turnwheel-server.wasm")) })] : []),
    ],
    ...options,
  });
}
