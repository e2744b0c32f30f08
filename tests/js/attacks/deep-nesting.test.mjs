// @ts-check
// Values that are nested thousands deep, from a store, a client or a page: each door refuses them by name, and nobody runs out of
// stack.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromAGUI } from "../../../pkg/ag-ui.js";
import { fromUIMessages } from "../../../pkg/ai-sdk.js";
import { agentHandler } from "../../../pkg/server.js";
import { seal } from "../../../pkg/stores.js";
import { Agent, call, peek, scripted, testTool } from "../kit.mjs";

/** @param {number} depth @param {boolean} isList */
function nested(depth, isList) {
  /** @type {any} */
  let value = 1;
  for (let i = 0; i < depth; i++) value = isList ? [value] : { a: value };
  return value;
}
/** The same as JSON. @param {number} depth @param {boolean} isList */
const nestedText = (depth, isList) => (isList ? "[".repeat(depth) + 1 + "]".repeat(depth) : '{"a":'.repeat(depth) + 1 + "}".repeat(depth));

const agent = new Agent({ model: scripted([call("look"), "done"]), tools: [testTool("look", () => ({ content: [{ type: "text", text: "x" }], details: { n: 1 } }))] });
await agent.prompt("Go.");
const good = JSON.parse(JSON.stringify(agent.checkpoint()));

/** Where a checkpoint may hold something. @type {Record<string, (value: any) => any>} */
const PLACES = {
  "a member of another engine": (value) => ({ ...good, extra: value }),
  "metadata": (value) => ({ ...good, metadata: { ...good.metadata, note: value } }),
  "the state": (value) => ({ ...good, metadata: { turnwheel: { ...good.metadata.turnwheel, odd: value } } }),
  "the session state": (value) => ({ ...good, metadata: { turnwheel: { ...good.metadata.turnwheel, session: { odd: value } } } }),
  "an event": (value) => ({ ...good, metadata: { turnwheel: { ...good.metadata.turnwheel, untold: [{ type: "agent_start", odd: value }] } } }),
  "an agent inside": (value) => ({ ...good, metadata: { turnwheel: { ...good.metadata.turnwheel, children: { c1: value } } } }),
  "arguments": (value) => ({ ...good, messages: [...good.messages, { role: "assistant", content: [{ type: "tool_call", id: "c", name: "look", arguments: { odd: value } }] }] }),
  "a result": (value) => ({ ...good, messages: [...good.messages, { role: "tool", content: [{ type: "tool_result", tool_call_id: "c1", content: value }] }] }),
  "a message": (value) => ({ ...good, messages: [{ role: "user", content: "x", odd: value }] }),
  "provider options": (value) => ({ ...good, messages: [{ role: "user", content: "x", provider_options: { turnwheel: { odd: value } } }] }),
};
const TOO_DEEP = { code: "misuse", message: "invalid checkpoint payload: it is nested deeper than 500" };

for (const depth of [501, 5_000, 100_000]) {
  test(`a checkpoint that is nested ${depth} deep is refused, wherever it is`, async () => {
    for (const isList of [false, true]) {
      for (const [place, at] of Object.entries(PLACES)) {
        const value = nested(depth, isList);
        await assert.rejects(async () => Agent.restore(at(value), { model: scripted([]) }), TOO_DEEP, place);
        assert.throws(() => peek(at(value)), TOO_DEEP, place);
        const text = JSON.stringify(at("here")).replace('"here"', nestedText(depth, isList));
        await assert.rejects(async () => Agent.restore(text, { model: scripted([]) }), TOO_DEEP, place);
        assert.throws(() => peek(text), TOO_DEEP, place);
      }
    }
  });
}

test("a checkpoint that refers to one thing from many places is looked at once per level", () => {
  /** @type {any} */
  let value = { end: true };
  for (let i = 0; i < 100; i++) value = { left: value, right: value };
  // So often that looking at each path would not end.
  assert.equal(peek({ ...good, extra: value }).messages.length, good.messages.length);
  /** @type {any} */
  const circle = {};
  circle.self = circle;
  assert.throws(() => peek({ ...good, extra: circle }), TOO_DEEP);
});

test("what other engines keep beside a conversation comes back, as deep as it may be", async () => {
  const restored = await Agent.restore({ ...good, extra: nested(300, false) }, { model: scripted(["x"]) });
  assert.deepEqual(/** @type {any} */ (restored.checkpoint()).extra, nested(300, false));
});

for (const depth of [5_000, 100_000]) {
  test(`what a client or a page sends ${depth} deep is refused at each door, or not looked at`, async () => {
    for (const isList of [false, true]) {
      const value = nested(depth, isList);
      const text = nestedText(depth, isList);
      const post = (/** @type {string} */ path, /** @type {string} */ body) => agentHandler(new Agent({ model: scripted(["ok"]) }))(new Request(`http://localhost/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body }));
      for (const [path, body] of [["prompt", text], ["prompt", `{"input":${text}}`], ["steer", `{"input":"x","metadata":${text}}`], ["resolve", `{"id":"q","answer":${text}}`], ["abort", `{"reason":${text}}`]]) {
        const response = await post(String(path), String(body));
        assert.equal(response.status, 400);
        assert.match((await response.json()).error.message, /nested more than 200 deep/);
      }
      const parts = (/** @type {any[]} */ ...list) => [{ id: "1", role: "user", parts: [{ type: "text", text: "x" }] }, { id: "2", role: "assistant", parts: list }];
      /** @type {Record<string, () => unknown>} */
      const doors = {
        "fromUIMessages, an output": () => assert.throws(() => fromUIMessages(parts({ type: "tool-look", toolCallId: "c", state: "output-available", input: {}, output: value })), { code: "misuse", message: "the output of look is no JSON: nested too deep" }),
        "fromUIMessages, data": () => fromUIMessages(parts({ type: "data-x", data: value })),
        "fromUIMessages, metadata": () => fromUIMessages([{ id: "1", role: "user", metadata: value, parts: [{ type: "text", text: "x" }] }]),
        "fromAGUI, the state": () => fromAGUI(/** @type {any} */ ({ threadId: "t", runId: "r", messages: [{ id: "1", role: "user", content: "x" }], tools: [], context: [], state: value, forwardedProps: value })),
        "fromAGUI, a tool": () => fromAGUI(/** @type {any} */ ({ threadId: "t", runId: "r", messages: [{ id: "1", role: "user", content: "x" }], tools: [{ name: "q", description: "", parameters: value }], context: [] })),
        "fromAGUI, a message": () => fromAGUI(/** @type {any} */ ({ threadId: "t", runId: "r", messages: [{ id: "1", role: "user", content: [value] }], tools: [], context: [] })),
        "seal": () => seal(/** @type {any} */ ({ ...good, extra: value }), crypto.getRandomValues(new Uint8Array(32))),
        "metadata of a run": () => new Agent({ model: scripted(["ok"]) }).prompt("x", { metadata: { value } }).result,

        "messages": () => new Agent({ model: scripted(["ok"]), messages: /** @type {any} */ ([{ role: "custom", kind: "k", data: value, timestamp: 0 }]) }).prompt("x").result,
      };
      for (const [door, enter] of Object.entries(doors)) {
        await (async () => enter())().catch((error) => assert.equal(error.code, "misuse", `${door}: ${error.stack}`));
      }
    }
  });
}
