import type { AgentEvent, AgentMessage, AgentRun, Input, Receipt, ToolCallBlock, ToolDecision, Usage } from "./index.js";

/**
 * A run that goes on elsewhere, with the surface of one in this process: iterate it, await it, or both. Its `runId` is empty
 * until the first event told it.
 *
 * @example
 * const show = async (run: AgentRun | RemoteRun) => { for await (const piece of run.textStream) print(piece); };
 */
export interface RemoteRun extends Omit<AgentRun, "checkpoint"> {}

/**
 * How often and how fast it is tried again. Defaults: 10 times in a row, 250 ms at first, then twice as long each time, at
 * most 15 s; times 0.5 to 1.5 by chance.
 *
 * @example
 * const reconnects: Reconnects = { maxAttempts: 100, maxMs: 60_000 };
 */
export interface Reconnects { maxAttempts?: number; initialMs?: number; maxMs?: number }

/**
 * What time and chance are, for tests.
 *
 * @example
 * const host: RemoteHost = { sleep: async () => {} };
 */
export interface RemoteHost { now?(): number; sleep?(ms: number, signal: AbortSignal): Promise<void>; random?(): number; id?(): string }

/**
 * How a run is listened to that goes on elsewhere.
 *
 * @example
 * const options: FromResponseOptions = { reconnect: (lastEventId) => fetch("/run", { headers: { "last-event-id": lastEventId } }) };
 */
export interface FromResponseOptions {
  /** Gives the rest of the run after a connection broke. Without it a broken connection ends the run with an error. */
  reconnect?(lastEventId: string): Response | Promise<Response>;
  reconnects?: Reconnects;
  /** Stops the run itself, for `run.abort()` and for leaving the `for await`. Without it the run is only not heard any more, and ends here as aborted. */
  abort?(reason?: unknown): unknown;
  signal?: AbortSignal;
  /** A connection on which nothing came for so long, not even a comment, is broken. Default 45,000. */
  stallMs?: number;
  host?: RemoteHost;
}

/**
 * A run from the response of `run.toResponse()`. The same code that listens to a run in the page listens to it.
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
 * Where an agent is, and how it is asked.
 *
 * @example
 * const options: RemoteAgentOptions = { url: "/agents/7", headers: async () => ({ authorization: `Bearer ${await token()}` }) };
 */
export interface RemoteAgentOptions {
  /** Where `agentHandler` of turnwheel/server answers. */
  url: string | URL;
  fetch?: typeof fetch;
  /** Sent with every request; a function is asked each time. */
  headers?: HeadersLike | (() => HeadersLike | Promise<HeadersLike>);
  reconnects?: Reconnects;
  /** A connection on which nothing came for so long, not even a comment, is broken. Default 45,000. */
  stallMs?: number;
  /** "idle": nobody listens here. */
  onConnection?(connection: "idle" | "connecting" | "open"): void;
  /** A command that nobody waited for failed, or nobody can be reached. Default: `console.error`. */
  onError?(error: unknown): void;
  host?: RemoteHost;
}

/** What fetch takes. `HeadersInit` is a name of pages alone. */
type HeadersLike = NonNullable<RequestInit["headers"]>;

/**
 * An agent that is elsewhere, with the surface of `Agent`. `messages`, `pendingApprovals`, `isRunning` and `usage` are a
 * mirror, kept up to date while somebody listens: a subscriber, or a run that is on. Several may listen to one agent; each
 * hears every event once, also after a broken connection. `messages` is a new array whenever it changed.
 *
 * A command that does not arrive is sent again, and done once. The promises of commands reject when they were refused; who
 * does not wait for them hears of it by `onError`.
 *
 * @example
 * import { RemoteAgent } from "turnwheel/remote";
 * const agent = new RemoteAgent({ url: "/agents/7" });
 * await agent.ready();
 * draw(agent.messages);
 * for await (const event of agent.prompt("Plan my week")) {
 *   if (event.type === "tool_approval_requested") agent.resolveTool(event.callId, "approve");
 * }
 */
export class RemoteAgent implements Disposable {
  constructor(options: RemoteAgentOptions);
  /** Starts a run. Throws while one is on. */
  prompt(input: Input | Input[], options?: { signal?: AbortSignal | undefined; runId?: string }): RemoteRun;
  continue(options?: { signal?: AbortSignal | undefined; runId?: string }): RemoteRun;
  subscribe(listener: (event: AgentEvent) => void): () => void;
  steer(input: Input): Receipt;
  followUp(input: Input): Receipt;
  clearQueues(): Promise<void>;
  resolveTool(callId: string, decision: ToolDecision): Promise<void>;
  resolveTools(decisions: { [callId: string]: ToolDecision }): Promise<void>;
  abort(reason?: unknown): Promise<void>;
  /** Stops the run, forgets history and queues. */
  reset(): Promise<void>;
  /** Settles when the mirror is up to date; rejects when the agent cannot be reached. */
  ready(): Promise<void>;
  waitForIdle(): Promise<void>;
  readonly messages: readonly AgentMessage[];
  readonly pendingApprovals: readonly ToolCallBlock[];
  readonly isRunning: boolean;
  readonly usage: Usage;
  readonly connection: "idle" | "connecting" | "open";
  /** Hangs up. The agent itself goes on. */
  [Symbol.dispose](): void;
}

export {};
