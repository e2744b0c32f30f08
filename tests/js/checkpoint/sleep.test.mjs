// @ts-check
// Puts a run to sleep after every single event and continues it elsewhere: the history comes out the same,
// and no tool runs more often than it may.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Agent, approve, options, world } from "./world.mjs";
import { checkTrace } from "../grammar.mjs";
import { isPlayed } from "../share.mjs";
import { call, misused, misusedLater, scripted, settle, testTool } from "../kit.mjs";

/** A history without timestamps. @param {readonly any[]} messages */
const plain = (messages) => JSON.parse(JSON.stringify(messages, (key, value) => (key === "timestamp" || key === "id" ? undefined : value)));

/** Runs to the end, or to an event, from the beginning or a checkpoint. @param {any} own @param {{ from?: string, until?: number, iterates?: boolean }} [how] */
async function runLife(own, { from, until = Infinity, iterates = false } = {}) {
  /** @type {any[]} */
  const events = [];
  const agent = from === undefined ? new Agent(options(own)) : await Agent.restore(from, options(own));
  /** @type {(saved: string) => void} */
  let sleep = () => {};
  const asleep = new Promise((resolve) => (sleep = resolve));
  const onEvent = (/** @type {any} */ event) => {
    if (own.dead) return;
    events.push(event);
    if (events.length !== until) return;
    sleep(JSON.stringify(agent.checkpoint()));
    own.dead = true;
  };
  if (!iterates) agent.subscribe(onEvent);
  approve(agent, own);
  const run = from === undefined ? agent.prompt("Go") : agent.continue();
  const iterate = async () => {
    for await (const event of run) onEvent(event);
    return run.result;
  };
  const saved = await Promise.race([asleep, iterates ? iterate() : run.result]);
  const result = typeof saved === "string" ? undefined : saved;
  return { events, saved: /** @type {string} */ (saved), result, agent };
}

const whole = await runLife(world());

test("the undisturbed run is what the tests suppose", () => {
  assert.equal(whole.result.stopReason, "completed");
  assert.equal(whole.result.turns, 5);
  assert.equal(whole.agent.messages.length, 1 + 5 + 8);
});

for (const iterates of [false, true]) {
  test(`after every single event another agent goes on${iterates ? ", for who iterates" : ""}`, async () => {
    for (let until = 1; until < whole.events.length; until++) {
      if (!isPlayed(until, 3)) continue;
      const first = world();
      const slept = await runLife(first, { until, iterates });
      const second = { ...world(), failed: first.failed };
      const restored = await runLife(second, { from: slept.saved, iterates });
      const where = `after event ${until}, ${slept.events.at(-1).type}`;
      assert.equal(restored.result.stopReason, "completed", where);
      const [resumed, ...after] = restored.events;
      assert.equal(resumed.type, "run_resumed", where);
      assert.equal(resumed.runId, slept.events[0].runId);
      checkTrace([...slept.events, ...after]);
      const ran = [...first.ran, ...second.ran];
      const twice = ran.filter((id, i) => ran.indexOf(id) !== i);
      assert.ok(twice.every((id) => !/^[bd]1/.test(id)), `${where}: ${twice} ran twice`);
      // A call that was running and must not run twice has a result that says so.
      const running = resumed.runningTools.filter((/** @type {any} */ { toolName }) => toolName === "pay").map((/** @type {any} */ { callId }) => callId);
      const expected = plain(whole.agent.messages);
      for (const message of expected) {
        if (!running.includes(message.callId)) continue;
        Object.assign(message, { isError: true, cause: "interrupted", content: [{ type: "text", text: "tool call interrupted: the process ended while the tool ran" }] });
      }
      assert.deepEqual(plain(restored.agent.messages), expected, where);
      assert.deepEqual(plain(restored.result.messages), expected, where);
    }
  });
}

test("who takes a checkpoint at every event changes nothing", async () => {
  const own = world();
  const agent = new Agent(options(own));
  /** @type {any[]} */
  const events = [];
  agent.subscribe((event) => {
    events.push(event);
    agent.checkpoint();
  });
  approve(agent, own);
  await agent.prompt("Go");
  checkTrace(events);
  assert.deepEqual(events.map(({ type }) => type), whole.events.map(({ type }) => type));
  assert.deepEqual(plain(agent.messages), plain(whole.agent.messages));
});

