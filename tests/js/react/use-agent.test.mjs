// @ts-check
// What `useAgent` shows, without React: the store behind it with manual frames, and the
// page rendered on a server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { AgentStore } from "../../../pkg/react-store.js";
import { useAgent } from "../../../pkg/react.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, custom, deferred, misused, scripted, settle, testTool } from "../kit.mjs";

/** A store whose frames come when the test says so. @param {any} agent @param {any} [options] */
function watch(agent, options) {
  /** @type {(() => void)[]} */
  let due = [];
  let scheduled = 0;
  const schedule = (/** @type {() => void} */ work) => {
    scheduled += 1;
    due.push(work);
    return () => void (due = due.filter((one) => one !== work));
  };
  const store = new AgentStore(agent, { schedule, ...options });
  let shown = 0;
  const leave = store.subscribe(() => void (shown += 1));
  const frame = () => due.splice(0).forEach((work) => work());
  return { store, leave, frame, view: () => /** @type {any} */ (store.getSnapshot()), count: () => shown, scheduled: () => scheduled, waiting: () => due.length };
}

/** A model that says what it is given, piece by piece. */
function speaker() {
  /** @type {any[]} */
  const pieces = [];
  let wake = deferred();
  let newest = 0;
  const model = custom("speaker", async function* () {
    // A speaker that was stopped takes nothing from the next one.
    const own = (newest += 1);
    while (own === newest) {
      while (pieces.length > 0) {
        const piece = pieces.shift();
        yield piece;
        if (piece.type === "done") return;
      }
      await wake.promise;
      if (own === newest) wake = deferred();
    }
  });
  const text = (/** @type {string} */ delta) => ({ type: "text_delta", contentIndex: 0, delta });
  return {
    model,
    /** @param {...any} more */
    async give(...more) {
      pieces.push(...more.map((piece) => (typeof piece === "string" ? text(piece) : piece)));
      wake.resolve();
      await settle();
    },
  };
}

/** @param {any} message */
const textOf = (message) => message.content.map((/** @type {any} */ block) => block.text ?? block.thinking ?? "").join("");
const START = { type: "text_start", contentIndex: 0 };
const DONE = { type: "done", stopReason: "stop" };

test("10,000 pieces before a frame are shown once; what did not change is the same object", async () => {
  const { model, give } = speaker();
  const agent = new Agent({ model, messages: [{ role: "user", content: [{ type: "text", text: "before" }], timestamp: 1 }] });
  const { frame, view, count } = watch(agent);
  const before = view();
  assert.deepEqual([before.status, before.isRunning, before.messages.length, before.messages === before.history], ["idle", false, 1, true]);
  const done = before.send("Go");
  frame();
  assert.deepEqual([count(), view().status, view().messages.map((/** @type {any} */ one) => textOf(one))], [1, "submitted", ["before", "Go"]]);
  await give(START, ...Array.from({ length: 10_000 }, (_, i) => `${i} `));
  frame();
  assert.equal(count(), 2);
  const first = view();
  assert.deepEqual([first.status, first.streaming.streaming, first.messages.at(-1), first.messages.length], ["streaming", true, first.streaming, 3]);
  assert.match(textOf(first.streaming), /^0 1 .* 9999 $/);
  await give("more");
  frame();
  const second = view();
  assert.notEqual(second, first);
  assert.equal(second.history, first.history);
  assert.equal(second.messages[0], before.messages[0]);
  assert.notEqual(second.streaming, first.streaming);
  frame();
  assert.deepEqual([count(), view()], [3, second], "nothing happened, nothing is shown");
  await give(DONE);
  frame();
  assert.deepEqual([view().status, view().messages.length, view().streaming, view().stopReason], ["idle", 3, undefined, "completed"]);
  assert.equal(textOf(view().messages.at(-1)), textOf(second.streaming));
  assert.equal((await done).text, textOf(second.streaming));
  assert.ok(view().usage.total >= 0 && view().send === before.send);
});

