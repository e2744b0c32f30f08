// @ts-check
// turnwheel/tape: runs are written down, and lived again to the same events.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Agent, agentLoop, call, custom, scripted, subagent, testTool } from "../kit.mjs";
import { cassette, fork, ready, record, recordNow, replay, Tape, TapeDivergence } from "../../../pkg/tape.js";

/** @param {any} agent */
function listening(agent) {
  /** @type {any[]} */
  const events = [];
  agent.subscribe((/** @type {any} */ event) => void events.push(structuredClone(event)), { keep: true });
  return events;
}

/** As JSON, without the time at which JavaScript was told: the replay has that of the machine. @param {any} value */
const plain = (value) => JSON.parse(JSON.stringify(value, (key, member) => (key === "at" ? undefined : member)));

/** @param {any} tape */
async function replayed(tape) {
  const events = [];
  for await (const event of replay(tape)) events.push(event);
  return events;
}

const weather = () => testTool("weather", ({ city }) => `rain in ${city}`, { parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } });

test("a conversation of several runs, with tools, steering and a change of tools, is lived again event by event", async () => {
  const model = scripted([
    { thinking: "hm", text: ["Let ", "me ", "look."], toolCalls: [{ callId: "a", toolName: "weather", arguments: { city: "Oslo" }, chunks: ['{"city"', ':"Oslo"}'] }] },
    "It rains.", "And now?", { error: { code: "overloaded", message: "busy" } }, "Better.", "Good.",
  ]);
  const agent = new Agent({ model, tools: [weather()], systemPrompt: "Be brief.", retry: { initialBackoffMs: 1 }, policies: { preTurn: [() => "continue"] } });
  const events = listening(agent);
  const recorder = await record(agent);
  recorder.note("a person asks");
  await agent.prompt("Rain in Oslo?");
  agent.steer("One more thing");
  await agent.prompt("Go on");
  agent.tools = [];
  const last = await agent.prompt("And?");
  recorder.stop();
  const tape = Tape.parse(recorder.toText());
  assert.ok(tape.complete);
  assert.equal(tape.events, events.length);
  assert.deepEqual(plain(await replayed(tape)), plain(events));
  const result = await replay(tape).result;
  assert.equal(result.text, last.text);
  assert.equal(last.text, "Good.");
  assert.deepEqual(plain(replay(tape).seek(tape.events).messages), plain(agent.messages));
  const names = new Set(replay(tape).entries().flatMap((entry) => (entry.kind === "start" ? [entry.name] : [])));
  for (const name of ["t0/model", "t0/tool/0-weather", "t0/transform", "t1/model.2", "t1/sleep/1"]) assert.ok(names.has(name), `${name} in ${[...names].join(" ")}`);
  assert.ok(replay(tape).entries().some((entry) => entry.kind === "note" && entry.text === "a person asks"));
});

test("an answer over HTTP is on the tape as its pieces", async () => {
  const sse = ["Hel", "lo", "."].map((content) => ({ choices: [{ index: 0, delta: { content } }] }));
  const body = [...sse, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }].map((data) => `data: ${JSON.stringify(data)}\n\n`).join("") + "data: [DONE]\n\n";
  const { openai } = await import("../kit.mjs");
  const agent = new Agent({ model: openai("m", { apiKey: "sk-secret-key", fetch: async () => new Response(body, { headers: { "content-type": "text/event-stream" } }) }) });
  const events = listening(agent);
  const recorder = await record(agent);
  await agent.prompt("Hi");
  recorder.stop();
  assert.ok(!recorder.toText().includes("sk-secret"));
  assert.deepEqual(plain(await replayed(recorder.toTape())), plain(events));
});

