/**
 * Stable: a version that changes something here says so in CHANGELOG.md, with the way to go.
 * @module
 */

import type { Agent, AgentMessage, ToolCallAnswer, ToolDecision, UserMessage } from "./index.js";
import type { RemoteHost } from "./remote.js";

/**
 * Serves an agent over HTTP, for `RemoteAgent` of turnwheel/remote and any client that follows docs/remote.md. Returns a function
 * from a Request to a Response. The last segment of the path names the command, so it may be mounted anywhere. Requests of
 * other origins are refused unless `cors` allows them, and without `authorize` only requests to this machine's own names
 * (localhost) are answered.
 *
 * All requests share the one agent, so it lives where requests share a process: in Node, Deno, Bun or a Durable Object. A
 * plain Worker keeps its requests apart, and gets 501; there, answer with `agent.prompt(…).toResponse()`.
 *
 * @example
 * import { agentHandler } from "turnwheel/server";
 * // A Durable Object: all its requests share it.
 * export class Chat {
 *   handler = agentHandler(agent, { authorize: (request) => request.headers.get("authorization") === `Bearer ${token}` });
 *   fetch(request: Request) { return this.handler(request); }
 * }
 */
export function agentHandler(agent: Agent, options?: AgentHandlerOptions): AgentHandler;

/**
 * Answers requests for one agent. Disposing of it ends the streams of its listeners.
 *
 * @example
 * const handler: AgentHandler = agentHandler(agent);
 * const response = await handler(new Request("http://localhost/agent/state"));
 */
export interface AgentHandler extends Disposable {
  (request: Request): Promise<Response>;
  /** How many event streams are open. */
  readonly listeners: number;
}

/**
 * The commands: the first two by GET, the others by POST.
 *
 * @example
 * const mayAsk = (command: AgentCommand) => command === "events" || command === "state";
 */
export type AgentCommand = "events" | "state" | "prompt" | "continue" | "steer" | "follow-up" | "clear-queues" | "resolve" | "abort" | "reset" | "rewind";

/**
 * Options of `agentHandler`: who may use the agent, and how much.
 *
 * @example
 * const options: AgentHandlerOptions = { cors: ["https://app.example"], limits: { listeners: 20, commandsPerMinute: 60 } };
 */
export interface AgentHandlerOptions {
  /**
   * Decides who may use the agent: only `true` allows the request. A falsy value is a 401, a Response is sent as the answer,
   * anything else is a 500. Default: everyone.
   */
  authorize?(request: Request, command: AgentCommand): boolean | Response | Promise<boolean | Response>;
  /**
   * The names that this server goes by, with or without a port: `["app.example", "localhost:8080"]`. A request to any other
   * name is a 403, for a page may let its own name lead to this machine (DNS rebinding). Default: the names of this machine
   * (localhost, 127.0.0.1, [::1]) without `authorize`, all with it; `true` allows all.
   */
  allowedHosts?: true | string[];
  /** Which other origins may send requests. Default: none; "*" allows all. */
  cors?: "*" | boolean | string[] | ((origin: string) => boolean);
  /** Names who sent a request, such as a user's id: for the limit of event streams that one caller may have. */
  caller?(request: Request): string | undefined | Promise<string | undefined>;
  /** Whether clients may send messages of the role `custom`: all, or those of certain kinds. Default: none. */
  customMessages?: boolean | string[];
  /**
   * What clients may set for a run that they start (`RemoteAgent.prompt(input, options)`). Default: nothing. With `budget`, what a
   * client sets counts in place of the agent's own budget, and may be more.
   */
  runOptions?: ("metadata" | "streamOptions" | "activeTools" | "systemPrompt" | "budget")[];
  /**
   * What clients may answer besides a no. Default: `tool`, `elicitation` and `tool_call`, the result of a call whose tool has no
   * `execute`; leave that out where another service gives such results. With `arguments` they may approve a call with other
   * arguments, with `result` give a result in place of it, with `budget` raise budgets. Calls that `approveTool` decides about are
   * not shown to clients, and no option lets them answer.
   */
  answers?: ("tool" | "elicitation" | "tool_call" | "arguments" | "result" | "budget")[];
  /** Each may be `Infinity`. */
  limits?: {
    /** How many bytes one command may have. Default 1,000,000. */
    bodyBytes?: number;
    /** A conversation with this many bytes, waiting messages included, accepts no more. Default: no limit. */
    historyBytes?: number;
    /** How many bytes of messages may wait for the agent. Default 8,000,000. */
    queueBytes?: number;
    /** How many event streams may be open. Default 100. */
    listeners?: number;
    /** How many of them one `caller` may have. Default 10. */
    listenersPerCaller?: number;
    /** A listener that stops to read is sent away when so many bytes wait for it. Default 8,000,000. */
    backlogBytes?: number;
    commandsPerMinute?: number;
    /**
     * How many ids of commands are remembered, so that none is executed twice. When there are more within ten minutes, the
     * next is a 429. Default 10,000.
     */
    commandIds?: number;
    /** How many events are kept for clients that reconnect. Default 10,000. */
    events?: number;
    /** How many bytes they may have, a character counting as two. Default 16,000,000. */
    logBytes?: number;
  };
  /** Where events are kept. Default: in memory. With `lease.events` of turnwheel/stores/node, the next process goes on with them. */
  events?: EventLog;
  /** Called in the same task as a command, before it is answered, so that its changes can be stored. */
  commit?(command: AgentCommand): void | Promise<void>;
  /** Called with every run that a request started, for platforms that stop work that no request waits for. */
  waitUntil?(run: Promise<unknown>): void;
  /** A comment is sent to listeners after this many milliseconds without an event. Default 7,000: Bun closes a connection that is silent for ten seconds. */
  keepAliveMs?: number;
  host?: RemoteHost;
}