test("a frame costs the same after 5,000 messages as after one", async () => {
  const touched = async (/** @type {number} */ length) => {
    const { model, give } = speaker();
    const agent = new Agent({ model, messages: Array.from({ length }, (_, i) => ({ role: "user", content: [{ type: "text", text: String(i) }], timestamp: i })) });
    let reads = 0;
    const { store, frame, view } = watch(agent);
    view().send("Go");
    await give(START, "a");
    frame();
    // From here on the history is only read through this proxy.
    const counted = new Proxy(agent.messages, { get: (target, key) => (typeof key === "string" && /^\d+$/.test(key) && (reads += 1), Reflect.get(target, key)) });
    store.state.history.source = counted;
    store.agent = new Proxy(agent, { get: (target, key) => (key === "messages" ? counted : typeof Reflect.get(target, key) === "function" ? Reflect.get(target, key).bind(target) : Reflect.get(target, key, target)) });
    for (let i = 0; i < 20; i++) {
      await give("b");
      frame();
    }
    assert.equal(textOf(view().streaming).length, 21);
    await give(DONE);
    return reads;
  };
  const [one, many] = [await touched(1), await touched(5_000)];
  assert.equal(one, many);
  assert.ok(many <= 40, `${many} looks at messages in 20 frames`);
});

test("arguments grow, and what is complete in them stays the same object", async () => {
  const { model, give } = speaker();
  const written = deferred();
  const agent = new Agent({ model, tools: [testTool("write", () => written.promise)] });
  const { frame, view } = watch(agent);
  view().send("Go");
  const piece = (/** @type {string} */ delta) => ({ type: "tool_call_delta", contentIndex: 0, delta });
  await give({ type: "tool_call_start", contentIndex: 0, callId: "c", toolName: "write" }, piece('{"done":{"a":[1,2]},"open":{"text":"Hel'));
  frame();
  const first = view().calls[0];
  assert.deepEqual([first.state, first.arguments], ["streaming", { done: { a: [1, 2] }, open: { text: "Hel" } }]);
  assert.deepEqual(view().streaming.content, [{ type: "tool_call", callId: "c", toolName: "write", arguments: first.arguments }]);
  await give(piece('lo"},"list":[{"__proto__":{"x":1}'));
  frame();
  const second = view().calls[0];
  assert.deepEqual(first.arguments, { done: { a: [1, 2] }, open: { text: "Hel" } }, "what was shown does not change");
  assert.equal(second.arguments.done, first.arguments.done);
  assert.equal(JSON.stringify(second.arguments), '{"done":{"a":[1,2]},"open":{"text":"Hello"},"list":[{}]}', "`__proto__` is shown as little as the call runs with it");
  await give(piece("}]}"), { type: "tool_call_end", contentIndex: 0 }, { type: "done", stopReason: "tool_use" });
  frame();
  assert.deepEqual([view().calls[0].state, view().calls[0].arguments], ["running", JSON.parse(JSON.stringify(second.arguments))]);
  written.resolve("written");
  await settle();
  frame();
  assert.deepEqual([view().calls, view().history.at(-1).content[0].text], [[], "written"], "the next turn has none yet");
  await give(START, "ok", DONE);
});

test("a tool from its call to its result; steering and follow-up are shown until they are read", async () => {
  const going = deferred();
  const execute = async (/** @type {any} */ _, /** @type {any} */ { update }) => (update({ content: [{ type: "text", text: "half" }], details: { progress: 0.5 } }), await going.promise, "whole");
  const agent = new Agent({ model: scripted([call("slow"), "first", "second"]), tools: [testTool("slow", execute)], steering: { when: "after_tool" } });
  const { frame, view } = watch(agent);
  const done = view().send("Go");
  await settle();
  frame();
  assert.deepEqual([view().status, view().calls.map((/** @type {any} */ { toolName, state, update }) => [toolName, state, update.details.progress])], ["tools", [["slow", "running", 0.5]]]);
  const [steered, followed] = [view().steer("quick"), view().followUp("and then")];
  frame();
  assert.deepEqual(view().queued, [{ kind: "steer", input: "quick" }, { kind: "follow_up", input: "and then" }]);
  going.resolve();
  const { text } = await done;
  frame();
  assert.deepEqual([text, view().queued, (await steered).delivered, (await followed).delivered, view().status], ["second", [], true, true, "idle"]);
  assert.deepEqual(view().messages.map((/** @type {any} */ { role }) => role), ["user", "assistant", "tool_result", "user", "assistant", "user", "assistant"]);
});

