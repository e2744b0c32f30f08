// @ts-check
// Something happens inside every single call of the host: an abort, a steering message, or an exception from
// the host's own code. The trace of every run is checked against the grammar.

import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { Agent, call, clock, custom, deferred, openai, readRun, scripted, settle, testTool, textOf } from "../kit.mjs";

/**
 * Calls that begin something, so none of them may come after an abort. Hooks about what is in the
 * history already begin nothing.
 */
const BEGINNINGS = ["model", "key", "approver", "async transformer", "compaction", "steering poll", "follow-up poll", "before inference", "before tool", "sleep"];

/**
 * A run that calls every function of the host.
 * @param {(agent: any) => void} act @param {number} [at] at which call, from 0
 */
function world(act, at) {
  /** @type {string[]} */
  const touched = [];
  let stopped = false;
  const touch = (/** @type {string} */ what) => {
    touched.push(what);
    assert.ok(!stopped || !BEGINNINGS.includes(what), `${what} begins after the abort`);
    if (touched.length - 1 !== at) return;
    stopped = act === ABORT && agent.isRunning;
    act(agent);
  };
  /** @param {string} what @param {any} [answer] */
  const asks = (what, answer) => (/** @type {any[]} */ ...words) => {
    touch(what);
    return typeof answer === "function" ? answer(...words) : answer;
  };
  /** @param {string} what @param {any} [answer] */
  const promises = (what, answer) => async (/** @type {any[]} */ ...words) => {
    touch(what);
    await null;
    touch(`${what} answers`);
    return typeof answer === "function" ? answer(...words) : answer;
  };
  const script = [
    { error: { code: "throttled", message: "busy" } },
    { error: { code: "context_overflow", message: "too long" } },
    call("slow", "asks", "quick", "ghost"),
    call("quick"),
    "so",
  ];
  const model = custom("m", async function* () {
    touch("model");
    const answer = script.shift() ?? "and that";
    yield { type: "start" };
    touch("model speaks");
    if (typeof answer === "string") {
      yield { type: "text_start", contentIndex: 0 };
      yield { type: "text_delta", contentIndex: 0, delta: answer };
      touch("model speaks");
      yield { type: "text_end", contentIndex: 0 };
      return yield { type: "done", stopReason: "stop" };
    }
    if ("error" in answer) return yield { type: "error", error: /** @type {any} */ (answer.error) };
    for (const [contentIndex, { callId, toolName }] of answer.toolCalls.entries()) {
      yield { type: "tool_call_start", contentIndex, callId, toolName };
      yield { type: "tool_call_end", contentIndex };
    }
    touch("model speaks");
    yield { type: "done", stopReason: "tool_use" };
  });
  const tool = (/** @type {string} */ name, /** @type {any} */ execute, /** @type {any} */ more) => ({ name, description: name, parameters: { type: "object" }, execute, ...more });
  const { host } = clock();
  const agent = new Agent({
    model,
    tools: [
      tool("quick", asks("tool", "done")),
      tool("slow", promises("tool", "done")),
      tool("asks", promises("tool", "done"), { requiresApproval: asks("requiresApproval", true) }),
    ],
    retry: asks("retry", (/** @type {any} */ error) => error.retryable && 10),
    convertToLlm: asks("convertToLlm", (/** @type {any} */ message) => message),
    transformContext: asks("transformer"),
    asyncTransformContext: promises("async transformer"),
    compaction: { engine: promises("compaction", (/** @type {any} */ messages) => ({ messages })) },
    getApiKey: promises("key", "k"),
    getSteeringMessages: promises("steering poll", []),
    getFollowUpMessages: asks("follow-up poll", []),
    approveTool: promises("approver", { action: "approve", arguments: { n: 1 } }),
    policies: { preTurn: [asks("preTurn")], preDispatch: [asks("preDispatch")], postTurn: [asks("postTurn")], postLoop: [asks("postLoop")] },
    hooks: {
      beforeInference: promises("before inference"), afterInference: asks("after inference"),
      beforeToolExecution: promises("before tool"), afterToolExecution: asks("after tool"), onError: asks("on error"),
    },
    toolExecution: asks("partition", (/** @type {any[]} */ calls) => calls.map((_, at) => [at])),
    dynamicSystemPrompt: asks("dynamic prompt", "now"),
    resultTexts: { unknown_tool: asks("result text", "no such tool") },
    host: { ...host, sleep: asks("sleep", host.sleep), random: asks("random", 0.5) },
  });
  agent.subscribe(() => touch("listener"));
  return { agent, touched };
}

