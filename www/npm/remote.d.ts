/**
 * Stable: a version that changes something here says so in CHANGELOG.md, with the way to go.
 * @module
 */

import type { AgentEvent, AgentMessage, AgentRun, Answer, Input, Question, Receipt, RunOptions, SteerOptions, ToolDecision, ToolQuestion, Usage } from "./index.js";

/**
 * A run elsewhere, with the interface of a local one: iterate it, await it, or both. Its `runId` is empty until the first event
 * arrives.
 *
 * @example
 * const show = async (run: AgentRun | RemoteRun) => { for await (const piece of run.textStream) print(piece); };
 */
export interface RemoteRun extends Omit<AgentRun, "checkpoint" | "partialOutput"> {}

/**
 * How connections are retried. Defaults: `maxAttempts` 10 in a row; `initialMs` 250, doubled each time, at most `maxMs` 15,000.
 * Each delay is multiplied by a random factor of 0.5 to 1.5.
 *
 * @example
 * const reconnects: Reconnects = { maxAttempts: 100, maxMs: 60_000 };
 */
export interface Reconnects { maxAttempts?: number; initialMs?: number; maxMs?: number }

/**
 * Replaces time, randomness and ids, for tests.
 *
 * @example
 * const host: RemoteHost = { sleep: async () => {} };
 */
export interface RemoteHost { now?(): number; sleep?(ms: number, signal: AbortSignal): Promise<void>; random?(): number; id?(): string }

/**
 * How much of what a server sends is taken; more ends the run with an error. Defaults: `eventBytes` 64,000,000 for one event,
 * the state of the agent included; `runBytes` 256,000,000 for the events of a run; `historyBytes` 256,000,000 for the history.
 * Each may be `Infinity`.
 *
 * @example
 * const limits: RemoteLimits = { eventBytes: 1_000_000 };
 */
export interface RemoteLimits { eventBytes?: number; runBytes?: number; historyBytes?: number }

/**
 * Options of `fromResponse`.
 *
 * @example
 * const options: FromResponseOptions = { reconnect: (lastEventId) => fetch("/run", { headers: { "last-event-id": lastEventId } }) };
 */
export interface FromResponseOptions {
  /** Requests the rest of the run after a connection broke. Without it, a broken connection ends the run with an error. */
  reconnect?(lastEventId: string): Response | Promise<Response>;
  reconnects?: Reconnects;
  /**
   * Stops the remote run, on `run.abort()` and on leaving the `for await`. Without it, the run ends as aborted only on this
   * side.
   */
  abort?(reason?: unknown): unknown;
  signal?: AbortSignal;
  limits?: RemoteLimits;
  /**
   * A connection on which nothing arrives for this many milliseconds, not even a comment, counts as broken. Default 45,000.
   */
  stallMs?: number;
  host?: RemoteHost;
}

/**
 * Makes a run from the response of `run.toResponse()`. Code that listens to a local run can listen to it unchanged.
 *
 * @example
 * import { fromResponse } from "turnwheel/remote";
 * const run = fromResponse(await fetch("/run", { method: "POST", body: "Rain in Oslo?" }), {
 *   reconnect: (lastEventId) => fetch("/run", { headers: { "last-event-id": lastEventId } }),
 * });
 * for await (const piece of run.textStream) show(piece);
 * const { stopReason, usage } = await run;
 */
export function fromResponse(response: Response | Promise<Response>, options?: FromResponseOptions): RemoteRun;

/**
 * Options of a run that is started from afar. What goes beyond `signal` and `runId` is refused unless the host allows it: see
 * `AgentHandlerOptions.runOptions`.
 *
 * @example
 * await agent.prompt("Hello", { metadata: { tab: 2 } });
 */
export interface RemoteRunOptions extends Omit<RunOptions, "model"> {}

/**
 * Options of `RemoteAgent`.
 *
 * @example
 * const options: RemoteAgentOptions = { url: "/agents/7", headers: async () => ({ authorization: `Bearer ${await token()}` }) };
 */
