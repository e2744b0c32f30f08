// @ts-check
// A page, or a frame in it, that registers tools which are none, or too long: the others stay.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { pageTools } from "../../../pkg/webmcp.js";

const WINDOW = {};
const tool = (/** @type {string} */ name, /** @type {object} */ more = {}) => ({ name, description: "Does it", inputSchema: '{"type":"object"}', annotations: {}, origin: "https://page.example", window: WINDOW, ...more });
const cycle = { type: "object" };
Object.assign(cycle, { cycle });

/** @type {any[]} */
let listed = [];
const context = Object.assign(new EventTarget(), { getTools: async () => listed, executeTool: async () => "ok" });
Object.assign(globalThis, { document: { modelContext: context } });
after(() => void Reflect.deleteProperty(globalThis, "document"));

test("what is no tool is left out and told, and the others are there", async () => {
  listed = [
    tool("first"), tool("broken", { inputSchema: "{" }), tool("cyclic", { inputSchema: cycle }), tool("hintless", { annotations: null }), tool("wordless", { description: null }),
    tool("list", { inputSchema: "[]" }), tool("slow", { inputSchema: JSON.stringify({ type: "object", properties: { a: { type: "string", pattern: "(a)\\1" } } }) }), null, tool("nowhere", { window: undefined }), tool("last"),
  ];
  /** @type {string[]} */
  const told = [];
  const tools = await pageTools({ onError: (error) => void told.push(String(error)) });
  assert.deepEqual(tools.tools.map(({ name }) => name), ["first", "hintless", "last"]);
  for (const name of ["broken", "cyclic", "wordless", "list", "slow", "nowhere"]) assert.ok(told.some((words) => words.includes(`\`${name}\` is left out`)), `${name}: ${told.join("\n")}`);
  await tools.dispose();
});

test("a list that becomes bad later keeps what is good, and long words are cut", async () => {
  listed = [tool("first")];
  const tools = await pageTools({ onError: () => {} });
  listed = [tool("bad", { inputSchema: "{" }), tool("first"), tool("chat", { description: "x".repeat(1_000_000) })];
  context.dispatchEvent(new Event("toolchange"));
  await tools.refresh();
  assert.deepEqual(tools.tools.map(({ name, description }) => [name, description.length]), [["first", 7], ["chat", 16_384 + "\n[cut]".length]]);
  await tools.dispose();
});
