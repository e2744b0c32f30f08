// @ts-check
// Histories of other programs, in which calls have the ids of other calls: each result stays with its call.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromAGUI } from "../../../pkg/ag-ui.js";
import { fromUIMessages } from "../../../pkg/server.js";
import { Agent, scripted } from "../kit.mjs";

const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
/** @param {...[string, string]} calls */
const asks = (...calls) => ({ role: "assistant", content: calls.map(([callId, city]) => ({ type: "tool_call", callId, toolName: "rain", arguments: { city } })), provider: "p", model: "m", usage, stopReason: "tool_use", timestamp: 0 });
/** @param {string} callId @param {string} text */
const told = (callId, text) => ({ role: "tool_result", callId, toolName: "rain", content: [{ type: "text", text }], isError: false, timestamp: 0 });
const user = { role: "user", content: [{ type: "text", text: "Rain?" }], timestamp: 0 };

/** What the model is shown: each city with what was said of it. @param {any[]} messages */
async function pairs(messages) {
  const model = scripted(["So."]);
  await new Agent({ model, messages }).prompt("And?");
  const shown = /** @type {any} */ (model).requests[0].messages;
  const results = new Map(shown.flatMap((/** @type {any} */ message) => (message.role === "tool_result" ? [[message.callId, message.content[0].text]] : [])));
  return shown.flatMap((/** @type {any} */ { role, content }) => (role === "assistant" ? content.map((/** @type {any} */ call) => `${call.arguments?.city}: ${results.get(call.callId)}`) : []));
}

test("one id for every call, over answers and in one answer, with results in their order", async () => {
  assert.deepEqual(await pairs([user, asks(["0", "Oslo"]), told("0", "wet"), asks(["0", "Rome"]), told("0", "dry"), asks(["0", "Bern"]), told("0", "snow")]), ["Oslo: wet", "Rome: dry", "Bern: snow"]);
  assert.deepEqual(await pairs([user, asks(["0", "Oslo"], ["0", "Rome"]), told("0", "wet"), told("0", "dry"), asks(["0", "Bern"], ["1", "Rom"]), told("1", "hot"), told("0", "snow")]), ["Oslo: wet", "Rome: dry", "Bern: snow", "Rom: hot"]);
  // An id that looks like one that was made.
  assert.deepEqual(await pairs([user, asks(["0", "Oslo"], ["0~2", "Rome"]), told("0", "wet"), told("0~2", "dry"), asks(["0", "Bern"]), told("0", "snow")]), ["Oslo: wet", "Rome: dry", "Bern: snow"]);
});

test("a result that is said twice counts once, and ids of one's own stay as they are", async () => {
  assert.deepEqual(await pairs([user, asks(["a", "Oslo"]), told("a", "wet"), told("a", "very wet")]), ["Oslo: very wet"]);
  const messages = /** @type {any[]} */ ([user, asks(["a", "Oslo"]), told("a", "wet")]);
  const agent = new Agent({ model: scripted([]), messages });
  assert.ok(agent.messages.every((message, i) => message === messages[i]));
});

test("the same from a page of the AI SDK and from a client of AG-UI", async () => {
  const cities = [["Oslo", "wet"], ["Rome", "dry"]];
  const ui = [{ role: "user", parts: [{ type: "text", text: "Rain?" }] }, { role: "assistant", parts: cities.flatMap(([city, output]) => [{ type: "step-start" }, { type: "tool-rain", toolCallId: "0", state: "output-available", input: { city }, output }]) }];
  assert.deepEqual(await pairs(fromUIMessages(ui).messages), ["Oslo: wet", "Rome: dry"]);
  const agui = [{ role: "user", content: "Rain?" }, ...cities.flatMap(([city, content]) => [{ role: "assistant", toolCalls: [{ id: "0", function: { name: "rain", arguments: JSON.stringify({ city }) } }] }, { role: "tool", toolCallId: "0", content }])];
  assert.deepEqual(await pairs(fromAGUI({ threadId: "t", runId: "r", messages: agui }).messages), ["Oslo: wet", "Rome: dry"]);
});