test("again and again, at any moment: the run comes to the same end", async () => {
  for (let seed = 1; seed <= 150; seed++) {
    let dice = seed * 2_654_435_761;
    const roll = (/** @type {number} */ n) => (dice = (dice * 1_103_515_245 + 12_345) % 2_147_483_648) % n;
    /** @type {any[]} */
    const trace = [];
    /** @type {string[]} */
    const ran = [];
    /** @type {Set<string>} */
    const interrupted = new Set();
    /** @type {string | undefined} */
    let from;
    let failed = false;
    for (let life = 0; ; life++) {
      const own = { ...world(() => roll(6)), failed };
      const { events, saved, result, agent } = await runLife(own, { from, until: life > 12 ? Infinity : 1 + roll(30) });
      for (const { type, toolName, callId } of events.flatMap(({ type, runningTools }) => (type === "run_resumed" ? runningTools : []))) {
        if (type === "tool_call" && toolName === "pay") interrupted.add(callId);
      }
      trace.push(...(life > 0 ? events.slice(1) : events));
      ran.push(...own.ran);
      failed = own.failed;
      if (!result) {
        from = saved;
        if (events.at(-1).type !== "agent_end") continue;
      }
      checkTrace(trace);
      const history = plain(result ? agent.messages : /** @type {any} */ (await Agent.restore(/** @type {string} */ (saved), options(own))).messages);
      const texts = (/** @type {any[]} */ messages) => messages.map(({ role, callId, content }) => (interrupted.has(callId) ? [role, callId] : [role, callId, content]));
      assert.deepEqual(texts(history), texts(plain(whole.agent.messages)), `seed ${seed}`);
      for (const id of ["b1", "d1"]) assert.ok(ran.filter((other) => other === id).length <= 1, `seed ${seed}: ${id} ran twice`);
      break;
    }
  }
});

test("the state of tools, the mail and the usage go along", async () => {
  const own = world();
  const agent = new Agent(options(own));
  /** @type {any} */
  let saved;
  agent.subscribe((event) => {
    if (event.type !== "tool_approval_requested" || saved) return;
    agent.steer("Hurry");
    agent.followUp("And then?");
    saved = agent.checkpoint();
    agent.abort();
  });
  await agent.prompt("Go");
  const other = { ...world(), now: own.now + 86_400_000 };
  const restored = await Agent.restore(saved, options(other));
  assert.equal(restored.isRunning, false);
  assert.deepEqual(restored.pendingApprovals.map(({ callId }) => callId), ["b1"]);
  assert.equal(restored.messages.length, 6);
  approve(restored, other);
  const result = await restored.continue();
  const texts = restored.messages.filter(({ role }) => role === "user").map((/** @type {any} */ { content }) => content[0].text);
  assert.deepEqual(texts, ["Go", "Hurry", "And then?"]);
  assert.equal(result.stopReason, "error", "the model of this world has no sixth answer");
  const { metadata } = restored.checkpoint();
  assert.equal(/** @type {any} */ (metadata.turnwheel).session.begun, true);
  assert.equal(/** @type {any} */ (metadata.turnwheel).session.a1, true);
});

test("letters of before the first run keep their kind", async () => {
  const agent = new Agent({ model: scripted(["one", "two", "three"]) });
  agent.followUp("And then?");
  agent.steer("Hurry");
  const restored = await Agent.restore(agent.checkpoint(), { model: scripted(["one", "two", "three"]), steering: { atStart: "before_first_call" } });
  await restored.prompt("Go");
  assert.deepEqual(restored.messages.map((/** @type {any} */ { content }) => content[0].text), ["Go", "Hurry", "one", "And then?", "two"]);
});

test("a decision before the run goes on counts; nobody has to be asked again", async () => {
  const own = world();
  const slept = await runLife(own, { until: whole.events.findIndex(({ type }) => type === "tool_approval_requested") + 1 });
  const other = world();
  const agent = await Agent.restore(slept.saved, options(other));
  agent.resolveTool("b1", { action: "reject", reason: "too dear" });
  // Put to sleep again before it was resumed: the decision is kept.
  const again = await Agent.restore(JSON.stringify(agent.checkpoint()), options(other));
  approve(again, other);
  await again.continue();
  const result = /** @type {any} */ (again.messages.find((/** @type {any} */ { role, callId }) => role === "tool_result" && callId === "b1"));
  assert.equal(result.cause, "rejected");
});

