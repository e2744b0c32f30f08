// @ts-check
// JSON behind reactive proxies, as Vue and MobX make them, is JSON; objects of the package stay out of such proxies.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, peek, scripted } from "../kit.mjs";
import { RemoteAgent } from "../../../pkg/remote.js";

/** As Vue's `reactive`: objects in it come out as proxies, too, unless they have `__v_skip`. @param {any} value @returns {any} */
const reactive = (value) => new Proxy(value, {
  get: (target, key, receiver) => {
    const item = Reflect.get(target, key, receiver);
    return typeof item === "object" && item !== null && !item.__v_skip ? reactive(item) : item;
  },
});

const first = new Agent({ model: scripted(["one"]), sessionState: { cart: { items: [1] } } });
await first.prompt("hi");
const checkpoint = () => JSON.parse(JSON.stringify(first.checkpoint()));

test("structuredClone refuses such a proxy, so the test tests something", () => {
  assert.throws(() => structuredClone(reactive({ a: {} })));
});

test("messages, inputs, checkpoints and state may be behind a reactive proxy", async () => {
  const model = () => scripted(["two"]);
  assert.equal((await new Agent({ model: model(), messages: reactive(JSON.parse(JSON.stringify(first.messages))) }).prompt("x")).text, "two");
  assert.equal((await new Agent({ model: model() }).prompt(reactive({ role: "user", content: [{ type: "text", text: "x" }] }))).text, "two");
  assert.deepEqual(peek(reactive(checkpoint())).messages, JSON.parse(JSON.stringify(first.messages)));
  const again = await Agent.restore(reactive(checkpoint()), { model: model() });
  assert.equal((await again.prompt("x")).text, "two");
  assert.equal((await new Agent({ model: model(), sessionState: reactive({ cart: { items: [1] } }) }).prompt("x")).text, "two");
});

test("an agent, a run and a RemoteAgent in reactive state are the very objects", async () => {
  const agent = new Agent({ model: scripted(["ok"]) });
  const remote = new RemoteAgent({ url: "http://a.localhost/x", fetch: async () => new Response() });
  const state = reactive({ agent, remote, run: agent.prompt("x") });
  assert.equal(state.agent, agent);
  assert.equal(state.remote, remote);
  assert.equal((await state.run.result).text, "ok");
});

test("a proxied agent works, too", async () => {
  const agent = new Proxy(new Agent({ model: scripted(["ok"]) }), {});
  assert.equal((await agent.prompt("x")).text, "ok");
  assert.equal(agent.messages.length, 2);
});
