// @ts-check
// The demo in the terminal, run as a person runs it, on the built package in `pkg/`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../../www/demo/once.mjs", import.meta.url));

/** @param {string[]} words @param {{ env?: NodeJS.ProcessEnv, onOutput?: (text: string, child: import("node:child_process").ChildProcess) => void }} [options] */
function once(words, { env = {}, onOutput } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [SCRIPT, ...words], { env: { ...process.env, NO_COLOR: "1", ...env } });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (piece) => {
        text += piece;
        onOutput?.(text, child);
      });
    }
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, text }));
  });
}

test("the question of two parts runs two tools at once and ends with both results and 0", async () => {
  const { code, text } = await once(["What is 17*23, and what time is it in Oslo?"]);
  assert.equal(code, 0, text);
  assert.match(text, /2 tools at once/);
  assert.match(text, /calculator ends after .*17\*23 = 391/);
  assert.match(text, /answer\n[\s\S]*391[\s\S]*Oslo[\s\S]*\d\d:\d\d/);
  assert.match(text, /usage .*tokens in.*2 turns, 2 tool calls, 2 at once/);
  assert.match(text, /not a language model/);
});

test("the events stand in order, each deeper than the one it belongs to", async () => {
  const { text } = await once(["What is 2+2?", "--fast"]);
  const lines = [...text.matchAll(/^ *(\d+\.\d{3}) s {2}( *)(.+)$/gm)].map(([, at, indent = "", words = ""]) => ({ at: Number(at), depth: indent.length / 2, words }));
  assert.deepEqual(lines.map(({ at }) => at), lines.map(({ at }) => at).sort((a, b) => a - b));
  const depths = { "run starts": 0, "turn 0": 1, "message starts": 2, "asks calculator": 3, "message ends": 2, "calculator starts": 2, "calculator ends": 2, "turn 0 ends": 1, "turn 1": 1, "run ends: completed": 0 };
  let from = 0;
  for (const [words, depth] of Object.entries(depths)) {
    const at = lines.findIndex((line, index) => index >= from && line.words.startsWith(words));
    assert.ok(at >= from, `${words} after line ${from} of\n${text}`);
    assert.equal(lines[at]?.depth, depth, words);
    from = at + 1;
  }
});

test("a failing tool does not fail the run", async () => {
  const { code, text } = await once(["What is 1/0?", "--fast"]);
  assert.equal(code, 0, text);
  assert.match(text, /calculator fails .*division by zero/);
});

test("a refused key ends with 1 and the way out in words; the key comes from the environment", async () => {
  /** @type {(string | undefined)[]} */
  const keys = [];
  const server = createServer((request, response) => {
    keys.push(request.headers.authorization);
    response.writeHead(401, { "content-type": "application/json" }).end('{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}');
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const { code, text } = await once(["Hello", "--model", "m", "--base-url", `http://127.0.0.1:${port}/v1`], { env: { OPENAI_API_KEY: "from-the-environment" } });
  server.closeAllConnections();
  server.close();
  assert.equal(code, 1, text);
  assert.match(text, /refused the key \(401\)[\s\S]*OPENAI_API_KEY/);
  assert.deepEqual(keys, ["Bearer from-the-environment"]);
});

test("Ctrl-C stops the run in order and ends with 1", async () => {
  let isStopped = false;
  const { code, text } = await once(["Count the primes below 20 million"], {
    onOutput: (so_far, child) => {
      if (isStopped || !so_far.includes("count_primes starts")) return;
      isStopped = true;
      child.kill("SIGINT");
    },
  });
  assert.equal(code, 1, text);
  assert.match(text, /count_primes is cut short/);
  assert.match(text, /run ends: stopped/);
});

test("what is missing in the command is said, with the usage, and ends with 1", async () => {
  for (const [words, said] of /** @type {[string[], RegExp][]} */ ([[[], /There is no question[\s\S]*Usage:/], [["x", "--model", "m"], /--base-url is missing/], [["x", "--base-url", "http://x"], /--model is missing/], [["x", "--nonsense"], /nonsense[\s\S]*Usage:/]])) {
    const { code, text } = await once(words);
    assert.equal(code, 1, text);
    assert.match(text, said);
  }
  assert.equal((await once(["--help"])).code, 0);
});
