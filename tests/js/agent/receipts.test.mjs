// What a receipt tells: the truth in every case.
import assert from "node:assert/strict";
import { test } from "node:test";
import { agentHandler, memoryEvents } from "../../../pkg/server.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { Agent, call, isOpen, scripted, settle, subagent, testTool } from "../kit.mjs";

const stuck = () => testTool("wait", () => new Promise(() => {}));
/** Waits for an event. @param {any} agent @param {string} type */
const heard = (agent, type) => new Promise((resolve) => agent.subscribe((/** @type {any} */ event) => event.type === type && resolve(event)));

test("after an abort the agent keeps the queue; whoever disposes of it then is told that the run was aborted", async () => {
  const agent = new Agent({ model: scripted([call("wait"), "Later, then."]), tools: [stuck()] });
  const run = agent.prompt("Go.");
  await heard(agent, "tool_execution_start");
  const [kept, gone] = [agent.followUp("Then this."), agent.followUp("And that.")];
  run.abort("enough");
  assert.equal((await run).stopReason, "aborted");
  assert.equal(await isOpen(kept), true);
  const late = agent.steer("After that.");
  agent[Symbol.dispose]();
  assert.deepEqual([await kept, await gone, await late], [{ delivered: false, reason: "aborted" }, { delivered: false, reason: "aborted" }, { delivered: false, reason: "disposed" }]);

  const again = new Agent({ model: scripted([call("wait"), "Later, then."]), tools: [stuck()] });
  const first = again.prompt("Go.");
  await heard(again, "tool_execution_start");
  const receipt = again.followUp("Then this.");
  first.abort();
  await first;
  again.prompt("Once more.");
  assert.equal((await receipt).delivered, true);
});

test("a message to an agent inside a tool ends with it", async () => {
  for (const [reason, steer] of /** @type {const} */ ([["aborted", true], ["run_ended", false]])) {
    /** @type {any} */
    let inner;
    const child = () => (inner = new Agent({ model: scripted(steer ? [call("wait")] : [call("go"), "Done."]), tools: [stuck(), testTool("go", () => "gone")] }));
    const agent = new Agent({ model: scripted([call(["clerk", { prompt: "x" }]), "Done."]), tools: [subagent({ name: "clerk", description: "", agent: child })] });
    const run = agent.prompt("Go.");
    /** @type {any} */
    let receipt;
    for await (const event of run) {
      if (event.type !== "subagent_event" || event.event.type !== (steer ? "tool_execution_start" : "agent_end")) continue;
      receipt ??= inner.followUp("Then this.");
      if (steer) run.abort();
    }
    if (steer) assert.deepEqual(await receipt, { delivered: false, reason });
    else assert.equal(await isOpen(receipt), true, "it came after the end, and waits for a next run");
  }
});

test("a listener that comes late, or to a log that has forgotten, is told the truth", async () => {
  const agent = new Agent({ model: scripted([call("go"), "one", "two", "three"]), tools: [testTool("go", () => "gone")] });
  const handler = agentHandler(agent, { limits: { events: 2 }, events: memoryEvents() });
  let isUp = true;
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    if (!isUp) throw new Error("no route");
    return handler(new Request(url, init));
  };
  /** @type {((value?: any) => void)[]} */
  const asleep = [];
  const host = { sleep: () => new Promise((/** @type {any} */ wake) => asleep.push(wake)) };
  const remote = new RemoteAgent({ url: "http://localhost/agent", fetch, host: /** @type {any} */ (host), onError: () => {} });
  remote.subscribe(() => {});
  await remote.ready();
  const [read, cleared] = [remote.followUp("Read me."), remote.followUp("Forget me.")];
  for (let i = 0; i < 20; i++) await settle();
  agent.clearQueues();
  const again = remote.followUp("Read me.");
  for (let i = 0; i < 20; i++) await settle();
  assert.deepEqual([await read, await cleared], [{ delivered: false, reason: "cleared" }, { delivered: false, reason: "cleared" }]);
  assert.equal((await remote.prompt("Go.")).stopReason, "completed");
  assert.equal((await again).delivered, true);
  remote[Symbol.dispose]();
});

test("a run id is used once, and goes on from a checkpoint", async () => {
  const options = { model: scripted(["one", "two", "three"]) };
  const agent = new Agent(options);
  await agent.prompt("Go.", { runId: "r-é" });
  assert.throws(() => agent.prompt("Go.", { runId: "r-é" }), /there was a run with the id "r-é" already/);
  await agent.prompt("Go.", { runId: "r2" });
});

test("what a listener does to a message changes nothing", async () => {
  /** @type {string[]} */
  const told = [];
  const agent = new Agent({ model: scripted([call("go"), "Done."]), tools: [testTool("go", () => "gone")] });
  agent.subscribe((/** @type {any} */ event) => {
    if (event.type !== "message_end" && event.type !== "tool_execution_end") return;
    try {
      (event.message ?? event.result).content[0].text = "changed";
      (event.message ?? event.result).content.push({ type: "text", text: "more" });
    } catch (error) {
      told.push(/** @type {Error} */ (error).name);
    }
  });
  await agent.prompt("Go.");
  assert.doesNotMatch(JSON.stringify(agent.messages), /changed|more/);
  assert.deepEqual(told, ["TypeError", "TypeError", "TypeError"]);
});

test("what was approved before an abort was approved", async () => {
  const agent = new Agent({ model: scripted([call("pay"), "Done."]), tools: [testTool("pay", () => "paid", { requiresApproval: true })] });
  const run = agent.prompt("Go.");
  const asked = /** @type {any} */ (await heard(agent, "tool_approval_requested"));
  /** @type {any[]} */
  const closed = [];
  agent.subscribe((event) => void (event.type === "tool_approval_resolved" && closed.push([event.approved, event.by])));
  assert.equal(agent.resolve(asked.id, "approve"), true);
  run.abort();
  assert.equal((await run).stopReason, "aborted");
  assert.deepEqual(closed, [[true, "command"]]);
});

test("a model that was switched in a checkpoint is told in the turn in which it answers", async () => {
  const agent = new Agent({ model: scripted([() => new Promise(() => {})]) });
  let saved = "";
  for await (const event of agent.prompt("Go.")) if (event.type === "message_start") {
    saved = JSON.stringify(agent.checkpoint());
    break;
  }
  const other = /** @type {any} */ (scripted(["one"]));
  const again = await Agent.restore(saved, { model: { ...other, id: "other" } });
  /** @type {string[]} */
  const told = [];
  for await (const event of again.continue()) if (event.type === "model_switched" || event.type === "message_end") told.push(event.type === "model_switched" ? `${event.from} ${event.to}` : event.message.model);
  assert.deepEqual(told, ["scripted other", "other"]);
});

test("a tool that the host takes away is not active any more, and the run goes on", async () => {
  const agent = new Agent({ model: scripted([call("one"), (/** @type {any} */ { tools }) => tools.map((/** @type {any} */ { name }) => name).join()]), tools: [testTool("one", () => void (agent.tools = [testTool("two", () => "")])), testTool("two", () => "")] });
  assert.equal((await agent.prompt("Go.", { activeTools: ["one", "two"] })).text, "two");
});
