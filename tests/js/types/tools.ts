// What the types promise about tools, events, approvals and answers: names narrow arguments, records infer them, what is no
// tool is rejected. Compiled by the newest compiler and the oldest, never run.

import { Agent, agentLoop, custom, scripted, tool, type AgentEvent, type ApprovalRequest, type AssistantMessageEvent, type CallsOf, type DataPart, type Input, type Partially, type RecordTool, type Tool, type ToolCalls, type ToolDefinition } from "turnwheel";
import { z } from "zod";
declare function is<T>(value: T): void;
type Same<X, Y> = (<T>() => T extends X ? 1 : 2) extends <T>() => T extends Y ? 1 : 2 ? true : false;
const model = scripted([]);
const search = tool({ name: "search", description: "", parameters: z.object({ query: z.string(), n: z.number().default(3) }), execute: ({ query, n }) => query + n.toFixed() });
const add = tool({ name: "add", description: "", parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] }, execute: ({ a, b }) => a + b });
is<Same<typeof add.name, "add">>(true);
is<ToolDefinition<{ a: number; b: number }>>(add);
const agent = new Agent({ model, tools: [search, add], approveTool: ({ toolName, arguments: args }) => toolName === "add" ? "approve" : "reject" });
for await (const event of agent.prompt("x")) {
  if (event.type === "tool_execution_start") {
    if (event.toolName === "add") is<Same<typeof event.arguments, { a: number; b: number }>>(true);
    if (event.toolName === "search") is<Same<typeof event.arguments, { query: string; n?: number | undefined }>>(true);
    // @ts-expect-error no such tool
    if (event.toolName === "nope") void 0;
  }
  if (event.type === "tool_execution_end") is<Same<typeof event.toolName, "search" | "add">>(true);
}
new Agent({ model, tools: [search, add], approveTool(request) {
  if (request.toolName === "add") is<number>(request.arguments.a);
  // @ts-expect-error
  if (request.toolName === "search") is<number>(request.arguments.a);
  return "approve";
} });
agent.subscribe((event) => { if (event.type === "tool_approval_requested" && event.toolName === "search") is<string>(event.arguments.query); });
// record
const inRecord = new Agent({ model, tools: {
  add: { description: "", parameters: { type: "object", properties: { a: { type: "number" } }, required: ["a"] }, execute: ({ a }) => a },
  look: { description: "", parameters: z.object({ q: z.string() }), execute({ q }) { is<Same<typeof q, string>>(true); return q.length; }, requiresApproval: ({ q }) => q === "" },
  search,
} });
inRecord.subscribe((event) => {
  if (event.type !== "tool_execution_start") return;
  if (event.toolName === "add") is<number>(event.arguments.a);
  if (event.toolName === "look") is<string>(event.arguments.q);
  if (event.toolName === "search") is<string>(event.arguments.query);
});
// @ts-expect-error 42 is no tool
new Agent({ model, tools: { a: 42 } });
// @ts-expect-error a promise is no tool
new Agent({ model, tools: { a: Promise.resolve(search) } });
// @ts-expect-error the schema has no such member
new Agent({ model, tools: { look: { description: "", parameters: z.object({ q: z.string() }), execute: ({ b }) => b } } });
// nothing known
declare const some: ToolDefinition[];
const wide = new Agent({ model, tools: some });
wide.subscribe((event) => { if (event.type === "tool_execution_start" && event.toolName === "x") is<any>(event.arguments["y"]); });
const none = new Agent({ model });
none.subscribe((event) => { if (event.type === "tool_execution_start") { is<string>(event.toolName); is<any>(event.arguments["y"]); } });
const empty = new Agent({ model, tools: [] });
empty.subscribe((event) => { if (event.type === "tool_execution_start") is<string>(event.toolName); });
const anyAgent: Agent = agent; const list: Agent[] = [agent, inRecord, wide, none];
const show = (event: AgentEvent) => void event; agent.subscribe(show); inRecord.subscribe(show);
is<Same<CallsOf<[typeof add]>, { add: { a: number; b: number } }>>(true);
const r = await agentLoop(["x"], { model, tools: [add], output: z.object({ ok: z.boolean() }) });
is<boolean | undefined>(r.output?.ok);
const out = new Agent({ model, output: z.object({ title: z.string(), steps: z.array(z.object({ t: z.string() })) }) });
for await (const part of out.prompt("x").partialOutput) { is<string | undefined>(part.title); is<string | undefined>(part.steps?.[0]?.t); }
(await Agent.restore("{}", { model, tools: [add] })).subscribe((event) => { if (event.type === "tool_execution_start" && event.toolName === "add") is<number>(event.arguments.a); });
void [anyAgent, list];

