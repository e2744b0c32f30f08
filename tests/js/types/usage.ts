// Every export, used as a user would. It is compiled, never run.

import {
  Agent, AgentError, CANCELLED, agentLoop, agentLoopContinue, anthropic, custom, gemini, openai, openaiCompatible,
  openaiResponses, fileAt, imageAt, peek, scripted, subagent, tool, transferTo,
  type AgentEvent, type AgentLoopConfig, type AgentMessage, type AgentOptions, type AgentResult, type AgentRun,
  type ApprovalOptions, type ApprovalRequest, type AssistantMessage, type AssistantMessageEvent, type Checkpoint, type CompactionReport,
  type Compat, type CustomMessage, type Delta, type ErrorInfo, type ErrorKind, type FileBlock, type Hooks, type ImageBlock, type Answer, type BudgetKind, type BudgetQuestion, type ElicitationQuestion, type Question, type ToolAnswer, type ToolCallAnswer, type ToolCallQuestion, type ToolQuestion, type ToolQuestionInput, type RawBlock,
  type Input, type JsonSchema, type JsonValue, type LlmMessage, type MessageStopReason, type Model, type ModelRequest,
  type Policies, type PolicyContext, type ProviderOptions, type Receipt, type SteerOptions, type TurnInfo, type TurnOptions, type Budget, type RunOptions, type RunStopReason, type ScriptItem,
  type ServerName, type SessionState, type StandardSchema, type StreamFn, type StreamOptions, type TextBlock, type ThinkingBlock,
  type ToolCallBlock, type ToolContext, type ToolDecision, type ToolDefinition, type ToolOutput, type ToolResultCause,
  type ToolResultMessage, type Transfer, type RunInfo, type SlidingWindowOptions, type BudgetTrimOptions, type Reducer, type WrappedToolCall, type WrappedModelCall, budgetTrim, errorInfo, keepLast, pruneToolResults, reduce, slidingWindow, type TransformInfo, type TransformResult, type TurnEndReason, type Usage, type UserMessage,
  type Verdict, type FromJsonSchema, type ArgumentsOf, type CallsOf, type ExternalTool,
} from "turnwheel";
import { Agent as SlimAgent, use } from "turnwheel/slim";
import { Agent as InlineAgent } from "turnwheel/inline";
import { cassette, record, replay, Tape, type RecordOptions, type Recorder } from "turnwheel/tape";
import { durableObjectStore, indexedDBStore, seal, unseal, type CheckpointStore, type SealedCheckpoint, type SealKey, type SealOptions } from "turnwheel/stores";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { z } from "zod";

declare function is<T>(value: T): void;
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const zodCity = z.object({ city: z.string(), days: z.number().default(3) });
const valibotNumber = toStandardJsonSchema(v.object({ n: v.number() }));
declare function look(city: string, options: { signal: AbortSignal }): Promise<{ rain: boolean }>;

// ---- what comes from the environment may not be there, with exactOptionalPropertyTypes too

declare const found: { key: string | undefined; signal: AbortSignal | undefined };
new Agent({ model: openai("gpt-5-mini", { apiKey: found.key }) }).prompt("Go", { signal: found.signal });

// ---- JSON Schema of a library's types, which are interfaces

interface Described { type: "object"; properties: { city: { type: "string" } }; required: ["city"] }
declare const described: Described;
tool({ name: "described", description: "", parameters: described, execute: ({ city }) => is<string>(city) });
new Agent({ model: scripted([]), tools: [{ name: "described", description: "", parameters: described, execute: () => "" }], output: described });

// ---- a structured answer has the type of its schema

