import type { Agent, AgentMessage, ToolDecision, UserMessage } from "./index.js";
import type { RemoteHost } from "./remote.js";

/**
 * Serves an agent over HTTP, for `RemoteAgent` of turnwheel/remote and anybody who keeps to docs/remote.md: gives a function
 * from a Request to a Response. The last piece of the path says what is asked for, so it may be mounted anywhere. Requests of
 * other origins are refused unless `cors` allows them.
 *
 * @example
 * import { agentHandler } from "turnwheel/server";
 * const handler = agentHandler(agent, { authorize: (request) => request.headers.get("authorization") === `Bearer ${token}` });
 * export default { fetch: (request) => handler(request) };
 */
export function agentHandler(agent: Agent, options?: AgentHandlerOptions): AgentHandler;

/**
 * Answers requests for one agent; disposed of, it ends the streams of its listeners.
 *
 * @example
 * const handler: AgentHandler = agentHandler(agent);
 * const response = await handler(new Request("http://localhost/agent/state"));
 */
export interface AgentHandler extends Disposable { (request: Request): Promise<Response> }

/**
 * What may be asked for: the first two by GET, the others by POST.
 *
 * @example
 * const mayAsk = (command: AgentCommand) => command === "events" || command === "state";
 */
export type AgentCommand = "events" | "state" | "prompt" | "continue" | "steer" | "follow-up" | "clear-queues" | "resolve" | "abort" | "reset";

/**
 * Who may ask, and how much.
 *
 * @example
 * const options: AgentHandlerOptions = { cors: ["https://app.example"], limits: { listeners: 20, commandsPerMinute: 60 } };
 */
export interface AgentHandlerOptions {
  /** Who may ask: only who gets `true`. Anything else is a 401; a response is the answer. */
  authorize?(request: Request, command: AgentCommand): boolean | Response | Promise<boolean | Response>;
  /** Which other origins may ask. Default none; "*" allows all. */
  cors?: "*" | boolean | string[] | ((origin: string) => boolean);
  limits?: {
    /** Of one command. Default 1,000,000. */
    bodyBytes?: number;
    /** A conversation that is longer, with the messages that wait for it, takes no more. Default no limit. */
    historyBytes?: number;
    /** Open streams of events. Default 100. */
    listeners?: number;
    commandsPerMinute?: number;
    /** So many events are kept for who comes back. Default 10,000. */
    events?: number;
  };
  /** Where events are kept. Default: in memory. */
  events?: EventLog;
  /** Called in the same task as a command, before it is answered: what it changed can be stored. */
  commit?(command: AgentCommand): void | Promise<void>;
  /** Told of every run that a request began: on platforms that stop what no request waits for. */
  waitUntil?(run: Promise<unknown>): void;
  /** A comment is sent to listeners when nothing else was for so long. Default 15,000. */
  keepAliveMs?: number;
  host?: RemoteHost;
}

/**
 * An event as it is kept. `history` says what it did to the conversation.
 *
 * @example
 * const entry: EventLogEntry = { id: 1, type: "message", data: JSON.stringify(event) };
 */
export interface EventLogEntry { id: number; type: string; data: string; history?: string }

/**
 * Where the events of an agent are kept, numbered without gaps: those above `first`, up to `last`.
 *
 * @example
 * const events: EventLog = memoryEvents();
 */
export interface EventLog {
  readonly first: number;
  readonly last: number;
  append(entry: EventLogEntry): void;
  read(after: number, most: number): EventLogEntry[] | Promise<EventLogEntry[]>;
  trim(upTo: number): void;
  /** The entries of type "command" and "receipt", for an instance that goes on with the log of another. */
  commands?(): EventLogEntry[];
  /** Settles when all that was appended is safe: nobody is told of it before. */
  sync?(): Promise<void>;
}

/**
 * Events in memory.
 *
 * @example
 * const handler = agentHandler(agent, { events: memoryEvents({ start: Date.now() * 1000 }) });
 */
export function memoryEvents(options?: { start?: number }): EventLog;

/**
 * Events in the SQLite of a Durable Object. `also` is called inside the transaction of each: what it writes is written with
 * the event, or neither is.
 *
 * @example
 * const events = durableObjectEvents(ctx.storage, { also: () => saveCheckpoint() });
 */
export function durableObjectEvents(
  storage: { sql: { exec(statement: string, ...values: any[]): { toArray(): any[] } }; transactionSync<T>(work: () => T): T; sync(): Promise<void> },
  options?: { also?(entry: EventLogEntry): void },
): EventLog;

/**
 * Reads what `useChat` posts: the new message, or the answers to the questions of the last one, and the conversation before
 * it, for an agent that is made anew for every request. Files must come as `data:` addresses.
 *
 * @example
 * const { prompt, decisions, messages } = fromUIMessages((await request.json()).messages);
 */
export function fromUIMessages(messages: unknown[]): {
  prompt: UserMessage | undefined;
  decisions: { [callId: string]: ToolDecision };
  messages: AgentMessage[];
};
