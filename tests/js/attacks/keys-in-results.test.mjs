// @ts-check
// A tool reads the environment, or a file with the key in it, and returns it, in whatever form: the key of the model is in nothing
// that leaves the agent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, openai, readRun, testTool } from "../kit.mjs";
import { ready, recordNow } from "../../../pkg/tape.js";

await ready();

const KEY = "qz-7Hk+2/Vw=9Xe_4Tb.1Lm";
const base64 = (/** @type {string} */ text) => Buffer.from(text).toString("base64");
const FORMS = [KEY, KEY.toUpperCase(), encodeURIComponent(KEY), JSON.stringify(KEY).replaceAll("/", "\\/"), base64(KEY), base64(`:${KEY}`), base64(`a:${KEY}`), [...KEY].map((letter) => `&#${letter.charCodeAt(0)};`).join(""), [...KEY].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")];
/** What would give it away: the middle of the key, and of each of its forms. */
const SIGNS = FORMS.map((form) => form.slice(12, -6).toLowerCase());

/** @param {any[]} pieces */
const stream = (...pieces) => new Response(pieces.map((piece) => `data: ${JSON.stringify(piece)}\n\n`).join("") + "data: [DONE]\n\n", { headers: { "content-type": "text/event-stream" } });
const choice = (/** @type {any} */ delta, /** @type {string | null} */ finish = null) => ({ choices: [{ index: 0, delta, finish_reason: finish }] });

/** @param {any} execute */
async function told(execute) {
  let calls = 0;
  /** @type {string[]} */
  const sent = [];
  const fetch = async (/** @type {any} */ _url, /** @type {any} */ init) => {
    sent.push(typeof init.body === "string" ? init.body : new TextDecoder().decode(init.body));
    return calls++ === 0
      ? stream(choice({ role: "assistant", tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "env", arguments: "{}" } }] }), choice({}, "tool_calls"))
      : stream(choice({ role: "assistant", content: "ok" }), choice({}, "stop"));
  };
  const agent = new Agent({ model: openai("m", { apiKey: KEY, fetch }), tools: [testTool("env", execute)], includeRequests: true });
  const recorder = recordNow(agent, { wire: true });
  const { events, result } = await readRun(agent.prompt("Go"));
  recorder.stop();
  assert.equal(result.stopReason, "completed", result.error?.message);
  return { text: JSON.stringify([events, result, agent.messages, agent.checkpoint(), recorder.toText(), sent]).toLowerCase(), messages: result.messages };
}

test("what a tool returns, throws or reports has no key in it, in any form", async () => {
  for (const form of FORMS) {
    /** @type {any[]} */
    const tools = [
      () => `OPENAI_API_KEY=${form}\nHOME=/root`,
      () => ({ content: [{ type: "text", text: "see details" }], details: { environment: { key: form, [form]: 1 } } }),
      () => { throw new Error(`cannot use ${form} here`); },
      (/** @type {any} */ _, /** @type {any} */ { update }) => (update(`reading ${form}`), update({ content: [{ type: "text", text: form }] }), "read"),
      async () => [{ type: "text", text: `a ${form} b` }, { type: "text", text: form }],
    ];
    for (const execute of tools) {
      const { text, messages } = await told(execute);
      for (const sign of SIGNS) assert.ok(!text.includes(sign), `${form}: ${execute}: ${text.slice(Math.max(0, text.indexOf(sign) - 200), text.indexOf(sign) + 100)}`);
      assert.match(JSON.stringify(messages), /\[key\]|"read"|see details/);
    }
  }
});

test("the rest of a result stays as it was", async () => {
  const { messages } = await told(() => `HOME=/root\nOPENAI_API_KEY=${KEY}\nLANG=C`);
  const [result] = messages.filter((/** @type {any} */ { role }) => role === "tool_result");
  assert.equal(result.content[0].text, "HOME=/root\nOPENAI_API_KEY=[key]\nLANG=C");
});