const answering = new Agent({ model: scripted([]), output: zodCity });
const typedResult = await answering.prompt("Go");
is<Same<typeof typedResult.output, { city: string; days: number } | undefined>>(true);
const orThrown = await answering.prompt("Go").orThrow();
is<number | undefined>(orThrown.output?.days);
const byValibot = await agentLoop(["Go"], { model: scripted([]), output: valibotNumber });
is<number | undefined>(byValibot.output?.n);
is<AgentMessage[]>(peek("{}").messages);
is<Question[]>(peek("{}").pendingQuestions);
const restoredTyped = await (await Agent.restore("{}", { model: scripted([]), output: zodCity })).continue();
is<string | undefined>(restoredTyped.output?.city);
const untyped = await new Agent({ model: scripted([]), output: described }).prompt("Go");
is<Same<typeof untyped.output, unknown>>(true);
// Of a plain JSON Schema the type is given: `FromJsonSchema` derives it from a literal.
const recipe = { type: "object", properties: { title: { type: "string" }, steps: { type: "array", items: { type: "string" } }, servings: { type: "integer" } }, required: ["title", "steps"] } as const;
type Recipe = FromJsonSchema<typeof recipe>;
const cooking = new Agent<Recipe>({ model: scripted([]), output: recipe });
const cooked = await cooking.prompt("Go");
is<Same<typeof cooked.output, { title: string; steps: string[]; servings?: number } | undefined>>(true);
for await (const partial of cooking.prompt("Go").partialOutput) is<string | undefined>(partial.steps?.[0]);
const looped = await agentLoop<Recipe>(["Go"], { model: scripted([]), output: recipe });
is<string | undefined>(looped.output?.title);
const any: Agent = answering;
const optionsOfAny: AgentOptions = { model: scripted([]), messages: Object.freeze([]), output: zodCity };
void [any, new Agent(optionsOfAny)];
for await (const piece of answering.prompt("Go").textStream.orThrow()) is<string>(piece);

// @ts-expect-error a text is no schema
tool({ name: "text", description: "", parameters: "object", execute: () => "" });

// ---- tools: the arguments follow from the schema

const weather = tool({
  name: "get_weather",
  description: "Current weather in a city",
  parameters: z.object({ city: z.string(), days: z.number().default(3) }),
  async execute({ city, days }, { signal, update, state, messages, callId, toolName, runId, sessionId }) {
    is<string>(city);
    is<number>(days);
    // @ts-expect-error the schema has no such member
    is<string>(days.town);
    update({ asked: [callId, toolName, runId, sessionId, messages.length] });
    state.set("calls", Number(state.get("calls") ?? 0) + 1);
    state.delete("old");
    return look(city, { signal });
  },
});
is<ToolDefinition<{ city: string; days: number }>>(weather);

const count = tool({
  name: "count", description: "", parameters: toStandardJsonSchema(v.object({ n: v.number() })),
  execute: ({ n }) => (n > 3 ? CANCELLED : n + 1),
  requiresApproval: ({ n }) => n > 2,
});
const plain = tool({
  name: "plain", description: "", parameters: { type: "object", properties: { a: { type: "string" } } },
  execute: ({ a }) => ({ content: [{ type: "text", text: String(a) }], details: { a }, isError: false }),
  requiresApproval: true, timeoutMs: 5, maxResultBytes: 100, idempotent: true, fatal: false, priority: 1,
});
const literal = tool({
  name: "literal", description: "",
  parameters: {
    type: "object", required: ["city", "unit", "at"], additionalProperties: false,
    properties: {
      city: { type: "string", minLength: 2 }, days: { type: ["integer", "null"] }, unit: { enum: ["C", "F"] }, exact: { type: "boolean" },
      at: { type: "object", properties: { x: { type: "number" }, y: { type: "number" } }, required: ["x"] },
      tags: { type: "array", items: { anyOf: [{ type: "string" }, { const: 7 }] } }, more: {}, bag: { type: "object" },
    },
  },
  execute({ city, days, unit, exact, at, tags, more, bag }, { signal }) {
    is<Same<typeof city, string>>(true);
    is<Same<typeof days, number | null | undefined>>(true);
    is<Same<typeof unit, "C" | "F">>(true);
    is<Same<typeof exact, boolean | undefined>>(true);
    is<Same<typeof at, { x: number; y?: number }>>(true);
    is<Same<typeof tags, (string | 7)[] | undefined>>(true);
    is<Same<typeof more, any>>(true);
    is<Same<typeof bag, any>>(true);
    // @ts-expect-error it is a text
    is<number>(city);
    return { city, days, late: signal.aborted };
  },
  requiresApproval: ({ days }) => (days ?? 0) > 3,
});
is<Same<Parameters<typeof literal.execute>[0]["unit"], "C" | "F">>(true);
// @ts-expect-error the schema has no such member
tool({ name: "bad", description: "", parameters: { type: "object", properties: { a: { type: "string" } } }, execute: ({ b }) => b });
const widened = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
tool({ name: "widened", description: "", parameters: widened, execute: ({ a, b }) => [a, b] });
tool({ name: "schema", description: "", parameters: widened as JsonSchema, execute: ({ a, b }) => [a, b] });
tool({ name: "annotated", description: "", parameters: { type: "object", properties: { a: { type: "string" } } }, execute: (args: { a: string }) => args.a });
is<Same<FromJsonSchema<{ type: "object"; properties: { a: { type: "string" } }; required: ["a"] }>, { a: string }>>(true);
is<Same<ArgumentsOf<typeof zodCity>, { city: string; days: number }>>(true);
is<Same<ArgumentsOf<typeof valibotNumber>, { n: number }>>(true);