test("questions, sub-agents and an abort are lived again", async () => {
  const child = () => new Agent({ model: scripted([call("pay"), "paid"]), tools: [testTool("pay", () => "ok", { requiresApproval: true })] });
  const helper = subagent({ name: "helper", description: "helps", agent: child });
  const agent = new Agent({
    model: scripted([{ toolCalls: [{ callId: "h", toolName: "helper", arguments: { prompt: "pay" } }] }, call("slow"), "never"]),
    tools: [helper, testTool("slow", () => new Promise(() => {}))],
  });
  const events = listening(agent);
  const recorder = await record(agent);
  const run = agent.prompt("Go");
  for await (const event of run) {
    if (event.type === "tool_approval_requested") agent.resolve(event.id, "approve");
    if (event.type === "tool_execution_start" && event.toolName === "slow") run.abort("enough");
  }
  recorder.stop();
  assert.ok(events.some((event) => event.type === "subagent_event"));
  assert.equal(events.at(-1).stopReason, "aborted");
  const again = await replayed(recorder.toTape());
  assert.deepEqual(plain(again), plain(events));
});

test("a tape that was cut is lived up to its end", async () => {
  const agent = new Agent({ model: scripted([call("weather"), "done"]), tools: [testTool("weather", () => "rain")] });
  const events = listening(agent);
  const recorder = await record(agent);
  await agent.prompt("Go");
  const text = recorder.toText();
  const cut = Tape.parse(text.slice(0, Math.floor(text.length * 0.7)));
  assert.equal(cut.complete, false);
  const again = await replayed(cut);
  assert.ok(again.length > 3 && again.length < events.length);
  assert.deepEqual(plain(again), plain(events.slice(0, again.length)));
  const result = await replay(cut).result;
  assert.equal(result.stopReason, "aborted");
});

test("a tape that says something else is a divergence", async () => {
  const agent = new Agent({ model: scripted(["Hello."]) });
  const recorder = await record(agent);
  await agent.prompt("Go");
  recorder.stop();
  const other = Tape.parse(recorder.toText().replace("Hello.", "Goodbye."));
  await assert.rejects(replayed(other), (error) => error instanceof TapeDivergence && error.code === "tape_divergence" && error.input > 0);
  assert.throws(() => Tape.parse("nothing"), /no tape/);
  assert.throws(() => Tape.parse('{"tape":99}'), /version 99/);
});

test("a run of agentLoop is recorded before it begins", async () => {
  await ready();
  const run = agentLoop(["Hi"], { model: scripted(["Hello."]) });
  const recorder = recordNow(run);
  const events = [];
  for await (const event of run) events.push(event);
  recorder.stop();
  assert.deepEqual(plain(await replayed(recorder.toTape())), plain(events));
  const agent = new Agent({ model: scripted(["a", "b"]) });
  const busy = agent.prompt("x");
  await new Promise((resolve) => setTimeout(resolve));
  const unsubscribed = await busy;
  assert.equal(unsubscribed.text, "a");
  await assert.rejects(record(/** @type {any} */ ({})), /only an agent/);
});

test("at every event an agent goes on for real, and what had a result does not run again", async () => {
  const script = () => custom("m", async function* ({ messages }) {
    const answers = messages.filter(({ role }) => role === "assistant").length;
    yield { type: "start" };
    if (answers === 0) {
      for (const [i, callId] of ["a", "b"].entries()) {
        yield { type: "tool_call_start", contentIndex: i, callId, toolName: "look" };
        yield { type: "tool_call_delta", contentIndex: i, delta: "{}" };
        yield { type: "tool_call_end", contentIndex: i };
      }
      return yield { type: "done", stopReason: "tool_use" };
    }
    yield { type: "text_start", contentIndex: 0 };
    for (const delta of ["all ", "done"]) yield { type: "text_delta", contentIndex: 0, delta };
    yield { type: "text_end", contentIndex: 0 };
    yield { type: "done" };
  });
  /** @type {string[]} */
  let ran = [];
  const look = testTool("look", (/** @type {any} */ _args, /** @type {any} */ { callId }) => (ran.push(callId), `saw ${callId}`), { idempotent: true });
  const agent = new Agent({ model: script(), tools: [look] });
  const recorder = await record(agent);
  await agent.prompt("Go");
  recorder.stop();
  const tape = recorder.toTape();
  for (let at = 1; at < tape.events; at++) {
    const { messages } = replay(tape).seek(at);
    const had = messages.flatMap((message) => (message.role === "tool_result" ? [message.callId] : []));
    ran = [];
    const other = await fork(tape, { at, model: script(), tools: [look] });
    const { text, stopReason } = await other.continue();
    assert.equal(stopReason, "completed", `event ${at}`);
    assert.equal(text, "all done", `event ${at}`);
    assert.deepEqual(ran.filter((callId) => had.includes(callId)), [], `event ${at}`);
    assert.deepEqual(other.messages.map(({ role }) => role), ["user", "assistant", "tool_result", "tool_result", "assistant"], `event ${at}`);
  }
  await assert.rejects(() => fork(tape, /** @type {any} */ ({ model: script() })), /needs `at`/);
  assert.throws(() => replay(tape).seek(tape.events + 1), /events/);
});

