// @ts-check
// What a further entry of the package weighs beside the main one: bytes after brotli, minified, of the scripts that a page loads at
// once which imports both, without those that the main one loads sooner or later. The budgets are in wasm-pack.toml.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PACKAGE = join(ROOT, "pkg");
const manifest = await readFile(join(ROOT, "wasm-pack.toml"), "utf8");
const [, section = ""] = /^\[budget\.entries\]\n((?:(?!\[).*\n?)*)/m.exec(manifest) ?? [];
const budgets = [...section.matchAll(/^"([^"]+)" = (\d+)/gm)].map(([, entry, bytes]) => /** @type {[string, number]} */ ([entry, Number(bytes)]));

/** What a page that imports an entry has beside the main one anyway. @type {Record<string, string>} */
const BESIDE = { "tabs.js": "remote.js" };

/** @typedef {{ atOnce: Set<string>, ever: Set<string> }} Page the scripts that it loads */

/** Bundles pages together: what they share is in scripts of its own. @param {Record<string, string>} codes @returns {Promise<{ pages: Record<string, Page>, sum(names: Iterable<string>): number }>} */
async function bundle(codes) {
  /** @type {import("esbuild").Plugin} */
  const plugin = { name: "pages", setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^page:/ }, ({ path }) => ({ path, namespace: "page" }));
    onLoad({ filter: /./, namespace: "page" }, ({ path }) => ({ contents: codes[path.slice(5)] ?? "", resolveDir: PACKAGE }));
  } };
  const entryPoints = Object.fromEntries(Object.keys(codes).map((name) => [name, `page:${name}`]));
  // Paths are relative to the package: what they are in one checkout changes the names that esbuild gives, and with them the sizes.
  const { metafile: { outputs }, outputFiles } = await build({ entryPoints, plugins: [plugin], outdir: "out", write: false, bundle: true, splitting: true, format: "esm", packages: "external", external: ["*.wasm"], platform: "node", minify: true, legalComments: "none", metafile: true, logLevel: "silent", absWorkingDir: PACKAGE });
  const sizes = Object.fromEntries(outputFiles.map(({ path, contents }) => {
    return /** @type {const} */ ([`out/${basename(path)}`, brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: contents.length } }).length]);
  }));
  const loadedBy = (/** @type {string} */ page, /** @type {boolean} */ isEver) => {
    /** @type {Set<string>} */
    const found = new Set();
    const visit = (/** @type {string | undefined} */ name) => {
      const output = name === undefined || found.has(name) ? undefined : outputs[name];
      if (!output || name === undefined) return;
      found.add(name);
      for (const { path, kind } of output.imports) if (isEver || kind === "import-statement") visit(path);
    };
    visit(Object.keys(outputs).find((name) => outputs[name]?.entryPoint?.endsWith(`page:${page}`)));
    return found;
  };
  const pages = Object.fromEntries(Object.keys(codes).map((page) => [page, { atOnce: loadedBy(page, false), ever: loadedBy(page, true) }]));
  return { pages, sum: (names) => [...names].reduce((all, name) => all + (sizes[name] ?? 0), 0) };
}

/** What an entry adds to a page: at once, and when it is needed. @param {string} entry */
async function added(entry) {
  const beside = BESIDE[entry] ? ` import * as beside from "./${BESIDE[entry]}"; globalThis.beside = beside;` : "";
  const main = `export * from "./entry/web.js";${beside}`;
  const more = `${main} import * as entry from "./${entry}"; globalThis.entry = entry;`;
  const [alone, both, together] = await Promise.all([bundle({ main }), bundle({ more }), bundle({ main, more })]);
  const page = (/** @type {Awaited<ReturnType<typeof bundle>>} */ { pages }, /** @type {string} */ name) => /** @type {Page} */ (pages[name]);
  const without = page(together, "main").ever;
  const beyond = (/** @type {Set<string>} */ names) => together.sum([...names].filter((name) => !without.has(name)));
  const { atOnce, ever } = page(together, "more");
  // What the main one loads later is not counted; nor is what it costs to have that in a script of its own, if that is more.
  const first = both.sum(page(both, "more").atOnce) - alone.sum(page(alone, "main").atOnce);
  return { atOnce: Math.min(first, beyond(atOnce)), later: beyond(ever) - beyond(atOnce) };
}

assert.ok(budgets.length > 0, "wasm-pack.toml has budgets for entries");
for (const [entry, budget] of budgets) {
  test(`${entry} is within its budget`, async (t) => {
    const { atOnce, later } = await added(entry);
    assert.ok(atOnce > 500, `${entry} has ${atOnce} bytes: the bundle is not what was measured`);
    t.diagnostic(`${entry}: ${atOnce} bytes at once, ${later} when they are needed`);
    assert.ok(atOnce <= budget, `${atOnce} bytes, ${atOnce - budget} more than its budget of ${budget}`);
  });
}
