// Runs inside durable engines: killed under random schedules, in each way in which engines find a step again. DURABLE_SCHEDULES sets
// how many schedules there are in all, 1,000 if all are played, at 25 ms of one core each; `cargo xtask e2e durable` has the real engines.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { shareOf } from "../share.mjs";
import { Agent, subagent, testTool, tool } from "../kit.mjs";
import { byData, dbos, elsewhere, perform, restate } from "../../../pkg/durable.js";
import { record, ready } from "../../../pkg/tape.js";
import { Life, Records } from "../steps/engines.mjs";
import { model, survive, World } from "../steps/worlds.mjs";

const schedules = Number(process.env.DURABLE_SCHEDULES ?? shareOf(1000, 4));
const OBJECT = { type: "object" };
const calls = (...names) => names.map((name, i) => ({ id: `c${i}`, name, args: {} }));
/** Calls these tools, and then says that it is done. */
const calling = (...names) => model("m", ({ messages }) => (messages.some(({ role }) => role === "tool_result") ? { text: "done" } : { calls: calls(...names) }));

/** A share of the schedules. */
async function many(share, mode, features, from) {
  const count = Math.ceil(schedules * share);
  let kills = 0;
  for (let seed = from; seed < from + count; seed++) {
    const survived = await survive(seed, { mode, features }).catch((error) => assert.fail(`seed ${seed}, ${mode}: ${error.stack}`));
    kills += survived.kills;
  }
  assert.ok(kills >= count / 2, `only ${kills} lives were killed`);
}

test("a run that is killed anywhere goes on, and lives again to the same history, for an engine that goes by names", () => many(0.33, "name", undefined, 1));
test("the same for an engine that goes by the order of steps", () => many(0.18, "order", undefined, 2001));
test("the same for an engine that gives results back one at a time, in its own order", () => many(0.12, "single", undefined, 4001));
test("the same with letters from outside", () => many(0.11, "name", { steering: true, approver: "always" }, 6001));
test("the same with an abort from outside", () => many(0.11, "order", { aborts: true, approver: "always", wait: false }, 8001));

test("the same with letters and an abort from outside", async () => {
  for (const [at, mode] of ["name", "order", "single"].entries()) await many(0.04, mode, { steering: true, aborts: true, approver: "always", wait: false }, 12_001 + at * 1000);
});

test("what an agent inside a call had shown is taken back, also if the end of its call is read ahead", async () => {
  await survive(500_173, { mode: "name", features: { steering: true, aborts: true, approver: "always", wait: false } });
  for (const mode of ["name", "order", "single"]) await survive(510_226, { mode, features: { steering: true, approver: "always", wait: true, approvals: true } });
});

test("the same with decisions and delays that the engine keeps", async () => {
  for (const [at, mode] of ["name", "order", "single"].entries()) await many(0.05, mode, { wait: true, approvals: true, approver: false, failures: true }, 10_001 + at * 1000);
  for (const [at, mode] of ["name", "order", "single"].entries()) await many(0.05, mode, { wait: true, approver: false, elsewhere: true }, 20_001 + at * 1000);
});

test("an engine that calls the body once for each step", async () => {
  for (let seed = 1; seed <= Math.max(4, schedules / 250); seed++) await survive(seed, { mode: "per call", features: { approvals: false, children: false, wait: false } });
});

