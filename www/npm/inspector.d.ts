/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { AgentEvent, AgentMessage, AssistantMessage, Checkpoint, ErrorInfo, JsonValue, LlmMessage, Question, RunStopReason, ToolOutput, ToolResultMessage, Usage } from "./index.js";

/**
 * An agent that can be inspected: an `Agent`, a `RemoteAgent`, or anything of their shape.
 *
 * @example
 * const inspected: InspectedAgent = new RemoteAgent({ url: "/agents/7" });
 */
export interface InspectedAgent {
  subscribe(listener: (event: AgentEvent) => void, options?: { keep?: boolean }): () => void;
  readonly messages: readonly AgentMessage[];
  readonly isRunning: boolean;
  readonly usage: Usage;
  readonly pendingQuestions?: readonly Question[];
  ready?(): Promise<void>;
}

/**
 * A tape of `turnwheel/tape`.
 *
 * @example
 * const isTape = (source: object): source is InspectedTape => "header" in source && "toText" in source;
 */
export interface InspectedTape { readonly header: object; toText(): string }

/**
 * What an inspector shows.
 *
 * @example
 * const source: InspectorSource = agent;
 */
export type InspectorSource = InspectedAgent | InspectedTape | InspectorLog;

/**
 * What a moment can be marked as: something that was said, a steering message, a follow-up, a stop, or a note of yours.
 *
 * @example
 * const kind: MarkKind = "note";
 */
export type MarkKind = "said" | "steer" | "follow_up" | "stop" | "note";

/**
 * Options of an {@link InspectorLog}. `limit` is how many events are kept, 100,000 by default; beyond it the oldest are forgotten.
 *
 * @example
 * const options: InspectorLogOptions = { limit: 5_000 };
 */
export interface InspectorLogOptions { limit?: number }

/**
 * A call of the turn that is open at a moment.
 *
 * @example
 * const isRunning = ({ state }: InspectorCall) => state === "running";
 */
export interface InspectorCall { callId: string; toolName: string; arguments: { [key: string]: JsonValue }; state: "proposed" | "asked" | "running" | "done" | "failed"; update?: ToolOutput; result?: ToolResultMessage }

/**
 * An agent as it was at one moment. `n` is how many events had happened, as on a tape, and `event` the last of them. `streaming` is
 * what had arrived of an answer; `request` the last one that was sent, known with `includeRequests`; `usage` that of all runs so far.
 * `inside` are the agents inside the calls that run. `messages` and `request` are made when they are read.
 *
 * @example
 * document.createElement("turnwheel-inspector").addEventListener("turnwheel-fork", ({ detail: { frame } }) => {
 *   new Agent({ model, tools, messages: frame.messages }).continue();
 * });
 */
export interface InspectorFrame {
  n: number;
  /** In milliseconds since 1970. */
  at: number;
  event: AgentEvent | undefined;
  runId: string;
  isRunning: boolean;
  phase: "idle" | "preparing" | "waiting for the model" | "answering" | "waiting for approval" | "running tools" | "waiting to retry" | "between turns";
  turnIndex: number;
  usage: Usage;
  stopReason: RunStopReason | undefined;
  error: ErrorInfo | undefined;
  streaming: AssistantMessage["content"] | undefined;
  calls: InspectorCall[];
  pendingQuestions: Question[];
  inside: { path: string[]; phase: string; turnIndex: number; text: AssistantMessage["content"] }[];
  messageCount: number;
  message(index: number): AgentMessage | undefined;
  readonly messages: AgentMessage[];
  readonly request: { n?: number; model: string; systemPrompt: string; messages: LlmMessage[]; tools?: { name: string }[]; options?: object } | undefined;
  /** Only of a tape: what `Agent.restore` takes. Made when it is read. */
  readonly checkpoint?: Checkpoint;
}

/**
 * What happened, event by event, and how the agent stood after each of them: what an inspector shows, without a page. It can follow
 * one agent after the other, and take events from anywhere. Adding an event costs the same however many there are.
 *
 * @example
 * const log = new InspectorLog();
 * log.follow(agent);
 * await agent.prompt("Hello");
 * console.log(log.frame(log.end).messages);
 */
export class InspectorLog {
  constructor(options?: InspectorLogOptions);
  /** The oldest moment that can be looked at. */
  readonly first: number;
  /** The newest moment: how many events there were. */
  readonly end: number;
  /** Adds what an agent says from now on. Returns the function that ends that. */
  follow(agent: InspectedAgent): () => void;
  /** Adds an event. `at` is when it happened, if it does not say so itself; `messages` the history after it, if that is known. */
  push(event: AgentEvent, known?: { at?: number | undefined; messages?: readonly AgentMessage[] | undefined }): void;
  /** Marks the newest moment in the lanes. */
  mark(kind: MarkKind, text: string, at?: number): void;
  /** The agent at a moment. */
  frame(n: number): InspectorFrame;
  /** The event that made a moment. */
  event(n: number): AgentEvent | undefined;
  /** When a moment was, in milliseconds since 1970. */
  at(n: number): number;
  /** Calls the listener after every change. Returns the function that ends that. */
  subscribe(listener: () => void): () => void;
}

/**
 * The element `<turnwheel-inspector>`: lanes to scale, a slider through all events, and what there was at each of them. The
 * attribute `actions` says which buttons it has, of `fork save open`; without it, all that make sense. The slots
 * `title` and `actions` take what you add. Custom properties `--inspector-…` change its colours and its heights.
 *
 * @example
 * import "turnwheel/inspector";
 * const inspector = document.querySelector("turnwheel-inspector");
 * if (inspector) inspector.source = agent;
 */
export class TurnwheelInspector extends HTMLElement {
  /** What is shown. A live agent is followed from the moment it is assigned. */
  source: InspectorSource | undefined;
  /** A recorder of `turnwheel/tape`: what “Save tape” saves of a live agent. */
  recorder: { toText(): string } | undefined;
  /** The moment that is shown. Assign it to go there; the newest one is followed as it grows. */
  n: number;
  /** The newest moment. */
  readonly end: number;
  /** The agent at the moment that is shown. */
  readonly frame: InspectorFrame | undefined;
  /** The events behind it. */
  readonly log: InspectorLog | undefined;
}

/**
 * The events of the element. All of them bubble. `turnwheel-fork`: “Fork here” was pressed. `turnwheel-seek`: the user went to
 * another moment. `turnwheel-open`: a tape was opened. `turnwheel-ready`: a source is shown.
 *
 * @example
 * const onSeek = ({ detail }: InspectorEvents["turnwheel-seek"]) => console.log(detail.n);
 */
export interface InspectorEvents {
  "turnwheel-fork": CustomEvent<{ n: number; frame: InspectorFrame; source: InspectorSource | undefined }>;
  "turnwheel-seek": CustomEvent<{ n: number }>;
  "turnwheel-open": CustomEvent<{ tape: InspectedTape; name: string }>;
  "turnwheel-ready": CustomEvent<null>;
}

declare global {
  interface HTMLElementTagNameMap { "turnwheel-inspector": TurnwheelInspector }
  interface HTMLElementEventMap extends InspectorEvents {}
}
