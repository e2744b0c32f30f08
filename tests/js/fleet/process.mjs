// @ts-check
// One process of a fleet: it claims agents, runs them on, and writes down what it does, a line at a time.
//   node process.mjs KIND PLACE AGENTS TTL LOG

import { appendFileSync } from "node:fs";
import { openAgent } from "../../../pkg/stores-node.js";
import { Agent, scripted, tool } from "../../../pkg/entry/node.js";
import { storeOf } from "./stores.mjs";

const [kind = "", place = "", count = "0", ttl = "0", log = ""] = process.argv.slice(2);
const ttlMs = Number(ttl);
const { store } = await storeOf(kind, place, { ttlMs, owner: String(process.pid) });
const note = (/** @type {any} */ line) => appendFileSync(log, `${JSON.stringify({ pid: process.pid, at: Date.now(), ...line })}\n`);
const TURNS = 4;

/** A model that answers from the history: after a restore it goes on where it was. @param {string} id */
const model = (id) => scripted(Array.from({ length: 50 }, () => (/** @type {any} */ { messages }) => {
  const done = messages.filter((/** @type {any} */ { role }) => role === "tool_result").length;
  return done < TURNS ? { toolCalls: [{ callId: `${id}-${done}`, toolName: "work", arguments: { n: done } }] } : "done";
}));

for (;;) {
  const id = `agent-${Math.floor(Math.random() * Number(count))}`;
  let lease;
  try {
    lease = await store.claim(id);
    if (!lease) continue;
    const { fence } = lease;
    note({ type: "claim", id, fence });
    const held = lease;
    const work = tool({
      name: "work", description: "Works", parameters: { type: "object" }, idempotent: true,
      execute: async () => {
        note({ type: "tool", id, fence, isHeld: held.isHeld });
        await new Promise((resolve) => setTimeout(resolve, Math.random() * ttlMs / 4));
        return "worked";
      },
    });
    const agent = await openAgent(lease, { model: model(id), tools: [work] });
    const { stopReason } = await (agent.canContinue ? agent.continue() : (agent.reset(), agent.prompt("Go")));
    note({ type: "end", id, fence, stopReason, isHeld: lease.isHeld });
    await lease.release();
  } catch (error) {
    note({ type: "error", id, code: /** @type {any} */ (error).code, message: /** @type {any} */ (error).message });
  }
}