const ABORT = (/** @type {Agent} */ agent) => agent.abort("enough");

/** Plays the world once for every call of the host. @param {(agent: any) => void} act @param {(outcome: any, agent: Agent, what: string) => void} check */
async function everywhere(act, check) {
  const { agent, touched } = world(act);
  const { result } = await readRun(agent.prompt("go"));
  assert.deepEqual([result.stopReason, result.text], ["completed", "so"]);
  const kinds = new Set(touched);
  assert.ok(kinds.size >= 30 && touched.length > 100, `${kinds.size} kinds of ${touched.length} calls`);
  for (let at = 0; at < touched.length; at++) {
    const one = world(act, at);
    const what = `call ${at}, ${touched[at]}`;
    try {
      const outcome = await readRun(one.agent.prompt("go"));
      assert.ok(!one.agent.isRunning);
      check(outcome, one.agent, what);
    } catch (/** @type {any} */ error) {
      error.message = `${what}: ${error.message}`;
      throw error;
    }
  }
}

test("an abort inside any call of the host ends the run, and nothing begins after it", async () => {
  await everywhere(ABORT, ({ result, events }, agent, what) => {
    // At the last call the end is being announced: the abort comes too late.
    if (!/listener/.test(what) || events.length < 1) assert.equal(result.stopReason, "aborted", what);
    assert.ok(["aborted", "completed"].includes(result.stopReason));
  });
});

test("a letter from inside any call of the host is delivered once or waits", async () => {
  /** @type {any} */
  let receipt;
  await everywhere(
    (agent) => void (receipt = agent.steer("a letter")),
    ({ result }, agent) => {
      const delivered = result.messages.filter((/** @type {any} */ message) => message.role === "user" && textOf(message) === "a letter").length;
      assert.ok(delivered === 1 || (delivered === 0 && result.stopReason === "completed"), `${delivered} times`);
      agent.clearQueues();
      return receipt.then((/** @type {any} */ outcome) => assert.equal(outcome.delivered, delivered === 1));
    },
  );
});

test("a throw inside any call of the host leaves a whole run and an agent that can go on", async () => {
  const report = console.error;
  console.error = () => {};
  try {
    await everywhere(
      () => {
        throw new Error("the host broke");
      },
      ({ result }) => assert.ok(["completed", "error"].includes(result.stopReason), result.stopReason),
    );
  } finally {
    console.error = report;
  }
});

/** Values that may be thrown and have no usable message. @type {Record<string, any>} */
const WORDLESS = {
  "an error with a number for its message": Object.assign(new Error(), { message: 5 }),
  "an error with an object for its message": Object.assign(new Error(), { message: { reason: "none" } }),
  "an error with a symbol for its message": Object.assign(new Error(), { message: Symbol("s") }),
  "an error with a number for its name": Object.assign(new Error(""), { name: 7 }),
  "an object that is no JSON": { toJSON() {} },
};

