// The event tree in the page on events is what a run really emits: checked against a trace with every event in it. That the
// code of the docs runs is checked by pages.test.mjs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Agent, scripted } from "../../../pkg/entry/node.js";

const OPENS = { agent_start: "agent_end", turn_start: "turn_end", message_start: "message_end", tool_execution_start: "tool_execution_end" };
const CLOSES = new Set(Object.values(OPENS));

/** The tree as lines of [depth, event]. */
function treeOf(page) {
  const text = readFileSync(new URL(`../../../${page}`, import.meta.url), "utf8");
  const block = /```text\n(agent_start[\s\S]*?)```/.exec(text)[1];
  return block.trim().split("\n").map((line) => {
    const [, indent, event] = /^([│├└─ ]*)([a-z_]+)\*?/.exec(line);
    return [Math.round(indent.length / 3), event];
  });
}

/** The trace of a run with one tool, as lines of [depth, event], each once. */
async function treeOfRun() {
  const tools = [{ name: "t", description: "", parameters: { type: "object" }, execute: (_, { update }) => (update("half"), "whole") }];
  const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "t" }] }, "Done."]), tools });
  const lines = new Map();
  let depth = 0;
  agent.subscribe(({ type }) => {
    // An end is a sibling of the events inside, as the last branch; so is whatever comes in between.
    if (!lines.has(type) && type !== "tool_calls_proposed") lines.set(type, type === "agent_start" ? 0 : depth);
    if (OPENS[type]) depth++;
    if (CLOSES.has(type)) depth--;
  });
  await agent.prompt("Go.");
  return [...lines].map(([event, at]) => [at, event]);
}

test("the event tree of the page is the tree of a real run", async () => {
  assert.deepEqual(treeOf("docs/events.md"), await treeOfRun());
});

test("the ends that the page names are those of the types", () => {
  const types = readFileSync(new URL("../../../www/npm/index.d.ts", import.meta.url), "utf8");
  const page = readFileSync(new URL("../../../docs/events.md", import.meta.url), "utf8");
  const wordsOf = (text) => text.match(/[a-z_]+/g);
  const union = (name) => wordsOf(new RegExp(`type ${name} = ([^;]*);`).exec(types)[1]);
  assert.deepEqual(wordsOf(/turn_end +([a-z_ |]+)/.exec(page)[1]), union("TurnEndReason"));
  assert.deepEqual(wordsOf(/agent_end +([a-z_ |]+)/.exec(page)[1]), union("RunStopReason"));
});