interface Weather { city: string; rain?: boolean; hours: { at: number }[] }
declare function weatherOf(city: string): Promise<Weather>;
tool({ name: "interface", description: "", parameters: zodCity, execute: ({ city }) => weatherOf(city) });
tool({ name: "list", description: "", parameters: zodCity, execute: async ({ city }) => [await weatherOf(city)] });
// @ts-expect-error a Set is no output
tool({ name: "bad", description: "", parameters: zodCity, execute: ({ city }) => new Set([city]) });
// @ts-expect-error a function is no output
tool({ name: "bad", description: "", parameters: zodCity, execute: () => () => 1 });

const typed = tool<{ a: string }>({ name: "typed", description: "", parameters: { type: "object" }, execute: ({ a }) => a.length });
const silent: ToolDefinition = { name: "silent", description: "", parameters: {}, execute() {} };
const over = tool({ name: "over", description: "", parameters: {}, execute: (): Transfer => transferTo("sales", { reason: "a sale" }) });
is<ImageBlock>(imageAt("https://a.example/a.png", { mimeType: "image/png" }));
is<FileBlock>(fileAt("https://a.example/a.pdf", { mimeType: "application/pdf", name: "a.pdf" }));
const research = subagent({ name: "research", description: "", agent: () => new Agent({ model: models[0]! }) });
const literalDeep = subagent({ name: "deep", description: "", parameters: { type: "object", properties: { topic: { type: "string" } }, required: ["topic"] }, agent: ({ topic }) => new Agent({ model: models[0]!, systemPrompt: topic }), toPrompt: ({ topic }) => topic });
is<ToolDefinition<{ topic: string }>>(literalDeep);
const deep = subagent({ name: "deep", description: "", parameters: z.object({ topic: z.string() }), agent: async ({ topic }, { signal }) => new Agent({ model: models[0]!, systemPrompt: `${topic} ${signal.aborted}` }), toPrompt: ({ topic }) => topic });
tool({ name: "quit", description: "", parameters: {}, execute: () => CANCELLED });
tool({ name: "quit", description: "", parameters: {}, execute: async () => CANCELLED });
tool({ name: "quit", description: "", parameters: zodCity, execute: async ({ city }) => (city ? city : CANCELLED) });
is<ToolDefinition>({ name: "quit", description: "", parameters: {}, execute: async () => CANCELLED });
// @ts-expect-error another symbol is no output
tool({ name: "bad", description: "", parameters: {}, execute: () => Symbol("quit") });
// @ts-expect-error nor is one that is promised
tool({ name: "bad", description: "", parameters: {}, execute: async () => Symbol("quit") });
// @ts-expect-error a Map is no output
tool({ name: "bad", description: "", parameters: {}, execute: () => new Map() });
const pageTool: ExternalTool = tool({ name: "elsewhere", description: "", parameters: {} });
const located = tool({ name: "locate", description: "", parameters: { type: "object", properties: { exact: { type: "boolean" } }, required: ["exact"] } });
is<Same<CallsOf<[typeof located]>, { locate: { exact: boolean } }>>(true);
function answersOf(question: ToolCallQuestion): ToolCallAnswer {
  return question.arguments["exact"] ? { output: { city: "Oslo" } } : { error: "not exactly" };
}
async function givesResults(agent: Agent, question: Question) {
  if (question.kind === "tool_call") agent.resolve(question.id, answersOf(question));
  await new Agent({ model: models[0]!, tools: [pageTool, located] }).prompt("x");
}
is<Function>(givesResults);

