// @ts-check
// Host code that misbehaves, at every place where the package calls host code or reads what it gave. A run ends by
// itself, or when it is aborted if what it waits for never comes; nothing is left unhandled; and the engine, which all
// agents share, goes on.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Agent, call, clock, custom, deferred, openai, scripted, subagent, testTool, transferTo } from "../kit.mjs";

/** What must not be touched. @param {any} target */
const revoked = (target) => {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
};
const fails = () => {
  throw new Error("trapped");
};
const TRAPS = ["get", "has", "ownKeys", "getPrototypeOf", "getOwnPropertyDescriptor", "apply", "set", "isExtensible"];
const trapped = (/** @type {any} */ target) => new Proxy(target, Object.fromEntries(TRAPS.map((trap) => [trap, fails])));

const MEMBERS = ["then", "message", "name", "cause", "code", "toString", "toJSON", "ok", "status", "headers", "body", "type", "delta", "contentIndex", "content", "role", "action", "messages", "stop", "value", "done", "info", "constructor", "length", "transfer"];
const getters = (/** @type {any} */ target) => Object.defineProperties(target, Object.fromEntries(MEMBERS.map((name) => [name, { get: fails, configurable: true, enumerable: true }])));
const oddError = () => Object.defineProperties(new Error("odd"), { message: { get: fails }, cause: { get: fails }, stack: { get: fails }, toString: { value: fails }, [Symbol.for("nodejs.util.inspect.custom")]: { value: fails } });

/** What somebody forgot to await. */
const gone = () => Promise.reject(new Error("no database"));

/** What host code may give. Those that never settle are stopped from outside. @type {Record<string, () => any>} */
const VALUES = {
  "a revoked object": () => revoked({}),
  "a revoked function": () => revoked(() => {}),
  "a revoked list": () => revoked([]),
  "an object whose traps throw": () => trapped({}),
  "a function whose traps throw": () => trapped(() => {}),
  "an object whose getters throw": () => getters({}),
  "an error whose getters throw": oddError,
  "an error with a revoked cause": () => new Error("caused", { cause: revoked({}) }),
  "null": () => null,
  "undefined": () => undefined,
  "a symbol": () => Symbol("odd"),
  "a bigint": () => 1n,
  "NaN": () => NaN,
  "a circle": () => {
    /** @type {any} */
    const circle = { type: "text", role: "user" };
    return Object.assign(circle, { content: [circle], self: circle, messages: [circle] });
  },
  "a deep list": () => {
    /** @type {any} */
    let deep = [];
    for (let i = 0; i < 50_000; i++) deep = [deep];
    return deep;
  },
  "an object with promises that reject": () => ({ rows: gone(), content: [gone()], type: "text", text: gone(), messages: [{ role: "user", content: gone() }] }),
  "an error with promises that reject": () => Object.assign(new Error("failed", { cause: gone() }), { details: { rows: [gone()] } }),
  "a toJSON that throws": () => ({ toJSON: fails, type: "text_delta", delta: "x", contentIndex: 0 }),
  "a then that throws": () => ({ then: fails }),
  "a then that cannot be read": () => Object.defineProperty({}, "then", { get: fails }),
  "a then that settles twice": () => ({ then: (/** @type {any} */ done, /** @type {any} */ failed) => (done?.(undefined), failed?.(revoked({})), done?.(7), fails()) }),
  "a promise of a revoked object": () => Promise.resolve().then(() => ({ then: (/** @type {any} */ done) => done(Object(7)) })),
  "a rejection with a revoked object": () => Promise.reject(revoked({})),
  "a rejection with undefined": () => Promise.reject(undefined),
  "a rejection with an odd error": () => Promise.reject(oddError()),
  "a promise that never settles": () => new Promise(() => {}),
  "a then that never settles": () => ({ then() {} }),
};

const tools = () => [testTool("pay", () => "paid")];
const chat = (/** @type {any} */ fetch, /** @type {any} */ more = {}) => openai("gpt", { apiKey: "k", fetch, ...more });
const TEXT = 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const good = () => new Response(TEXT, { headers: { "content-type": "text/event-stream" } });
/** A response with other members. @param {any} members */
const fake = (members) => async () => ({ ok: true, status: 200, headers: new Headers({ "content-type": "text/event-stream" }), body: null, ...members });
const reading = (/** @type {any} */ reader) => fake({ body: { getReader: () => reader, cancel: async () => {} } });
const asks = () => [testTool("pay", () => "paid", { requiresApproval: true })];
const twice = () => scripted([call("pay"), "done"]);
const overflows = () => scripted([{ error: { code: "context_overflow", message: "too long", retryable: false } }, "done"]);