test("a cassette answers what was recorded, and says what differs", async () => {
  const make = (/** @type {any} */ model, /** @type {any} */ tools, prompt = "Be brief.") => new Agent({ model, tools, systemPrompt: prompt });
  const agent = make(scripted([{ toolCalls: [{ callId: "a", toolName: "weather", arguments: { city: "Oslo" } }] }, "It rains."]), [weather()]);
  const recorder = await record(agent);
  await agent.prompt("Rain in Oslo?");
  recorder.stop();
  const tape = recorder.toTape();
  const served = cassette(tape);
  const { text, messages } = await make(served.model, served.tools()).prompt("Rain in Oslo?");
  assert.equal(text, "It rains.");
  assert.equal(messages.find(({ role }) => role === "tool_result")?.content[0].text, "rain in Oslo");
  assert.deepEqual(served.unused, []);
  const strict = cassette(tape, { match: "request" });
  assert.equal((await make(strict.model, strict.tools()).prompt("Rain in Oslo?")).text, "It rains.");
  const other = cassette(tape, { match: "request" });
  const wrong = await make(other.model, other.tools(), "Be long.").prompt("Rain in Oslo?");
  assert.match(wrong.error?.message ?? "", /`systemPrompt` is "Be long\.", on the tape it is "Be brief\."/);
  assert.equal(other.unused.length, 3);
  assert.throws(() => served.tools(["nothing"]), /has no tool `nothing`; it has: `weather`/);
});

test("a live tool is compared with the tape", async () => {
  const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "a", toolName: "weather", arguments: { city: "Oslo" } }] }, "It rains."]), tools: [weather()] });
  const recorder = await record(agent);
  await agent.prompt("Rain in Oslo?");
  recorder.stop();
  const tape = recorder.toTape();
  assert.equal((await replay(tape, { tools: { weather: weather() } }).result).text, "It rains.");
  const sun = { ...weather(), execute: () => "sun" };
  await assert.rejects(replay(tape, { tools: { weather: sun } }).result, (error) => error instanceof TapeDivergence && error.got === "sun" && error.expected === "rain in Oslo");
  /** @type {any[]} */
  const told = [];
  const result = await replay(tape, { tools: { weather: sun }, onDivergence: (divergence) => (told.push(divergence.got), true) }).result;
  assert.equal(result.text, "It rains.");
  assert.deepEqual(told, ["sun"]);
  await assert.rejects(replay(tape, { model: scripted(["It snows."]) }).result, TapeDivergence);
});

test("what is redacted is nowhere on the tape, in whatever pieces it came, and the tape is whole", async () => {
  const agent = new Agent({ model: scripted([{ text: ["my pass", "word is hun", "ter2", "."] }]) });
  const recorder = await record(agent, { redact: (_where, text) => text.replaceAll("hunter2", "*******").replaceAll("Anna", "A.") });
  await agent.prompt("I am Anna, what is my password?");
  recorder.note("Anna left");
  recorder.stop();
  const text = recorder.toText();
  assert.ok(!/hun|ter2|Anna/.test(text), text);
  const result = await replay(recorder.toTape()).result;
  assert.equal(result.text, "my password is *******.");
  const failing = new Agent({ model: scripted(["x"]) });
  const report = console.error;
  console.error = () => {};
  try {
    const other = await record(failing, { redact: () => { throw new Error("no"); } });
    await failing.prompt("secret");
    other.stop();
    assert.ok(!other.toText().includes("secret"));
  } finally {
    console.error = report;
  }
});

