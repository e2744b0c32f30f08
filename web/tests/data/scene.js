// A model, two tools and an approver, for a run with every usual event. The npm package plays it in
// tests/js/events/web.test.mjs and this crate in values.rs; both compare their events with events.json.
({
  answers: [
    [{ type: "start" }, { type: "error", error: { code: "overloaded", message: "busy", retryable: true } }],
    [
      { type: "start" },
      { type: "thinking_start", contentIndex: 0 },
      { type: "thinking_delta", contentIndex: 0, delta: "Hm." },
      { type: "thinking_end", contentIndex: 0, signature: "signed" },
      { type: "text_start", contentIndex: 1 },
      { type: "text_delta", contentIndex: 1, delta: "Let me see: grüße 🙂" },
      { type: "text_end", contentIndex: 1 },
      { type: "tool_call_start", contentIndex: 2, callId: "a", toolName: "look" },
      // A number that JavaScript rounds, and a member that an assignment would lose.
      { type: "tool_call_delta", contentIndex: 2, delta: '{"id":12345678901234567890,"half":0.5,"none":null,"__proto__":{"deep":[1,' },
      { type: "tool_call_delta", contentIndex: 2, delta: '{}]}}' },
      { type: "tool_call_end", contentIndex: 2 },
      { type: "tool_call_start", contentIndex: 3, callId: "b", toolName: "delete_all" },
      { type: "tool_call_end", contentIndex: 3 },
      { type: "done", stopReason: "tool_use", usage: { input: 9007199254740991, output: 2, cacheRead: 0, cacheWrite: 0 } },
    ],
    [
      { type: "start" },
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", contentIndex: 0, delta: "Done." },
      { type: "text_end", contentIndex: 0 },
      { type: "done", stopReason: "stop" },
    ],
  ],
  stream() {
    return this.answers.shift();
  },
  tools: [
    {
      name: "look",
      description: "Looks",
      parameters: { type: "object" },
      idempotent: undefined,
      async execute(args, { update, state }) {
        update({ done: 0.5 });
        update("nearly");
        state.set("looked", [args.half]);
        return { content: [{ type: "text", text: "3 files" }], details: { files: ["x"] } };
      },
    },
    { name: "delete_all", description: "Deletes", requiresApproval: true, execute: () => "gone" },
  ],
  approve: ({ callId }) => ({ action: "reject", reason: `never ${callId}` }),
});
