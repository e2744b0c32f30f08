// @ts-check
// The core module of component/: it has no import and is within its budget, the scenarios of the oracle are played on it as
// natively, and a host in Python streams from our own model server on loopback.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { brotliCompressSync } from "node:zlib";
import { ROOT } from "../examples/kit.mjs";
import { calls, serve, textAnswer } from "../js/server.mjs";
import { pythonWith } from "./python.mjs";

const CORE = join(resolve(ROOT, process.env["CARGO_TARGET_DIR"] ?? "target"), "xtask/component/turnwheel.core.wasm");
/** In bytes after brotli. */
const BUDGET = 260_000;
/** All of them. */
const SCENARIOS = 110;

test("the scenarios of the oracle, on the core module", { timeout: 20 * 60_000 }, () => {
  const folders = ["tests/data/oracle/scenarios", "target/xtask/traces-component"];
  const words = ["xtask", "conformance", ...folders, "--engine", "component", "--judge", "tests/data/oracle/golden"];
  const { stdout, stderr } = spawnSync("cargo", words, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 });
  assert.match(stdout, new RegExp(`^${SCENARIOS} passed, 0 failed$`, "m"), `${stdout}\n${stderr.slice(-3000)}`);
});

test("it imports nothing, and is within its budget", async () => {
  const bytes = await readFile(CORE);
  const module = new WebAssembly.Module(bytes);
  assert.deepEqual(WebAssembly.Module.imports(module), []);
  const functions = WebAssembly.Module.exports(module).filter(({ kind }) => kind === "function").map(({ name }) => name);
  assert.deepEqual(functions.sort(), ["alloc", "step"]);
  const size = brotliCompressSync(bytes).length;
  console.log(`# ${size} bytes after brotli`);
  assert.ok(size <= BUDGET, `${size} bytes, of which ${BUDGET} are allowed`);
});

const { python, missing } = pythonWith("wasmtime", ["wasmtime==50.0.1"]);

test("a host in Python", { skip: missing, timeout: 120_000 }, async (t) => {
  const model = await serve(t, [
    calls(["letters", '{"word":"Llanfair"}', "a"], ["letters", '{"word":"pwll"}', "b"]),
    { status: 503, headers: { "retry-after-ms": "20" }, body: '{"error":{"message":"busy"}}' },
    { body: textAnswer(["Eight and ", "four. ☸"]), cut: 5 },
  ]);
  const config = { model: { wire: "openai-chat", id: "test", baseUrl: model.baseUrl, apiKey: "sk-test" } };
  const host = spawn(String(python), [join(ROOT, "component/python/host.py"), CORE, JSON.stringify(config), "How many letters?"]);
  let [said, complaint] = ["", ""];
  host.stdout.setEncoding("utf8").on("data", (piece) => (said += piece));
  host.stderr.setEncoding("utf8").on("data", (piece) => (complaint += piece));
  assert.equal(await new Promise((resolve) => host.on("close", resolve)), 0, complaint);
  assert.equal(said.trim(), "Eight and four. ☸");
  assert.equal(model.requests[0]?.headers.authorization, "Bearer sk-test");
  const results = model.requests[2]?.body.messages.slice(-2).map((/** @type {any} */ message) => message.content);
  assert.deepEqual(results, ["8", "4"]);
});