test("the tape of a run that is lived again is that of the unbroken run, and names of steps are names on the tape", async () => {
  await ready();
  for (let seed = 100; seed < 108; seed++) {
    const features = { approvals: true, approver: "always", failures: false, fallback: false, children: false, hooks: true };
    const world = new World(seed, features);
    const records = new Records();
    const tapes = [];
    for (let life = 0; life < 2; life++) {
      const recorders = [];
      const world2 = Object.assign(world, {});
      const lived = await world2.live(new Life(records, {}), { record: (agent) => void recorders.push(record(agent)) });
      assert.equal(lived.result.stopReason, "completed");
      const recorder = await recorders[0];
      recorder.stop();
      tapes.push(recorder.toTape());
    }
    const lines = (tape) => tape.toText().split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line)).filter((line) => line.tape === undefined && line.in !== "pieces");
    // How many events there were before depends on the pieces, and pieces have the time at which they came.
    const plain = (tape) => lines(tape).map(({ to: _, ...line }) => (line.reply?.kind === "stream" ? { ...line, at: 0 } : line));
    assert.deepEqual(plain(tapes[1]), plain(tapes[0]));
    const names = new Set([...tapes[0].toText().matchAll(/"name":"(t[^"]+)"/g)].map(([, name]) => name));
    for (const name of records.byName.keys()) if (!/begin|start\/|mail\/|queue|follow_up/.test(name)) assert.ok(names.has(name), `${name} is on the tape`);
  }
});

test("a tool that may have run is not begun again, and the model hears of it", async () => {
  const records = new Records();
  let begun = 0;
  const pay = testTool("pay", () => (begun++, "paid"));
  for (const kill of [(name, where) => name === "t0/tool/0-pay" && where === "end", () => false]) {
    const life = new Life(records, { kill });
    const agent = new Agent({ model: calling("pay"), tools: [pay], host: life.host });
    await Promise.race([agent.prompt("Pay.").result, life.over]);
    if (!life.isOver) assert.equal(agent.messages.find(({ role }) => role === "tool_result").cause, "interrupted");
  }
  assert.equal(begun, 1);
});

test("a journal begins with the version of the package, and a run keeps its id", async () => {
  const records = new Records();
  const runs = [];
  for (let life = 0; life < 2; life++) runs.push(await new Agent({ model: calling(), host: new Life(records).host }).prompt("Hi"));
  const { version } = JSON.parse(await readFile(new URL("../../../pkg/package.json", import.meta.url), "utf8"));
  assert.equal(records.get("begin").value.engine, version);
  assert.equal(runs[0].runId, runs[1].runId);
});

test("a journal is lived again with the prompt that it began with", async () => {
  const records = new Records();
  const live = (prompt) => new Agent({ model: model("m", () => ({ text: "done" })), host: new Life(records).host }).prompt(prompt);
  assert.equal((await live([{ role: "user", content: [{ type: "text", text: "Hi" }], timestamp: 1 }])).text, "done");
  assert.equal((await live([{ role: "user", content: [{ type: "text", text: "Hi" }], timestamp: 2 }])).text, "done");
  const { stopReason, error } = await live("Ho");
  assert.equal(stopReason, "error");
  assert.match(error.message, /the journal is that of a run with another prompt/);
});

test("a second run of the same agent has names of its own, and listeners are told what they have heard before", async () => {
  const records = new Records();
  const told = [];
  for (let life = 0; life < 2; life++) {
    const agent = new Agent({ model: calling(), host: new Life(records).host });
    agent.subscribe((event, { replaying }) => event.type === "agent_end" && told.push(replaying));
    await agent.prompt("Hi");
    await agent.prompt("Again");
  }
  assert.deepEqual([...records.byName.keys()].filter((name) => name.endsWith("model")), ["t0/model", "r2/t0/model"]);
  assert.deepEqual(told, [false, false, true, true]);
});

test("a result that is too large is an error result with both numbers, and such an answer ends the run", async () => {
  const long = testTool("long", () => "x".repeat(2000));
  const agent = new Agent({ model: calling("long"), tools: [long], host: { ...new Life(new Records()).host, steps: { maxBytes: 1000 } } });
  await agent.prompt("Go.");
  const result = agent.messages.find(({ role }) => role === "tool_result");
  assert.ok(result.isError && /`long` has 2\d{3} bytes, and at most 1000/.test(result.content[0].text), result.content[0].text);
  const records = new Records();
  const histories = [];
  for (let life = 0; life < 2; life++) {
    const talker = new Agent({ model: model("m", () => ({ text: "y".repeat(2000) })), host: { ...new Life(records).host, steps: { maxBytes: 1000 } } });
    const { error } = await talker.prompt("Talk.");
    assert.match(error.message, /at most 1000 can be stored/);
    histories.push(talker.messages);
  }
  assert.deepEqual(histories[0], histories[1]);
});

