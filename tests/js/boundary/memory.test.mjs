// @ts-check
// Agents leave no memory behind; and after an instance broke, the next run gets a fresh one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { transform } from "esbuild";
import { getEngine } from "../../../pkg/core.js";
import { agentHandler } from "../../../pkg/server.js";
import { checkTrace } from "../grammar.mjs";
import { shareOf } from "../share.mjs";
import { Agent, agentLoop, call, deferred, openaiCompatible, readRun, scripted, settle, testTool, textOf } from "../kit.mjs";

setFlagsFromString("--expose-gc");
/** @type {() => void} */
const gc = runInNewContext("gc");

/** Frees everything that nobody holds, in JavaScript and then in the engine. */
async function collect() {
  for (let i = 0; i < 5; i++) {
    gc();
    await settle();
  }
}

const bytes = () => /** @type {any} */ (getEngine()).memory.buffer.byteLength;
const long = "x".repeat(8_000);

/** Everything that a run can do, about 24 KB of it. @param {any} [options] */
const busy = (options) => ({ model: scripted([{ text: long, ...call("go") }, "done"]), tools: [testTool("go", () => long)], systemPrompt: long, ...options });

test("agents that are forgotten leave the engine's memory flat", async () => {
  const rounds = [];
  let made = 0;
  let collected = 0;
  const registry = new FinalizationRegistry(() => void collected++);
  /**
   * How many are left must not depend on when the host finds the time; code that is running
   * now may hold one or two.
   */
  const forgotten = async () => {
    for (let i = 0; i < 100 && collected < made - 2; i++) await collect();
    assert.ok(collected >= made - 2, `${made - collected} of ${made} agents are still held`);
  };
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < shareOf(400, 2); i++) {
      const agent = new Agent(busy());
      registry.register(agent, undefined);
      made++;
      const { stopReason } = await agent.prompt("Go");
      assert.equal(stopReason, "completed");
      if (i % 50 === 0) await forgotten();
    }
    await forgotten();
    rounds.push(bytes());
  }
  assert.equal(rounds.at(-1), rounds[1], `it grew: ${rounds}`);
});

test("10,000 agents, made and dropped: flat; those that somebody holds are what fills it", async () => {
  const many = shareOf(2_000, 4);
  const small = () => new Agent({ model: scripted([call("go"), "done"]), tools: [testTool("go", () => "gone")] });
  const rounds = [];
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < many; i++) {
      await small().prompt("Go");
      if (i % 250 === 0) await collect();
    }
    await collect();
    rounds.push(bytes());
  }
  // If all but those of the first round stayed, it would be some megabytes; of a share, one.
  assert.ok(rounds.at(-1) - rounds[0] <= 131_072, `it grew: ${rounds}`);
  const held = [];
  for (let i = 0; i < 2_000; i++) {
    const agent = small();
    held.push(agent);
    await agent.prompt("Go");
  }
  assert.ok(bytes() > /** @type {number} */ (rounds[0]) + 1_000_000, `agents that are held take room: ${bytes()} after ${rounds}`);
  assert.equal(held.length, 2_000);
});

test("`using` disposes of an agent at the end of its block, and stops the run that is on", async () => {
  const source = `
    let kept, run;
    {
      using agent = new Agent({ model, tools });
      kept = agent;
      run = agent.prompt("Go");
      await settle();
    }
    return [kept, await run];`;
  const { code } = await transform(`export async function block(Agent, model, tools, settle) {${source}}`, { target: "es2022" });
  const { block } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  const [agent, { stopReason }] = await block(Agent, scripted([call("wait")]), [testTool("wait", () => new Promise(() => {}))], settle);
  assert.equal(stopReason, "aborted");
  assert.throws(() => agent.prompt("Again"), /the agent was disposed of/);
});

test("agents that are disposed of, and single runs, need no garbage collection for it", async () => {
  const rounds = [];
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 150; i++) {
      const agent = new Agent(busy());
      await agent.prompt("Go");
      agent[Symbol.dispose]();
      await agentLoop(["Go"], busy());
    }
    rounds.push(bytes());
  }
  assert.equal(rounds.at(-1), rounds[0], `it grew: ${rounds}`);
});

test("an agent that is forgotten while it waits for somebody is gone, with its run", async () => {
  const rounds = [];
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 100; i++) {
      const requested = deferred();
      const agent = new Agent(busy({ tools: [testTool("go", () => "", { requiresApproval: true })] }));
      agent.subscribe((event) => { if (event.type === "tool_approval_requested") requested.resolve(); });
      agent.prompt("Go");
      await requested.promise;
    }
    await collect();
    rounds.push(bytes());
  }
  // Less than a page of 64 KiB for a hundred agents belongs to the allocator; one agent that
  // stays takes about 4 KiB.
  assert.ok(rounds.at(-1) - rounds[1] <= 65_536, `it grew: ${rounds}`);
});

