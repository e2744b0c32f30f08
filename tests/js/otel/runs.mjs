// @ts-check
// Runs of the package, observed: what any line of the SDK must make of them. `sdk` says how to set one up.

import assert from "node:assert/strict";

/**
 * @typedef {object} Sdk what a line of the SDK gives
 * @property {any} api @property {any} tracer @property {any} meter
 * @property {() => any[]} finished the spans that are over, and forgets them
 * @property {() => Promise<any[]>} metrics the data points so far
 * @property {() => number} open how many spans have begun and not ended
 */

/** A tree of the spans, as text: a line each, with two spaces for every level. @param {any[]} spans */
export function treeOf(spans) {
  const idOf = (/** @type {any} */ span) => span.spanContext().spanId;
  const parentOf = (/** @type {any} */ span) => span.parentSpanContext?.spanId ?? span.parentSpanId;
  const ids = new Set(spans.map(idOf));
  const inOrder = [...spans].sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1]);
  /** @param {string | undefined} parent @param {string} indent @returns {string[]} */
  const under = (parent, indent) => inOrder.filter((span) => (parent === undefined ? !ids.has(parentOf(span)) : parentOf(span) === parent)).flatMap((span) => [indent + span.name, ...under(idOf(span), `${indent}  `)]);
  return under(undefined, "");
}

const look = (/** @type {any} */ execute, /** @type {any} */ more = {}) => ({ name: "look", description: "Looks", parameters: { type: "object" }, execute, ...more });
const calls = (/** @type {string[]} */ ...names) => ({ toolCalls: names.map((toolName, i) => ({ callId: `c${i + 1}`, toolName })) });

/** Every way in which a run can end, or be left. @param {any} turnwheel @returns {Record<string, (observed: (agent: any) => any) => Promise<unknown>>} */
function endings({ Agent, scripted, subagent }) {
  const never = new Promise(() => {});
  const asks = (/** @type {any} */ execute) => look(execute, { requiresApproval: true });
  return {
    completed: (observed) => observed(new Agent({ model: scripted([calls("look"), "Done."]), tools: [look(() => "seen")] })).prompt("Go"),
    error: (observed) => observed(new Agent({ model: scripted([{ error: { code: "auth", message: "no" } }]) })).prompt("Go"),
    "a tool that throws": (observed) => observed(new Agent({ model: scripted([calls("look"), "Done."]), tools: [look(() => { throw new Error("no luck"); })] })).prompt("Go"),
    "a fatal tool": (observed) => observed(new Agent({ model: scripted([calls("look"), "Done."]), tools: [look(() => { throw new Error("no luck"); }, { fatal: true })] })).prompt("Go"),
    "an unknown tool": (observed) => observed(new Agent({ model: scripted([calls("nope"), "Done."]) })).prompt("Go"),
    "an abort in a tool": (observed) => {
      const run = observed(new Agent({ model: scripted([calls("look", "look")]), tools: [look(() => (queueMicrotask(() => run.abort()), never))] })).prompt("Go");
      return run;
    },
    "an abort in an answer": (observed) => {
      const agent = observed(new Agent({ model: scripted([{ text: ["a", "b", "c"] }]) }));
      agent.subscribe((/** @type {any} */ { type }) => void (type === "message_update" && agent.abort()));
      return agent.prompt("Go");
    },
    "an abort before it began": (observed) => observed(new Agent({ model: scripted(["Hi."]) })).prompt("Go", { signal: AbortSignal.abort() }),
    "steered away": (observed) => {
      const agent = observed(new Agent({ model: scripted([calls("look"), "Done."]), tools: [look(() => (queueMicrotask(() => agent.steer("Stop that.", { when: "immediate" })), never))] }));
      return agent.prompt("Go");
    },
    "a reset": async (observed) => {
      const agent = observed(new Agent({ model: scripted([calls("look")]), tools: [look(() => (queueMicrotask(() => agent.reset()), never))] }));
      await agent.prompt("Go");
    },
    "a reset, and a new run at once": async (observed) => {
      let next;
      const agent = observed(new Agent({ model: scripted([calls("look"), "Again."]), tools: [look(() => (queueMicrotask(() => { agent.reset(); next = agent.prompt("Again"); }), never))] }));
      await agent.prompt("Go");
      await next;
    },
    "an agent that is disposed of": async (observed) => {
      const agent = observed(new Agent({ model: scripted([calls("look")]), tools: [look(() => (queueMicrotask(() => agent[Symbol.dispose ?? Symbol.for("Symbol.dispose")]()), never))] }));
      await agent.prompt("Go");
    },
    rejected: (observed) => {
      const agent = observed(new Agent({ model: scripted([calls("look"), "Done."]), tools: [asks(() => "seen")] }));
      agent.subscribe((/** @type {any} */ event) => void (event.type === "tool_approval_requested" && agent.resolve(event.id, "reject")));
      return agent.prompt("Go");
    },
    "max turns": (observed) => observed(new Agent({ model: scripted([calls("look")]), tools: [look(() => "seen")], maxTurns: 1 })).prompt("Go"),
    "a policy": (observed) => observed(new Agent({ model: scripted(["Hi."]), policies: { preTurn: [() => ({ stop: "no" })] } })).prompt("Go"),
    "a hook that fails": (observed) => observed(new Agent({ model: scripted(["Hi."]), hooks: { beforeInference() { throw new Error("no"); } } })).prompt("Go"),
    "a transfer": (observed) => observed(new Agent({ model: scripted([calls("look")]), tools: [look(() => transferTo("sales"))] })).prompt("Go"),
    "a timeout": (observed) => observed(new Agent({ model: scripted([calls("look"), "Done."]), tools: [look(() => never, { timeoutMs: 1 })] })).prompt("Go"),
    "a sub-agent that is aborted": (observed) => {
      const inner = () => new Agent({ model: scripted([calls("look")]), tools: [look(() => (queueMicrotask(() => agent.abort()), never))] });
      const agent = observed(new Agent({ model: scripted([{ toolCalls: [{ callId: "s", toolName: "sub", arguments: { prompt: "Go" } }] }]), tools: [subagent({ name: "sub", description: "", agent: inner })] }));
      return agent.prompt("Go");
    },
    "no model": (observed) => observed(new Agent({ model: scripted([]) })).prompt("Go"),
  };
}