test("calls that ask: allowed, allowed with other arguments, refused", async () => {
  /** @type {any[]} */
  const ran = [];
  const tools = [testTool("pay", (/** @type {any} */ args) => (ran.push(args), "paid"), { requiresApproval: true })];
  const agent = new Agent({ model: scripted([call(["pay", { n: 1 }], ["pay", { n: 2 }], ["pay", { n: 3 }]), "done"]), tools });
  const { frame, view } = watch(agent);
  const done = view().send("Go");
  await settle();
  frame();
  assert.deepEqual([view().status, view().pendingApprovals.map((/** @type {any} */ one) => one.callId), view().calls.map((/** @type {any} */ { state }) => state)], ["approval", ["c1", "c2", "c3"], ["approval", "approval", "approval"]]);
  const approvals = view().pendingApprovals;
  view().approve("c1");
  view().approve("c2", { n: 20 });
  await settle();
  frame();
  assert.notEqual(view().pendingApprovals, approvals);
  assert.deepEqual(view().pendingApprovals.map((/** @type {any} */ one) => one.callId), ["c3"]);
  view().deny("c3", "too dear");
  await settle();
  frame();
  await done;
  frame();
  assert.deepEqual([ran, view().pendingApprovals], [[{ n: 1 }, { n: 20 }], []]);
  assert.match(agent.messages.filter(({ role }) => role === "tool_result").map(textOf).join("|"), /^paid\|paid\|.*too dear/);
});

test("an error is there until the next run; a stopped run keeps what it said; misuse throws at the call", async () => {
  const { model, give } = speaker();
  const agent = new Agent({ model: scripted([{ error: { code: "auth", message: "no key" } }]), retry: { maxAttempts: 1 } });
  const { frame, view } = watch(agent);
  await view().send("Go");
  frame();
  assert.deepEqual([view().status, view().error.code, view().error.name, view().stopReason], ["error", "auth", "AgentError", "error"]);
  agent.model = model;
  const done = view().send("Again");
  misused(() => view().send("And again"), /already running/);
  frame();
  assert.equal(view().error, undefined);
  await give(START, "half ");
  view().stop("enough");
  assert.equal((await done).stopReason, "aborted");
  frame();
  assert.deepEqual([view().status, view().error, view().stopReason, textOf(view().messages.at(-1))], ["idle", undefined, "aborted", "half "]);
});

test("an answer that is taken back is taken back on the page", async () => {
  const { host } = { host: { sleep: async () => {} } };
  let tries = 0;
  const agent = new Agent({ host, model: custom("m", /** @type {any} */ (async function* () {
    yield START;
    yield { type: "text_delta", contentIndex: 0, delta: tries === 0 ? "wrong" : "right" };
    if (tries++ === 0) throw new TypeError("network");
    yield DONE;
  })), retry: { retryUnknown: true, initialBackoffMs: 0 } });
  const { view } = watch(agent, { schedule: (/** @type {any} */ work) => (work(), () => {}) });
  /** @type {string[]} */
  const seen = [];
  agent.subscribe(() => view().streaming && seen.push(textOf(view().streaming)));
  await view().send("Go");
  assert.deepEqual(seen.filter((text, i) => text !== seen[i - 1]), ["", "wrong", "", "right"]);
});

test("events: so many, the newest, pieces of one block joined; none where none are wanted", async () => {
  const { frame, view } = watch(new Agent({ model: scripted([{ text: Array.from({ length: 500 }, () => "ab") }, "b"]) }), { events: 5 });
  await view().send("Go");
  frame();
  assert.deepEqual(view().events.map((/** @type {any} */ { type }) => type), ["message_start", "message_update", "message_end", "turn_end", "agent_end"]);
  assert.equal(view().events[1].delta.delta.length, 1000);
  const none = watch(new Agent({ model: scripted(["a"]) }), { events: 0 });
  await none.view().send("Go");
  none.frame();
  assert.deepEqual(none.view().events, []);
});

