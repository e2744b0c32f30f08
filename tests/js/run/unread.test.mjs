// @ts-check
// The first failure is seen: an error that nobody has read is one line on the console.

import assert from "node:assert/strict";
import { inspect } from "node:util";
import { test } from "node:test";
import { AgentStore } from "../../../pkg/react-store.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, misused, scripted, settle } from "../kit.mjs";

let causes = 0;
/** An agent whose run fails of something new. @param {any} [options] */
function failing(options) {
  const cause = `the key is missing (${++causes})`;
  const model = scripted([() => {
    throw new Error(cause);
  }]);
  return { agent: new Agent({ model, ...options }), cause };
}
/** What the console was told of, once there was time to read it. @param {any} t @param {() => Promise<unknown>} work */
async function said(t, work) {
  const error = t.mock.method(console, "error", () => {});
  t.mock.timers.enable({ apis: ["setTimeout"] });
  try {
    await work();
    for (let i = 0; i < 20; i++) await settle();
    t.mock.timers.tick(1000);
    return error.mock.calls.map((/** @type {any} */ { arguments: args }) => args.join(" ")).filter((/** @type {string} */ line) => line.startsWith("turnwheel"));
  } finally {
    t.mock.timers.reset();
    error.mock.restore();
  }
}

test("a run whose error nobody reads is one line on the console", async (t) => {
  /** @type {[string, (agent: Agent) => Promise<unknown>][]} */
  const ways = [
    ["the text alone", async (agent) => (await agent.prompt("Go")).text],
    ["events by their type, and the text", async (agent) => {
      const run = agent.prompt("Go");
      const names = [];
      for await (const { type } of run) names.push(type);
      return [names, (await run).text, (await run).messages, (await run).usage];
    }],
    ["the stream of texts", async (agent) => {
      for await (const _ of agent.prompt("Go").textStream);
    }],
    ["nothing", async (agent) => void (await agent.prompt("Go"))],
  ];
  for (const [name, read] of ways) {
    const { agent, cause } = failing();
    assert.deepEqual(await said(t, () => read(agent)), [`turnwheel: a run failed: ${cause} (nobody read \`result.error\`; \`await run.orThrow()\` throws it)`], name);
  }
});

test("what somebody reads, subscribes to or turns off is not said", async (t) => {
  /** @type {[string, (agent: Agent) => Promise<unknown>, any?][]} */
  const ways = [
    ["error", async (agent) => (await agent.prompt("Go")).error],
    ["stopReason", async (agent) => (await agent.prompt("Go")).stopReason],
    ["orThrow", (agent) => agent.prompt("Go").orThrow().catch(() => {})],
    ["textStream.orThrow", async (agent) => {
      try {
        for await (const _ of agent.prompt("Go").textStream.orThrow());
      } catch {}
    }],
    ["the end event", async (agent) => {
      for await (const event of agent.prompt("Go")) if (event.type === "agent_end") event.stopReason;
    }],
    ["as JSON", async (agent) => JSON.stringify(await agent.prompt("Go"))],
    ["a copy", async (agent) => structuredClone({ ...(await agent.prompt("Go")), messages: [] })],
    ["printed", async (agent) => inspect(await agent.prompt("Go"))],
    ["a subscriber", async (agent) => (agent.subscribe(() => {}), agent.prompt("Go"))],
    ["a component", async (agent) => (new AgentStore(agent).subscribe(() => {}), agent.prompt("Go"))],
    ["a server", async (agent) => (agentHandler(agent), agent.prompt("Go"))],
    ["a response", (agent) => agent.prompt("Go").toResponse().text()],
    ["a response for useChat", (agent) => agent.prompt("Go").toUIMessageStreamResponse().text()],
    ["a hook", (agent) => agent.prompt("Go").result, { hooks: { onError() {} } }],
    ["quiet", (agent) => agent.prompt("Go").result, { quiet: true }],
  ];
  for (const [name, read, options] of ways) assert.deepEqual(await said(t, () => read(failing(options).agent)), [], name);
});

test("the same cause is said once; a run that ends well or is aborted says nothing", async (t) => {
  const cause = "one cause";
  const model = () => scripted([() => {
    throw new Error(cause);
  }]);
  const lines = await said(t, () => Promise.all([1, 2, 3].map(() => new Agent({ model: model() }).prompt("Go").result)));
  assert.equal(lines.length, 1);
  assert.deepEqual(await said(t, () => new Agent({ model: scripted(["Hello."]) }).prompt("Go").result), []);
  const aborted = new Agent({ model: scripted(["Hello."]) });
  assert.deepEqual(await said(t, async () => {
    const run = aborted.prompt("Go");
    run.abort();
    await run;
  }), []);
});

test("the result is what it was: plain members in their order, and printed as they are", async (t) => {
  await said(t, async () => {
    const { agent, cause } = failing();
    const result = await agent.prompt("Go");
    assert.deepEqual(Object.keys(result), ["runId", "text", "messages", "usage", "turns", "stopReason", "error"]);
    assert.match(inspect(result), new RegExp(`stopReason: 'error'[^]*${cause.replace(/[()]/g, "\\$&")}`));
    assert.deepEqual([result.stopReason, result.error?.message], ["error", cause]);
  });
  misused(() => new Agent({ model: scripted([]), quiet: /** @type {any} */ ("yes") }), /`quiet` must be/);
});