// ---- models

const key: ProviderOptions = { apiKey: async () => undefined, fetch, headers: { a: "b" }, contextWindow: 8000, price: { input: 1, output: 2 }, compat: { strict: true } };
const models: Model[] = [
  openai("gpt-5-mini", { apiKey: "sk" }), openai("gpt-5-mini"), openaiCompatible("llama", { baseUrl: "http://localhost:11434/v1", ...key }),
  scripted(["text", { thinking: "hm", text: ["a", "b"], toolCalls: [{ toolName: "x", arguments: { a: 1 }, chunks: ["{}"] }], usage: { input: 1 }, delayMs: 3 }, (request) => request.systemPrompt, { error: { message: "no" } }]),
];
// @ts-expect-error an address is needed
openaiCompatible("llama", {});
// @ts-expect-error an option is misspelt
openai("gpt", { apikey: "sk" });

const echo: StreamFn = async function* (request: ModelRequest, { signal, runId }) {
  if (signal.aborted) throw new AgentError({ code: "aborted", message: runId, retryable: false });
  const last = request.messages.at(-1);
  yield { type: "start" };
  yield { type: "thinking_start", contentIndex: 0 };
  yield { type: "thinking_end", contentIndex: 0, signature: "s" };
  yield { type: "tool_call_start", contentIndex: 1, callId: "c", toolName: "t" };
  yield { type: "tool_call_delta", contentIndex: 1, delta: JSON.stringify(last?.content ?? null) };
  yield { type: "done", stopReason: "tool_use", usage: { input: 3 } } satisfies AssistantMessageEvent;
};
models.push(custom("mine", echo), custom("promised", async (request, context) => echo(request, context)));

// ---- an agent with everything

const rules: Policies = {
  preTurn: [({ usage, turnIndex, messageCount, newMessages, overflowSignal, state, runId }: PolicyContext): Verdict => (usage.total > 5 ? { stop: `${turnIndex} ${messageCount} ${newMessages.length} ${overflowSignal} ${runId}` } : state["x"] ? "continue" : undefined)],
  preDispatch: [({ toolName, arguments: args }) => (toolName === "a" ? { skip: "no" } : { arguments: { ...args, b: 1 } })],
  postTurn: [({ message, toolResults, messages }) => ({ inject: [message, `${toolResults.length} of ${messages.length}`] })],
  postLoop: [() => {}],
};
const hooks: Hooks = {
  beforeInference: async ({ attempt, messages }) => void [attempt, messages],
  afterInference: ({ message }) => is<AssistantMessage>(message),
  beforeToolExecution: ({ call }) => is<ToolCallBlock>(call),
  afterToolExecution: ({ result }) => is<ToolResultMessage>(result),
  onError: ({ error }) => is<ErrorInfo>(error),
};
const config: AgentLoopConfig = {
  model: models[0]!, fallback: models.slice(1), streamOptions: { temperature: 0, reasoning: { budgetTokens: 5 }, toolChoice: { toolName: "a" } },
  tools: [weather, count, plain, typed, silent, over, research, deep], transfer: { agentName: "a", chain: [], maxDepth: 3 }, maxTurns: Infinity, retry: { maxAttempts: 2, jitter: false },
  convertToLlm: (message) => (message.role === "custom" ? null : message),
  transformContext: (messages, overflow): TransformResult => (overflow ? { messages: messages.slice(-3), report: { text: "cut" } } : messages.slice(-9)),
  asyncTransformContext: async (messages, _overflow, signal) => void [messages, signal.aborted],
  compaction: { engine: async (messages, model, signal) => ({ messages: messages.slice(model.id.length), report: { overflow: signal.aborted } }), maxRecoveriesPerTurn: 2 },
  getApiKey: (provider) => (provider === "openai" ? "sk" : undefined),
  getSteeringMessages: () => ["a"], getFollowUpMessages: async () => [[{ type: "text", text: "b" }]],
  approveTool: async ({ toolName }: ApprovalRequest, { signal }): Promise<ToolDecision> => (signal.aborted ? "reject" : toolName === "a" ? "approve" : { action: "result", content: "said" }),
  approval: { mode: "smart", rules: { a: "deny" }, default: "ask" } satisfies ApprovalOptions, policies: rules, hooks: [hooks],
  toolExecution: (calls) => calls.map((_, i) => [i]), maxConcurrentTools: 3, gate: "prefix",
  steering: { when: "immediate", inFlight: "finish", delivery: "one_at_a_time", atStart: "before_first_call" }, followUp: { delivery: "all" },
  timeouts: { firstChunkMs: 1, chunkMs: 2, toolMs: 3, totalMs: 4 }, dynamicSystemPrompt: () => "now", sessionState: { a: 1 }, cache: { ttlMs: 1 },
  output: z.object({ a: z.string() }), resultTexts: { skipped: (call, detail) => `${call.toolName} ${detail}` },
  coalesceMs: 16, includeRequests: true, sessionId: "s",
  host: { now: () => 0, sleep: async (ms, signal) => void [ms, signal], random: () => 0.5, id: () => "id" },
};
const options: AgentOptions = { ...config, systemPrompt: "Be brief.", messages: [] };
export const going = (before: Agent) => [
  new Agent({ ...config, messages: before.messages }), agentLoopContinue(before.messages, config),
  new Agent({ ...config, transformContext: (messages, overflow) => (overflow ? messages.slice(-3) : messages), compaction: { engine: async (messages) => ({ messages }) } }),
];
// @ts-expect-error a model is needed
new Agent({});
// @ts-expect-error an option is misspelt
new Agent({ model: models[0]!, tool: [] });

