import type {
  AgentError, AgentEvent, AgentMessage, AgentResult, Input, JsonValue, Receipt, RunStopReason, TextBlock, ThinkingBlock, ToolCallBlock, ToolDecision, ToolOutput,
  ToolResultMessage, Usage,
} from "./index.js";

/**
 * What `useAgent` needs of an agent. An `Agent` has it, and so has a `RemoteAgent` of `turnwheel/remote`.
 *
 * @example
 * const show = (agent: AgentLike) => agent.messages.length;
 */
export interface AgentLike {
  prompt(input: Input | Input[], options?: { signal?: AbortSignal | undefined; runId?: string }): { readonly result: Promise<AgentResult> };
  continue(options?: { signal?: AbortSignal | undefined; runId?: string }): { readonly result: Promise<AgentResult> };
  steer(input: Input): Receipt;
  followUp(input: Input): Receipt;
  resolveTool(callId: string, decision: ToolDecision): unknown;
  abort(reason?: unknown): void;
  subscribe(listener: (event: AgentEvent) => void): () => void;
  readonly messages: readonly AgentMessage[];
  readonly pendingApprovals: readonly ToolCallBlock[];
  readonly isRunning: boolean;
  readonly usage: Usage;
}

/**
 * The answer that comes just now. A block that did not grow since the last frame is the same object; the arguments of a
 * call are as far as they have come.
 *
 * @example
 * const text = (message: StreamingMessage) => message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
 */
export interface StreamingMessage {
  role: "assistant";
  streaming: true;
  content: readonly (TextBlock | ThinkingBlock | ToolCallBlock)[];
  timestamp: number;
}

/**
 * A message to be shown: one of the history, or the one that streams. One that did not change is the same object, so that
 * `memo` works.
 *
 * @example
 * const Row = memo(({ message }: { message: ShownMessage }) => <p aria-busy={message.streaming}>{message.role}</p>);
 */
export type ShownMessage = (AgentMessage & { streaming?: undefined }) | StreamingMessage;

/**
 * A call of the turn that is on, or was last.
 *
 * @example
 * const isOpen = ({ state }: AgentCall) => state !== "done" && state !== "error";
 */
export interface AgentCall {
  readonly callId: string;
  readonly toolName: string;
  /** While they stream, as far as they have come. */
  readonly arguments: { [key: string]: JsonValue };
  /** `approval`: somebody must allow it. `waiting`: it is allowed, or needs no leave, and has not begun. */
  readonly state: "streaming" | "waiting" | "approval" | "running" | "done" | "error";
  /** What it told last of its progress. */
  readonly update?: ToolOutput;
  readonly result?: ToolResultMessage;
}

/**
 * A message that was sent into a run and is not read yet.
 *
 * @example
 * const words = ({ kind, input }: QueuedInput) => `${kind}: ${typeof input === "string" ? input : "…"}`;
 */
export interface QueuedInput { readonly kind: "steer" | "follow_up"; readonly input: Input }

/**
 * How `useAgent` works. Read once, when the agent is first seen.
 *
 * @example
 * const options: UseAgentOptions = { events: 0 };
 */
export interface UseAgentOptions {
  /** So many of the newest events are kept; pieces of one block are joined and count as one. Default 200; 0 keeps none. */
  events?: number;
  /** When to show what happened: calls `work` once, later, and gives what takes that back. Default: the next animation frame; in a page in the background a timer. */
  schedule?: (work: () => void) => () => void;
}

/**
 * What an agent says, and what can be said to it. The same object until something changed; the functions are always the
 * same ones.
 *
 * @example
 * function Stop({ view }: { view: AgentView }) {
 *   return view.isRunning ? <button onClick={() => view.stop()}>Stop</button> : null;
 * }
 */
export interface AgentView<A extends AgentLike = AgentLike> {
  /** The agent itself. */
  readonly agent: A;
  /** Everything to be shown: the history, what was just sent, the answer that streams. A place in the list is a good key. */
  readonly messages: readonly ShownMessage[];
  /** The history alone: the same list while an answer streams. With `streaming` it makes long conversations cheap. */
  readonly history: readonly AgentMessage[];
  /** What was sent and is not in the history yet. */
  readonly outbox: readonly AgentMessage[];
  /** The answer that comes just now. */
  readonly streaming: StreamingMessage | undefined;
  /** The calls of the newest turn, with the arguments that stream, progress and results. */
  readonly calls: readonly AgentCall[];
  /** The newest events. */
  readonly events: readonly AgentEvent[];
  /** The calls that wait for `approve` or `deny`. */
  readonly pendingApprovals: readonly ToolCallBlock[];
  /** What was sent into the run and is not read yet. */
  readonly queued: readonly QueuedInput[];
  /** What all runs used together; it grows when a run ends. */
  readonly usage: Usage;
  readonly isRunning: boolean;
  /** `submitted`: the model was asked and has not begun. `approval`: nothing goes on until somebody decides. `error`: the last run ended with `error`. */
  readonly status: "idle" | "submitted" | "streaming" | "tools" | "approval" | "error";
  /** Why the last run failed; `undefined` again when the next one begins. */
  readonly error: AgentError | undefined;
  /** How the last run ended. */
  readonly stopReason: RunStopReason | undefined;
  /** Starts a run. Throws while another one is on: then `steer` or `followUp`. The promise never rejects. */
  readonly send: (input: Input | Input[], options?: { signal?: AbortSignal | undefined; runId?: string }) => Promise<AgentResult>;
  /** Goes on from the history as it is, or with the run of a checkpoint. */
  readonly resume: (options?: { signal?: AbortSignal | undefined; runId?: string }) => Promise<AgentResult>;
  /** Interrupts: read in the next turn. */
  readonly steer: (input: Input) => Receipt;
  /** Read when the run would end. */
  readonly followUp: (input: Input) => Receipt;
  /** Ends the run; what came of it stays. */
  readonly stop: (reason?: unknown) => void;
  /** Allows a call, with other arguments if you give them. */
  readonly approve: (callId: string, args?: { [key: string]: JsonValue }) => void;
  /** Refuses a call; the model is told the reason. */
  readonly deny: (callId: string, reason?: string) => void;
}

/**
 * An agent in a React component: what it says, kept up to date with at most one rendering per frame, and what can be said
 * to it.
 *
 * With a function the component makes an agent of its own, which is stopped and disposed of when the component goes. An
 * agent that is handed over belongs to you: the component only listens, and the run goes on without it.
 *
 * @example
 * function Chat() {
 *   const { messages, isRunning, send, steer, stop } = useAgent(() => new Agent({ model, tools }));
 *   const submit = (text: string) => void (isRunning ? steer(text) : send(text));
 *   return <>{messages.map((message, i) => <Message key={i} message={message} />)}<Composer onSubmit={submit} onStop={stop} /></>;
 * }
 */
export function useAgent<A extends AgentLike>(agent: A | ((earlier?: { messages: AgentMessage[] }) => A), options?: UseAgentOptions): AgentView<A>;
