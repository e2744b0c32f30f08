// @ts-check
// turnwheel/inline in workerd, which compiles nothing from bytes: the error says what to import instead, and that works.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";

const PACKAGE = fileURLToPath(new URL("../../../pkg/", import.meta.url));

/** What a Worker answers that is made of this. @param {string} head its imports @returns {Promise<string>} */
async function answer(head) {
  const contents = `${head}\nexport default { async fetch() { const { text, error } = await new Agent({ model: scripted(["It runs."]) }).prompt("Go"); return Response.json({ text, code: error?.code, message: error?.message }); } };`;
  const { outputFiles } = await build({ stdin: { contents, resolveDir: PACKAGE }, bundle: true, write: false, format: "esm", conditions: ["workerd"], external: ["*.wasm"], logLevel: "silent" });
  const code = String(outputFiles[0]?.text).replace(/^(import .* from )"[^"]+\.wasm"/m, '$1"./turnwheel.wasm"');
  const worker = new Miniflare({ cf: false, compatibilityDate: "2026-07-01", modules: [{ type: "ESModule", path: "worker.js", contents: code }, { type: "CompiledWasm", path: "turnwheel.wasm", contents: await readFile(`${PACKAGE}turnwheel.wasm`) }] });
  try {
    return JSON.parse(await (await worker.dispatchFetch("http://worker.example/")).text());
  } finally {
    await worker.dispose();
  }
}

test("it says that the host compiles nothing from bytes, and which file to import how", { timeout: 60_000 }, async () => {
  const { code, message } = /** @type {any} */ (await answer('import { Agent, scripted } from "./inline.js";'));
  assert.equal(code, "internal");
  assert.match(message, /compiles no WebAssembly from bytes, so turnwheel\/inline cannot run here/);
  for (const line of ['import { Agent, use } from "turnwheel/slim"', 'import wasm from "turnwheel/turnwheel.wasm"', "use(() => wasm)"]) assert.ok(message.includes(line), `${line} in ${message}`);
});

test("what it says works", { timeout: 60_000 }, async () => {
  const { text, message } = /** @type {any} */ (await answer('import { Agent, scripted, use } from "./slim.js"; import wasm from "./turnwheel.wasm"; use(() => wasm);'));
  assert.deepEqual([text, message], ["It runs.", undefined]);
});