/**
 * Where host code is called or read: the options of an agent, given what it does there.
 * @type {Record<string, (act: () => any) => any>}
 */
const PLACES = {
  "fetch": (act) => ({ model: chat(() => act()) }),
  "response.ok": (act) => ({ model: chat(fake(Object.defineProperty({ ok: 1 }, "ok", { get: act, enumerable: true }))) }),
  "response.status": (act) => ({ model: chat(async () => Object.create({ ok: false, headers: new Headers(), body: null }, { status: { get: act } })) }),
  "response.headers": (act) => ({ model: chat(async () => Object.create({ ok: false, status: 400, body: null }, { headers: { get: act } })) }),
  "response.body": (act) => ({ model: chat(async () => Object.create({ ok: true, status: 200, headers: new Headers() }, { body: { get: act } })) }),
  "response.body of a refusal": (act) => ({ model: chat(async () => Object.create({ ok: false, status: 400, headers: new Headers() }, { body: { get: act } })) }),
  "body.getReader": (act) => ({ model: chat(fake({ body: { getReader: () => act() } })) }),
  "body.getReader itself": (act) => ({ model: chat(fake({ body: Object.defineProperty({}, "getReader", { get: act }) })) }),
  "reader.read": (act) => ({ model: chat(reading({ read: () => act(), cancel: async () => {} })) }),
  "reader.read of a refusal": (act) => ({ model: chat(fake({ ok: false, status: 400, body: { getReader: () => ({ read: () => act(), cancel: () => act() }) } })) }),
  "reader.read.value": (act) => ({ model: chat(reading({ read: async () => ({ done: false, value: act() }), cancel: async () => {} })) }),
  "reader.read.done": (act) => {
    let reads = 0;
    return { model: chat(reading({ read: async () => (reads++ < 3 ? Object.defineProperty({ value: new Uint8Array(1) }, "done", { get: act }) : { done: true }), cancel: async () => {} })) };
  },
  "reader.cancel": (act) => ({ model: chat(reading({ read: () => new Promise(() => {}), cancel: () => act() })), mayWait: true }),
  "model.apiKey": (act) => ({ model: chat(async () => good(), { apiKey: () => act() }) }),
  "getApiKey": (act) => ({ model: chat(async () => good()), getApiKey: () => act() }),
  "tool.execute": (act) => ({ model: twice(), tools: [testTool("pay", () => act())] }),
  "tool.execute, fatal": (act) => ({ model: twice(), tools: [testTool("pay", () => act(), { fatal: true })] }),
  "a part of a tool's result": (act) => ({ model: twice(), tools: [testTool("pay", () => ({ content: [act()] }))] }),
  "details of a tool's result": (act) => ({ model: twice(), tools: [testTool("pay", () => ({ content: [{ type: "text", text: "x" }], details: act() }))] }),
  "text of a tool's result": (act) => ({ model: twice(), tools: [testTool("pay", () => ({ content: [{ type: "text", text: act() }] }))] }),
  "transfer of a tool's result": (act) => ({ model: twice(), tools: [testTool("pay", () => transferTo(act()))] }),
  "a tool's update": (act) => ({ model: twice(), tools: [testTool("pay", (/** @type {any} */ _, /** @type {any} */ { update }) => (update(act()), "paid"))] }),
  "a tool's state": (act) => ({ model: twice(), tools: [testTool("pay", (/** @type {any} */ _, /** @type {any} */ { state }) => (state.set("k", act()), state.set(act(), 1), "paid"))] }),
  "a tool's schema": (act) => ({ model: twice(), tools: [testTool("pay", () => "paid", { parameters: { "~standard": { version: 1, vendor: "x", validate: () => act(), jsonSchema: { input: () => ({ type: "object" }) } } } })] }),
  "a tool's checked value": (act) => ({ model: twice(), tools: [testTool("pay", (/** @type {any} */ args) => args, { parameters: { "~standard": { version: 1, vendor: "x", validate: () => ({ value: act() }), jsonSchema: { input: () => ({ type: "object" }) } } } })] }),
  "a tool's issues": (act) => ({ model: twice(), tools: [testTool("pay", () => "paid", { parameters: { "~standard": { version: 1, vendor: "x", validate: () => ({ issues: [act()] }), jsonSchema: { input: () => ({ type: "object" }) } } } })] }),
  "requiresApproval": (act) => ({ model: twice(), tools: [testTool("pay", () => "paid", { requiresApproval: () => act() })], approveTool: () => "approve" }),
  "a subagent": (act) => ({ model: twice(), tools: [subagent({ name: "pay", description: "x", agent: () => act() })] }),
  "approveTool": (act) => ({ model: twice(), tools: asks(), approveTool: () => act() }),
  "approveTool's arguments": (act) => ({ model: twice(), tools: asks(), approveTool: () => ({ action: "approve", arguments: act() }) }),
  "approveTool's reason": (act) => ({ model: twice(), tools: asks(), approveTool: () => ({ action: "reject", reason: act() }) }),
  "approveTool's result": (act) => ({ model: twice(), tools: asks(), approveTool: () => ({ action: "result", content: act() }) }),
  ...Object.fromEntries(["beforeInference", "afterInference", "beforeToolExecution", "afterToolExecution"].map((stage) => [`hooks.${stage}`, (/** @type {any} */ act) => ({ model: twice(), tools: tools(), hooks: { [stage]: () => act() } })])),
  "hooks.onError": (act) => ({ model: scripted([{ error: { code: "server", message: "down", retryable: false } }]), hooks: { onError: () => act() } }),
  "convertToLlm": (act) => ({ model: twice(), tools: tools(), convertToLlm: () => act() }),
  "transformContext": (act) => ({ model: twice(), tools: tools(), transformContext: () => act() }),
  "a message of transformContext": (act) => ({ model: twice(), tools: tools(), transformContext: () => [act()] }),
  "a replacement of transformContext": (act) => ({ model: twice(), tools: tools(), transformContext: () => ({ messages: [act()], report: act() }) }),
  "asyncTransformContext": (act) => ({ model: twice(), tools: tools(), asyncTransformContext: () => act() }),
  "a message of asyncTransformContext": (act) => ({ model: twice(), tools: tools(), asyncTransformContext: async () => [act()] }),
  "compaction": (act) => ({ model: overflows(), compaction: { engine: () => act() } }),
  "messages of compaction": (act) => ({ model: overflows(), compaction: { engine: async () => ({ messages: [act()], report: act() }) } }),
  "dynamicSystemPrompt": (act) => ({ model: twice(), tools: tools(), dynamicSystemPrompt: () => act() }),
  ...Object.fromEntries(["preTurn", "preDispatch", "postTurn", "postLoop"].flatMap((slot) => [
    [`policies.${slot}`, (/** @type {any} */ act) => ({ model: twice(), tools: tools(), policies: { [slot]: [() => act()] } })],
    [`what policies.${slot} stops with`, (/** @type {any} */ act) => ({ model: twice(), tools: tools(), policies: { [slot]: [() => ({ stop: act() })] } })],
    [`what policies.${slot} injects`, (/** @type {any} */ act) => ({ model: twice(), tools: tools(), maxTurns: 3, policies: { [slot]: [() => ({ inject: [act()] })] } })],
  ])),
  "what policies.preDispatch changes": (act) => ({ model: twice(), tools: tools(), policies: { preDispatch: [() => ({ arguments: act() })] } }),
  "getSteeringMessages": (act) => ({ model: twice(), tools: tools(), maxTurns: 3, getSteeringMessages: () => act() }),
  "a message of getSteeringMessages": (act) => ({ model: twice(), tools: tools(), maxTurns: 3, getSteeringMessages: async () => [act()] }),
  "getFollowUpMessages": (act) => ({ model: twice(), tools: tools(), maxTurns: 3, getFollowUpMessages: () => act() }),
  "retry": (act) => ({ model: scripted([{ error: { code: "network", message: "gone", retryable: true } }, "done"]), retry: () => act() }),
  "toolExecution": (act) => ({ model: twice(), tools: tools(), toolExecution: () => act() }),
  "resultTexts": (act) => ({ model: scripted([call("unknown"), "done"]), tools: tools(), resultTexts: { unknown_tool: () => act() } }),
  "streamFn": (act) => ({ model: custom("m", () => act()) }),
  "streamFn's iterator": (act) => ({ model: custom("m", /** @type {any} */ (() => ({ [Symbol.asyncIterator]: () => act() }))) }),
  "iterator.next": (act) => ({ model: custom("m", /** @type {any} */ (() => ({ [Symbol.asyncIterator]: () => ({ next: () => act(), return: () => act() }) }))) }),
  "iterator.return": (act) => ({ model: custom("m", /** @type {any} */ (() => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: () => act() }) }))), mayWait: true }),
  "an event": (act) => ({ model: custom("m", async function* () { yield act(); }) }),
  "the type of an event": (act) => ({ model: custom("m", async function* () { yield /** @type {any} */ ({ type: act(), contentIndex: 0, delta: "x" }); }) }),
  "the place of a piece": (act) => ({ model: custom("m", async function* () { yield { type: "start" }; yield { type: "text_start", contentIndex: 0 }; yield { type: "text_delta", contentIndex: act(), delta: "x" }; }) }),
  "the text of a piece": (act) => ({ model: custom("m", async function* () { yield { type: "start" }; yield { type: "text_start", contentIndex: 0 }; yield { type: "text_delta", contentIndex: 0, delta: act() }; }) }),
  "the arguments of a call": (act) => ({ model: custom("m", async function* () { yield { type: "start" }; yield { type: "tool_call_start", contentIndex: 0, callId: act(), toolName: act() }; }) }),
  "the stop reason of a model": (act) => ({ model: custom("m", async function* () { yield { type: "start" }; yield { type: "done", stopReason: act(), usage: act() }; }) }),
  "the error of a model": (act) => ({ model: custom("m", async function* () { yield { type: "start" }; yield { type: "error", error: act() }; }) }),
  "host.now": (act) => ({ model: twice(), tools: tools(), host: { now: () => act() } }),
  "host.random": (act) => ({ model: scripted([{ error: { code: "network", message: "gone", retryable: true } }, "done"]), host: { ...clock().host, random: () => act() } }),
  "host.sleep": (act) => ({ model: scripted([{ error: { code: "network", message: "gone", retryable: true } }, "done"]), retry: { maxAttempts: 2, initialBackoffMs: 1 }, host: { sleep: () => act() } }),
  "host.id": (act) => ({ model: twice(), tools: tools(), host: { ...clock().host, id: () => act() } }),
  "host.sleep, pieces held back": (act) => ({ model: twice(), tools: tools(), coalesceMs: 5, host: { ...clock().host, sleep: () => act() } }),
  "a listener": (act) => ({ model: twice(), tools: tools(), listen: () => act() }),
  "a listener that is kept": (act) => ({ model: twice(), tools: tools(), listen: () => act(), keep: true }),
  "the signal's reason": (act) => ({ model: custom("m", () => new Promise(() => {})), signal: Object.defineProperty(new EventTarget(), "reason", { get: act }) }),
  "abort": (act) => ({ model: custom("m", () => new Promise(() => {})), abortWith: act }),
  "abort of a request": (act) => ({ model: chat((/** @type {any} */ _, /** @type {any} */ init) => new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)))), abortWith: act }),
  "a listener of a tool's signal": (act) => ({ model: twice(), tools: [testTool("pay", (/** @type {any} */ _, /** @type {any} */ { signal }) => {
    signal.addEventListener("abort", () => act());
    signal.addEventListener("abort", { handleEvent: () => act() }, { once: true });
    signal.onabort = () => act();
    return new Promise(() => {});
  })], mayWait: true }),
  "a listener of a model's signal": (act) => ({ model: custom("m", (/** @type {any} */ _, /** @type {any} */ { signal }) => new Promise(() => signal.addEventListener("abort", () => act()))), mayWait: true }),
};

