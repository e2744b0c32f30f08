// @ts-check
// The bytes of answers on a tape, and the decoder that is tried again with them.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Agent, anthropic, custom, gemini, openai, openaiResponses, scripted } from "../kit.mjs";
import { record, replay, Tape, TapeDivergence } from "../../../pkg/tape.js";

const KEY = "sk-live-0123456789abcdef";

/** A server that answers with these pieces, one a read. @param {(string | Uint8Array)[]} pieces @param {any} [init] */
const serving = (pieces, init = {}) => async () => new Response(new ReadableStream({
  start(controller) {
    for (const piece of pieces) controller.enqueue(typeof piece === "string" ? new TextEncoder().encode(piece) : piece);
    controller.close();
  },
}), { headers: { "content-type": "text/event-stream" }, ...init });

/** @param {any} model @param {any} [options] */
async function recorded(model, options = { wire: true }) {
  const agent = new Agent({ model, maxTurns: 1, retry: { maxAttempts: 1 } });
  const recorder = await record(agent, options);
  await agent.prompt("Hi");
  recorder.stop();
  return recorder.toTape();
}

/** @param {Tape} tape @returns {any[]} */
const wires = (tape) => tape.toText().split("\n").filter((line) => line.includes('"wire":')).map((line) => JSON.parse(line));

const chunk = (/** @type {any} */ delta, /** @type {any} */ more = {}) => `data: ${JSON.stringify({ choices: [{ index: 0, delta, ...more }] })}\n\n`;

test("the reads of an answer are on the tape as they came, also where a character is cut in two", async () => {
  const whole = new TextEncoder().encode(chunk({ content: "Grüße" }));
  const at = whole.indexOf(0xc3) + 1;
  const end = chunk({}, { finish_reason: "stop" });
  const tape = await recorded(openai("m", { apiKey: KEY, fetch: serving([whole.slice(0, at), whole.slice(at), end]) }));
  const [line] = wires(tape);
  assert.equal(line.name, "t0/model");
  assert.equal(line.wire, "openai-chat");
  const bytes = line.reads.map((/** @type {any} */ [, text, latin]) => (text === null ? Buffer.from(latin, "latin1") : Buffer.from(text, "utf8")));
  assert.deepEqual(Buffer.concat(bytes), Buffer.concat([whole, Buffer.from(end)]));
  assert.equal((await replay(tape, { wire: true }).result).text, "Grüße");
  assert.ok(!tape.toText().includes(KEY));
});

test("recorded answers of all four wires are decoded again to the same", async () => {
  const folder = new URL("../../data/fixtures/", import.meta.url);
  const models = { "openai-chat": openai, "openai-responses": openaiResponses, anthropic, gemini };
  let played = 0;
  for (const [wire, make] of Object.entries(models)) {
    const all = readdirSync(new URL(`${wire}/`, folder)).filter((name) => name.endsWith(".sse"));
    for (const name of all.slice(0, 12)) {
      const body = readFileSync(new URL(`${wire}/${name}`, folder));
      const pieces = [body.subarray(0, 700), body.subarray(700, 701), body.subarray(701)].filter(({ length }) => length > 0);
      const tape = await recorded(make("m", { apiKey: KEY, fetch: serving(pieces) }));
      assert.equal(wires(tape).length, 1, name);
      await replay(tape, { wire: true }).result.catch((error) => assert.fail(`${wire}/${name}: ${error.message}`));
      played++;
    }
  }
  assert.ok(played > 30, `${played} answers`);
});

test("an error answer is on the tape with the headers that say more", async () => {
  const refused = serving([JSON.stringify({ error: { message: "slow down" } })], { status: 429, headers: { "retry-after": "7", "x-secret": KEY } });
  const tape = await recorded(openai("m", { apiKey: KEY, fetch: refused }));
  const [line] = wires(tape);
  assert.equal(line.status, 429);
  assert.equal(line.headers["retry-after"], "7");
  assert.ok(!tape.toText().includes(KEY));
  assert.equal((await replay(tape, { wire: true }).result).error?.code, "throttled");
});

test("what a decoder makes otherwise of the bytes is a divergence that names the answer", async () => {
  const tape = await recorded(openai("m", { apiKey: KEY, fetch: serving([chunk({ content: "Hello" }), chunk({}, { finish_reason: "stop" })]) }));
  const lines = tape.toText().split("\n").map((line) => (line.includes('"wire":') ? line.replace("Hello", "Hullo") : line));
  const other = Tape.parse(lines);
  assert.equal((await replay(other).result).text, "Hello", "the bytes are not what is lived");
  await assert.rejects(replay(other, { wire: true }).result, (error) => error instanceof TapeDivergence && /`t0\/model`/.test(error.message) && /Hullo/.test(String(error.got)));
  /** @type {string[]} */
  const told = [];
  await replay(other, { wire: true, onDivergence: ({ message }) => (told.push(message), true) }).result;
  assert.equal(told.length, 1);
});

test("an aborted answer is decoded as far as it came", async () => {
  const never = () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(chunk({ content: "Hel" }) + chunk({ content: "lo" }))) }), { headers: { "content-type": "text/event-stream" } });
  const agent = new Agent({ model: openai("m", { apiKey: KEY, fetch: async () => never() }) });
  const recorder = await record(agent, { wire: true });
  const run = agent.prompt("Hi");
  for await (const event of run) if (event.type === "message_update") run.abort();
  recorder.stop();
  const [line] = wires(recorder.toTape());
  assert.equal(line.ended, undefined);
  assert.equal((await replay(recorder.toTape(), { wire: true }).result).stopReason, "aborted");
});

test("an answer with the key in it is not written as bytes, in whatever form and pieces", async () => {
  const escaped = [...KEY].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
  const bodies = [
    [chunk({ content: `your key is ${KEY}` })],
    [chunk({ content: `your key is ${KEY}` }).slice(0, 60), chunk({ content: `your key is ${KEY}` }).slice(60)],
    [chunk({ content: KEY.slice(0, 9) }), chunk({ content: KEY.slice(9) })],
    [`data: {"choices":[{"index":0,"delta":{"content":"${escaped}"}}]}\n\n`],
    [chunk({ content: Buffer.from(KEY).toString("base64") })],
    [`: ${KEY}\n\n`, chunk({ content: "Hi" })],
  ];
  for (const [n, body] of bodies.entries()) {
    const tape = await recorded(openai("m", { apiKey: KEY, fetch: serving([...body, chunk({}, { finish_reason: "stop" })]) }));
    const [line] = wires(tape);
    assert.equal(line.because, "a key", `body ${n}`);
    assert.equal(line.reads, undefined);
    const text = tape.toText();
    for (const form of [KEY, KEY.slice(9), escaped, Buffer.from(KEY).toString("base64")]) assert.ok(!text.includes(form), `body ${n}: ${form}`);
    await replay(tape, { wire: true }).result;
  }
});

test("models without bytes have none, and what cannot be redacted is refused", async () => {
  assert.deepEqual(wires(await recorded(scripted(["Hi"]))), []);
  assert.deepEqual(wires(await recorded(custom("m", async function* () { yield { type: "done", stopReason: "stop" }; }))), []);
  const fetch = serving([chunk({ content: "Hi" }, { finish_reason: "stop" })]);
  assert.deepEqual(wires(await recorded(openai("m", { apiKey: KEY, fetch }), {})), []);
  await assert.rejects(record(new Agent({ model: scripted([]) }), { wire: true, redact: (_where, text) => text }), /`wire` and `redact` exclude each other/);
});
