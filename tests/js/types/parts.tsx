// React and MCP as a user writes them, with the types of React and of the official SDK. Compiled, never run.

import { Client as NextClient } from "@modelcontextprotocol/client";
import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { memo } from "react";
import { Agent, scripted, tool } from "turnwheel";
import type { AgentError, AgentResult, Receipt, ToolDefinition } from "turnwheel";
import { jsonSchemaValidator, mcpTools } from "turnwheel/mcp";
import type { McpClient, McpElicitation, McpElicitResult, McpPrompt, McpTool, McpTools, McpToolsOptions, McpTransport } from "turnwheel/mcp";
import { RemoteAgent } from "turnwheel/remote";
import { useAgent } from "turnwheel/react";
import { fileStore, joinFleet, openAgent, postgresStore, sqliteStore } from "turnwheel/stores/node";
import type { DatabaseLike, Fleet, FleetCounts, FleetOptions, FleetStore, Lease, OpenAgent, PoolLike, StoreOptions } from "turnwheel/stores/node";
import { pageTools } from "turnwheel/webmcp";
import type { PageAnnotations, PageTool, PageTools, PageToolsOptions } from "turnwheel/webmcp";
import type { AgentCall, AgentLike, AgentView, QueuedInput, ShownMessage, StreamingMessage, UseAgentOptions } from "turnwheel/react";

const is = <T,>(value: T) => value;

const Row = memo(function Row({ message }: { message: ShownMessage }) {
  // @ts-expect-error: a message that streams has no reason yet why it stopped
  void (message.role === "assistant" && message.stopReason);
  const stopped = message.role === "assistant" && !message.streaming ? message.stopReason : undefined;
  if (message.role === "custom") return <i>{message.kind}</i>;
  return <p aria-busy={message.streaming} title={stopped}>{message.content.map((block) => (block.type === "text" ? block.text : block.type))}</p>;
});

export function Chat({ shared }: { shared: Agent }) {
  const options: UseAgentOptions = { events: 10, schedule: (work) => (work(), () => {}) };
  const own = useAgent((earlier) => new Agent({ model: scripted([]), ...earlier }), options);
  const view = useAgent(shared);
  is<RemoteAgent>(useAgent(() => new RemoteAgent({ url: "/agents/7" })).agent).connection satisfies string;
  // The agent is the one that was given, with all that it can do.
  is<Agent>(own.agent).reset();
  is<Agent>(view.agent).systemPrompt = "";
  const status: "idle" | "submitted" | "streaming" | "tools" | "approval" | "error" = view.status;
  const sent: Promise<AgentResult> = view.send([{ type: "text", text: "hi" }], { runId: "a" });
  const receipts: Receipt[] = [view.steer("a"), view.followUp("b")];
  const error: AgentError | undefined = view.error;
  const partial: StreamingMessage | undefined = view.streaming;
  // @ts-expect-error: what is shown is not to be changed
  view.history.push();
  // @ts-expect-error: an input is no number
  void view.send(1);
  // @ts-expect-error: an agent has to be one
  useAgent({ prompt() {} });
  void [status, sent, receipts, error, partial, view.usage.total, view.stopReason, view.outbox, view.resume()];
  return (
    <main>
      {view.messages.map((message, i) => <Row key={i} message={message} />)}
      {view.calls.map((call: AgentCall) => <Call key={call.callId} call={call} view={view} />)}
      {view.queued.map(({ kind, input }: QueuedInput, i) => <p key={i}>{kind}: {typeof input === "string" ? input : "…"}</p>)}
      {view.events.map((event) => (event.type === "retry_attempt" ? event.delayMs : null))}
      <button onClick={() => view.stop("enough")}>Stop</button>
    </main>
  );
}

function Call({ call, view }: { call: AgentCall; view: AgentView }) {
  const more = () => view.approve(call.callId, { ...call.arguments, more: true });
  return <p onClick={more} onBlur={() => view.deny(call.callId, "no")}>{call.toolName} {call.state} {String(call.arguments["a"])} {call.result?.isError}</p>;
}

