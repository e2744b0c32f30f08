// @ts-check
// The Rust example, built as a user builds it, against our own model server on loopback: a tool runs, a
// temporary refusal is retried, a permanent one is reported without the key.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { calls, serve, textAnswer } from "../js/server.mjs";

const run = promisify(execFile);
const cwd = fileURLToPath(new URL("../../www/examples/rust", import.meta.url));
const target = fileURLToPath(new URL("../../target/example", import.meta.url));

test("an agent in Rust", { timeout: 600_000 }, async (t) => {
  await run("cargo", ["build", "--locked", "--target-dir", target], { cwd, timeout: 600_000 });
  const model = await serve(t, [
    calls(["letters", '{"word":"Llanfairpwllgwyngyll"}']),
    { status: 503, headers: { "retry-after-ms": "20" }, body: '{"error":{"message":"busy"}}' },
    { body: textAnswer(["It has ", "20."]), cut: 7 },
    { status: 401, body: '{"error":{"message":"no such key: sk-test-1234"}}' },
  ]);
  const env = { ...process.env, OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: "sk-test-1234" };
  const ask = (/** @type {string} */ question) => run(`${target}/debug/rust-agent`, [question], { env, timeout: 60_000 });

  assert.equal((await ask("How many letters?")).stdout, "[letters]\nIt has 20.\n");
  assert.equal(model.requests[0]?.headers.authorization, "Bearer sk-test-1234");
  assert.equal(model.requests[2]?.body.messages.at(-1).content, "20");
  const failed = await ask("Again?").catch((error) => error);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /no such key: \[key\]/);
});
