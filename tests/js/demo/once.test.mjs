// @ts-check
// The demo in the terminal, run as a user runs it, on the built package in `pkg/`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { explain } from "../../../www/demo/advice.js";
import { Trace } from "../../../www/demo/trace.js";

const SCRIPT = fileURLToPath(new URL("../../../www/demo/once.mjs", import.meta.url));

/** @param {string[]} args @param {{ env?: NodeJS.ProcessEnv, onOutput?: (text: string, child: import("node:child_process").ChildProcess) => void }} [options] */
function once(args, { env = {}, onOutput } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [SCRIPT, ...args], { env: { ...process.env, NO_COLOR: "1", ...env } });
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
  const lines = [...text.matchAll(/^ *(\d+\.\d{3}) s {2}( *)(.+)$/gm)].map(([, at, indent = "", content = ""]) => ({ at: Number(at), depth: indent.length / 2, words: content }));
  assert.deepEqual(lines.map(({ at }) => at), lines.map(({ at }) => at).sort((a, b) => a - b));
  const depths = { "run starts": 0, "turn 0": 1, "message starts": 2, "asks calculator": 3, "message ends": 2, "calculator starts": 2, "calculator ends": 2, "turn 0 ends": 1, "turn 1": 1, "run ends: completed": 0 };
  let from = 0;
  for (const [content, depth] of Object.entries(depths)) {
    const at = lines.findIndex((line, index) => index >= from && line.words.startsWith(content));
    assert.ok(at >= from, `${content} after line ${from} of\n${text}`);
    assert.equal(lines[at]?.depth, depth, content);
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
  for (const [args, pattern] of /** @type {[string[], RegExp][]} */ ([[[], /There is no question[\s\S]*Usage:/], [["x", "--model", "m"], /--base-url is missing/], [["x", "--base-url", "http://x"], /--model is missing/], [["x", "--nonsense"], /nonsense[\s\S]*Usage:/]])) {
    const { code, text } = await once(args);
    assert.equal(code, 1, text);
    assert.match(text, pattern);
  }
  assert.equal((await once(["--help"])).code, 0);
});

test("what was taken back leaves no call and no words behind while the next attempt is waited for", () => {
  const trace = new Trace(0);
  const push = (/** @type {any} */ event, /** @type {number} */ at) => trace.push(event, at);
  const delta = (/** @type {any} */ of) => ({ type: "message_update", delta: { contentIndex: 0, delta: "x", ...of } });
  push({ type: "turn_start", turnIndex: 0 }, 0);
  push({ type: "message_start" }, 0);
  push(delta({ type: "text" }), 10);
  push(delta({ type: "tool_call", callId: "c1", toolName: "clock" }), 20);
  push({ type: "message_reset", reason: "cut" }, 30);
  push(delta({ type: "tool_call", callId: "c2", toolName: "clock" }), 1000);
  push(delta({ type: "tool_call", callId: "c2", toolName: "clock" }), 1010);
  assert.deepEqual([...trace.calls.keys()], ["c2"]);
  assert.deepEqual(trace.answers[0]?.parts, [
    { kind: "text", start: 10, end: 20 }, { kind: "tool_call", start: 20, end: 20 }, { kind: "tool_call", start: 1000, end: 1010 },
  ]);
});

test("the advice fits what happened: nothing there, an answer that was cut, a page in place of an answer", () => {
  const where = { label: "here", baseUrl: "http://here/v1", model: "m", origin: "http://page" };
  const explanation = (/** @type {any} */ error, /** @type {any} */ more = {}) => {
    const { title, advice } = explain({ retryable: false, ...error }, { ...where, ...more });
    return [title, ...advice].join(" ");
  };
  assert.match(explanation({ code: "network", message: "no answer from here: Failed to fetch" }), /^No answer from http:\/\/here\/v1\. .*CORS/);
  for (const message of ["the answer of here was cut: network error", "the stream ended early: the connection was cut before the answer was whole"]) {
    assert.match(explanation({ code: "network", message }), /^here began to answer, and was cut off\. (?!.*CORS)/);
  }
  const page = explanation({ code: "invalid_request", message: "the answer is no stream of events but: Hello; is the address that of the API?" });
  assert.match(page, /^here does not know the address\. The address usually ends in `\/v1`/);
  assert.match(explanation({ code: "invalid_request", message: "404", provider: { status: 404 } }), /^here does not know the model or the address\. Is `m` the exact/);
  assert.doesNotMatch(explanation({ code: "invalid_request", message: "404", provider: { status: 404 } }, { model: "" }), /``/);
});