test("an agent in the middle of a run is not forgotten, whoever holds it", async () => {
  const gate = deferred();
  const ended = new Promise((resolve) => {
    const agent = new Agent({ model: scripted([call("wait"), "done"]), tools: [testTool("wait", () => gate.promise)] });
    agent.subscribe((event) => { if (event.type === "agent_end") resolve(event.stopReason); });
    agent.prompt("Go");
  });
  await settle();
  await collect();
  gate.resolve("ok");
  assert.equal(await ended, "completed");
});

test("a run in a back-off or under a watch goes on, although nobody holds its agent", async () => {
  const busyServer = () => scripted([{ error: { code: "overloaded", message: "busy", retryable: true } }, "there"]);
  const begin = (/** @type {any} */ options) => {
    const ended = deferred();
    void new Agent(options).prompt("Go").then(({ stopReason }) => ended.resolve(stopReason));
    return ended.promise;
  };
  const retry = { initialBackoffMs: 200, jitter: false };
  const runs = [
    begin({ model: busyServer(), retry }),
    begin({ model: { id: "silent", streamFn: async function* () { await new Promise(() => {}); } }, timeouts: { firstChunkMs: 200 }, retry: { maxAttempts: 1 } }),
  ];
  for (let i = 0; i < 4; i++) await collect();
  assert.deepEqual(await Promise.all(runs), ["completed", "error"]);
});

test("a model that an agent had before, and its key, are nobody's", async () => {
  const agent = new Agent({ model: scripted(["a", "b"]) });
  await agent.prompt("1");
  const former = (() => {
    agent.model = openaiCompatible("m", { server: "ollama" });
    const held = new WeakRef(agent.model);
    agent.model = scripted(["c"]);
    return held;
  })();
  await settle();
  await collect();
  assert.equal(former.deref(), undefined);
  assert.equal((await agent.prompt("2")).text, "c");
});

test("who listens and hears nothing, or goes again, leaves nothing behind", async () => {
  const host = { sleep: async () => {} };
  const agent = new Agent({ model: scripted([call("wait")]), tools: [testTool("wait", () => new Promise(() => {}))], host });
  const handler = agentHandler(agent, { keepAliveMs: 1, host });
  const events = async () => /** @type {ReadableStream<Uint8Array>} */ ((await handler(new Request("http://a.localhost/events"))).body).getReader();
  const run = agent.prompt("Go");
  for (const reader of [await events(), /** @type {ReadableStream<Uint8Array>} */ (run.toResponse({ keepAliveMs: 1 }).body).getReader()]) {
    const sign = async () => new TextDecoder().decode((await reader.read()).value) === ": \n\n";
    while (!(await sign()));
    await collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 3_000; i++) assert.ok(await sign());
    await collect();
    assert.ok(process.memoryUsage().heapUsed - before < 1_000_000, `${process.memoryUsage().heapUsed - before} bytes for 3,000 life signs`);
  }
  run.abort();
});

test("one conversation of many turns holds what it said, not more", async () => {
  const agent = new Agent({ model: scripted([...Array.from({ length: 600 }, () => call("go")), "done"]), tools: [testTool("go", () => "x".repeat(200))], maxTurns: Infinity });
  const before = bytes();
  await agent.prompt("Go");
  assert.equal(agent.messages.length, 1202);
  assert.ok(bytes() - before < 8_000_000, `${bytes() - before} bytes for 600 turns`);
});

test("a panic ends every run with an error that is told, and the next run has a fresh engine", async () => {
  const engine = /** @type {any} */ (getEngine());
  const gate = deferred();
  const other = new Agent({ model: scripted([call("wait"), "never"]), tools: [testTool("wait", () => gate.promise)] });
  /** @type {any[]} */
  const elsewhere = [];
  other.subscribe((event) => void elsewhere.push(event));
  const waiting = other.prompt("Wait");
  await settle();

  const asleep = new Agent({ model: scripted([]) });
  asleep.followUp("Once");
  const woken = await Agent.restore(asleep.checkpoint(), { model: scripted(["a", "b"]) });
  assert.equal((await woken.prompt("Go")).text, "b");

  const { glue } = engine;
  const agent = new Agent({ model: scripted([call("go", "also"), "fine"]), tools: [testTool("go", () => "gone"), testTool("also", () => new Promise(() => {}))] });
  const run = agent.prompt("Go");
  agent.subscribe((event) => {
    // Like a panic: the next call into the engine traps.
    if (event.type === "tool_execution_end") engine.glue = { ...glue, run_poll() { throw new WebAssembly.RuntimeError("unreachable"); } };
  });
  const outcome = await readRun(run);
  assert.equal(outcome.result.stopReason, "error");
  assert.equal(outcome.result.error.code, "internal");
  assert.match(outcome.result.error.message, /the engine failed: unreachable/);
  assert.equal(outcome.result.error.phase, "engine");
  assert.deepEqual(outcome.all("turn_end")[0].toolResults.map((/** @type {any} */ result) => result.isError), [false, true]);
  assert.equal(textOf(outcome.all("turn_end")[0].toolResults[0]), "gone");
  assert.equal((await waiting).error?.code, "internal");
  checkTrace(elsewhere);

  assert.notEqual(getEngine(), engine);
  for (const again of [agent, other, woken]) {
    again.model = scripted(["well again"]);
    const next = await readRun(again.prompt("Still there?"));
    assert.equal(next.result.text, "well again");
  }
  gate.resolve("late");
  await settle();
  assert.equal(other.messages.at(-1)?.role, "assistant");
});