test("a run that has not begun is in the checkpoint with its prompt", async () => {
  const own = world();
  const agent = new Agent(options(own));
  const run = agent.prompt("Go");
  const saved = run.checkpoint();
  run.abort();
  await run;
  const restored = await runLife(world(), { from: JSON.stringify(saved) });
  assert.equal(restored.events[0].type, "agent_start");
  assert.deepEqual(plain(restored.agent.messages), plain(whole.agent.messages));
});

test("an agent that sleeps between runs is its history, its state and its mail", async () => {
  const agent = new Agent(options(world()));
  assert.deepEqual((await Agent.restore(agent.checkpoint(), options(world()))).messages, []);
  const done = await Agent.restore(whole.agent.checkpoint(), options(world()));
  assert.deepEqual(plain(done.messages), plain(whole.agent.messages));
  assert.deepEqual(done.usage, whole.agent.usage);
  assert.throws(() => done.continue(), /last message is an assistant message/);
});

test("what other settings do to a run that goes on", async () => {
  const approvalEvent = whole.events.findIndex(({ type }) => type === "tool_approval_requested") + 1;
  const { saved } = await runLife(world(), { until: approvalEvent });
  const fewer = world();
  const { tools, ...rest } = options(fewer);
  const agent = await Agent.restore(saved, { ...rest, tools: tools.slice(0, 2) });
  approve(agent, fewer);
  await agent.continue();
  const missing = /** @type {any} */ (agent.messages.find((/** @type {any} */ { role, callId }) => role === "tool_result" && callId === "b1"));
  assert.equal(missing.cause, "unknown_tool");
  await assert.rejects(() => Agent.restore(saved, { ...options(world()), messages: [] }), /leave `messages` out/);
  const waiting = await Agent.restore(saved, options(world()));
  assert.throws(() => waiting.prompt("Something else"), /continue\(\) it first, or reset\(\)/);
  waiting.reset();
  assert.deepEqual([waiting.messages.length, waiting.pendingApprovals.length], [0, 0]);
});

test("what is no checkpoint is refused with the reason", async () => {
  const good = JSON.parse(JSON.stringify(whole.agent.checkpoint()));
  const refuse = (/** @type {any} */ change, /** @type {RegExp} */ text) =>
    assert.rejects(() => Agent.restore(/** @type {any} */ (typeof change === "string" ? change : { ...good, ...change }), options(world())), (/** @type {any} */ error) => {
      assert.equal(error.code, "misuse");
      assert.match(error.message, text);
      return true;
    });
  await refuse("{", /invalid checkpoint payload: /);
  await refuse("7", /a checkpoint must be an object or its JSON, got a number/);
  await refuse({ version: 2 }, /unsupported checkpoint version: 2/);
  await refuse({ format: "other" }, /unsupported checkpoint format: other/);
  await refuse({ run_id: "x" }, /`run_id` must be a UUID or null/);
  await refuse({ messages: [{ role: "user" }] }, /message 0: `content` must be a text or a list/);
  await refuse("{\"a\":1}", /missing version/);
  await refuse({ metadata: { turnwheel: { version: 9 } } }, /metadata.turnwheel is of version 9, this turnwheel reads 1/);
  await refuse({ metadata: { turnwheel: { version: 1, run: { turns: 1 } } } }, /the run of the checkpoint cannot be read: `runId` is missing/);
});

test("a call that would wait for ever, because nothing in the checkpoint waits for it, is refused", async () => {
  const approvalEvent = whole.events.findIndex(({ type }) => type === "tool_approval_requested") + 1;
  const { saved } = await runLife(world(), { until: approvalEvent });
  const refuse = async (/** @type {(run: any) => void} */ change, /** @type {RegExp} */ text) => {
    const data = JSON.parse(typeof saved === "string" ? saved : JSON.stringify(saved));
    change(data.metadata.turnwheel.run);
    await assert.rejects(() => Agent.restore(data, options(world())), text);
  };
  await refuse((run) => void (run.table.entries = []), /the run of the checkpoint cannot be read: `table` must hold the calls that wait/);
  await refuse((run) => void (run.table.entries[0].call.callId = "x"), /`table` must hold the calls that wait/);
  await refuse((run) => void (run.phase.calls[0].status = "ready"), /`ready` must name the calls that are to run/);
});