test("a host that waits for decisions gets them from its engine", async () => {
  const records = new Records();
  const pay = tool({ name: "pay", description: "", parameters: OBJECT, requiresApproval: true, execute: () => "paid" });
  const asked = [];
  for (let life = 0; life < 3; life++) {
    const engine = new Life(records, { waits: true, kill: (name, where) => life === 0 && where === "wait", decide: async (name, request) => (asked.push([name, request.toolName]), "approve") });
    const agent = new Agent({ model: calling("pay"), tools: [pay], host: engine.host });
    const run = agent.prompt("Pay.");
    const ended = await Promise.race([run.result, engine.over]);
    assert.equal(ended.text ?? ended, life === 0 ? "killed" : "done");
  }
  assert.deepEqual(asked, [["t0/approve/0", "pay"]]);
});

test("a host that waits gets the results of calls without `execute` from its engine", async () => {
  const look = { name: "look", description: "Looks", parameters: OBJECT };
  const answers = { output: [{ output: "a tree" }, "a tree"], error: [{ error: "it is dark" }, "it is dark"], rejection: [{ action: "reject", reason: "no eyes" }, "no eyes"], misfit: ["approve", "must be { output }, { error } or a rejection"] };
  for (const [answer, shown] of Object.values(answers)) {
    const records = new Records();
    const asked = [];
    for (let life = 0; life < 3; life++) {
      const engine = new Life(records, { waits: true, kill: (name, where) => life === 0 && where === "wait", decide: async (name, request) => (asked.push([name, request.kind, request.toolName]), answer) });
      const agent = new Agent({ model: calling("look"), tools: [look], host: engine.host });
      const run = agent.prompt("Look.");
      for (const stop = agent.subscribe(({ type, id }) => type === "question_asked" && assert.throws(() => agent.resolve(id, { output: "mine" }), /`host.wait` waits for this decision/)); stop; ) break;
      const ended = await Promise.race([run.result, engine.over]);
      assert.equal(ended.text ?? ended, life === 0 ? "killed" : "done");
      if (life > 0) assert.ok(JSON.stringify(agent.messages.find(({ role }) => role === "tool_result").content).includes(shown), JSON.stringify(agent.messages));
    }
    assert.deepEqual(asked, [["t0/answer/0-look", "tool_call", "look"]]);
  }
});

test("a sleep says what it is for", async () => {
  const slept = [];
  let tries = 0;
  const shaky = model("m", () => (tries++ === 0 ? { error: { code: "rate_limit", message: "slowly", retryable: true } } : { text: "well" }));
  const host = { sleep: async (ms, signal, name) => (slept.push(name), name.includes("limit") ? new Promise(() => {}) : undefined) };
  const { text } = await new Agent({ model: shaky, host, timeouts: { firstChunkMs: 5000 } }).prompt("Hi");
  assert.equal(text, "well");
  assert.deepEqual(slept.filter((name) => name.includes("sleep")), ["t0/sleep/1"]);
  assert.ok(slept.some((name) => name.startsWith("t0/limit/")));
});

