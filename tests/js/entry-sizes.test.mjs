// @ts-check
// What a further entry of the package weighs beside the main one: bytes after brotli, minified, that a page loads at once which
// imports both, less what it loads with the main one. The budgets are in wasm-pack.toml.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const manifest = await readFile(join(ROOT, "wasm-pack.toml"), "utf8");
const [, section = ""] = /^\[budget\.entries\]\n((?:(?!\[).*\n?)*)/m.exec(manifest) ?? [];
const budgets = [...section.matchAll(/^"([^"]+)" = (\d+)/gm)].map(([, entry, bytes]) => /** @type {[string, number]} */ ([entry, Number(bytes)]));

/** The bytes that are loaded at once, and all of them. @param {string} code @returns {Promise<[number, number]>} */
async function loaded(code) {
  const outdir = await mkdtemp(join(tmpdir(), "turnwheel-sizes-"));
  const { metafile: { outputs } } = await build({ stdin: { contents: code, resolveDir: join(ROOT, "pkg") }, outdir, bundle: true, splitting: true, format: "esm", packages: "external", platform: "node", minify: true, legalComments: "none", metafile: true, logLevel: "silent", absWorkingDir: outdir });
  /** @type {Set<string>} */
  const atOnce = new Set();
  const visit = (/** @type {string | undefined} */ name) => {
    const output = name === undefined || atOnce.has(name) ? undefined : outputs[name];
    if (!output || name === undefined) return;
    atOnce.add(name);
    for (const { path, kind } of output.imports) if (kind === "import-statement") visit(path);
  };
  visit(Object.keys(outputs).find((name) => outputs[name]?.entryPoint === "<stdin>"));
  const sizes = await Promise.all(Object.keys(outputs).map(async (name) => {
    const bytes = await readFile(join(outdir, basename(name)));
    return /** @type {const} */ ([name, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }).length]);
  }));
  await rm(outdir, { recursive: true });
  const sum = (/** @type {(name: string) => boolean} */ counts) => sizes.reduce((all, [name, size]) => all + (counts(name) ? size : 0), 0);
  return [sum((name) => atOnce.has(name)), sum(() => true)];
}

/** What a page that imports an entry has beside the main one anyway. @type {Record<string, string>} */
const BESIDE = { "tabs.js": "remote.js" };

assert.ok(budgets.length > 0, "wasm-pack.toml has budgets for entries");
for (const [entry, budget] of budgets) {
  test(`${entry} is within its budget`, async (t) => {
    const beside = BESIDE[entry] ? ` import * as beside from "./${BESIDE[entry]}"; globalThis.beside = beside;` : "";
    const main = `export * from "./entry/web.js";${beside}`;
    const [[first, all], [withFirst, withAll]] = await Promise.all([loaded(main), loaded(`${main} import * as entry from "./${entry}"; globalThis.entry = entry;`)]);
    const [atOnce, everything] = [withFirst - first, withAll - all];
    t.diagnostic(`${entry}: ${atOnce} bytes at once, ${everything} in all`);
    const added = Math.min(atOnce, everything);
    assert.ok(added <= budget, `${added} bytes, ${added - budget} more than its budget of ${budget}`);
  });
}
