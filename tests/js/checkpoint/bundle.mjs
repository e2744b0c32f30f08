// @ts-check
// Bundles a script of these tests into one file, for a page or a Worker: what it imports of the package for
// Node is replaced by the entry for that host.

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

/** @param {string} script its name in this folder @param {"web" | "workerd"} entry @returns {Promise<string>} */
export async function bundle(script, entry) {
  const { outputFiles } = await build({
    entryPoints: [here(script)], bundle: true, write: false, format: "esm", logLevel: "silent", external: ["*.wasm", "cloudflare:*"],
    plugins: [{ name: "entry", setup: (build) => build.onResolve({ filter: /entry\/node\.js$/ }, () => ({ path: here(`../../../pkg/entry/${entry}.js`) })) }],
  });
  return /** @type {any} */ (outputFiles[0]).text;
}

export const wasm = () => readFile(here("../../../pkg/turnwheel.wasm"));