test("an immediate letter ends an answer inside a call at once, and what had arrived of it is told in every life", async () => {
  const records = new Records();
  const told = [];
  for (let life = 0; life < 2; life++) {
    const slow = { id: "child", provider: "test", async *streamFn(request, options) {
      yield* [{ type: "start" }, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "half of it" }];
      setImmediate(() => agent.steer("Stop that.", { when: "immediate" }));
      await new Promise((_, reject) => options.signal.addEventListener("abort", () => reject(options.signal.reason)));
    } };
    const research = subagent({ name: "research", description: "", agent: () => new Agent({ model: slow }) });
    const outer = model("m", ({ messages }) => (messages.some(({ role }) => role === "tool_result") ? { text: "done" } : { calls: [{ id: "c0", name: "research", args: { prompt: "Look." } }] }));
    const agent = new Agent({ model: outer, tools: [research], host: new Life(records).host });
    const ends = [];
    agent.subscribe((event) => event.type === "subagent_event" && event.event.type === "message_end" && event.event.message.role === "assistant" && ends.push(event.event.message.content));
    assert.equal((await agent.prompt("Go.")).text, "done");
    told.push(JSON.stringify(ends));
  }
  assert.match(told[0], /half of it/);
  assert.equal(told[1], told[0]);
});

test("the time limit of a call with an agent inside ends nothing beside it, and what had arrived is the same in every life", async () => {
  const records = new Records();
  const told = [];
  for (let life = 0; life < 2; life++) {
    const silent = { id: "child", provider: "test", async *streamFn(request, options) {
      yield* [{ type: "start" }, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "half of it" }];
      await new Promise((_, reject) => options.signal.addEventListener("abort", () => reject(options.signal.reason)));
    } };
    const research = subagent({ name: "research", description: "", timeoutMs: 20, agent: () => new Agent({ model: silent }) });
    const slow = testTool("slow", async () => (await new Promise((wake) => setTimeout(wake, 60)), "slowly"));
    const outer = model("m", ({ messages }) => (messages.some(({ role }) => role === "tool_result") ? { text: "done" } : { calls: ["research", "slow"].map((name, i) => ({ id: `c${i}`, name, args: { prompt: "Look." } })) }));
    const agent = new Agent({ model: outer, tools: [research, slow], host: new Life(records).host });
    const ends = [];
    agent.subscribe((event) => event.type === "subagent_event" && event.event.type === "message_end" && event.event.message.role === "assistant" && ends.push(event.event.message));
    assert.equal((await agent.prompt("Go.")).text, "done");
    const results = agent.messages.filter(({ role }) => role === "tool_result");
    assert.deepEqual(results.map(({ cause, content: [{ text }] }) => cause ?? text), ["timeout", "slowly"]);
    told.push(JSON.stringify([ends, results]));
  }
  assert.match(told[0], /half of it/);
  assert.equal(told[1], told[0]);
});

/** Lives a run of one tool again, from records of which one is edited. */
async function livedAgain(edited, edit) {
  const records = new Map();
  const kept = (change) => async (name, work) => {
    if (!records.has(name)) records.set(name, JSON.stringify(await work()));
    return change(name, JSON.parse(records.get(name)));
  };
  let begun = 0;
  const agent = (change) => new Agent({ model: calling("pay"), tools: [testTool("pay", () => (begun++, "paid"))], host: { step: kept(change) } });
  await agent((_, record) => record).prompt("Go.");
  const result = await agent((name, record) => (name === edited ? edit(record, (other) => JSON.parse(records.get(other))) : record)).prompt("Go.");
  assert.equal(begun, 1, "no tool begins again");
  return result;
}

test("what is no record of its step ends the run, and nothing is done about it", async () => {
  const faults = {
    "a record of another step": [(_, other) => other("t0/model"), /it gave the record of `t0\/model`/],
    "a record without an outcome": [({ value: _, ...rest }) => rest, /the record was damaged/],
    "a time that no clock has": [(record) => ({ ...record, at: 1e300 }), /it gave something else/],
    "mail that is none": [(record) => ({ ...record, mail: [5] }), /cannot be read/],
    "nothing": [() => undefined, /it gave something else/],
  };
  for (const [what, [edit, expected]] of Object.entries(faults)) {
    for (const name of ["t0/tool/0-pay", "t1/model"]) {
      const { stopReason, error } = await livedAgain(name, edit);
      assert.equal(stopReason, "error", `${what} for ${name}`);
      assert.match(error.message, expected, `${what} for ${name}`);
    }
  }
});