for (const [what, thrown] of Object.entries(WORDLESS)) {
  test(`whoever throws ${what} fails alone`, async () => {
    const fail = async () => {
      throw thrown;
    };
    const ask = testTool("ask", () => "asked", { requiresApproval: true });
    const network = { error: { code: "network", message: "gone" } };
    const worlds = [
      { hooks: { beforeInference: fail } }, { asyncTransformContext: fail }, { getApiKey: fail }, { getSteeringMessages: fail }, { tools: [testTool("ask", fail)] },
      { tools: [ask], approveTool: fail }, { model: scripted([network, "done"]), host: { sleep: fail } }, { model: custom("m", fail), retry: { maxAttempts: 1 } },
      { model: scripted([{ error: { code: "context_overflow", message: "long" } }, "done"]), compaction: { engine: fail } },
      { model: openai("m", { fetch: fail }), retry: { maxAttempts: 1 } },
    ];
    const gate = deferred();
    const other = new Agent({ model: scripted([call("wait"), "other"]), tools: [testTool("wait", () => gate.promise)] });
    const others = other.prompt("Go");
    await settle();
    for (const world of /** @type {any[]} */ (worlds)) {
      const { result } = await readRun(new Agent({ model: scripted([call("ask"), "done"]), ...world }).prompt("Go"));
      assert.notEqual(result.error?.code, "internal", result.error?.message);
    }
    const stuck = new Agent({ model: scripted([call("ask")]), tools: [ask] });
    const run = stuck.prompt("Go");
    await settle();
    stuck.abort(thrown);
    assert.equal((await run).stopReason, "aborted");
    gate.resolve("");
    assert.equal((await others).text, "other");
  });
}

test("a rule that must answer at once, promises and fails later ends no process", async () => {
  const fails = async () => {
    throw new Error("later");
  };
  /** @type {unknown[]} */
  const unhandled = [];
  const onUnhandled = (/** @type {unknown} */ error) => unhandled.push(error);
  process.on("unhandledRejection", onUnhandled);
  const network = { error: { code: "network", message: "gone" } };
  for (const [world, end] of /** @type {[any, string][]} */ ([
    [{ dynamicSystemPrompt: fails }, "error"], [{ transformContext: fails }, "error"], [{ convertToLlm: fails }, "error"],
    [{ model: scripted([network, "done"]), retry: fails }, "error"], [{ toolExecution: fails }, "completed"],
    [{ tools: [], resultTexts: { unknown_tool: fails } }, "completed"],
    [{ tools: [testTool("go", () => "", { requiresApproval: fails })], approveTool: () => "approve" }, "completed"],
  ])) {
    const { result } = await readRun(new Agent({ model: scripted([call("go"), "done"]), tools: [testTool("go", () => "")], ...world }).prompt("Go"));
    await settle();
    assert.deepEqual([result.stopReason, unhandled], [end, []], Object.keys(world).join());
  }
  process.off("unhandledRejection", onUnhandled);
});

test("keys of the session state that are no texts are the tool's own error", async () => {
  for (const key of /** @type {any[]} */ ([5, Symbol("s"), undefined, null, {}])) {
    for (const act of [(/** @type {any} */ state) => state.set(key, 1), (/** @type {any} */ state) => state.delete(key)]) {
      const { result } = await readRun(new Agent({ model: scripted([call("t"), "done"]), tools: [testTool("t", (/** @type {any} */ _, /** @type {any} */ { state }) => act(state))] }).prompt("Go"));
      assert.equal(result.text, "done");
      assert.match(textOf(result.messages[2]), /a key of the session state must be a text, got /);
    }
  }
});

test("a host's sleep that throws at once, or gives no promise, holds no piece back for ever; it is called on its host", async () => {
  class Host {
    slept = 0;
    sleep() {
      this.slept++;
      return /** @type {any} */ (undefined);
    }
  }
  const own = new Host();
  const fail = () => {
    throw new Error("no timers here");
  };
  for (const host of [own, { sleep: fail }]) {
    const { result, text } = await readRun(new Agent({ model: scripted([{ text: ["a", "b", "c"] }]), coalesceMs: 5, host }).prompt("Go"));
    assert.deepEqual([result.stopReason, text], ["completed", "abc"]);
  }
  assert.ok(own.slept > 0);
});

test("a host that never sleeps lets a model that is watched speak", async () => {
  // Data from a network arrives when nothing else is left to do.
  const model = custom("m", async function* () {
    await settle();
    yield* [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "here" }, { type: "text_end", contentIndex: 0 }];
    yield { type: "done", stopReason: "stop" };
  });
  let slept = 0;
  // Otherwise it would retry for as long as the clock runs.
  const sleep = async () => void (slept++ > 10_000 && (await new Promise(() => {})));
  const { result } = await readRun(new Agent({ model, timeouts: { chunkMs: 60_000 }, host: { sleep } }).prompt("Go"));
  assert.equal(result.text, "here");
  assert.ok(slept < 1_000, `it slept ${slept} times`);
});

