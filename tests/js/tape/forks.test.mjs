// @ts-check
// Fifty tapes, forked at every event: the history up to there is that of the tape, the rest keeps the grammar, and no call that
// had a result runs again.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { dice } from "../dice.mjs";
import { checkTrace } from "../grammar.mjs";
import { Agent, custom, scripted, testTool } from "../kit.mjs";
import { fork, ready, record, replay, Tape } from "../../../pkg/tape.js";

await ready();

const TAPES = 50;
const folder = new URL("../../data/tapes/", import.meta.url);
const kept = readdirSync(folder).filter((name) => name.endsWith(".tape")).map((name) => [name, readFileSync(new URL(name, folder), "utf8")]);

/** A run of several turns with tools, steering, a retry and questions, as the dice fall. @param {number} seed @returns {Promise<string>} */
async function thrown(seed) {
  const roll = dice(seed);
  const names = ["look", "pay", "slow"];
  const turns = Array.from({ length: 1 + roll(4) }, (_, turn) => ({
    ...(roll(2) ? { text: ["I ", "look."] } : {}),
    toolCalls: Array.from({ length: 1 + roll(3) }, (_, i) => ({ callId: `c${turn}-${i}`, toolName: names[roll(3)] ?? "look", arguments: { n: i } })),
  }));
  const items = turns.flatMap((turn) => (roll(4) ? [turn] : [{ error: { code: /** @type {const} */ ("overloaded"), message: "busy" } }, turn]));
  const agent = new Agent({
    model: scripted([...items, "Done.", "And done."]), retry: { initialBackoffMs: 1, jitter: false }, host: { sleep: async () => {} },
    tools: [testTool("look", () => "seen"), testTool("pay", () => "paid", { requiresApproval: true }), testTool("slow", async (/** @type {any} */ _args, /** @type {any} */ { update }) => (update("half"), await null, "slow"))],
  });
  let steered = roll(2) === 0;
  agent.subscribe((event) => {
    if (event.type === "tool_approval_requested") agent.resolveTool(event.callId, roll(2) ? "approve" : "reject");
    if (event.type === "tool_execution_start" && !steered) (steered = true, void agent.steer("And now?"));
  });
  const recorder = await record(agent);
  await agent.prompt("Go");
  recorder.stop();
  return recorder.toText();
}

/** The tools that a tape names, each of which notes that it ran. @param {string} text @param {string[]} ran */
function toolsOf(text, ran) {
  const names = new Set([...text.matchAll(/"toolName":"([^"]+)"/g)].map(([, name]) => name));
  return [...names].map((name) => testTool(String(name), (/** @type {any} */ _args, /** @type {any} */ { callId }) => (ran.push(callId), "again"), { idempotent: true }));
}

const last = () => custom("m", async function* () {
  yield { type: "text_start", contentIndex: 0 };
  yield { type: "text_delta", contentIndex: 0, delta: "the end" };
  yield { type: "text_end", contentIndex: 0 };
  yield { type: "done", stopReason: "stop" };
});

test(`${TAPES} tapes are forked at every event`, { timeout: 300_000 }, async () => {
  const tapes = [...kept];
  for (let seed = 1; tapes.length < TAPES; seed++) tapes.push([`seed ${seed}`, await thrown(seed)]);
  let forks = 0;
  for (const [name = "", text = ""] of tapes) {
    const tape = Tape.parse(text);
    const again = replay(tape);
    /** Those of the last run: the fork goes on in it. @type {any[]} */
    let lived = [];
    /** @type {any[]} */
    const all = [];
    for await (const event of replay(tape)) all.push(event);
    for (let at = 1; at < tape.events; at++) {
      const where = `${name} at ${at}`;
      const event = all[at - 1];
      lived = event.type === "agent_start" || event.type === "run_resumed" ? [event] : [...lived, event];
      const frame = again.seek(at);
      const had = new Set(frame.messages.flatMap((message) => (message.role === "tool_result" ? [message.callId] : [])));
      /** @type {string[]} */
      const ran = [];
      const agent = await fork(tape, { at, model: last(), tools: toolsOf(text, ran), approveTool: () => "approve" });
      assert.deepEqual(JSON.parse(JSON.stringify(agent.messages)), frame.messages, where);
      if (frame.phase === "idle" || frame.phase === "ended") continue;
      /** @type {any[]} */
      const events = [];
      for (const question of agent.pendingQuestions) agent.resolve(question.id, question.kind === "budget" ? "deny" : question.kind === "tool" ? "approve" : { action: "decline" });
      for await (const event of agent.continue()) events.push(event);
      try {
        checkTrace([...lived, ...events.filter(({ type }) => type !== "run_resumed")]);
      } catch (error) {
        assert.fail(`${where}: ${/** @type {Error} */ (error).message}: ${JSON.stringify(events).slice(0, 800)}`);
      }
      assert.deepEqual(JSON.parse(JSON.stringify(agent.messages.slice(0, frame.messages.length))), frame.messages, where);
      assert.deepEqual(ran.filter((callId) => had.has(callId)), [], where);
      forks++;
    }
  }
  console.log(`${forks} forks of ${tapes.length} tapes`);
  assert.ok(forks > 1_000, `${forks} forks`);
});
