// The player of journals that move: lives a run for some more records, and says what is stored then. One line of JSON each way; the
// other side is tests/harness/src/journals.rs, which has the same world.

import { createInterface } from "node:readline";
import { Agent, subagent, tool } from "./kit.mjs";

/** A model that says what `answer` returns for a request: an error, a text, or calls. */
function model(id, answer) {
  return {
    id, provider: `provider-of-${id}`,
    async *streamFn(request) {
      const { error, text, calls = [] } = answer(request);
      if (error) return void (yield { type: "error", error });
      yield { type: "start" };
      if (text !== undefined) yield* [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: text }, { type: "text_end", contentIndex: 0 }];
      for (const [contentIndex, { id: callId, name }] of calls.entries()) {
        yield* [{ type: "tool_call_start", contentIndex, callId, toolName: name }, { type: "tool_call_delta", contentIndex, delta: '{"prompt":"look"}' }, { type: "tool_call_end", contentIndex }];
      }
      yield { type: "done", stopReason: calls.length > 0 ? "tool_use" : "stop" };
    },
  };
}

function agentOf(world, level, begun, more = {}) {
  const answer = (which, { messages }) => {
    const turn = messages.filter(({ role }) => role === "assistant").length;
    if (which === 0 && level === 0 && turn === 1 && world.fallback) return { error: { code: "auth", message: "no more of this model", retryable: false } };
    const names = level === 0 ? world.turns[turn] : turn === 0 ? world.inside : undefined;
    return names ? { calls: names.map((name, i) => ({ id: `c${turn}-${i}`, name })) } : { text: "done" };
  };
  const asks = level === 0 && world.approver;
  const pay = tool({
    name: "pay", description: "", parameters: { type: "object" }, requiresApproval: asks,
    execute: (_args, { runId, callId, state }) => {
      begun.push(`${runId}/${callId}`);
      state.set("paid", (state.get("paid") ?? 0) + 1);
      return "paid";
    },
  });
  const look = tool({ name: "look", description: "", parameters: { type: "object" }, idempotent: true, execute: () => "looked" });
  const research = subagent({ name: "research", description: "", agent: () => agentOf(world, 1, begun) });
  const [first, second] = [0, 1].map((which) => model(`model-${which}`, (request) => answer(which, request)));
  return new Agent({
    model: first, fallback: [second], tools: level === 0 ? [pay, look, research] : [pay, look], sessionId: "session",
    ...(asks && { approveTool: ({ callId }) => (callId.endsWith("1") ? { action: "reject", reason: "no" } : "approve") }), ...more,
  });
}

async function live({ world, records, more }) {
  const stored = new Map(records);
  const most = stored.size + more;
  const never = () => new Promise(() => {});
  let end = () => {};
  const over = new Promise((resolve) => (end = () => setTimeout(resolve, 1)));
  const begun = [];
  const step = async (name, work) => {
    if (stored.has(name)) return structuredClone(stored.get(name));
    if (stored.size >= most) return end(), never();
    const record = await work();
    if (stored.size >= most) return end(), never();
    stored.set(name, record);
    // The run may be over with this record: then it says so before any timer.
    if (stored.size >= most) end();
    return record;
  };
  const agent = agentOf(world, 0, begun, { host: { step } });
  const ended = await Promise.race([agent.prompt("Go on.", { runId: world.id }).result, over]);
  const result = ended && [ended.stopReason, agent.messages];
  return [[...stored], result ?? null, begun];
}

for await (const line of createInterface({ input: process.stdin })) process.stdout.write(`${JSON.stringify(await live(JSON.parse(line)))}\n`);
process.exit(0);