test("a checkpoint of another engine is a history to go on from; what it says besides is kept", async () => {
  const theirs = {
    version: 1, format: "stakai_message_v1", run_id: null, extra: [1],
    messages: [
      { role: "system", content: "Be brief." }, { role: "user", content: [{ type: "text", text: "Hello" }] }, { role: "assistant", content: "Hello." },
      { role: "user", content: "Hi", name: "ann" },
      { role: "assistant", content: [{ type: "tool_call", id: "t1", name: "look", arguments: { at: "x" }, note: true }] },
      { role: "tool", content: [{ type: "tool_result", tool_call_id: "t1", content: { seen: 1 } }] },
    ],
    metadata: { trimmed: 3 },
  };
  const own = world();
  const agent = await Agent.restore(/** @type {any} */ (theirs), options(own));
  approve(agent, own);
  assert.deepEqual(agent.messages.map(({ role }) => role), ["custom", "user", "assistant", "user", "assistant", "tool_result"]);
  const { metadata, ...again } = agent.checkpoint();
  const { metadata: _, ...known } = theirs;
  // Their format does not say which tool it was.
  assert.deepEqual(/** @type {any} */ (again.messages[5]).provider_options, { turnwheel: { toolName: "look" } });
  delete (/** @type {any} */ (again.messages[5]).provider_options);
  assert.deepEqual(again, known);
  assert.equal(metadata.trimmed, 3);
  const { stopReason } = await agent.continue();
  assert.equal(stopReason, "completed");
  const legacy = await Agent.restore(JSON.stringify(theirs.messages), options(world()));
  assert.equal(legacy.messages.length, 6);
});

test("the size of a checkpoint grows as its history does", async () => {
  const sizes = [1, 2, 4].map((times) => {
    const messages = Array.from({ length: 50 * times }, (_, i) => ({ role: "user", content: [{ type: "text", text: "x".repeat(100) }], timestamp: i }));
    return JSON.stringify(new Agent({ ...options(world()), messages: /** @type {any} */ (messages) }).checkpoint()).length;
  });
  assert.ok(sizes[2] - sizes[0] < 3.1 * (sizes[1] - sizes[0]), String(sizes));
  await settle();
});

test("messages are written and read as the native half does", async () => {
  const { fromCheckpoint, toCheckpoint } = await import("../../../pkg/core.js");
  const cases = JSON.parse(await readFile(new URL("../../data/checkpoints/messages.json", import.meta.url), "utf8"));
  assert.ok(cases.length > 300);
  for (const { message, written } of cases) {
    const checkpoint = toCheckpoint({}, undefined, [message]);
    assert.deepEqual(checkpoint.messages, [written]);
    assert.deepEqual(JSON.parse(JSON.stringify(fromCheckpoint({ ...checkpoint, messages: [written] }).messages)), [message]);
  }
});

test("whatever is given as a checkpoint is taken or refused with a reason", async () => {
  const approvalEvent = whole.events.findIndex(({ type }) => type === "tool_approval_requested") + 1;
  const saved = [];
  for (const until of [3, 9, approvalEvent, approvalEvent + 4]) saved.push((await runLife(world(), { until })).saved);
  const values = [null, 0, -1, 7, true, "", "x", [], {}, [1], { a: 1 }];
  let dice = 7;
  const roll = (/** @type {number} */ n) => (dice = (dice * 1_103_515_245 + 12_345) % 2_147_483_648) % n;
  let taken = 0;
  for (let i = 0; i < 3_000; i++) {
    const checkpoint = JSON.parse(saved[roll(saved.length)]);
    for (let changes = 1 + roll(2); changes > 0; changes--) {
      // Follows a random path, and replaces what is there by something else.
      let at = checkpoint;
      for (;;) {
        const keys = Object.keys(at);
        const key = keys[roll(keys.length)];
        if (key === undefined) break;
        if (typeof at[key] === "object" && at[key] !== null && roll(5) > 0) at = at[key];
        else {
          if (roll(4) === 0) delete at[key];
          else at[key] = values[roll(values.length)];
          break;
        }
      }
    }
    try {
      const agent = await Agent.restore(checkpoint, options(world()));
      taken++;
      agent.checkpoint();
      agent.reset();
    } catch (error) {
      assert.equal(/** @type {any} */ (error).name, "AgentError", `${/** @type {any} */ (error).stack}\n${JSON.stringify(checkpoint)}`);
      assert.notEqual(/** @type {any} */ (error).code, "internal", JSON.stringify(checkpoint));
    }
  }
  assert.ok(taken > 300 && taken < 2_900, `${taken} were taken`);
});