test("who comes while tools run sees them", async () => {
  const slow = deferred();
  const agent = new Agent({
    model: scripted([call("before"), call("slow", "quick", "bad", "ask"), "done"]),
    tools: [testTool("before", () => ""), testTool("slow", () => slow.promise), testTool("quick", () => "q"), testTool("bad", () => { throw new Error("no"); }), testTool("ask", () => "", { requiresApproval: true })],
    gate: "prefix",
  });
  const early = watch(agent);
  const run = agent.prompt("Go");
  for (let i = 0; i < 5; i++) await settle();
  early.frame();
  const { view } = watch(agent);
  const shown = () => [view().status, view().calls.map((/** @type {any} */ { toolName, state, result }) => [toolName, state, result?.content[0].text])];
  assert.deepEqual(shown(), ["tools", [["slow", "running", undefined], ["quick", "done", "q"], ["bad", "error", view().calls[2].result.content[0].text], ["ask", "approval", undefined]]]);
  assert.deepEqual(view().calls, early.view().calls);
  slow.resolve("s");
  agent.resolveTool("c4", "reject");
  await run;
});

test("who comes in the middle of an answer sees what was said of it", async () => {
  const { model, give } = speaker();
  const agent = new Agent({ model });
  const done = agent.prompt("Go").result;
  await give(START, "one ");
  const { frame, view } = watch(agent);
  assert.deepEqual([view().status, textOf(view().streaming)], ["streaming", "one "]);
  await give("two", DONE);
  frame();
  await done;
  assert.equal(textOf(view().messages.at(-1)), "one two");
});

test("a run of a checkpoint goes on, with its question and what it had said", async () => {
  const tools = [testTool("pay", () => "paid", { requiresApproval: true })];
  const asking = new Agent({ model: scripted([call("pay")]), tools });
  asking.prompt("Go");
  await settle();
  const agent = await Agent.restore(JSON.stringify(asking.checkpoint()), { model: scripted(["it is paid"]), tools });
  const { frame, view } = watch(agent);
  const done = view().resume();
  await settle();
  frame();
  assert.deepEqual([view().status, view().pendingApprovals.length], ["approval", 1]);
  view().approve(view().pendingApprovals[0].callId);
  assert.equal((await done).text, "it is paid");
});

test("who leaves leaves nothing behind; an agent of one's own is stopped and disposed of, one from outside goes on", async () => {
  for (const isOwn of [true, false]) {
    const { model, give } = speaker();
    const agent = new Agent({ model });
    const subscribers = { on: 0 };
    const subscribe = agent.subscribe.bind(agent);
    agent.subscribe = (listener) => {
      subscribers.on += 1;
      const stop = subscribe(listener);
      return () => void ((subscribers.on -= 1), stop());
    };
    const { store, leave, view, waiting } = watch(isOwn ? () => agent : agent);
    const run = view().send("Go");
    await give(START, "half");
    // As React does in development: unmounted, and mounted again at once.
    leave();
    const again = store.subscribe(() => {});
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual([subscribers.on, agent.isRunning], [1, true], "it was only a rehearsal");
    again();
    await new Promise((resolve) => setTimeout(resolve));
    assert.deepEqual([subscribers.on, waiting()], [0, 0]);
    if (isOwn) {
      assert.equal((await run).stopReason, "aborted");
      misused(() => agent.prompt("More"), /disposed/);
      misused(() => view().send("More"), /the component of this agent is gone/);
      view().stop();
    } else {
      await give(" whole", DONE);
      assert.equal((await run).text, "half whole");
    }
  }
});

test("taken back after all, a component makes a new agent that may go on from the old one", async () => {
  /** @type {any[]} */
  const made = [];
  const { store, leave, view } = watch((/** @type {any} */ earlier) => (made.push(earlier?.messages.length), new Agent({ model: scripted(["one", "two"]), ...earlier })));
  await view().send("Go");
  store.cancel?.();
  store.cancel = undefined;
  leave();
  await new Promise((resolve) => setTimeout(resolve));
  store.subscribe(() => {});
  assert.deepEqual(made, [undefined, 2], "also what no frame had shown");
  await view().send("Go");
});