export async function live(): Promise<AgentResult> {
  using agent = new Agent(options);
  const stop = agent.subscribe((event) => is<string>(event.runId));
  const run: AgentRun = agent.prompt(["Hi", [{ type: "image", mimeType: "image/png", data: "" }]], { signal: AbortSignal.timeout(5), runId: "r" });
  for await (const event of run) tell(event, run);
  for await (const piece of run.textStream) is<string>(piece);
  const patient: SteerOptions = { when: "after_batch" };
  const prepared = ({ turnIndex, messages, usage, signal, metadata }: TurnInfo): TurnOptions =>
    turnIndex + messages.length + usage.total > 0 && !signal.aborted && metadata ? { activeTools: ["weather"], systemPrompt: "Be brief." } : {};
  const budget: Budget = { usd: 0.5, toolCalls: 20, warnAt: 0.5, onExceed: "wrap_up", scope: "agent" };
  new Agent({ model: models[0]!, budget }).budget = { ...budget, usd: 1 };
  const ofRun: RunOptions = { metadata: { user: "u" }, streamOptions: { temperature: 0 }, activeTools: [] };
  agent.streamOptions = { temperature: 0 };
  void [prepared, ofRun];
  const receipt: Receipt = agent.steer("stop", patient);
  const said = await receipt;
  if (said.delivered) is<number>(said.turnIndex);
  else is<"cleared" | "aborted" | "run_ended" | "disposed" | "lost">(said.reason);
  void agent.followUp({ role: "custom", kind: "k", data: null, timestamp: 0 });
  is<readonly AgentMessage[]>(run.messages);
  agent.clearQueues();
  agent.resolveTool("c", "approve");
  agent.resolveTools({ c: { action: "reject", reason: "no" }, d: { action: "approve", arguments: { a: 1 } } });
  agent.abort("enough");
  run.abort();
  await agent.waitForIdle();
  agent.model = models[1]!;
  agent.systemPrompt = "other";
  agent.tools = [weather];
  is<readonly AgentMessage[]>(agent.messages);
  is<readonly ToolCallBlock[]>(agent.pendingApprovals);
  is<readonly Question[]>(agent.pendingQuestions);
  is<boolean>(agent.resolve("q", "approve"));
  is<boolean>(agent.isRunning);
  is<Usage>(agent.usage);
  // @ts-expect-error the history is the engine's
  agent.messages = [];
  agent.reset();
  stop();
  const { text, messages, usage, turns, stopReason, output, error, runId } = await agent.continue();
  if (AgentError.isInstance(error)) is<ErrorKind>(error.code);
  void [text, messages, usage, turns, stopReason, output, error?.cause, error?.info, runId];
  return (await agentLoop(["Hi"], config)) ?? (await agentLoopContinue(messages, { model: models[0]!, systemPrompt: "x" }, {}).result);
}

