/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { AgentMessage, JsonSchema, ToolDefinition } from "./index.js";

/**
 * A tool as its server describes it.
 *
 * @example
 * const isQuick = ({ annotations }: McpTool) => annotations?.readOnlyHint === true;
 */
export interface McpTool {
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  inputSchema: JsonSchema;
  outputSchema?: JsonSchema | undefined;
  annotations?: { title?: string | undefined; readOnlyHint?: boolean | undefined; destructiveHint?: boolean | undefined; idempotentHint?: boolean | undefined; openWorldHint?: boolean | undefined } | undefined;
}

/**
 * What a server asks a person in the middle of a call: to fill in a form, or to go to an address.
 *
 * @example
 * const show = ({ server, message, ...request }: McpElicitation) => request.mode === "url" ? confirm(`${server}: ${message} ${request.url}`) : prompt(`${server}: ${message}`);
 */
export type McpElicitation =
  & { /** The name that the server gives itself. */ server: string; message: string; /** The call that it belongs to, if only one is in flight. */ callId?: string; toolName?: string }
  & ({ mode: "form"; /** A flat object of texts, numbers, booleans and choices. */ requestedSchema?: JsonSchema | undefined } | { mode: "url"; url: string; elicitationId?: string });

/**
 * The answer to a server's question. `content` is checked against the schema that the server asked with; fields that are
 * missing get its defaults.
 *
 * @example
 * const answer: McpElicitResult = { action: "accept", content: { size: "large" } };
 */
export interface McpElicitResult { action: "accept" | "decline" | "cancel"; content?: { [name: string]: string | number | boolean | string[] } }

/**
 * A prompt that a server offers to a person.
 *
 * @example
 * const titleOf = ({ title, name }: McpPrompt) => title ?? name;
 */
export interface McpPrompt { name: string; title?: string | undefined; description?: string | undefined; arguments?: { name: string; description?: string | undefined; required?: boolean | undefined }[] | undefined }

/**
 * The part of a `Client` of `@modelcontextprotocol/client`, or of `@modelcontextprotocol/sdk` before it, that is used.
 *
 * @example
 * const client: McpClient = new Client({ name: "my-app", version: "1" });
 */
export interface McpClient {
  callTool(...args: any[]): Promise<any>;
  listTools(...args: any[]): Promise<any>;
  close(): Promise<void>;
  transport?: any;
  onclose?: any;
  setRequestHandler?(...args: any[]): void;
  getServerVersion?(): { name: string } | undefined;
  getServerCapabilities?(): any;
  getInstructions?(): string | undefined;
  listResources?(...args: any[]): Promise<any>;
  listResourceTemplates?(...args: any[]): Promise<any>;
  readResource?(...args: any[]): Promise<any>;
  listPrompts?(...args: any[]): Promise<any>;
  getPrompt?(...args: any[]): Promise<any>;
  getProtocolEra?(): string | undefined;
  listen?(...args: any[]): Promise<any>;
}

/**
 * The part of a transport of `@modelcontextprotocol/client`, or of `@modelcontextprotocol/sdk`, that is used.
 *
 * @example
 * const transport: McpTransport = new StdioClientTransport({ command: "npx", args: ["my-server"] });
 */
export interface McpTransport { start(): Promise<void>; send(...args: any[]): Promise<void>; close(): Promise<void> }

/**
 * Options of `mcpTools`.
 *
 * @example
 * const options: McpToolsOptions = { prefix: "github", approval: "writes", only: ["search_code", "create_issue"] };
 */