test("records of another version are refused", async () => {
  const { error } = await livedAgain("begin", (record) => ({ ...record, v: 1 }));
  assert.match(error.message, /the step `begin` could not be stored: .* is of another version of turnwheel/);
});

test("an engine may run a work twice at once, and gets one record", async () => {
  let begun = 0;
  const host = { step: async (_name, work) => (await Promise.all([work(), work()]))[1] };
  const { text } = await new Agent({ model: calling("pay"), tools: [testTool("pay", () => (begun++, "paid"))], host }).prompt("Go.");
  assert.deepEqual([text, begun], ["done", 1]);
});

test("a step that cannot be stored ends the run with its error", async () => {
  const host = { step: async (name, work) => (name === "t0/model" ? Promise.reject(new Error("the lease is lost")) : work()) };
  const { stopReason, error } = await new Agent({ model: calling(), host }).prompt("Hi");
  assert.equal(stopReason, "error");
  assert.match(error.message, /host\.step.*t0\/model.*the lease is lost/);
  assert.equal(error.cause.message, "the lease is lost");
});

test("a key is asked for inside the step of its call, and is in no record", async () => {
  const { openai } = await import("../kit.mjs");
  const records = new Records();
  let asked = 0;
  const body = 'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\ndata: {"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  for (let life = 0; life < 2; life++) {
    const agent = new Agent({ model: openai("m", { apiKey: async () => (asked++, "sk-secret-1234"), fetch: async (_url, { headers }) => (assert.match(JSON.stringify(headers), /sk-secret-1234/), new Response(body)) }), host: new Life(records).host });
    assert.equal((await agent.prompt("Hi")).text, "Hello");
  }
  assert.equal(asked, 1);
  assert.ok(![...records.byName.values()].join().includes("sk-secret"));
});

test("a call that runs too long is over in every life", async () => {
  const records = new Records();
  const slow = testTool("slow", (_args, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))), { timeoutMs: 20 });
  const histories = [];
  for (let life = 0; life < 2; life++) {
    const engine = new Life(records);
    const agent = new Agent({ model: calling("slow"), tools: [slow], host: engine.host });
    await agent.prompt("Go.");
    histories.push(agent.messages);
    assert.equal(agent.messages.find(({ role }) => role === "tool_result").cause, "timeout");
    if (life === 1) assert.deepEqual(engine.began, []);
  }
  assert.deepEqual(histories[0], histories[1]);
});

// ---- adapters

test("dbos: steps by name, decisions by topic", async () => {
  const steps = [];
  const fake = { runStep: async (work, { name }) => (steps.push(name), work()), sleep: async () => {}, recv: async (topic) => (steps.push(`recv ${topic}`), "approve") };
  const pay = tool({ name: "pay", description: "", parameters: OBJECT, requiresApproval: true, execute: () => "paid" });
  const { text } = await new Agent({ model: calling("pay"), tools: [pay], host: dbos(fake) }).prompt("Pay.");
  assert.equal(text, "done");
  assert.deepEqual(steps, ["begin", "t0/model", "recv t0/approve/0", "t0/start/0-pay", "t0/tool/0-pay", "t1/model"]);
});

/** The promises of a context that allows one await at a time. */
class OneAwait {
  static isWaiting = false;
  constructor(promise) {
    this.promise = promise;
  }
  map(mapper) {
    return new OneAwait(this.promise.then((value) => mapper(value), (error) => mapper(undefined, error)));
  }
  then(done, failed) {
    if (OneAwait.isWaiting) throw new Error("awaitNext already pending");
    OneAwait.isWaiting = true;
    return this.promise.finally(() => (OneAwait.isWaiting = false)).then(done, failed);
  }
  static race(all) {
    return new OneAwait(Promise.race(all.map(({ promise }) => promise)));
  }
}