/**
 * The tests that each line of the SDK must pass.
 * @param {(name: string, body: () => Promise<void>) => unknown} test @param {any} turnwheel @param {{ observe: any, spansOf: any }} otel @param {Sdk} sdk
 */
export function observedRuns(test, turnwheel, { observe, spansOf }, sdk) {
  const { Agent, scripted, subagent, tool, transferTo } = turnwheel;
  const { tracer, meter, api } = sdk;

  test("the tree: answers and tools under the run, an agent inside a call under its tool", async () => {
    const clerk = subagent({ name: "clerk", description: "", agent: () => new Agent({ model: scripted([calls("look"), "The clerk has seen."]), tools: [look(() => "seen")] }) });
    const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c", toolName: "clerk", arguments: { prompt: "Look" } }] }, "Done."]), tools: [clerk], streamOptions: { temperature: 0.5, maxTokens: 9, topP: 0.5, stop: ["x"] } });
    observe(agent, { name: "boss", tracer, meter, attributes: { "test.of": "tree" } });
    await agent.prompt("Go");
    const spans = sdk.finished();
    assert.deepEqual(treeOf(spans), [
      "invoke_agent boss", "  chat scripted", "  execute_tool clerk", "    invoke_agent clerk", "      chat scripted", "      execute_tool look", "      chat scripted", "  chat scripted",
    ]);
    const [chat] = spans.filter(({ name }) => name === "chat scripted");
    const { "gen_ai.response.time_to_first_chunk": first, ...attributes } = spans.filter(({ name, attributes }) => name === "chat scripted" && attributes["gen_ai.agent.name"] === "boss")[0].attributes;
    assert.equal(typeof first, "number");
    assert.deepEqual(attributes, {
      "gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted", "gen_ai.request.model": "scripted", "gen_ai.response.model": "scripted", "gen_ai.agent.name": "boss", "gen_ai.conversation.id": agent.sessionId,
      "gen_ai.output.type": "text", "gen_ai.request.stream": true, "gen_ai.request.temperature": 0.5, "gen_ai.request.max_tokens": 9, "gen_ai.request.top_p": 0.5, "gen_ai.request.stop_sequences": ["x"],
      "gen_ai.response.finish_reasons": ["tool_call"], "gen_ai.usage.input_tokens": attributes["gen_ai.usage.input_tokens"], "gen_ai.usage.output_tokens": attributes["gen_ai.usage.output_tokens"], "test.of": "tree",
    });
    assert.equal(chat.kind, api.SpanKind.CLIENT);
    const run = spans.find(({ name }) => name === "invoke_agent boss");
    assert.equal(run.kind, api.SpanKind.INTERNAL);
    assert.equal(run.attributes["gen_ai.provider.name"], "scripted");
    const call = spans.find(({ name }) => name === "execute_tool clerk");
    assert.deepEqual({ ...call.attributes }, { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "clerk", "gen_ai.tool.call.id": "c", "gen_ai.tool.type": "function", "test.of": "tree" });
  });

  test("a span is active inside execute, of parallel calls each its own, also after a decision made elsewhere", async () => {
    /** @type {Record<string, string | undefined>} */
    const active = {};
    const spy = (/** @type {string} */ name, /** @type {any} */ more = {}) => tool({ ...look(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      active[name] = api.trace.getActiveSpan()?.name;
      tracer.startSpan(`work of ${name}`).end();
    }, more), name });
    const inner = subagent({ name: "sub", description: "", agent: () => new Agent({ model: scripted([calls("deep"), "Ok."]), tools: [spy("deep")] }) });
    const agent = new Agent({ model: scripted([{ toolCalls: [...["a", "b"].map((toolName) => ({ callId: toolName, toolName })), { callId: "s", toolName: "sub", arguments: { prompt: "Go" } }] }, "Done."]), tools: [spy("a"), spy("b", { requiresApproval: true }), inner] });
    agent.subscribe((/** @type {any} */ event) => void (event.type === "tool_approval_requested" && setImmediate(() => api.context.with(api.ROOT_CONTEXT, () => agent.resolve(event.id, "approve")))));
    observe(agent, { tracer, meter });
    const outer = tracer.startSpan("request");
    await api.context.with(api.trace.setSpan(api.ROOT_CONTEXT, outer), () => agent.prompt("Go").result);
    outer.end();
    assert.deepEqual(active, { a: "execute_tool a", b: "execute_tool b", deep: "execute_tool deep" });
    const tree = treeOf(sdk.finished());
    assert.equal(tree[0], "request");
    assert.equal(tree[1], "  invoke_agent");
    for (const name of ["a", "b"]) assert.ok(tree.join("\n").includes(`    execute_tool ${name}\n      work of ${name}`), tree.join("\n"));
    assert.ok(tree.join("\n").includes("        execute_tool deep\n          work of deep"), tree.join("\n"));
  });

  test("an answer is one span, whatever it took: retries and resets are events on it", async () => {
    const busy = { error: { code: "overloaded", message: "busy" } };
    const agent = new Agent({ model: scripted([busy, busy, "Hi."]), retry: { initialBackoffMs: 0, jitter: false } });
    observe(agent, { tracer, meter });
    await agent.prompt("Go");
    const spans = sdk.finished();
    assert.deepEqual(treeOf(spans), ["invoke_agent", "  chat scripted"]);
    const chat = spans.find(({ name }) => name === "chat scripted");
    assert.deepEqual(chat.events.filter(({ name }) => name === "turnwheel.retry_attempt").map((/** @type {any} */ { attributes }) => [attributes["turnwheel.attempt"], attributes["error.type"]]), [[1, "overloaded"], [2, "overloaded"]]);
    assert.equal(chat.status.code, api.SpanStatusCode.UNSET);
  });

  for (const [name, begin] of Object.entries(endings(turnwheel))) {
    test(`every span ends: ${name}`, async () => {
      await begin((agent) => (observe(agent, { tracer, meter }), agent));
      await new Promise((resolve) => setImmediate(resolve));
      assert.equal(sdk.open(), 0, "spans are open");
      assert.ok(sdk.finished().length > 0);
    });
  }

  test("errors, aborts and calls that no tool ran are told apart", async () => {
    const all = endings(turnwheel);
    const spansAfter = async (/** @type {string} */ name) => {
      await all[name]?.((agent) => (observe(agent, { tracer, meter }), agent));
      return sdk.finished();
    };
    const statusOf = (/** @type {any[]} */ spans, /** @type {string} */ name) => {
      const span = spans.find((span) => span.name.startsWith(name));
      return [span?.attributes["error.type"], span?.status.code];
    };
    const { ERROR, UNSET } = api.SpanStatusCode;
    const failed = await spansAfter("error");
    assert.deepEqual(statusOf(failed, "invoke_agent"), ["auth", ERROR]);
    assert.deepEqual(statusOf(failed, "chat"), ["auth", ERROR]);
    const threw = await spansAfter("a tool that throws");
    assert.deepEqual(statusOf(threw, "execute_tool"), ["threw", ERROR]);
    assert.deepEqual(statusOf(threw, "invoke_agent"), [undefined, UNSET]);
    const aborted = await spansAfter("an abort in a tool");
    assert.deepEqual(statusOf(aborted, "invoke_agent"), ["aborted", UNSET]);
    assert.deepEqual(statusOf(aborted, "execute_tool"), ["aborted", UNSET]);
    const unknown = (await spansAfter("an unknown tool")).find(({ name }) => name.startsWith("invoke_agent"));
    assert.deepEqual(unknown.events.map((/** @type {any} */ { name, attributes }) => [name, attributes["turnwheel.cause"]]), [["turnwheel.tool_not_run", "unknown_tool"]]);
    const rejected = (await spansAfter("rejected")).find(({ name }) => name.startsWith("invoke_agent"));
    assert.deepEqual(rejected.events.map((/** @type {any} */ { name }) => name), ["turnwheel.tool_approval_requested", "turnwheel.tool_approval_resolved", "turnwheel.tool_not_run"]);
  });

  test("content is recorded only if it is asked for, and as the host says", async () => {
    const secret = "sk-abc";
    const make = () => new Agent({ model: scripted([{ thinking: "hm", ...calls("look") }, secret]), systemPrompt: `Keep ${secret}.`, tools: [look(() => secret)] });
    const silent = make();
    observe(silent, { tracer, meter });
    await silent.prompt(secret);
    assert.ok(!JSON.stringify(sdk.finished().map(({ attributes, events }) => [attributes, events])).includes(secret));
    const told = make();
    observe(told, { tracer, meter, content: true });
    await told.prompt("Go");
    const spans = sdk.finished();
    const [first] = spans.filter(({ name }) => name === "chat scripted");
    assert.deepEqual(JSON.parse(first.attributes["gen_ai.system_instructions"]), [{ type: "text", content: "Keep sk-abc." }]);
    assert.deepEqual(JSON.parse(first.attributes["gen_ai.input.messages"]), [{ role: "user", parts: [{ type: "text", content: "Go" }] }]);
    assert.deepEqual(JSON.parse(first.attributes["gen_ai.output.messages"]), [{ role: "assistant", parts: [{ type: "reasoning", content: "hm" }, { type: "tool_call", id: "c1", name: "look", arguments: {} }], finish_reason: "tool_call" }]);
    assert.equal(JSON.parse(first.attributes["gen_ai.tool.definitions"])[0].name, "look");
    const call = spans.find(({ name }) => name === "execute_tool look");
    assert.deepEqual(JSON.parse(call.attributes["gen_ai.tool.call.result"]), [{ type: "text", text: secret }]);
    const masked = make();
    observe(masked, { tracer, meter, content: (/** @type {any} */ value) => JSON.parse(JSON.stringify(value).replaceAll(secret, "…")) });
    await masked.prompt(secret);
    const seen = JSON.stringify(sdk.finished().map(({ attributes }) => attributes));
    assert.ok(seen.includes("Keep ….") && !seen.includes(secret));
  });

  test("activeInModels: the span of the answer is active while the model is called", async () => {
    let active;
    const model = turnwheel.custom("m", async function* () {
      active = api.trace.getActiveSpan()?.name;
      yield { type: "text_start", contentIndex: 0 };
      yield { type: "text_delta", contentIndex: 0, delta: "Hi" };
      yield { type: "text_end", contentIndex: 0 };
      yield { type: "done", stopReason: "stop" };
    });
    const agent = new Agent({ model });
    const stop = observe(agent, { tracer, meter, activeInModels: true });
    await agent.prompt("Go");
    assert.equal(active, "chat m");
    stop();
    await agent.prompt("Again");
    assert.equal(active, undefined);
    assert.equal(sdk.finished().length, 2, "what is not observed any more has no spans");
  });

  test("wrappers of the host stay, inside the span; stopping in the middle of a run leaves no span open", async () => {
    const order = [];
    const agent = new Agent({ model: scripted([calls("look"), calls("look"), "Done."]), tools: [look(() => { order.push("execute"); if (order.length > 2) stop(); return "seen"; })], wrapTool: (/** @type {any} */ _, /** @type {any} */ next) => (order.push(api.trace.getActiveSpan()?.name), next()) });
    const stop = observe(agent, { tracer, meter });
    await agent.prompt("Go");
    assert.deepEqual(order, ["execute_tool look", "execute", "execute_tool look", "execute"]);
    assert.equal(sdk.open(), 0);
    sdk.finished();
  });

  test("a restored run is a run of its own, and says so", async () => {
    const asks = look(() => "seen", { requiresApproval: true });
    const first = new Agent({ model: scripted([calls("look")]), tools: [asks] });
    for await (const event of first.prompt("Go")) if (event.type === "tool_approval_requested") break;
    const saved = JSON.stringify(first.checkpoint());
    const agent = await Agent.restore(saved, { model: scripted([calls("look"), "Done."]), tools: [asks], approveTool: () => "approve" });
    observe(agent, { tracer, meter });
    await agent.continue();
    const run = sdk.finished().find(({ name }) => name === "invoke_agent");
    assert.equal(run.events[0].name, "turnwheel.run_resumed");
    assert.equal(sdk.open(), 0);
  });

  test("metrics: tokens, durations and times, with few dimensions", async () => {
    await sdk.metrics();
    const agent = new Agent({ model: scripted([{ ...calls("look", "look"), usage: { input: 3, cacheRead: 4, output: 2 } }, { text: ["a", "b", "c"], usage: { input: 1, output: 1 } }]), tools: [look(() => { throw new Error("no"); })] });
    observe(agent, { name: "m", tracer, meter, chunkTimes: true });
    await agent.prompt("Go");
    sdk.finished();
    const points = (await sdk.metrics()).filter(({ attributes }) => attributes["gen_ai.agent.name"] === "m" || attributes["gen_ai.tool.name"] === "look");
    const of = (/** @type {string} */ name) => points.filter((point) => point.name === name);
    assert.deepEqual(of("gen_ai.client.token.usage").map(({ attributes, value }) => [attributes["gen_ai.token.type"], value.sum, value.count]).sort(), [["input", 8, 2], ["output", 3, 2]]);
    assert.equal(of("gen_ai.client.operation.duration")[0].value.count, 2);
    assert.equal(of("gen_ai.client.operation.time_to_first_chunk")[0].value.count, 2);
    assert.ok(of("gen_ai.client.operation.time_per_output_chunk")[0].value.count >= 2);
    assert.equal(of("gen_ai.invoke_agent.duration")[0].value.count, 1);
    assert.ok(of("gen_ai.execute_tool.duration").some(({ attributes }) => attributes["error.type"] === "threw"));
    assert.ok(!JSON.stringify(points).includes("conversation.id"));
    assert.deepEqual(of("gen_ai.client.token.usage")[0].value.buckets.boundaries.slice(0, 4), [1, 4, 16, 64]);
  });

  test("spansOf makes the same tree afterwards, at the times of the events", async () => {
    const clerk = subagent({ name: "clerk", description: "", agent: () => new Agent({ model: scripted([calls("look"), "Seen."]), tools: [look(() => "seen")] }) });
    const agent = new Agent({ model: scripted([{ toolCalls: [{ callId: "c", toolName: "clerk", arguments: { prompt: "Look" } }] }, { error: { code: "overloaded", message: "" } }, "Done."]), retry: { initialBackoffMs: 0 }, tools: [clerk] });
    observe(agent, { name: "boss", tracer, meter });
    /** @type {any[]} */
    const events = [];
    agent.subscribe((/** @type {any} */ event) => void events.push(event));
    await agent.prompt("Go");
    const live = treeOf(sdk.finished());
    const past = spansOf(JSON.parse(JSON.stringify(events)), { name: "boss", tracer });
    assert.deepEqual(treeOf(sdk.finished()), live);
    assert.equal(sdk.open(), 0);
    const [run] = past;
    assert.equal(run.startTime, events[0].at);
    assert.equal(run.endTime, events.at(-1).at);
    assert.deepEqual(past.map(({ name }) => name).sort(), live.map((line) => line.trim()).sort());
    assert.ok(past.every(({ startTime, endTime }) => startTime <= endTime && startTime >= run.startTime && endTime <= run.endTime));
    // The entries of a tape have their times beside the event, and others among them.
    const entries = [{ n: 0, at: 5, kind: "input", input: {} }, ...events.map((event, i) => ({ n: i, at: 10 + i, kind: "event", event }))];
    const taped = spansOf(entries, { name: "boss" });
    assert.deepEqual(taped.map(({ name }) => name), past.map(({ name }) => name));
    assert.equal(taped[0].startTime, 10);
    assert.equal(taped[0].endTime, 9 + events.length);
    // A recording that breaks off.
    const cut = spansOf(entries.slice(0, 8));
    assert.ok(cut.length > 0 && cut.every(({ endTime }) => endTime > 0));
  });
}
