// @ts-check
// A long run as events with their times: turns with thinking, words and calls side by side, questions, retries, a compaction,
// agents inside calls, steering. The same whenever it is made.

const NAMES = ["search", "read_file", "calculator", "write_file", "research"];
const WORDS = "the run goes on while tools answer side by side and somebody reads along as the words arrive in pieces".split(" ");

/**
 * @param {(event: any, known: { at: number, messages: any[] }) => void} push
 * @param {{ count: number, from?: number }} options at least so many events
 */
export function longRun(push, { count, from = Date.UTC(2026, 10, 25, 9) }) {
  let seed = 7;
  const dice = (/** @type {number} */ sides) => (seed = (seed * 48271) % 2147483647) % sides;
  let at = from;
  let events = 0;
  let call = 0;
  /** @type {any[]} */
  let messages = [];
  const later = (/** @type {number} */ ms) => (at += ms);
  const emit = (/** @type {any} */ event, isTimed = true) => {
    push({ runId: "run-1", ...event, ...(isTimed && { at }) }, { at, messages });
    events++;
  };
  const usage = (/** @type {number} */ output) => ({ input: 900 + messages.length * 20, output, cacheRead: 400, cacheWrite: 0, total: 1300 + messages.length * 20 + output, cost: 0.0012 });
  const say = (/** @type {string} */ text) => (messages = [...messages, { role: "user", content: [{ type: "text", text }], timestamp: at }]);
  say("Find out what changed since Friday, and write it down.");
  emit({ type: "agent_start" });

  const answer = (/** @type {any} */ emitInner, /** @type {string} */ path, /** @type {string[]} */ tools) => {
    emitInner({ type: "message_start" });
    later(150 + dice(900));
    let thinking = "";
    let text = "";
    for (let i = 0; i < 3 + dice(6); i++) {
      const delta = `${WORDS[dice(WORDS.length)]} `;
      thinking += delta;
      later(20 + dice(60));
      emitInner({ type: "message_update", delta: { type: "thinking", contentIndex: 0, delta } }, false);
    }
    for (let i = 0; i < 5 + dice(20); i++) {
      const delta = `${WORDS[dice(WORDS.length)]} `;
      text += delta;
      later(15 + dice(50));
      emitInner({ type: "message_update", delta: { type: "text", contentIndex: 1, delta } }, false);
    }
    const calls = tools.map((toolName, index) => {
      const callId = `${path}call-${++call}`;
      const given = { query: `${WORDS[dice(WORDS.length)]} ${call}` };
      const json = JSON.stringify(given);
      for (const delta of [json.slice(0, 8), json.slice(8)]) {
        later(20);
        emitInner({ type: "message_update", delta: { type: "tool_call", contentIndex: 2 + index, callId, toolName, delta } }, false);
      }
      return { type: "tool_call", callId, toolName, arguments: given };
    });
    const message = { role: "assistant", content: [{ type: "thinking", thinking }, { type: "text", text }, ...calls], provider: "example", model: "large-1", usage: usage(40 + dice(200)), stopReason: calls.length > 0 ? "tool_use" : "stop", timestamp: at };
    emitInner({ type: "message_end", message });
    return { message, calls };
  };
  const result = (/** @type {any} */ { callId, toolName }, isError = false) => ({ role: "tool_result", callId, toolName, content: [{ type: "text", text: isError ? "no such file" : `${WORDS[dice(WORDS.length)]} found in ${dice(900)} places` }], isError, ...(isError && { cause: "threw" }), timestamp: at });

  for (let turnIndex = 0; events < count; turnIndex++) {
    emit({ type: "turn_start", turnIndex });
    if (turnIndex % 40 === 39) {
      messages = [{ role: "user", content: [{ type: "text", text: "What was said before, in short." }], timestamp: at }, ...messages.slice(-6)];
      emit({ type: "context_compacted", report: { text: "in short", droppedCount: 30, tokensBefore: 90_000, tokensAfter: 9_000, overflow: true } }, false);
    }
    if (turnIndex % 25 === 12) {
      emit({ type: "retry_attempt", attempt: 1, delayMs: 1500, reason: "throttled", error: { code: "throttled", message: "slow down", retryable: true } }, false);
      later(1500);
    }
    emit({ type: "before_llm_call", systemPrompt: "Be brief. The key sk-not-a-key-but-as-long-as-one is not for you.", messages: messages.slice(), model: "large-1" }, false);
    later(4);
    const { message, calls } = answer(emit, "", Array.from({ length: 1 + dice(3) }, () => NAMES[dice(NAMES.length)] ?? ""));
    messages = [...messages, message];
    const asked = turnIndex % 8 === 3 ? calls[0] : undefined;
    if (asked) {
      emit({ type: "tool_approval_requested", id: `q-${asked.callId}`, callId: asked.callId, toolName: asked.toolName, arguments: asked.arguments, askedAt: at });
      later(2500 + dice(3000));
      emit({ type: "tool_approval_resolved", id: `q-${asked.callId}`, callId: asked.callId, toolName: asked.toolName, approved: true, by: "command" }, false);
    }
    for (const { callId, toolName, arguments: given } of calls) {
      later(1);
      emit({ type: "tool_execution_start", callId, toolName, arguments: given });
    }
    /** @type {any[]} */
    const results = [];
    for (const one of calls) {
      later(80 + dice(1200));
      if (one.toolName === "research") {
        const inner = (/** @type {any} */ event, isTimed = true) => emit({ type: "subagent_event", callId: one.callId, path: [one.callId], event: { runId: "inner", ...event, ...(isTimed && { at }) } }, false);
        inner({ type: "agent_start" });
        inner({ type: "turn_start", turnIndex: 0 });
        const said = answer(inner, `${one.callId}-`, ["search"]);
        const [looked] = said.calls;
        inner({ type: "tool_execution_start", callId: looked?.callId, toolName: "search", arguments: looked?.arguments });
        later(400 + dice(900));
        inner({ type: "tool_execution_end", callId: looked?.callId, toolName: "search", result: result(looked), isError: false });
        inner({ type: "turn_end", turnIndex: 0, message: said.message, toolResults: [], reason: "tools_executed" });
        inner({ type: "agent_end", messages: [], stopReason: "completed", usage: usage(10), turns: 1 });
      } else if (dice(3) === 0) emit({ type: "tool_execution_update", callId: one.callId, toolName: one.toolName, update: "half of it" }, false);
      const made = result(one, dice(9) === 0);
      results.push(made);
      emit({ type: "tool_execution_end", callId: one.callId, toolName: one.toolName, result: made, isError: made.isError });
    }
    messages = [...messages, ...results];
    const isSteered = turnIndex % 17 === 9;
    emit({ type: "turn_end", turnIndex, message, toolResults: results, reason: isSteered ? "steering_interrupt" : "tools_executed" });
    if (isSteered) say("Leave the pictures out.");
    later(3);
  }
  emit({ type: "turn_start", turnIndex: 9999 });
  const { message } = answer(emit, "", []);
  messages = [...messages, message];
  emit({ type: "turn_end", turnIndex: 9999, message, toolResults: [], reason: "complete" });
  emit({ type: "agent_end", messages, stopReason: "completed", usage: usage(5000), turns: 9999 });
}
