// @ts-check
// What an entry of the package costs whoever has the main one already: its own code, minified, after brotli.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { build } from "esbuild";

const PKG = fileURLToPath(new URL("../../pkg/", import.meta.url));
const MOST = 8192;

for (const name of ["mcp", "webmcp", "stores-node"]) {
  test(`turnwheel/${name} costs ${MOST} bytes at most`, async () => {
    const entryPoint = `${PKG}${name}.js`;
    const shared = { name: "shared", setup: (/** @type {any} */ builder) => builder.onResolve({ filter: /./ }, ({ kind }) => (kind === "entry-point" ? undefined : { external: true })) };
    const { outputFiles } = await build({ entryPoints: [entryPoint], bundle: true, minify: true, write: false, format: "esm", plugins: [shared] });
    const bytes = brotliCompressSync(outputFiles[0]?.contents ?? "").length;
    assert.ok(bytes > 1000 && bytes <= MOST, `${bytes} bytes`);
  });
}
