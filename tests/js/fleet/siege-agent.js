// The agents of a siege: takes the place of the example's agent.js. It writes down every claim and every tool that begins, a
// line at a time: the order of the lines is the order in which it happened.

import { appendFileSync } from "node:fs";
import { custom, tool } from "turnwheel";

const note = (line) => appendFileSync(process.env.LOG, `${JSON.stringify({ pid: process.pid, ...line })}\n`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** What the model answers, by the number of answers to the last prompt. It depends on the conversation only. */
const ANSWERS = [
  { text: "I look north and south at the same time. ", calls: ["look", "look"] },
  { text: "Now I pay, and only once. ", calls: ["pay"] },
  { text: "All of it is done, and every piece of this answer has to arrive. ", calls: [] },
];

const model = custom("siege", async function* ({ messages }) {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user")).filter(({ role }) => role === "assistant").length;
  const prompts = messages.filter(({ role }) => role === "user").length;
  const { text, calls } = ANSWERS[Math.min(turn, ANSWERS.length - 1)];
  yield { type: "start" };
  yield { type: "text_start", contentIndex: 0 };
  for (const piece of text.match(/.{1,6}/g)) {
    await pause(Math.random() * 20);
    yield { type: "text_delta", contentIndex: 0, delta: piece };
  }
  yield { type: "text_end", contentIndex: 0 };
  for (const [i, toolName] of calls.entries()) {
    yield { type: "tool_call_start", contentIndex: i + 1, callId: `${prompts}-${turn}-${i}`, toolName };
    yield { type: "tool_call_delta", contentIndex: i + 1, delta: "{}" };
    yield { type: "tool_call_end", contentIndex: i + 1 };
  }
  yield { type: "done", stopReason: calls.length > 0 ? "tool_use" : "stop", usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, total: 15 } };
});

export function agentOptions(id, lease) {
  note({ type: "claim", id, fence: lease.fence });
  const make = (name, idempotent) => tool({
    name, description: name, idempotent, parameters: { type: "object" },
    async execute(_, { callId, fence, update }) {
      note({ type: "tool", id, fence, isHeld: lease.isHeld, callId, name });
      await pause(Math.random() * 100);
      update(`${name} is half done`);
      await pause(Math.random() * 100);
      note({ type: "tool_end", id, fence, callId });
      return `${name} is done`;
    },
  });
  return { model, tools: [make("look", true), make("pay", false)] };
}

export const mayUse = () => true;
