// When a steering message acts that says so itself: here, over the wire, and in a component.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, deferred, scripted, settle, tool } from "../kit.mjs";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";

/** A tool whose calls end, one after the other, when they are released. */
function held() {
  const calls = [];
  const execute = () => new Promise((resolve) => calls.push(() => resolve("held")));
  return { release: (place) => calls[place](), tool: tool({ name: "held", description: "", parameters: { type: "object" }, execute }) };
}

const quick = tool({ name: "quick", description: "", parameters: { type: "object" }, execute: () => "quick" });
const called = (...names) => ({ toolCalls: names.map((toolName) => ({ toolName, arguments: {} })) });

/** Steers while two tools run, lets the first of them end, and then the other. Says what the turns ended with. */
async function steered(agent, steerer, release, when) {
  const reasons = [];
  let running = 0;
  const [both, first, posted] = [deferred(), deferred(), deferred()];
  agent.subscribe((event) => {
    if (event.type === "turn_end") reasons.push(event.reason);
    if (event.type === "tool_execution_start" && ++running === 2) both.resolve();
    if (event.type === "tool_execution_end") first.resolve();
  });
  const steer = agent.steer.bind(agent);
  agent.steer = (...given) => (posted.resolve(), steer(...given));
  const run = steerer.prompt("Go");
  await both.promise;
  const receipt = steerer.steer("By the way", when && { when });
  await posted.promise;
  await settle();
  release(0);
  await first.promise;
  await settle();
  release(1);
  await run;
  return { reasons, receipt: await receipt };
}

const agentWith = (slow, steering) => new Agent({ model: scripted([called("held", "held"), "Done."]), tools: [slow.tool], steering });

for (const remote of [false, true]) {
  for (const [own, when, reason] of [[undefined, "after_batch", "tools_executed"], ["after_batch", undefined, "tools_executed"], ["after_batch", "immediate", "steering_interrupt"], ["after_batch", "after_tool", "steering_interrupt"], ["immediate", "after_batch", "tools_executed"], [undefined, undefined, "steering_interrupt"]]) {
    test(`${remote ? "from afar" : "here"}, the agent's rule ${own ?? "left out"}, the message's ${when ?? "left out"}`, async () => {
      const slow = held();
      const agent = agentWith(slow, own && { when: own });
      const handler = agentHandler(agent);
      const steerer = remote ? new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) }) : agent;
      const { reasons, receipt } = await steered(agent, steerer, slow.release, when);
      assert.deepEqual([reasons, receipt], [[reason, "complete"], { delivered: true, turnIndex: 1 }]);
      if (remote) steerer[Symbol.dispose]?.();
    });
  }
}

test("a message waits for a person when it is to be read after the batch", async () => {
  const agent = new Agent({ model: scripted([called("quick"), "Done."]), tools: [quick], approval: { mode: "enabled" } });
  const run = agent.prompt("Go");
  await new Promise((resolve) => agent.subscribe((event) => event.type === "tool_approval_requested" && resolve()));
  agent.steer("By the way", { when: "after_batch" });
  await settle();
  const [question] = agent.pendingApprovals;
  const copy = await Agent.restore(agent.checkpoint(), { model: scripted(["Done."]), tools: [quick], approval: { mode: "enabled" } });
  assert.equal(agent.resolve(question.id, "approve"), true);
  await run;
  const said = (messages) => messages.map(({ role, content }) => `${role}: ${content.map(({ text }) => text).join("")}`).slice(2);
  assert.deepEqual(said(agent.messages), ["toolResult: quick", "user: By the way", "assistant: Done."].map((line) => line.replace("toolResult", agent.messages[2].role)));
  const again = copy.continue();
  await new Promise((resolve) => copy.subscribe((event) => event.type === "run_resumed" && resolve()));
  await settle();
  copy.resolve(copy.pendingApprovals[0].id, "approve");
  await again;
  assert.deepEqual(said(copy.messages), said(agent.messages));
});

test("what is no time is named, with the times there are", async () => {
  const agent = new Agent({ model: scripted([]) });
  assert.throws(() => agent.steer("x", { when: "later" }), { code: "misuse", message: '`when` must be "after_tool" or "immediate" or "after_batch" or "now", got "later"' });
  assert.throws(() => agent.steer("x", { wen: "immediate" }), { code: "misuse", message: "`steer` has no option `wen`; did you mean `when`?" });
  const handler = agentHandler(agent);
  const answer = await handler(new Request("http://a.localhost/x/steer", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ input: "x", when: "later" }) }));
  assert.equal(answer.status, 400);
  assert.match(JSON.stringify(await answer.json()), /`when` must be /);
});