export interface RemoteAgentOptions {
  /** The address at which `agentHandler` of turnwheel/server answers. */
  url: string | URL;
  fetch?: typeof globalThis extends { fetch: infer F } ? F : (input: any, init?: any) => Promise<any>;
  /** Sent with every request, to the origin of `url` and to no other; a function is called each time. */
  headers?: HeadersLike | (() => HeadersLike | Promise<HeadersLike>);
  reconnects?: Reconnects;
  limits?: RemoteLimits;
  /**
   * A connection on which nothing arrives for this many milliseconds, not even a comment, counts as broken. Default 45,000.
   */
  stallMs?: number;
  /** Called when the state of the connection changes. "idle": nobody listens here. */
  onConnection?(connection: "idle" | "connecting" | "open"): void;
  /**
   * Called when a command that nobody awaited failed, and when the agent cannot be reached: once when the first try fails, until it is
   * reached again, and when it is given up. Default: `console.error`.
   */
  onError?(error: unknown): void;
  host?: RemoteHost;
}

/** Headers as `fetch` accepts them. Only the types of web pages have the name `HeadersInit`. */
type HeadersLike = RequestInit extends { headers?: infer H } ? NonNullable<H> : never;

/**
 * An agent elsewhere, with the interface of `Agent`. `messages`, `pendingApprovals`, `isRunning` and `usage` are a mirror, kept
 * up to date while somebody listens: a subscriber, or a run in progress. Several clients may listen to one agent; each receives
 * every event once, even after a broken connection. `messages` is a new array whenever it changes.
 *
 * A command that does not arrive is sent again, and executed once. The promise of a refused command rejects; if nobody awaits
 * it, `onError` is called instead.
 *
 * @example
 * import { RemoteAgent } from "turnwheel/remote";
 * const agent = new RemoteAgent({ url: "/agents/7" });
 * await agent.ready();
 * draw(agent.messages);
 * for await (const event of agent.prompt("Plan my week")) {
 *   if (event.type === "tool_approval_requested") agent.resolve(event.id, "approve");
 * }
 */
export class RemoteAgent implements Disposable {
  constructor(options: RemoteAgentOptions);
  /** Starts a run. Throws while one is in progress. */
  prompt(input: Input | Input[], options?: RemoteRunOptions): RemoteRun;
  continue(options?: RemoteRunOptions): RemoteRun;
  subscribe(listener: (event: AgentEvent) => void, options?: { keep?: boolean }): () => void;
  steer(input: Input, options?: SteerOptions): Receipt;
  followUp(input: Input): Receipt;
  clearQueues(): Promise<void>;
  /** Answers an open question. Rejects if it is not open: another client may have answered. */
  resolve(id: string, answer: Answer): Promise<void>;
  /** Short for the question about a call that is open here. */
  resolveTool(callId: string, decision: ToolDecision): Promise<void>;
  /** Answers several open questions, by their ids or those of their calls: all of them or none. */
  resolveTools(decisions: { [id: string]: ToolDecision }): Promise<void>;
  abort(reason?: unknown): Promise<void>;
  /** Stops the run and clears the history and the queues. */
  reset(): Promise<void>;
  /**
   * Takes the history back, as `agent.rewind` does. Resolves to what was cut, which a later `rewind(length, cut)` of this object goes back
   * to: the server keeps the ten newest branches while it runs. The server refuses it while a run is in progress, or if its `authorize` says so.
   */
  rewind(length: number, branch?: readonly AgentMessage[]): Promise<AgentMessage[]>;
  /** Resolves when the mirror is up to date; rejects if the agent cannot be reached. */
  ready(): Promise<void>;
  waitForIdle(): Promise<void>;
  readonly messages: readonly AgentMessage[];
  readonly pendingQuestions: readonly Question[];
  readonly pendingApprovals: readonly ToolQuestion[];
  readonly isRunning: boolean;
  readonly usage: Usage;
  readonly connection: "idle" | "connecting" | "open";
  /** Closes the connection. The agent itself goes on. */
  [Symbol.dispose](): void;
}

export {};