/** Where a value may hold promises that nobody awaits: what tools give, and the rules of the host. What is no value of the package's, such as a response, is its host's. */
const HOLDS = /^(tool|a tool's (update|state|checked)|a part|details|text|a subagent|approveTool|requiresApproval|convert|transform|a message of (t|a)|a replacement|asyncTransform|dynamic|policies|what policies|toolExecution|retry|resultTexts|an event|the error of a model|the arguments of a call)/;

/** A promise that nobody has to look at. What the package makes of it must be handled all the same. @param {any} made */
function quiet(made) {
  try {
    if (made instanceof Promise) made.catch(() => {});
  } catch {
    // It cannot be looked at.
  }
}

/** What the process would die of. @type {unknown[]} */
const unhandled = [];
const note = (/** @type {unknown} */ error) => void unhandled.push(error);
const { error: log } = console;
/** @type {any} */
let neighbour;
const gate = deferred();

before(async () => {
  console.error = () => {};
  process.on("unhandledRejection", note);
  process.on("uncaughtException", note);
  // In the same instance all the while.
  const agent = new Agent({ model: twice(), tools: [testTool("pay", () => gate.promise)] });
  const begun = deferred();
  agent.subscribe(({ type }) => void (type === "tool_execution_start" && begun.resolve()));
  neighbour = agent.prompt("Wait.");
  neighbour.result.then(() => (neighbour.isOver = true));
  await begun.promise;
});

after(() => {
  console.error = log;
  process.off("unhandledRejection", note);
  process.off("uncaughtException", note);
});

/** Whether a promise settles while everything happens that does not have to wait. @param {Promise<any>} promise */
async function settles(promise) {
  let settled = false;
  promise.then(() => (settled = true), () => (settled = true));
  for (let i = 0; i < 40 && !settled; i++) await new Promise((wake) => setImmediate(wake));
  return settled;
}

/** @param {any} place the options @param {boolean} waits whether it may wait for ever. Returns what went wrong. */
async function attack({ listen, keep, signal, abortWith, mayWait, ...options }, waits) {
  /** @type {any} */
  let run;
  try {
    const agent = new Agent({ host: clock().host, retry: { maxAttempts: 2 }, ...options });
    if (listen) agent.subscribe(listen, keep ? { keep } : undefined);
    run = agent.prompt("Go.", signal && { signal });
  } catch {
    // Told to the caller: nothing runs.
    return;
  }
  if (signal || abortWith) {
    for (let i = 0; i < 5; i++) await new Promise((wake) => setImmediate(wake));
    if (abortWith) {
      let reason;
      try {
        reason = abortWith();
      } catch (error) {
        reason = error;
      }
      run.abort(reason);
    } else signal.dispatchEvent(new Event("abort"));
  }
  if (await settles(run.result)) return;
  if (!waits && !mayWait) return "does not end by itself";
  run.abort("enough");
  if (!(await settles(run.result))) return "does not end when it is aborted";
}

// What reads the errors of other libraries is loaded with the first of them, which is no wait that the cases below are about.
await new Agent({ host: clock().host, model: custom("first", () => { throw new Error("first"); }) }).prompt("Go.").result;

for (const [place, options] of Object.entries(PLACES)) {
  test(`${place}: whatever it gives or throws`, async () => {
    /** @type {string[]} */
    const wrong = [];
    for (const [name, value] of Object.entries(VALUES)) {
      if (/promises that/.test(name) && !HOLDS.test(place)) continue;
      for (const how of ["gives", "throws"]) {
        const act = () => {
          const made = value();
          quiet(made);
          if (how === "throws") throw made;
          return made;
        };
        const outcome = await attack(options(act), /never/.test(name));
        for (let i = 0; i < 2; i++) await new Promise((wake) => setImmediate(wake));
        if (outcome) wrong.push(`${how} ${name}: ${outcome}`);
        if (unhandled.length > 0) wrong.push(`${how} ${name}: left unhandled ${unhandled.splice(0).length}`);
        if (neighbour.isOver) wrong.push(`${how} ${name}: ended the run of another agent`);
        neighbour.isOver = false;
      }
    }
    assert.deepEqual(wrong, []);
    const { text } = await new Agent({ model: scripted(["still here"]) }).prompt("Are you there?");
    assert.equal(text, "still here");
  });
}

test("the run that went on beside all of it ends as it should", async () => {
  gate.resolve("paid");
  const { stopReason, text } = await neighbour.result;
  assert.deepEqual([stopReason, text], ["completed", "done"]);
});