/**
 * An event as it is stored. `history` says what it did to the conversation.
 *
 * @example
 * const entry: EventLogEntry = { id: 1, type: "message", data: JSON.stringify(event) };
 */
export interface EventLogEntry { id: number; type: string; data: string; history?: string }

/**
 * A store for the events of an agent, numbered without gaps: those above `first`, up to `last`.
 *
 * @example
 * const events: EventLog = memoryEvents();
 */
export interface EventLog {
  readonly first: number;
  readonly last: number;
  /** The bytes of the entries that were there from the start, a character counting as two. */
  readonly bytes?: number;
  append(entry: EventLogEntry): void;
  read(after: number, most: number): EventLogEntry[] | Promise<EventLogEntry[]>;
  trim(upTo: number): void;
  /** The entries of type "command" and "receipt", for an instance that continues the log of another. */
  commands?(): EventLogEntry[];
  /** Resolves when everything appended is stored safely; no listener receives it before. */
  sync?(): Promise<void>;
  /** Rejects if another instance has taken the agent over; asked before the agent's state is told. */
  verify?(): Promise<void>;
}

/**
 * Keeps events in memory.
 *
 * @example
 * const handler = agentHandler(agent, { events: memoryEvents({ start: Date.now() * 1000 }) });
 */
export function memoryEvents(options?: { start?: number }): EventLog;

/**
 * Keeps events in the SQLite database of a Durable Object. `also` is called inside the transaction of each event: what it
 * writes is stored together with the event, or neither is.
 *
 * @example
 * const events = durableObjectEvents(ctx.storage, { also: () => saveCheckpoint() });
 */
export function durableObjectEvents(
  storage: { sql: { exec(statement: string, ...values: any[]): { toArray(): any[] } }; transactionSync<T>(work: () => T): T; sync(): Promise<void> },
  options?: { also?(entry: EventLogEntry): void },
): EventLog;

/**
 * Reads what `useChat` posts: the new message, or the decisions about the approval requests of the last one, and the
 * conversation before it, for an agent that is created for each request. With an `agent`, `answers` has the results (`addToolOutput`)
 * of its open calls of tools without `execute`. Files are `data:` URLs with a type, or at public
 * addresses that begin with `https://`. Signatures that
 * `toUIMessages` of turnwheel/ai-sdk has kept are read; blocks that only a provider understands only with `trusted: true`: a
 * stranger who posts them could say anything with them, a system prompt too.
 *
 * @example
 * const { prompt, decisions, messages } = fromUIMessages((await request.json()).messages);
 */
export function fromUIMessages(messages: unknown[], options?: { trusted?: boolean; agent?: Pick<Agent, "pendingQuestions"> }): {
  prompt: UserMessage | undefined;
  decisions: { [questionId: string]: ToolDecision };
  answers: { [questionId: string]: ToolCallAnswer };
  messages: AgentMessage[];
};