/** Ways to break an instance, each a trap in the real one. @type {Record<string, (engine: any) => any>} */
const TRAPS = {
  "a read for which there is no memory": (engine) => {
    Object.assign(engine, { size: 0, glue: { ...engine.glue, input() { throw new WebAssembly.RuntimeError("unreachable"); } } });
    return { model: openaiCompatible("m", { baseUrl: "http://x", fetch: reads(new Uint8Array(1)) }) };
  },
  "memory that something wrote over": (engine) => ({
    model: scripted([call("go"), "never"]),
    tools: [testTool("go", () => void new Uint8Array(engine.memory.buffer).fill(0xff))],
  }),
};

/** A fetch whose body is a single read. @param {any} value @returns {any} */
const reads = (value) => async () => ({ ok: true, status: 200, headers: new Headers(), body: { getReader: () => ({ read: async () => ({ done: false, value }), cancel: async () => {} }) } });

for (const [name, options] of Object.entries(TRAPS)) {
  test(`a trap of the instance itself ends every run with an error, and the next agent works: ${name}`, async () => {
    const engine = /** @type {any} */ (getEngine());
    const others = Array.from({ length: 3 }, () => new Agent({ model: scripted([call("wait"), "never"]), tools: [testTool("wait", () => new Promise(() => {}))] }));
    const runs = others.map((agent) => agent.prompt("Wait"));
    await settle();
    const { result } = await readRun(new Agent(options(engine)).prompt("Go"));
    for (const { stopReason, error } of [result, ...(await Promise.all(runs))]) {
      assert.deepEqual([stopReason, error?.code, error?.phase], ["error", "internal", "engine"]);
      assert.match(error?.message ?? "", /^the engine failed: /);
      assert.ok(error?.cause instanceof WebAssembly.RuntimeError);
    }
    assert.notEqual(getEngine(), engine);
    assert.equal((await readRun(new Agent({ model: scripted(["here"]) }).prompt("Next"))).result.text, "here");
    for (const agent of others) agent.model = scripted(["well again"]);
    assert.deepEqual(await Promise.all(others.map(async (agent) => (await agent.prompt("And you?")).text)), Array(3).fill("well again"));
  });
}

test("a trap when a timer rings ends every run with an error", async (t) => {
  /** @type {(() => void)[]} */
  const due = [];
  t.mock.method(globalThis, "setTimeout", (/** @type {() => void} */ work) => due.push(work));
  const waiting = new Agent({ model: scripted([{ error: { code: "throttled", message: "slow" } }, "never"]) }).prompt("Go");
  while (due.length === 0) await undefined;
  const engine = /** @type {any} */ (getEngine());
  new Uint8Array(engine.memory.buffer).fill(0xff);
  for (const work of due) work();
  const { stopReason, error } = await waiting;
  assert.deepEqual([stopReason, error?.code, error?.phase], ["error", "internal", "engine"]);
  assert.ok(error?.cause instanceof WebAssembly.RuntimeError);
  assert.equal((await new Agent({ model: scripted(["fresh"]) }).prompt("Go")).text, "fresh");
});

test("a timer of an engine that died disturbs nobody", async (t) => {
  /** @type {(() => void)[]} */
  const due = [];
  t.mock.method(globalThis, "setTimeout", (/** @type {() => void} */ work) => due.push(work));
  const waiting = new Agent({ model: scripted([{ error: { code: "throttled", message: "slow" } }, "never"]) }).prompt("Go");
  while (due.length === 0) await undefined;
  const engine = /** @type {any} */ (getEngine());
  engine.glue = { ...engine.glue, run_poll() { throw new WebAssembly.RuntimeError("unreachable"); } };
  await new Agent({ model: scripted([]) }).prompt("Break").result;
  assert.equal((await waiting).error?.code, "internal");
  assert.equal((await new Agent({ model: scripted(["fresh"]) }).prompt("Go")).text, "fresh");
  for (const work of due) work();
});