test("a tool that runs again is given what its schema made of the arguments, as the first time", async () => {
  /** @type {any[]} */
  const given = [];
  const schema = (/** @type {(args: any) => any} */ validate) => ({
    "~standard": { version: 1, vendor: "own", validate, jsonSchema: { input: () => ({ type: "object", properties: { n: { type: "string" } } }) } },
  });
  const options = (/** @type {any} */ parameters, /** @type {any} */ execute, /** @type {any} */ answer = "done") => ({
    model: scripted([answer]),
    tools: [{ name: "count", description: "counts", idempotent: true, parameters, execute: (/** @type {any} */ args) => (given.push(args), execute()) }],
  });
  const asNumber = schema(({ n }) => ({ value: { n: Number(n) } }));
  const first = new Agent(options(asNumber, () => new Promise(() => {}), call(["count", { n: "7" }])));
  first.prompt("Go");
  await settle();
  const asleep = JSON.stringify(first.checkpoint());
  first.abort();

  const second = await (await Agent.restore(asleep, options(asNumber, () => "counted"))).continue().result;
  assert.deepEqual([second.stopReason, given], ["completed", [{ n: 7 }, { n: 7 }]]);

  // A new version of the tool no longer accepts text, so it is not called with one.
  const picky = schema(() => ({ issues: [{ message: "a number is wanted", path: ["n"] }] }));
  const third = await (await Agent.restore(asleep, options(picky, () => "never"))).continue().result;
  const refused = third.messages.find((/** @type {any} */ message) => message.role === "tool_result");
  assert.deepEqual([refused.cause, given.length], ["invalid_arguments", 2]);
});

test("arguments nested as deep as they may be come back with the run", async () => {
  /** @type {any} */
  let deep = 1;
  for (let i = 0; i < 127; i++) deep = i % 2 ? [deep] : { a: deep };
  const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "a", toolName: "t", arguments: { deep } }] }, "done"]), tools: [{ name: "t", description: "", parameters: { type: "object" }, execute: (args) => JSON.stringify(args) }] });
  assert.equal((await agent.prompt("go")).text, "done");
  assert.equal(/** @type {any} */ (agent.messages[2]).isError, false);
  const again = await Agent.restore(JSON.parse(JSON.stringify(agent.checkpoint())), { model: scripted(["more"]) });
  assert.deepEqual(again.messages, agent.messages);
  assert.equal((await again.prompt("on")).text, "more");
});

test("a checkpoint that somebody wrote into is refused in words, or taken, and ends nobody else's run", async () => {
  const ask = { ...testTool("ask", () => ""), requiresApproval: true };
  const options = () => ({ model: scripted([call("ask"), "done"]), tools: [ask] });
  const agent = new Agent(options());
  const run = agent.prompt("Go");
  await settle();
  const saved = agent.checkpoint();
  const other = new Agent({ ...options(), model: scripted([call("ask"), "other"]) });
  const others = other.prompt("Go");
  const changed = (/** @type {(checkpoint: any, own: any) => void} */ change) => {
    const checkpoint = structuredClone(saved);
    change(checkpoint, checkpoint.metadata.turnwheel);
    return () => Agent.restore(checkpoint, options());
  };
  await misusedLater(changed((_, own) => (own.sessionId = 5)), /`sessionId` must be a text/);
  await misusedLater(changed((_, own) => (own.untold = 5)), /`untold` must be a list of events/);
  await misusedLater(changed((_, own) => (own.untold = [null])), /`untold` must be a list of events/);
  await misusedLater(changed((_, own) => (own.untold = { type: "turn_start" })), /`untold` must be a list of events/);
  await misusedLater(changed((_, own) => (own.run.table.entries = 5)), /a list was expected, got a number/);
  await misusedLater(changed((_, own) => (own.run.table.entries = [null])), /the `state` of a call/);
  await misusedLater(changed((checkpoint) => (checkpoint.messages[0].provider_options.turnwheel.blocks = [null])), /message 0: /);
  const begun = await changed((_, own) => (delete own.run, Object.assign(own, { prompts: [{ role: "user", content: [], timestamp: 0 }], runId: 5 })))();
  assert.equal(typeof begun.continue().runId, "string");
  begun.abort();
  await begun.waitForIdle();
  await settle();
  assert.ok(other.resolveTool("c1", "reject"));
  assert.equal((await others).text, "other");
  agent.abort();
  await run;
});

