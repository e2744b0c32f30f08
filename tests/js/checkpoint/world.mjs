// @ts-check
// One run for the tests that put agents to sleep: five turns, parallel tools, two approvals, a retry. What
// the model says depends on the conversation only, so that it continues the same way in any process.

import { Agent, custom } from "../../../pkg/entry/node.js";

/** What the model answers, by the number of answers so far. @type {any[]} */
const ANSWERS = [
  { text: "Looking around. ", toolCalls: [call("a1", "look", { at: "north" }), call("a2", "look", { at: "south" }), call("a3", "slow", { n: 3 })] },
  { thinking: "careful", text: "May I?", toolCalls: [call("b1", "pay", { amount: 5 }), call("b2", "look", { at: "east" })] },
  { toolCalls: [call("c1", "slow", { n: 1 }), call("c2", "slow", { n: 2 })] },
  { text: "Once more.", toolCalls: [call("d1", "pay", { amount: 7 })] },
  { text: "All done, thank you for waiting." },
];

/** @param {string} callId @param {string} toolName @param {any} args */
function call(callId, toolName, args) {
  return { callId, toolName, arguments: args };
}

/** A model that fails once in the third turn. @param {{ failed: boolean }} world */
function model(world) {
  return custom("sleeper", async function* (/** @type {any} */ { messages }) {
      const turn = messages.filter((/** @type {any} */ { role }) => role === "assistant").length;
      const { thinking, text = "", toolCalls = [] } = ANSWERS[turn];
      yield { type: "start" };
      let index = 0;
      if (thinking) {
        yield { type: "thinking_start", contentIndex: index };
        yield { type: "thinking_delta", contentIndex: index, delta: thinking };
        yield { type: "thinking_end", contentIndex: index++, signature: "s1" };
      }
      if (text) {
        yield { type: "text_start", contentIndex: index };
        for (const piece of text.match(/.{1,7}/g)) {
          await undefined;
          yield { type: "text_delta", contentIndex: index, delta: piece };
        }
        yield { type: "text_end", contentIndex: index++ };
      }
      if (turn === 2 && !world.failed) {
        world.failed = true;
        yield { type: "error", error: { code: "overloaded", message: "busy", retryable: true } };
        return;
      }
      for (const { callId, toolName, arguments: args } of toolCalls) {
        yield { type: "tool_call_start", contentIndex: index, callId, toolName };
        yield { type: "tool_call_delta", contentIndex: index, delta: JSON.stringify(args) };
        yield { type: "tool_call_end", contentIndex: index++ };
      }
      yield { type: "done", stopReason: toolCalls.length > 0 ? "tool_use" : "stop", usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, total: 15 } };
  });
}

/**
 * The options of an agent in this world, besides its state. A dead world does nothing that counts.
 * @param {{ ran: string[], dead: boolean, failed: boolean, now: number, pauses(): number }} world
 */
export function options(world) {
  const tool = (/** @type {string} */ name, /** @type {any} */ more) => ({
    name, description: name, idempotent: true, parameters: { type: "object" },
    async execute(/** @type {any} */ args, /** @type {any} */ { callId, update, state }) {
      if (!world.dead) world.ran.push(callId);
      for (let i = world.pauses(); i > 0; i--) await undefined;
      update({ at: callId });
      state.set(callId, true);
      return `${name} ${JSON.stringify(args)}`;
    },
    ...more,
  });
  return {
    model: model(world), sessionState: { begun: true },
    tools: [tool("look"), tool("slow"), tool("pay", { requiresApproval: true, idempotent: false })],
    host: {
      now: () => world.now, random: () => 0.5,
      sleep: async (/** @type {number} */ ms) => void (world.now += ms),
    },
    retry: { initialBackoffMs: 100, jitter: false },
  };
}

/** @param {() => number} [pauses] */
export const world = (pauses = () => 3) => ({ ran: /** @type {string[]} */ ([]), dead: false, failed: false, now: 1_700_000_000_000, pauses });

/** Approves what is asked, a little later. @param {Agent} agent @param {any} own the world it lives in */
export function approve(agent, own) {
  const decide = async (/** @type {string} */ callId) => {
    for (let i = own.pauses(); i > 0; i--) await undefined;
    if (!own.dead) agent.resolveTool(callId, "approve");
  };
  for (const { callId } of agent.pendingApprovals) decide(callId);
  agent.subscribe((/** @type {any} */ event) => void (event.type === "tool_approval_requested" && decide(event.callId)));
}

export { Agent };
