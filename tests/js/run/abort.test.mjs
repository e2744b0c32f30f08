// @ts-check
// Abort, in every phase and by every means: exactly one end, a complete history, a settled result.

import assert from "node:assert/strict";
import { test } from "node:test";
import { checkAnswered } from "../grammar.mjs";
import { Agent, agentLoop, call, deferred, isOpen, readRun, scripted, settle, testTool, textOf } from "../kit.mjs";

const never = () => new Promise(() => {});

/** A model that says something, and then nothing more. */
const silent = (started = deferred()) => ({
  provider: "own", id: "silent",
  async *streamFn() {
    yield { type: "start" };
    yield { type: "text_start", contentIndex: 0 };
    yield { type: "text_delta", contentIndex: 0, delta: "half a " };
    started.resolve();
    await never();
  },
});

/**
 * Every phase of a run: the options of an agent that enters the phase and stays in it.
 * `reached` is called from inside.
 * @type {Record<string, (reached: () => void) => any>}
 */
const PHASES = {
  "before anything is listened to": (reached) => (reached(), { model: scripted(["never"]) }),
  "in a transformer": (reached) => ({ model: scripted(["never"]), asyncTransformContext: () => (reached(), never()) }),
  "in the key's callback": (reached) => ({ model: scripted(["never"]), getApiKey: () => (reached(), never()) }),
  "before the model's first word": (reached) => ({ model: { provider: "own", id: "m", streamFn: () => (reached(), never()) } }),
  "in the middle of an answer": (reached) => ({ model: silent(/** @type {any} */ ({ resolve: () => setImmediate(reached) })) }),
  "in a hook before the call": (reached) => ({ model: scripted(["never"]), hooks: { beforeInference: () => (reached(), never()) } }),
  "in a hook after the call": (reached) => ({ model: scripted(["said"]), hooks: { afterInference: () => (reached(), never()) } }),
  "in a tool": (reached) => ({ model: scripted([call("quick", "stuck"), "never"]), tools: [testTool("quick", () => "done"), testTool("stuck", () => (setImmediate(reached), never()))] }),
  "in an approval": (reached) => ({ model: scripted([call("ask"), "never"]), tools: [testTool("ask", () => "never", { requiresApproval: true })], approveTool: () => (setImmediate(reached), never()) }),
  "while a person is waited for": (reached) => ({ model: scripted([call("ask"), "never"]), tools: [testTool("ask", () => "never", { requiresApproval: true })], hooks: { afterInference: () => void setImmediate(reached) } }),
  "in a back-off": (reached) => ({ model: scripted([{ error: { code: "network", message: "gone" } }]), host: { sleep: () => (reached(), never()) } }),
  "while steering is polled": (reached) => ({ model: scripted(["said", "never"]), getSteeringMessages: () => (reached(), never()) }),
  "while follow-ups are polled": (reached) => ({ model: scripted(["said", "never"]), getFollowUpMessages: () => (reached(), never()) }),
};

/** Every means to stop a run. @type {Record<string, (made: { agent: any, run: any, controller: AbortController, leave: () => void }) => void>} */
const MEANS = {
  "run.abort": ({ run }) => run.abort("enough"),
  "agent.abort": ({ agent }) => agent.abort("enough"),
  "an AbortSignal": ({ controller }) => controller.abort(new Error("enough")),
  "leaving the loop": ({ leave }) => leave(),
};

for (const reads of [false, true]) {
  test(`a stream of the text that is cancelled ${reads ? "while it waits for a piece" : "before it was read"} stops the run at once`, async () => {
    const run = new Agent({ model: { provider: "own", id: "m", streamFn: never } }).prompt("Go");
    const stream = /** @type {any} */ (ReadableStream).from(run.textStream);
    const reader = stream.getReader();
    const read = reads ? reader.read() : undefined;
    await settle();
    void reader.cancel();
    assert.equal((await run).stopReason, "aborted");
    if (read) assert.deepEqual(await read, { done: true, value: undefined });
  });
}

for (const [phase, options] of Object.entries(PHASES)) {
  for (const [means, stop] of Object.entries(MEANS)) {
    test(`a run that is stopped ${phase}, by ${means}, ends once and whole`, async () => {
      const reached = deferred();
      const agent = new Agent(options(reached.resolve));
      const controller = new AbortController();
      /** @type {any[]} */
      const events = [];
      agent.subscribe((event) => void events.push(event));
      const run = agent.prompt("Go", { signal: controller.signal });
      const iterator = run[Symbol.asyncIterator]();
      const leave = () => void iterator.return?.();
      reached.promise.then(() => stop({ agent, run, controller, leave }));
      const result = await run.result;
      const { checkTrace } = await import("../grammar.mjs");
      checkTrace(events);
      assert.equal(result.stopReason, "aborted");
      assert.equal(result.error.code, "aborted");
      assert.equal(events.filter((event) => event.type === "agent_end").length, 1);
      const turn = events.findLast((event) => event.type === "turn_end");
      // A turn that was over stays as it was.
      if (!/polled/.test(phase)) assert.equal(turn.reason, "aborted");
      checkAnswered([...agent.messages]);
      assert.equal(agent.isRunning, false);
      // The agent can be used again.
      agent.model = scripted(["well again"]);
      agent.tools = [];
    });
  }
}