test("a history that was written elsewhere can be put to sleep as well", async () => {
  const history = /** @type {any[]} */ ([
    { role: "custom", kind: "note", content: "mine", timestamp: 1 },
    { role: "assistant", content: [{ type: "tool_call", callId: "a", toolName: "look" }], usage: null, timestamp: 1 },
    { role: "tool_result", callId: "a", toolName: "look", content: [], timestamp: 1 },
  ]);
  const agent = await Agent.restore(new Agent({ model: scripted([]), messages: history }).checkpoint(), { model: scripted(["on"]) });
  assert.deepEqual(agent.messages[0], history[0]);
  assert.deepEqual(agent.messages[1].content, [{ type: "tool_call", callId: "a", toolName: "look", arguments: {} }]);
  assert.equal((await agent.continue()).text, "on");
});

test("pieces that are held back: what comes behind them is in a checkpoint that is taken while they are told", async () => {
  const held = (/** @type {any} */ own) => {
    const { host, ...rest } = options(own);
    return { ...rest, coalesceMs: 1, host: { ...host, sleep: (/** @type {number} */ ms) => (ms > 1 ? host.sleep(ms) : new Promise(() => {})) } };
  };
  const begin = (/** @type {any} */ own, /** @type {(event: any, agent: Agent) => void} */ onEvent) => {
    const agent = new Agent(held(own));
    agent.subscribe((event) => onEvent(event, agent));
    approve(agent, own);
    return agent.prompt("Go").result;
  };
  let count = 0;
  await begin(world(), () => void count++);
  for (let until = 1; until < count; until++) {
    const first = world();
    /** @type {any[]} */
    const events = [];
    const saved = await new Promise((resolve) => {
      begin(first, (event, agent) => {
        if (first.dead) return;
        events.push(event);
        if (events.length < until) return;
        resolve(JSON.stringify(agent.checkpoint()));
        first.dead = true;
      });
    });
    const second = { ...world(), failed: first.failed };
    const restored = await Agent.restore(saved, held(second));
    restored.subscribe((event) => void (event.type !== "run_resumed" && events.push(event)));
    approve(restored, second);
    await restored.continue();
    checkTrace(events);
    // The pieces of the last attempt form the answer.
    let shown = "";
    for (const { type, delta, message } of events) {
      if (type === "message_start" || type === "message_reset") shown = "";
      else if (type === "message_update" && delta.type === "text") shown += delta.delta;
      else if (type === "message_end") assert.equal(shown, message.content.map((/** @type {any} */ block) => block.text ?? "").join(""), `after event ${until}`);
    }
  }
});

test("a structured answer is still there, as its schema returns it, wherever the run goes on", async () => {
  const schema = { "~standard": { version: 1, vendor: "test", validate: (/** @type {any} */ value) => ({ value: { ...value, checked: true } }), jsonSchema: { input: () => ({ type: "object" }) } } };
  const byTool = { toolCalls: [{ callId: "o", toolName: "__structured_output", arguments: { a: 1 } }] };
  for (const answer of [byTool, '{"a":1}']) {
    const own = () => ({ model: scripted([answer]), output: /** @type {any} */ (schema) });
    let count = 0;
    const whole = new Agent(own());
    whole.subscribe(() => void count++);
    assert.deepEqual((await whole.prompt("Go")).output, { a: 1, checked: true });
    for (let at = 1; at < count; at++) {
      const agent = new Agent(own());
      /** @type {any} */
      let saved;
      let seen = 0;
      agent.subscribe(() => { if (++seen === at) { saved = JSON.stringify(agent.checkpoint()); agent.abort(); } });
      await agent.prompt("Go");
      const { output } = await (await Agent.restore(saved, own())).continue();
      assert.deepEqual(output, { a: 1, checked: true }, `after event ${at}`);
    }
  }
});

test("a run whose end nobody took yet is counted once, wherever it goes on", async () => {
  const agent = new Agent({ model: scripted([{ text: "done", usage: { input: 4, output: 2 } }]) });
  const run = agent.prompt("Go");
  let isFirst = true;
  for await (const event of run) {
    if (event.type !== "message_end") continue;
    await run;
    await settle();
    assert.ok(isFirst && agent.usage.total === 6);
    isFirst = false;
    const saved = agent.checkpoint();
    const restored = await Agent.restore(saved, { model: scripted([]) });
    const { usage } = await restored.continue();
    assert.deepEqual([usage.total, restored.usage.total], [6, 6]);
    assert.deepEqual(restored.messages, agent.messages);
  }
});
