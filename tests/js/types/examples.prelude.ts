// What the examples in the docs of the types suppose to be there. Each of them is compiled behind this, with every name
// of the package imported. What comes from other packages may be anything.

import { z } from "zod";

declare const request: Request;
declare const token: any;
declare const id: string;
declare const runs: Map<string, AgentRun>;
declare let run: AgentRun;
declare const event: AgentEvent;
declare const error: unknown;
declare const agent: Agent;
declare const message: AssistantMessage;
declare const model: Model;
declare const options: AgentOptions;
declare const weather: ToolDefinition<{ city: string }>;
declare const search: ToolDefinition;
declare const tools: ToolDefinition[];
declare const saved: any;
declare const store: CheckpointStore;
declare const aiSdkTool: { inputSchema: unknown; execute?: (input: never) => unknown };
declare const apiKey: string;
declare const baseUrl: string;
declare const base64: string;
declare const text: string;
declare const callId: string;
declare const files: string[];
declare const signal: AbortSignal;
declare const vault: { read(name: string): Promise<string> };
declare function myModel(messages: LlmMessage[], signal: AbortSignal): AsyncIterable<AssistantMessageEvent>;
declare function createOpenAI(options: any): (id: string) => LanguageModelLike;
declare function createMistral(options: any): (id: string) => LanguageModelLike;
declare function createAgentUIStreamResponse(options: { agent: AiAgentLike; uiMessages: any[] }): Promise<Response>;
declare function lookUp(city: string, options: { signal: AbortSignal }): Promise<{ rain: boolean }>;
declare function ask(...what: any[]): Promise<boolean>;
declare function askForKey(why: string): void;
declare function retryLater(cause: unknown): void;
declare const context: ToolContext;
declare const schema: JsonSchema;
declare function checkout(what: unknown): void;
declare function showForm(...what: unknown[]): Promise<JsonValue>;
declare function show(text: string): void;
declare function warn(text: string): void;
declare function draw(what: unknown): void;
declare function print(text: string): void;
declare function saveCheckpoint(): void;
declare const ctx: any;
declare const key: Uint8Array;
declare function readFileSync(file: string, encoding: "utf8"): string;
declare const oldKey: Uint8Array;
declare const userId: string;
declare const client: McpClient;
declare const Client: any;
declare const StdioClientTransport: any;
declare function log(usage: Usage): Promise<void>;
declare class DurableObject { ctx: { storage: Parameters<typeof durableObjectStore>[0] } }
declare const tracer: { span<T>(name: string, work: () => T): T };
declare const storage: { run<T>(store: unknown, work: () => T): T };