test("an agent elsewhere is shown as one here: what it said before, streaming, approval, steering, stopping; it goes on without the component", async () => {
  const { model, give } = speaker();
  const tools = [testTool("pay", () => "paid", { requiresApproval: true })];
  const there = new Agent({ model, tools, messages: [{ role: "user", content: [{ type: "text", text: "before" }], timestamp: 1 }] });
  const handler = agentHandler(there);
  const url = "http://agent.localhost/7";
  const elsewhere = () => new RemoteAgent({ url, fetch: (/** @type {any} */ input, /** @type {any} */ init) => handler(new Request(input, init)) });
  const { leave, frame, view } = watch(elsewhere);
  /** Waits until a condition holds, and returns the snapshot. @param {(view: any) => unknown} isSo */
  const until = async (isSo) => {
    for (let tries = 0; !isSo(view()); tries += 1) {
      assert.ok(tries < 200, `${view().status} ${JSON.stringify(view().messages)}`);
      await settle();
      frame();
    }
    return view();
  };
  assert.deepEqual((await until(({ history }) => history.length > 0)).messages.map(textOf), ["before"]);
  const done = view().send("Go");
  frame();
  assert.deepEqual([view().status, view().messages.map(textOf)], ["submitted", ["before", "Go"]]);
  await give(START, "half ");
  const first = await until(({ streaming }) => streaming?.content.length > 0);
  await give("more ");
  const second = await until(({ streaming }) => textOf(streaming) === "half more ");
  assert.deepEqual([second.history === first.history, second.messages[0] === first.messages[0]], [true, true]);
  // Another component subscribes in the middle of it.
  const other = watch(elsewhere());
  await until(() => (other.frame(), other.view().streaming && textOf(other.view().streaming) === "half more "));
  other.leave();
  await give({ type: "tool_call_start", contentIndex: 1, callId: "c", toolName: "pay" }, { type: "tool_call_delta", contentIndex: 1, delta: "{}" }, { type: "tool_call_end", contentIndex: 1 }, { type: "done", stopReason: "tool_use" });
  await until(({ status }) => status === "approval");
  view().approve(view().pendingApprovals[0].callId);
  await until(({ history }) => history.at(-1).role === "tool_result");
  await give(START, "whole");
  await until(({ streaming }) => streaming?.content.length > 0);
  view().stop("enough");
  assert.equal((await done).stopReason, "aborted");
  assert.deepEqual((await until(({ status }) => status === "idle")).messages.map((/** @type {any} */ { role }) => role), there.messages.map(({ role }) => role));
  void view().send("Again");
  await until(({ status }) => status === "submitted" && there.isRunning);
  leave();
  await new Promise((resolve) => setTimeout(resolve));
  await give(START, "it went on", DONE);
  await there.waitForIdle();
  assert.equal(textOf(there.messages.at(-1)), "it went on");
});

test("an agent elsewhere that nobody can reach is an error that is shown", async () => {
  const unreachable = new RemoteAgent({ url: "http://agent.localhost/7", fetch: async () => new Response("no such agent", { status: 404 }), onError() {} });
  const { frame, view } = watch(unreachable);
  for (let tries = 0; view().status !== "error" && tries < 50; tries += 1) {
    await settle();
    frame();
  }
  assert.match(view().error.message, /404: no such agent/);
});

test("on a server: the page as the agent stands, without a run", () => {
  const messages = [{ role: "user", content: [{ type: "text", text: "said before" }], timestamp: 1 }];
  let made = 0;
  function Chat() {
    const { messages: shown, status } = useAgent(() => ((made += 1), new Agent({ model: scripted([]), messages: /** @type {any} */ (messages) })));
    return createElement("p", { className: status }, shown.map(textOf).join());
  }
  assert.equal(renderToString(createElement(Chat)), '<p class="idle">said before</p>');
  assert.equal(made, 1);
  misused(() => renderToString(createElement(() => (useAgent(/** @type {any} */ ({})), null))), /useAgent takes an agent or a function that makes one, got an object/);
  misused(() => renderToString(createElement(() => (useAgent(/** @type {any} */ (() => {})), null))), /got a function that gives nothing/);
});