// ---- checkpoints

export async function sleepAndWake(agent: Agent, run: AgentRun, storage: Parameters<typeof durableObjectStore>[0]): Promise<AgentResult | undefined> {
  const stores: CheckpointStore[] = [indexedDBStore(), indexedDBStore({ name: "app" }), durableObjectStore(storage)];
  const saved: Checkpoint = agent.checkpoint();
  is<Checkpoint>(run.checkpoint());
  is<string | null>(saved.run_id);
  is<JsonValue | undefined>(saved.metadata["turnwheel"]);
  for (const store of stores) await store.save("id", saved);
  const found = await stores[0]?.load("id");
  await stores[0]?.delete("id");
  const key: SealKey = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  const context: SealOptions = { context: "user" };
  const sealed: SealedCheckpoint = await seal(saved, [key, new Uint8Array(32)], context);
  await Agent.restore(await unseal(sealed, key, context), options);
  // @ts-expect-error no options, no model
  await Agent.restore(saved);
  return found && (await Agent.restore(found, options)).continue({ runId: (await Agent.restore(JSON.stringify(saved), options)).messages.length.toString() }).result;
}

// ---- every event, and nothing but these

function tell(event: AgentEvent, run: AgentRun): unknown {
  switch (event.type) {
    case "agent_start": case "message_start": return event.runId;
    case "run_resumed": return [event.partialMessage?.content, event.pendingApprovals, event.runningTools];
    case "agent_end": return [is<RunStopReason>(event.stopReason), event.error?.provider?.status, event.turns];
    case "turn_start": return event.turnIndex;
    case "turn_end": return [is<TurnEndReason>(event.reason), event.message?.stopReason, event.toolResults.map((result) => is<ToolResultCause | undefined>(result.cause))];
    case "message_update": return piece(event.delta, run);
    case "message_reset": return event.reason;
    case "message_end": return is<MessageStopReason>(event.message.stopReason);
    case "tool_execution_start": return event.arguments["a"];
    case "tool_execution_update": return is<ToolOutput>(event.update);
    case "tool_execution_end": return [event.isError, event.result.details];
    case "context_compacted": return is<CompactionReport>(event.report);
    case "before_llm_call": return is<LlmMessage[]>(event.messages);
    case "retry_attempt": return [event.attempt, event.delayMs, event.error.retryAfterMs];
    case "model_fallback": case "model_switched": return [event.from, event.to];
    case "tool_calls_proposed": return event.calls;
    case "tool_approval_requested": return event.toolName;
    case "tool_approval_resolved": return [event.approved, event.by];
    case "question_asked": return [event.message, event.schema, is<BudgetKind | undefined>(event.budget?.kind)];
    case "question_resolved": return [event.accepted, event.by];
    case "command_refused": return [event.callId, event.reason];
    case "state_changed": return event.changes["a"];
    case "cache_action": return event.prefixTokens;
    case "history_rewound": return [event.length, event.cut, event.added];
    case "transfer_initiated": return event.to;
    case "subagent_event": return tell(event.event, run);
    case "budget": return [event.state, event.kind, event.used / event.limit];
    case "custom": return is<JsonValue>(event.payload);
    default: return is<never>(event);
  }
}

function piece(delta: Delta, run: AgentRun) {
  return delta.type === "tool_call" ? run.partialArguments(delta.callId) : delta.delta;
}

/** Answers what is asked, each kind as it may be. */
export async function answered(agent: Agent, { ask }: ToolContext) {
  for (const question of agent.pendingQuestions) {
    const answer: Answer = question.kind === "tool" ? "approve" : question.kind === "budget" ? { raise: { [question.budget.kind]: 1 } } : { action: "accept", content: question.message };
    agent.resolve(question.id, answer);
  }
  const kinds: [ToolQuestion[], BudgetQuestion[], ElicitationQuestion[]] = [[...agent.pendingApprovals], [], []];
  const question: ToolQuestionInput = { message: "Which?", schema: { type: "string" } };
  const answer: ToolAnswer = await ask(question);
  return [kinds, answer.action === "accept" && answer.content];
}