test("restate: one await at a time, with tools side by side and a decision", async () => {
  const names = [];
  const ctx = {
    run: (name, action) => (names.push(name), new OneAwait(Promise.resolve().then(action))),
    sleep: () => new OneAwait(Promise.resolve()),
    promise: (name) => ({ get: () => (names.push(`promise ${name}`), new OneAwait(Promise.resolve("approve"))) }),
  };
  const pay = tool({ name: "pay", description: "", parameters: OBJECT, requiresApproval: true, execute: () => "paid" });
  const { text } = await new Agent({ model: calling("pay", "look", "look"), tools: [pay, testTool("look", () => "seen", { idempotent: true })], host: restate(ctx, { RestatePromise: OneAwait }) }).prompt("Pay.");
  assert.equal(text, "done");
  assert.ok(names.includes("promise t0/approve/0") && names.includes("t0/tool/2-look"));
});

test("byData: models and tools run where their effects are sent to", async () => {
  const add = tool({ name: "add", description: "Adds", parameters: OBJECT, execute: ({ a }) => a + 1 });
  const there = model("m", ({ messages }) => (messages.some(({ role }) => role === "tool_result") ? { text: `it is ${messages.at(-1).content[0].text}` } : { calls: [{ id: "c", name: "add", args: { a: 1 } }] }));
  const sent = [];
  const run = async (effect) => {
    sent.push(effect.kind);
    return perform(JSON.parse(JSON.stringify(effect)), { model: there, tools: [add] });
  };
  const mine = tool({ name: "add", description: "Adds", parameters: OBJECT, execute: () => assert.fail("nor its tools") });
  const result = await new Agent({ model: elsewhere(there), tools: [mine], host: byData({ run }) }).prompt("Add.");
  assert.equal(result.text, "it is 2");
  assert.deepEqual(sent, ["model", "tool", "model"]);
});

test("perform begins a tool once, unless it is idempotent", async () => {
  let begun = 0;
  const tools = [false, true].map((idempotent) => testTool(`t${idempotent}`, () => `${++begun}`, { idempotent }));
  const performed = async (name, attempt) => (await perform({ kind: "tool", name, arguments: {}, callId: "c" }, { tools, attempt })).value.reply;
  const executed = (text) => ({ kind: "executed", result: { content: [{ type: "text", text }] } });
  assert.deepEqual(await performed("tfalse", 1), executed("1"));
  assert.deepEqual(await performed("tfalse", 2), { kind: "executed", interrupted: true });
  assert.deepEqual(await performed("ttrue", 2), executed("2"));
});

test("no model is asked from the workflow itself, and one whose calls are made elsewhere says how", async () => {
  const { openai } = await import("../kit.mjs");
  const nobody = () => assert.fail("nobody is asked");
  const sent = [];
  const run = (effect) => (sent.push(JSON.stringify(effect)), perform(effect, { model: model("m", () => ({ text: "from there" })) }));
  const here = await new Agent({ model: openai("m", { apiKey: nobody, fetch: nobody }), host: byData({ run }) }).prompt("Hi");
  assert.equal(here.text, "from there");
  assert.match(sent.join(), /"request":\{"model":"m"/);
  const alone = await new Agent({ model: elsewhere({ id: "m" }) }).prompt("Hi");
  assert.match(alone.error.message, /asked in a step, by `perform`/);
});

test("adapters say what they need", () => {
  assert.throws(() => dbos({}), /takes the class `DBOS`/);
  assert.throws(() => restate({}, {}), /takes the context of a handler/);
  assert.throws(() => byData({}), /needs a function `run`/);
  assert.throws(() => elsewhere("m"), /takes a model/);
});

test("the examples of the engines have the same agent", async () => {
  const agents = await Promise.all(["restate", "dbos", "vercel-workflow"].map((name) => readFile(new URL(`../../../www/examples/${name}/agent.js`, import.meta.url), "utf8")));
  assert.equal(new Set(agents.map((text) => text.replaceAll("turnwheel/slim", "turnwheel"))).size, 1);
});