test("large images leave their size, and old runs are left out", async () => {
  const agent = new Agent({ model: scripted(["1", "2", "3", "4"]) });
  const recorder = await record(agent, { maxBytes: 10, keep: "run" });
  await agent.prompt([{ type: "text", text: "look" }, { type: "image", mimeType: "image/png", data: "A".repeat(400) }]);
  assert.ok(!recorder.toText().includes("A".repeat(20)));
  assert.match(recorder.toText(), /"leftOut":400/);
  await agent.prompt("again");
  const events = listening(agent);
  await agent.prompt("and again");
  recorder.stop();
  const tape = recorder.toTape();
  assert.equal((tape.toText().match(/^\{"run"/gm) ?? []).length, 1);
  const again = await replayed(tape);
  assert.deepEqual(plain(again).map(({ type }) => type), events.map(({ type }) => type));
  assert.equal(replay(tape).seek(tape.events).messages.length, 6);
});

test("lines come as the run goes on", async () => {
  const agent = new Agent({ model: scripted(["Hello."]) });
  const recorder = await record(agent);
  /** @type {string[]} */
  const lines = [];
  const reading = (async () => {
    for await (const line of recorder) lines.push(line);
  })();
  await agent.prompt("Hi");
  recorder.stop();
  await reading;
  assert.equal(`${lines.join("\n")}\n`, recorder.toText());
  assert.equal(recorder.bytes, recorder.toText().length);
  const stream = new Response(recorder.toText()).body;
  assert.equal((await Tape.read(/** @type {ReadableStream<Uint8Array>} */ (stream))).events, recorder.toTape().events);
});

test("an agent that has run takes no recorder, and one from a checkpoint is recorded from there on", async () => {
  const options = { model: scripted(["one", "two", "three"]), convertToLlm: (/** @type {any} */ message) => (message.role === "custom" ? undefined : message) };
  const first = new Agent(options);
  await first.prompt("1");
  await assert.rejects(record(first), { code: "misuse", message: "a recording needs the server engine, and an agent's engine is chosen at its first run: record the agent before that, or record a new one, which `Agent.restore(agent.checkpoint())` makes" });
  const agent = await Agent.restore(first.checkpoint(), options);
  const recorder = await record(agent);
  const events = listening(agent);
  await agent.prompt("2");
  recorder.stop();
  assert.deepEqual(plain(await replayed(recorder.toTape())), plain(events));
  assert.equal((await agent.prompt("3")).text, "three");
  const waiting = new Agent({ model: scripted([call("pay"), "paid"]), tools: [testTool("pay", () => "ok", { requiresApproval: true })] });
  const run = waiting.prompt("Go");
  for await (const event of run) if (event.type === "tool_approval_requested") break;
  const saved = waiting.checkpoint();
  const restored = await Agent.restore(saved, { model: scripted(["paid"]), tools: [testTool("pay", () => "ok", { requiresApproval: true })] });
  const second = await record(restored);
  const heard = listening(restored);
  const going = restored.continue();
  restored.resolve(restored.pendingQuestions[0]?.id ?? "", "approve");
  await going;
  second.stop();
  assert.equal(heard[0].type, "run_resumed");
  assert.deepEqual(plain(await replayed(second.toTape())), plain(heard));
});

/** A tool that asks a person. @type {any} */
const pick = {
  name: "pick", description: "Asks", parameters: { type: "object" },
  execute: async (/** @type {any} */ _args, /** @type {any} */ { ask }) => {
    const first = await ask({ message: "Which branch?", schema: { type: "object", properties: { branch: { type: "string" } } } });
    const second = await ask({ message: "Sure?" });
    return `${first.content?.branch} ${second.action}`;
  },
};

test("questions of a tool and of a budget, and their answers, are lived again", async () => {
  const agent = new Agent({ model: scripted([call("pick"), "Done.", "More."]), tools: [pick], budget: { turns: 1, onExceed: "ask", scope: "agent" } });
  const recorder = await record(agent);
  const heard = listening(agent);
  agent.subscribe((event) => {
    if (event.type !== "question_asked") return;
    if (event.kind === "budget") agent.resolve(event.id, { raise: { turns: 1 } });
    else agent.resolve(event.id, event.schema ? { action: "accept", content: { branch: "main" } } : { action: "decline" });
  });
  await agent.prompt("Go").orThrow();
  await agent.prompt("Go on").orThrow();
  recorder.stop();
  const tape = recorder.toTape();
  const kinds = heard.filter(({ type }) => type === "question_asked").map(({ kind }) => kind);
  assert.deepEqual(kinds, ["elicitation", "elicitation", "budget", "budget"]);
  assert.deepEqual(plain(await replayed(tape)), plain(heard));
  const answers = replay(tape).entries().filter(({ kind }) => kind === "answer").map((/** @type {any} */ { name, number, answer }) => [name, number, answer]);
  assert.deepEqual(answers, [["t0/tool/0-pick", 1, { action: "accept", content: { branch: "main" } }], ["t0/tool/0-pick", 2, { action: "decline" }]]);

  // The tool really runs, and gets the answers of the tape.
  assert.equal((await replay(tape, { tools: { pick } }).result).stopReason, "completed");
  const other = { ...pick, execute: async (/** @type {any} */ args, /** @type {any} */ context) => `${await pick.execute(args, context)}!` };
  await assert.rejects(async () => replay(tape, { tools: { pick: other } }).result, { code: "tape_divergence" });

  // At the question, the agent waits for the answer, and a fork of it too.
  const asked = heard.findIndex(({ type, kind }) => type === "question_asked" && kind === "budget") + 1;
  const { phase, pendingApprovals, pendingQuestions } = replay(tape).seek(asked);
  assert.deepEqual([phase, pendingApprovals, pendingQuestions.map(({ kind }) => kind)], ["questioned", [], ["budget"]]);
  const forked = await fork(tape, { at: asked, model: scripted(["Otherwise."]), tools: [pick], budget: { turns: 1, onExceed: "ask", scope: "agent" } });
  assert.equal(forked.resolve(forked.pendingQuestions[0]?.id ?? "", { raise: { turns: 1 } }), true);
  assert.equal((await forked.continue().orThrow()).text, "Otherwise.");
});

test("what was allowed beyond a budget is on the tape of the next run, and of a sub-agent that shares it", async () => {
  const options = () => ({ model: scripted([{ toolCalls: [{ callId: "i", toolName: "inner", arguments: { prompt: "look" } }] }, "Done."]), budget: /** @type {any} */ ({ turns: 2, onExceed: "ask" }) });
  const inner = subagent({ name: "inner", description: "Looks", agent: () => new Agent({ model: scripted(["It is there."]) }) });
  const agent = new Agent({ ...options(), tools: [inner] });
  const recorder = await record(agent);
  const heard = listening(agent);
  agent.subscribe((event) => event.type === "question_asked" && agent.resolve(event.id, { raise: { turns: 3 } }));
  await agent.prompt("Go").orThrow();
  recorder.stop();
  assert.ok(heard.some(({ type }) => type === "question_asked"));
  assert.deepEqual(plain(await replayed(recorder.toTape())), plain(heard));
});

test("tapes of every version are lived again", async () => {
  const folder = new URL("../../data/tapes/", import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith(".tape"));
  assert.ok(files.length >= 20);
  for (const name of files) {
    const tape = Tape.parse(readFileSync(new URL(name, folder), "utf8"));
    assert.ok(tape.complete, name);
    assert.equal((await replayed(tape)).length, tape.events, name);
    const again = replay(tape);
    for (const n of [tape.events, 0, Math.floor(tape.events / 2)]) assert.equal(again.seek(n).n, n, name);
  }
});

test("a moment of a long tape is found, backwards too", async () => {
  const text = Array.from({ length: 20_000 }, (_, i) => `w${i} `);
  const agent = new Agent({ model: scripted([{ text }]) });
  const recorder = await record(agent);
  await agent.prompt("Go");
  recorder.stop();
  const again = replay(recorder.toTape());
  again.seek(20_000);
  for (const n of [10, 19_000, 300, 12_345, 5, 7_777]) assert.equal(again.seek(n).n, n);
});