// ---- the plain shapes

const info: TransformInfo | undefined = undefined;
const about: RunInfo = { runId: "r", sessionId: "s", turnIndex: 0, metadata: { user: "u" } };
const window: SlidingWindowOptions = { tokens: 1_000 };
const trim: BudgetTrimOptions = { contextWindow: 1_000 };
const reducer: Reducer = reduce([pruneToolResults({ keepLast: 1 }), keepLast(2), slidingWindow(window), budgetTrim(trim)]);
const around = { wrapTool: (wrapped: WrappedToolCall, next: () => Promise<unknown>) => next(), wrapModel: (wrapped: WrappedModelCall, next: () => Promise<AssistantMessage | undefined>) => next() };
export const reduced = [new Agent({ model: scripted([]), transformContext: reducer, ...around }), errorInfo({ status: 500 }), about];
void info;
const server: ServerName = "ollama";
const compat: Compat = { server: "vllm", cacheTtl: "1h", reasoning: "adaptive" };
const wires: Model[] = [openaiResponses("m", { server }), openaiCompatible("m", { server, compat }), openaiCompatible("m", { baseUrl: "http://h", server: "groq" }), anthropic("m", { dangerouslyAllowBrowser: true }), gemini("m", { apiKey: () => "k" })];
void wires;
const raw: RawBlock = { type: "raw", data: { kind: "server_tool_use" } };
void raw;
const blocks: [TextBlock, ThinkingBlock, ImageBlock, FileBlock] = [
  { type: "text", text: "" }, { type: "thinking", thinking: "", redacted: true }, { type: "image", mimeType: "", data: "" }, { type: "file", mimeType: "", data: "", name: "" },
];
const inputs: Input[] = ["", [blocks[0], blocks[2], blocks[3]], { role: "user", content: [], timestamp: 0 } satisfies UserMessage, { role: "custom", kind: "", data: {}, timestamp: 0 } satisfies CustomMessage];
const items: ScriptItem[] = ["", [{ type: "error", error: { message: "" } }], {}];
const schema: JsonSchema = { type: "object" };
const standard: StandardSchema<{ a: string }> = z.object({ a: z.string() });
const streamOptions: StreamOptions = { parallelToolCalls: false, cache: "auto", stop: [], topP: 1 };
const remember = (state: SessionState, context: ToolContext) => [state.get("a"), context.signal];
use(() => new Uint8Array());
use(async () => WebAssembly.compile(new Uint8Array()));
void [new SlimAgent({ model: models[0]!, streamOptions }), new InlineAgent({ model: models[0]! }), inputs, items, schema, standard, remember, live];

// ---- elsewhere

import { fromResponse, RemoteAgent, type FromResponseOptions, type RemoteAgentOptions, type RemoteRun } from "turnwheel/remote";
import { agentHandler, durableObjectEvents, fromUIMessages, memoryEvents, type AgentHandlerOptions, type EventLog } from "turnwheel/server";
import type { EventResponseInit, UIMessageResponseInit } from "turnwheel";

async function elsewhere(agent: Agent, storage: Parameters<typeof durableObjectEvents>[0], request: Request) {
  const init: EventResponseInit = { lastEventId: request.headers.get("last-event-id"), status: 200 };
  const ui: UIMessageResponseInit = { onError: ({ code }) => code, messageMetadata: ({ usage }) => usage.total };
  const heard: FromResponseOptions = { reconnect: (lastEventId) => fetch(`/run?${lastEventId}`) };
  const run: RemoteRun = fromResponse(agent.prompt("Hi").toResponse(init), heard);
  const either: (AgentRun | RemoteRun)[] = [run, agent.prompt("Hi")];
  for (const one of either) for await (const event of one) is<AgentEvent>(event);
  const log: EventLog = memoryEvents();
  const options: AgentHandlerOptions = { events: log, cors: ["https://a.example"], authorize: (_request, command) => command === "state", limits: { listeners: 1 } };
  using handler = agentHandler(agent, options);
  is<Response>(await handler(request));
  agentHandler(agent, { events: durableObjectEvents(storage, { also: () => {} }) });
  const where: RemoteAgentOptions = { url: "/agent", headers: () => ({ authorization: "x" }) };
  using remote = new RemoteAgent(where);
  const { text }: AgentResult = await remote.prompt("Hi");
  const receipt = await remote.steer(text, { when: "immediate" });
  if (receipt.delivered) is<number>(receipt.turnIndex);
  await remote.resolveTool("c1", "approve");
  const { prompt, decisions } = fromUIMessages([]);
  if (prompt) agent.prompt(prompt);
  agent.resolveTools(decisions);
  return run.toUIMessageStreamResponse(ui);
}
void elsewhere;