test("a signal that was aborted before: one whole turn, and nobody is called", async () => {
  let called = false;
  const agent = new Agent({ model: scripted([() => ((called = true), "never")]), asyncTransformContext: async () => void (called = true) });
  const reason = new Error("not today");
  const outcome = await readRun(agent.prompt("Go", { signal: AbortSignal.abort(reason) }));
  assert.deepEqual(outcome.names, ["agent_start", "turn_start", "message_start", "message_end", "turn_end", "agent_end"]);
  assert.equal(outcome.all("message_end")[0].message.stopReason, "aborted");
  assert.deepEqual(outcome.all("message_end")[0].message.content, []);
  assert.equal(called, false);
  assert.equal(outcome.result.error.cause, reason);
});

test("what was said stays, what was used is counted, finished tools keep their results", async () => {
  const reached = deferred();
  const half = new Agent({ model: silent(reached) });
  const run = half.prompt("Go");
  reached.promise.then(() => setImmediate(() => run.abort("enough")));
  const outcome = await readRun(run);
  assert.equal(outcome.result.text, "half a ");
  assert.equal(outcome.all("turn_end")[0].message.stopReason, "aborted");
  assert.match(outcome.all("turn_end")[0].message.error.message, /enough/);

  const stuck = deferred();
  const agent = new Agent({ model: scripted([{ ...call("quick", "stuck"), usage: { input: 4, output: 2 } }]), tools: [testTool("quick", () => "done"), testTool("stuck", (/** @type {any} */ _, /** @type {any} */ { signal }) => (setImmediate(stuck.resolve), new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))))] });
  const second = agent.prompt("Go");
  stuck.promise.then(() => second.abort());
  const cut = await readRun(second);
  assert.deepEqual(cut.all("turn_end")[0].toolResults.map((/** @type {any} */ result) => [textOf(result) === "done", result.isError, result.cause]), [[true, false, undefined], [false, true, "aborted"]]);
  assert.equal(cut.result.usage.total, 6);
});

test("a queued letter stays queued over an abort", async () => {
  const reached = deferred();
  const agent = new Agent({ model: silent(reached) });
  const run = agent.prompt("Go");
  reached.promise.then(() => run.abort());
  const receipt = agent.followUp("And then?");
  await readRun(run);
  assert.equal(await isOpen(receipt), true);
  agent.model = scripted(["a", "b"]);
  await readRun(agent.prompt("Again"));
  assert.equal((await receipt).delivered, true);
});

test("a second abort, and one after the end, are nothing", async () => {
  const agent = new Agent({ model: scripted(["one"]) });
  const run = agent.prompt("Go");
  run.abort("first");
  run.abort("second");
  const outcome = await readRun(run);
  assert.match(outcome.result.error.message, /first/);
  run.abort("third");
  agent.abort();
  await settle();
  assert.equal((await run).stopReason, "aborted");
});

test("the signal of the host is let go of when the run is over", async () => {
  const controller = new AbortController();
  let listening = 0;
  const { signal } = controller;
  const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
  signal.addEventListener = (/** @type {any[]} */ ...rest) => (listening++, /** @type {any} */ (add)(...rest));
  signal.removeEventListener = (/** @type {any[]} */ ...rest) => (listening--, /** @type {any} */ (remove)(...rest));
  await new Agent({ model: scripted(["one"]) }).prompt("Go", { signal });
  assert.equal(listening, 0);
});

test("leaving the loop by break and by throw stops the run", async () => {
  const agent = new Agent({ model: scripted([{ text: ["a", "b", "c"] }, { text: ["a", "b"] }]) });
  const first = agent.prompt("Go");
  for await (const event of first) if (event.type === "message_update") break;
  assert.equal((await first).stopReason, "aborted");
  const second = agent.prompt("Go");
  await assert.rejects(async () => { for await (const event of second) if (event.type === "message_update") throw new Error("mine"); }, /mine/);
  assert.equal((await second).stopReason, "aborted");
});

test("a subscriber that leaves does not stop the run", async () => {
  const agent = new Agent({ model: scripted(["one"]) });
  const stop = agent.subscribe(() => stop());
  assert.equal((await agent.prompt("Go")).stopReason, "completed");
});

test("an abort from every event on, one after the other", async () => {
  const make = () => new Agent({ model: scripted([{ thinking: "hm", text: ["a", "b"], ...call("go", "also") }, call("go"), { text: ["c", "d"] }]), tools: [testTool("go", async (/** @type {any} */ _, /** @type {any} */ { update }) => { update(1); await settle(); update(2); return "gone"; }), testTool("also", () => "too")] });
  const whole = await readRun(make().prompt("Go"));
  for (let n = 0; n < whole.events.length - 1; n++) {
    const agent = make();
    const run = agent.prompt("Go");
    let seen = 0;
    agent.subscribe(() => { if (seen++ === n) run.abort(`at ${n}`); });
    const outcome = await readRun(run);
    const type = whole.events[n].type;
    // After its last turn it may be too late to abort a run.
    if (n < whole.events.length - 2) assert.equal(outcome.result.stopReason, "aborted", `${n} ${type}`);
    checkAnswered([...agent.messages]);
  }
});

test("agentLoop is stopped by its signal", async () => {
  const controller = new AbortController();
  const run = agentLoop(["Go"], { model: silent() }, { signal: controller.signal });
  for await (const event of run) if (event.type === "message_update") controller.abort("over");
  const { stopReason, error } = await run;
  assert.equal(stopReason, "aborted");
  assert.equal(error?.cause, "over");
});