export interface McpToolsOptions {
  /**
   * Put before every name, followed by `__`: a word of yours, or the server's own name with `true`. A word has letters, digits,
   * `-` and single `_`, none at its end. A server may call itself anything: for one that you do not trust, use a word.
   * An approval rule that permits needs the whole name, `github__create_issue`.
   */
  prefix?: string | true;
  /**
   * Returns another name for a tool. Characters that no provider accepts become `_`; names are at most 64 characters long.
   */
  name?: (tool: McpTool) => string | undefined;
  /** Which tools to use, by name or by function. Default: all. */
  only?: string[] | ((tool: McpTool) => boolean);
  /**
   * Which tools need approval, by the server's own hints. `"destructive"` (default): those that say neither that they only
   * read nor that they destroy nothing. `"writes"`: all that do not say that they only read. A server may claim anything: for
   * one that you do not trust, use `"always"`.
   */
  approval?: "destructive" | "writes" | "always" | "never" | ((tool: McpTool) => boolean);
  /**
   * How many milliseconds a server may be silent during a call; progress restarts it. The time in which the server waits for
   * an answer of ours does not count. Default 60,000.
   */
  timeoutMs?: number;
  /** How many milliseconds a call may take in all, without the time in which the server waits for us. Default: no limit. */
  totalTimeoutMs?: number;
  /** In bytes. A longer result is cut, with a note. */
  maxResultBytes?: number;
  /**
   * Called when the server's tools changed and the new list could not be used, and for each tool that is left out, because
   * its schema is none or has a pattern that cannot be checked. Default: the console.
   */
  onError?: (error: unknown) => void;
  /** The name and version sent to the server, if the connection is made here. */
  clientInfo?: { name: string; version: string };
  /** Two more tools, `list_resources` and `read_resource`, if the server has resources. Default false. */
  resources?: boolean;
  /**
   * Asks a person what the server wants to know. `"ask"`, the default, makes it a question of the agent, of the kind
   * `elicitation`; with `false` servers are told that nobody can be asked. As a function: the `signal` is aborted when the call is,
   * and when the server takes its question back; `completed` settles when the server says that what was to be done at an address
   * is done. A throw cancels the question, and `onError` is told. A Client of your own answers as you made it, unless this is
   * given; then it must declare `elicitation: { form: {}, url: {} }`.
   */
  onElicit?: "ask" | false | ((request: McpElicitation, info: { signal: AbortSignal; completed: Promise<void> }) => McpElicitResult | McpElicitResult["action"] | Promise<McpElicitResult | McpElicitResult["action"]>);
  /** Sent with every request, if an address was given. */
  headers?: { [name: string]: string };
  /** In place of the global `fetch`, if an address was given. */
  fetch?: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** An `OAuthClientProvider` of `@modelcontextprotocol/client`, if an address was given. A login that must be begun rejects with the code `auth`. */
  authProvider?: any;
  /** The code with which a login came back: `?code=…` of the address that it came back to. */
  authorizationCode?: string;
}

/**
 * A server and its tools, which may change. Iterate it to get the tools.
 *
 * @example
 * const everything = await mcpTools(client);
 * const agent = new Agent({ model, tools: [...everything, weather] });
 * everything.onChange((tools) => void (agent.tools = [...tools, weather]));
 */
export interface McpTools extends Iterable<ToolDefinition> {
  /** The tools that the server has now. A tool that did not change is the same object. */
  readonly tools: ToolDefinition[];
  /** The name that the server gives itself. */
  readonly name: string;
  /**
   * Whether it can be called, as far as is known: false after `dispose()`, when the connection has closed, and, over HTTP, where there is
   * none that lasts, from a request that did not reach the server until one does.
   */
  readonly isConnected: boolean;
  /** Another one after a server at an address has forgotten the session, and a new one has begun. */
  readonly client: McpClient;
  /** What the server says of itself, for a system prompt. It may claim anything, as its tools' descriptions may. */
  readonly instructions: string | undefined;
  /** The prompts that it offers, for a person to choose from. */
  prompts(): Promise<McpPrompt[]>;
  /** One of them, filled in: messages for `agent.prompt`, or, with answers in them, for `new Agent({ messages })`. */
  prompt(name: string, args?: { [name: string]: string }): Promise<AgentMessage[]>;
  /** Calls the listener with the new list when the server says that it changed. Returns a function that unsubscribes. */
  onChange(listener: (tools: ToolDefinition[]) => void): () => void;
  /** Fetches the list from the server again, for servers that do not announce changes. */
  refresh(): Promise<void>;
  /** Stops listening to the server; closes the connection if it was made here. */
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Makes the tools of an MCP server usable by an agent. Takes a connected `Client` of `@modelcontextprotocol/client` or of
 * `@modelcontextprotocol/sdk`, a transport, or the address of a server that speaks streamable HTTP; to the last two it connects with
 * `@modelcontextprotocol/client`. Rejects if two tools would get the same name.
 *
 * @example
 * const { tools } = await mcpTools("https://mcp.example.com/mcp", { prefix: "example" });
 * const agent = new Agent({ model, tools });
 */
export function mcpTools(source: McpClient | McpTransport | string | URL, options?: McpToolsOptions): Promise<McpTools>;

/**
 * A validator for a `Client` of your own where code may not be compiled (a Content-Security-Policy without `unsafe-eval`,
 * Workers): it validates structured results without compiling. Connections that are made here already use it.
 *
 * @example
 * const client = new Client({ name: "my-app", version: "1" }, { jsonSchemaValidator });
 */
export const jsonSchemaValidator: {
  getValidator(schema: any): (input: unknown) => { valid: true; data: any; errorMessage: undefined } | { valid: false; data: undefined; errorMessage: string };
};
