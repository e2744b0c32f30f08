// The package emits the events that turnwheel-web compares its own with: web/tests/data/events.json.
// `node tests/js/events/web.test.mjs --record` writes the file.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import test from "node:test";
import { Agent, custom } from "../../../pkg/entry/node.js";

const data = (name) => new URL(`../../../web/tests/data/${name}`, import.meta.url);

async function play() {
  const scene = (0, eval)(readFileSync(data("scene.js"), "utf8"));
  let ids = 0;
  const agent = new Agent({
    model: custom("scripted", () => scene.stream(), { provider: "scene" }),
    tools: scene.tools,
    approveTool: scene.approve,
    systemPrompt: "Be brief.",
    includeRequests: true,
    retry: { initialBackoffMs: 1, jitter: false },
    host: { now: () => 1_700_000_000_000, sleep: async () => {}, id: () => `id-${++ids}` },
  });
  const run = agent.prompt({ role: "user", content: [{ type: "text", text: "Look" }], timestamp: 5 }, { runId: "run-1" });
  const events = [];
  for await (const event of run) events.push(event);
  return events;
}

if (process.argv.includes("--record")) writeFileSync(data("events.json"), `${JSON.stringify(await play(), null, 1)}\n`);

test("the package's events are those that turnwheel-web compares with", async () => {
  const events = JSON.parse(readFileSync(data("events.json"), "utf8"));
  assert.deepEqual(JSON.parse(JSON.stringify(await play())), events);
});