// ---- approvals

const careful = (request: ApprovalRequest<CallsOf<[typeof search, typeof add]>>) => (request.toolName === "add" && request.arguments.a > 3 ? "reject" : "approve");
new Agent({ model, tools: [search, add], approveTool: careful });
new Agent({ model, tools: [search, add], approveTool: (request: ApprovalRequest) => (request.arguments["a"] > 3 ? "reject" : "approve") });
// @ts-expect-error a boolean is no decision
new Agent({ model, tools: [search, add], approveTool: () => true });
is<ToolCalls>({} as CallsOf<[typeof add]>);
is<Tool<"add", { a: number; b: number }>>(add);
is<RecordTool>(search);

// ---- the answer while it streams in

is<Partially<{ title: string; steps: { t: string }[] }>>({ steps: [{}, { t: "a" }] });
// @ts-expect-error a title is a text
is<Partially<{ title: string }>>({ title: 1 });
for await (const part of new Agent({ model }).prompt("x").partialOutput) is<unknown>(part);

// ---- content by its address

is<Input>([{ type: "text", text: "a" }, { type: "image", url: "https://example.com/a.png" }, { type: "file", url: "https://example.com/a.pdf", mimeType: "application/pdf", name: "a.pdf" }]);
// @ts-expect-error either data or url
is<Input>([{ type: "image", url: "https://example.com/a.png", mimeType: "image/png", data: "aGk=" }]);
// @ts-expect-error a file says what it is
is<Input>([{ type: "file", url: "https://example.com/a.pdf" }]);

// ---- everything that the author of a model may stream

custom("all", async function* () {
  yield { type: "start" };
  yield { type: "ping" };
  yield { type: "thinking_start", contentIndex: 0 };
  yield { type: "thinking_delta", contentIndex: 0, delta: "hm" };
  yield { type: "thinking_end", contentIndex: 0, signature: "s", redacted: true };
  yield { type: "text_start", contentIndex: 1 };
  yield { type: "text_delta", contentIndex: 1, delta: "a" };
  yield { type: "text_end", contentIndex: 1, signature: "s" };
  yield { type: "tool_call_start", contentIndex: 2, callId: "c", toolName: "add" };
  yield { type: "tool_call_delta", contentIndex: 2, delta: "{}" };
  yield { type: "tool_call_end", contentIndex: 2, metadata: { id: "p" } };
  yield { type: "raw", contentIndex: 3, data: { type: "server_tool_use" } };
  yield { type: "usage", input: 1, cacheRead: 2 };
  yield { type: "done", stopReason: "tool_use", usage: { input: 1, output: 2 } };
});
declare const streamed: AssistantMessageEvent;
if (streamed.type === "raw") is<number>(streamed.contentIndex);
// @ts-expect-error a signature is a text
is<AssistantMessageEvent>({ type: "text_end", contentIndex: 0, signature: 1 });
// @ts-expect-error there is no such event
is<AssistantMessageEvent>({ type: "text", text: "a" });
is<AssistantMessageEvent>({ type: "error", error: { code: "throttled", message: "later", retryAfterMs: 5 } });

// ---- parts of one's own in a UI message

new Agent({ model }).prompt("x").toUIMessageStreamResponse({ aiVersion: 6, dataParts: (event) => (event.type === "turn_end" ? { type: "data-turn", data: event.turnIndex } : undefined) });
is<DataPart>({ type: "data-x", id: "1", data: { a: 1 }, transient: true });
// @ts-expect-error its type begins with data-
is<DataPart>({ type: "x", data: 1 });
