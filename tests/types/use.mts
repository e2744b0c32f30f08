// The types as a user meets them; `tsc` is the test. A line marked @ts-expect-error fails when it is accepted.
import {
  Agent, AgentError, agentLoop, agentLoopContinue, CANCELLED, custom, openai, openaiCompatible, scripted, subagent, tool,
  type AgentEvent, type AgentResult, type Input, type JsonValue, type Model, type Policies, type StandardSchema, type StreamFn, type ToolDecision,
} from "turnwheel";

// A Standard Schema says what `execute` gets.
declare const city: StandardSchema<{ city: string }>;
const weather = tool({
  name: "weather", description: "", parameters: city, timeoutMs: 1000,
  requiresApproval: ({ city }) => city === "Atlantis",
  async execute({ city }, { signal, update, state, callId }) {
    update({ progress: 0.5 });
    state.set("last", city);
    const seen: JsonValue | undefined = state.get("last");
    // @ts-expect-error there is no such argument
    city.country;
    return signal.aborted ? CANCELLED : { content: [{ type: "text", text: `${city} ${callId}` }], details: { seen: seen ?? null } };
  },
});

const echo: StreamFn = async function* ({ messages }, { signal }) {
  yield { type: "text_start", contentIndex: 0 };
  yield { type: "text_delta", contentIndex: 0, delta: `${messages.length} ${signal.aborted}` };
  yield { type: "text_end", contentIndex: 0 };
  yield { type: "done", stopReason: "stop", usage: { input: 1 } };
};

const models: Model[] = [
  openai("m", { apiKey: async () => "k" }),
  openaiCompatible("m", { baseUrl: "http://localhost:1/v1" }),
  custom("echo", echo),
  scripted(["a", { text: ["b", "c"], toolCalls: [{ toolName: "weather", arguments: { city: "Oslo" } }] }, (request) => request.model]),
];
// @ts-expect-error a compatible server needs its address
openaiCompatible("m", {});

const policies: Policies = {
  preTurn: [({ turnIndex }) => (turnIndex > 3 ? { stop: "enough" } : undefined)],
  preDispatch: [({ toolName }) => (toolName === "rm" ? { skip: "no" } : { arguments: {} })],
  postTurn: [({ message }) => (message.stopReason === "length" ? { inject: ["Go on."] } : "continue")],
};

const agent = new Agent({
  model: models[0]!, tools: [weather], systemPrompt: "Be brief.", policies, maxTurns: Infinity,
  retry: { maxAttempts: 2 }, steering: { when: "immediate" }, hooks: [{ async beforeInference({ attempt }) { attempt.toFixed(); } }],
  approveTool: async ({ toolName }): Promise<ToolDecision> => (toolName === "weather" ? "approve" : { action: "reject", reason: "no" }),
  transformContext: (messages, overflow) => (overflow ? { messages: messages.slice(-2), report: { text: "cut" } } : undefined),
  host: { now: () => 0, random: () => 0.5 },
});
new Agent({ model: models[1]!, tools: { weather: { description: "", inputSchema: {}, execute() {} } } });
// @ts-expect-error `sytemPrompt` is no option
new Agent({ model: models[0]!, sytemPrompt: "" });
// @ts-expect-error a model is needed
new Agent({});

const helper = subagent({ name: "helper", description: "", agent: ({ prompt }) => (prompt.length > 0 ? agent : agent) });

/** Every event has its own shape, and the union is exhausted. */
function tell(event: AgentEvent): string {
  switch (event.type) {
    case "agent_start": case "message_start": return event.runId;
    case "run_resumed": return String(event.pendingApprovals.length);
    case "agent_end": return event.stopReason + event.messages.length + (event.error?.code ?? "");
    case "turn_start": return String(event.turnIndex);
    case "turn_end": return event.reason + (event.message?.stopReason ?? "none") + event.toolResults.length;
    case "message_update": return event.delta.type === "tool_call" ? event.delta.callId : event.delta.delta;
    case "message_reset": return event.reason;
    case "message_end": return event.message.model;
    case "tool_execution_start": return event.toolName;
    case "tool_execution_update": return JSON.stringify(event.update);
    case "tool_execution_end": return event.result.cause ?? "tool";
    case "context_compacted": return event.report.text;
    case "before_llm_call": return event.systemPrompt;
    case "retry_attempt": return `${event.attempt} ${event.delayMs} ${event.error.retryable}`;
    case "model_fallback": case "model_switched": return event.from + event.to;
    case "tool_calls_proposed": return event.calls.map((call) => call.callId).join();
    case "tool_approval_requested": return event.toolName;
    case "tool_approval_resolved": return event.by;
    case "command_refused": return event.reason;
    case "state_changed": return Object.keys(event.changes).join();
    case "cache_action": return event.action;
    case "transfer_initiated": return event.to;
    case "subagent_event": return tell(event.event);
    case "custom": return event.name;
    default: { const nothing: never = event; return nothing; }
  }
}

async function use() {
  const run = agent.prompt(["Hi", { role: "user", content: [{ type: "image", mimeType: "image/png", data: "" }], timestamp: 0 }] satisfies Input[]);
  for await (const event of run) tell(event);
  for await (const text of agent.continue().textStream) text.trim();
  const result: AgentResult = await run;
  const partial: JsonValue | undefined = run.partialArguments("c");
  if (AgentError.isInstance(result.error)) result.error.info.retryAfterMs?.toFixed();
  const receipt = await agent.steer("now");
  if (receipt.delivered) receipt.turnIndex.toFixed();
  else receipt.reason.trim();
  agent.followUp([{ type: "text", text: "then" }]);
  agent.resolveTools({ c: { action: "result", content: "done" } });
  const stop = agent.subscribe((event) => void tell(event));
  stop();
  agent.model = models[2]!;
  agent.tools = [weather, helper];
  await agent.waitForIdle();
  using another = new Agent({ model: models[3]! });
  another.abort(partial);
  await agentLoop(["Hi"], { model: models[3]!, systemPrompt: "" });
  await agentLoopContinue([...agent.messages], { model: models[3]! }, { signal: new AbortController().signal });
}
void use;