// ---- looked at

import { InspectorLog, TurnwheelInspector, type InspectedAgent, type InspectedTape, type InspectorCall, type InspectorEvents, type InspectorFrame, type InspectorLogOptions, type InspectorSource, type MarkKind } from "turnwheel/inspector";

function lookAt(agent: Agent, distant: RemoteAgent, tape: InspectedTape) {
  const inspector: TurnwheelInspector = document.createElement("turnwheel-inspector");
  const sources: InspectorSource[] = [agent, distant, tape, new InspectorLog()];
  for (const source of sources) inspector.source = source;
  const either: InspectedAgent[] = [agent, distant];
  const options: InspectorLogOptions = { limit: 10 };
  const log = new InspectorLog(options);
  for (const one of either) log.follow(one)();
  const kind: MarkKind = "note";
  log.mark(kind, "here");
  const frame: InspectorFrame = log.frame(log.end);
  const calls: InspectorCall[] = frame.calls;
  inspector.addEventListener("turnwheel-fork", ({ detail }) => is<InspectorFrame>(detail.frame));
  const onSeek = ({ detail }: InspectorEvents["turnwheel-seek"]) => is<number>(detail.n);
  // @ts-expect-error: no agent
  inspector.source = 17;
  return [calls, onSeek, new Agent({ model: models[0]!, messages: frame.messages })];
}
void lookAt;

// ---- tapes

declare const heard: Recorder;
async function ofTapes(agent: Agent, model: Model, tape: Tape) {
  const options: RecordOptions = { keep: "run", maxBytes: 5, wire: true, children: false };
  const recorder = await record(agent, options);
  is<string>((await recorder[Symbol.asyncIterator]().next()).value);
  const { pendingApprovals, pendingQuestions, request, checkpoint } = replay(tape, { wire: true, model }).seek(1);
  is<string | undefined>(pendingApprovals[0]?.toolName);
  is<"tool" | "budget" | "elicitation" | "tool_call" | undefined>(pendingQuestions[0]?.kind);
  is<ModelRequest | undefined>(request);
  await Agent.restore(checkpoint, { model });
  is<readonly string[] | undefined>(tape.children[0]?.path);
  is<Tape>(tape.child(["a"]));
  is<number>(cassette(undefined, { record: "missing", model }).added);
  // @ts-expect-error without a tape there must be a model to ask
  cassette(undefined);
  // @ts-expect-error there is no such option
  void record(agent, { bytes: true });
  return heard;
}
void ofTapes;

// ---- durable runs

import type { AgentHost, StepEffect } from "turnwheel";
import { byData, dbos, perform, restate, type DBOSLike, type RestateContext, type RestateTools } from "turnwheel/durable";

export async function durable(ctx: RestateContext, tools: RestateTools, engine: DBOSLike, effect: StepEffect) {
  const own: AgentHost = { step: async (name, work) => (is<string>(name), work({ attempt: 1 })), sleep: async (ms, _signal, name) => void [ms, name], steps: { maxBytes: 1_000_000 } };
  const hosts = [own, restate(ctx, tools), dbos(engine), byData({ run: (sent) => perform(sent, { model: models[0]! }) })];
  const agents = hosts.map((host) => new Agent({ model: models[0]!, host }));
  agents[0]?.subscribe((_event, { replaying }) => is<boolean>(replaying));
  // @ts-expect-error: a name is a text
  const wrong: AgentHost = { step: async (name: number) => name };
  return [wrong, await perform(effect, { tools: [] }), agents[0]?.prompt("Hi").replaying];
}