export async function tools() {
  const client = new Client({ name: "a", version: "1" }, { jsonSchemaValidator });
  const transport = new StdioClientTransport({ command: "a" });
  const options: McpToolsOptions = { prefix: true, name: ({ name }: McpTool) => name, only: ["a"], approval: ({ annotations }) => annotations?.destructiveHint ?? true, timeoutMs: 1, totalTimeoutMs: 2, maxResultBytes: 3, onError() {}, clientInfo: { name: "a", version: "1" } };
  const all: McpTools[] = [await mcpTools(client, options), await mcpTools(transport), await mcpTools(new StreamableHTTPClientTransport(new URL("http://a"))), await mcpTools("http://a", { prefix: "b", approval: "writes", only: () => true }), await mcpTools(new URL("http://a"))];
  const server = is<McpTools | undefined>(all[0])!;
  const own = tool({ name: "a", description: "", parameters: { type: "object" }, execute: () => "" });
  const agent = new Agent({ model: scripted([]), tools: [...server, own] });
  const stop = server.onChange((changed) => void (agent.tools = [...changed, own]));
  const told: [ToolDefinition[], string, boolean, McpClient] = [server.tools, server.name, server.isConnected, server.client];
  stop();
  await server.refresh();
  await server[Symbol.asyncDispose]();
  const like: [AgentLike, McpTransport] = [agent, transport];
  // @ts-expect-error: no such word
  void mcpTools(client, { approval: "sometimes" });
  const answer = (request: McpElicitation): McpElicitResult => (request.mode === "url" ? { action: request.url ? "accept" : "cancel" } : { action: "accept", content: { n: 1, all: Object.keys(request.requestedSchema ?? {}) } });
  const authProvider = is<Partial<OAuthClientProvider>>({});
  const more: McpTools = await mcpTools("http://a", { resources: true, onElicit: async (request, { signal, completed }) => (await completed, signal.aborted ? "cancel" : answer(request)), headers: { a: "b" }, fetch, authProvider, authorizationCode: "c" });
  const rest: [string | undefined, McpPrompt[]] = [more.instructions, await more.prompts()];
  void mcpTools(new NextClient({ name: "a", version: "1" }), { onElicit: "ask" });
  void mcpTools("http://a", { onElicit: false });
  return [told, like, rest, await more.prompt("a", { b: "c" })];
}

export async function page() {
  const options: PageToolsOptions = { fromOrigins: ["https://a"], only: ({ name }: PageTool) => name !== "a", prefix: "page", approval: ({ annotations }) => annotations?.consequentialHint ?? true, timeoutMs: 1, maxResultBytes: 2, onError() {} };
  const tools: PageTools = await pageTools(options);
  const agent = new Agent({ model: scripted([]), tools: [...tools] });
  tools.onChange((changed) => void (agent.tools = changed));
  const hints: PageAnnotations = { readOnlyHint: true };
  // @ts-expect-error: no such word
  void pageTools({ approval: "destructive" });
  await tools.dispose();
}

export async function fleet(pool: PoolLike, database: DatabaseLike) {
  const options: StoreOptions = { ttlMs: 1000, owner: "a", seal: { key: new Uint8Array(32), context: "b" } };
  const stores: FleetStore[] = [fileStore("a", options), sqliteStore("a.db"), sqliteStore(database), postgresStore(pool, { ...options, table: "agents" })];
  const lease: Lease | undefined = await stores[0]?.claim("a", { ttlMs: 1000, waitMs: 5000 });
  if (!lease) return stores[0]?.owner("a");
  const agent: Agent = await openAgent(lease, { model: scripted([]) });
  await lease.save(agent.checkpoint());
  const told: [string, number, boolean, boolean] = [lease.id, lease.fence, lease.signal.aborted, lease.isHeld];
  await lease.handOver({ graceMs: 5 });
  const ours: FleetOptions = { open: async (lease): Promise<OpenAgent> => ({ agent: await openAgent(lease, { model: scripted([]) }) }), agents: 5, idleMs: 5, takeoverMs: 5, onError() {} };
  const joined: Fleet = joinFleet(postgresStore(pool), ours);
  const counts: FleetCounts = joined.counts();
  await joined.handOver();
  told[2] = counts.agents > 0 && joined.isLeaving && lease.wasRunning && lease.events.last > 0;
  return [told, lease.checkpoint?.messages, await stores[0]?.abandoned(5)];
}