test("a run that is stopped lets go of an answer whose fetch does not hear the signal", async () => {
  const gone = deferred();
  const begun = deferred();
  const frame = new TextEncoder().encode('data: {"choices":[{"delta":{"content":"hi"}}]}\n\n');
  const body = new ReadableStream({ start: (controller) => controller.enqueue(frame), cancel: gone.resolve });
  const agent = new Agent({ model: openai("m", { fetch: async () => new Response(body) }) });
  agent.subscribe(({ type }) => { if (type === "message_update") begun.resolve(); });
  const run = agent.prompt("Go");
  await begun.promise;
  run.abort("enough");
  assert.equal((await run).stopReason, "aborted");
  assert.equal(String(await gone.promise), "enough");
});

test("a fetch whose answer is no bytes fails alone, in words that say so", async () => {
  const gate = deferred();
  const other = new Agent({ model: scripted([call("wait"), "other"]), tools: [testTool("wait", () => gate.promise)] });
  const others = other.prompt("Go");
  await settle();
  const frame = 'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n';
  const reads = (/** @type {any[]} */ ...values) => ({ ok: true, status: 200, headers: new Headers(), body: { getReader: () => ({ read: async () => ({ done: values.length === 0, value: values.shift() }), cancel: async () => {} }) } });
  const ask = (/** @type {any} */ answer) => readRun(new Agent({ model: openai("m", { fetch: async () => answer }), retry: { maxAttempts: 2 }, host: clock().host }).prompt("Go"));
  for (const answer of [new Response(new ReadableStream({ start: (controller) => (controller.enqueue(frame), controller.close()) })), reads(new TextEncoder().encode(frame), undefined), reads({ length: -5 })]) {
    const { result, all } = await ask(answer);
    assert.match(result.error.message, /the body of an answer must give bytes, as Uint8Array; `fetch` gave /);
    assert.deepEqual([result.error.code, all("retry_attempt").length], ["misuse", 0]);
  }
  // The body of a node-fetch response is a stream of Node's.
  const nodes = await ask({ ok: true, status: 200, headers: new Headers(), body: Readable.from([Buffer.from(frame)]) });
  assert.match(nodes.result.error.message, /the body of an answer must be a ReadableStream; `fetch` gave an object \(Readable\)/);
  assert.deepEqual([nodes.result.error.code, nodes.all("retry_attempt").length], ["misuse", 0]);
  // A wrapper that forgot its `return`, or the response of another client.
  for (const [answer, kind] of /** @type {[any, string][]} */ ([[undefined, "nothing"], ["hi", "a string"], [{ status: 200, data: "hi" }, "an object (Object)"]])) {
    const { result, all } = await ask(answer);
    assert.deepEqual([result.error.code, result.error.message, all("retry_attempt").length], ["misuse", `\`fetch\` must give a Response, got ${kind}`, 0]);
  }
  assert.equal((await ask({ ok: false, status: 5n, headers: new Headers(), body: null })).result.stopReason, "error");
  gate.resolve("");
  assert.equal((await others).text, "other");
});

test("a clock and a die that fail, or give what is no number, end nobody's run", async () => {
  const report = console.error;
  console.error = () => {};
  try {
    const other = new Agent({ model: scripted([call("wait"), "other"]), tools: [testTool("wait", () => gate.promise)] });
    const gate = deferred();
    const others = other.prompt("Go");
    const fail = () => {
      throw new Error("it stopped");
    };
    for (const odd of [() => 5n, () => Symbol("five"), () => Object.create(null), () => "five", () => NaN, fail]) {
      const failing = scripted([{ error: { code: "network", message: "gone" } }, "done"]);
      for (const host of [{ now: odd }, { random: odd }]) {
        const agent = new Agent({ model: failing, retry: { initialBackoffMs: 1 }, host: /** @type {any} */ (host) });
        const run = agent.prompt("Go");
        agent.checkpoint();
        assert.notEqual((await run).error?.code, "internal");
      }
    }
    gate.resolve("");
    assert.equal((await others).text, "other");
  } finally {
    console.error = report;
  }
});
