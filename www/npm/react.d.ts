/**
 * Stable: a version that changes something here says so in CHANGELOG.md, with the way to go.
 * @module
 */

import type {
  AgentError, AgentEvent, AgentMessage, AgentResult, Answer, Input, JsonValue, Question, Receipt, RunOptions, RunStopReason, SteerOptions, TextBlock, ThinkingBlock, ToolCallBlock, ToolDecision, ToolOutput, ToolQuestion,
  ToolResultMessage, Usage,
} from "./index.js";

/**
 * What `useAgent` needs from an agent. An `Agent` has it, and so does a `RemoteAgent` of `turnwheel/remote`.
 *
 * @example
 * const show = (agent: AgentLike) => agent.messages.length;
 */
export interface AgentLike {
  prompt(input: Input | Input[], options?: Omit<RunOptions, "model">): { readonly result: Promise<AgentResult> };
  continue(options?: Omit<RunOptions, "model">): { readonly result: Promise<AgentResult> };
  steer(input: Input, options?: SteerOptions): Receipt;
  followUp(input: Input): Receipt;
  /** Answers a question by its id. Without it `resolveTool` is called. */
  resolve?(id: string, answer: Answer): unknown;
  resolveTool(callId: string, decision: ToolDecision): unknown;
  abort(reason?: unknown): void;
  /** Without it the history cannot be taken back. */
  rewind?(length: number, branch?: readonly AgentMessage[]): AgentMessage[] | Promise<AgentMessage[]>;
  subscribe(listener: (event: AgentEvent) => void, options?: { keep?: boolean }): () => void;
  readonly messages: readonly AgentMessage[];
  readonly pendingApprovals: readonly ToolQuestion[];
  readonly pendingQuestions?: readonly Question[];
  readonly isRunning: boolean;
  readonly usage: Usage;
}

/**
 * The answer that is streaming. A block that did not grow since the last frame is the same object; the arguments of a call are
 * as far as they have arrived.
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
 * A message to show: one of the history, or the one that is streaming. A message that did not change is the same object, so
 * that `memo` works.
 *
 * @example
 * const Row = memo(({ message }: { message: ShownMessage }) => <p aria-busy={message.streaming}>{message.role}</p>);
 */
export type ShownMessage = (AgentMessage & { streaming?: undefined }) | StreamingMessage;

/**
 * A tool call of the current turn, or of the last one.
 *
 * @example
 * const isOpen = ({ state }: AgentCall) => state !== "done" && state !== "error";
 */
export interface AgentCall {
  readonly callId: string;
  readonly toolName: string;
  /** While they stream, as far as they have arrived. */
  readonly arguments: { [key: string]: JsonValue };
  /** `approval`: it needs a decision. `waiting`: it is allowed, or needs no approval, and has not started. */
  readonly state: "streaming" | "waiting" | "approval" | "running" | "done" | "error";
  /** The latest progress that the tool reported. */
  readonly update?: ToolOutput;
  readonly result?: ToolResultMessage;
}

/**
 * A message that was sent into a run and has not been read yet.
 *
 * @example
 * const words = ({ kind, input }: QueuedInput) => `${kind}: ${typeof input === "string" ? input : "…"}`;
 */
export interface QueuedInput { readonly kind: "steer" | "follow_up"; readonly input: Input }

/**
 * Options of `useAgent`. Read once, when the agent is first seen.
 *
 * @example
 * const options: UseAgentOptions = { events: 0 };
 */
export interface UseAgentOptions {
  /**
   * How many of the newest events are kept; the pieces of one block are joined and count as one. Default 200; 0 keeps none.
   */
  events?: number;
  /**
   * Decides when to render: calls `work` once, later, and returns a function that cancels it. Default: the next animation
   * frame, or a timer in a background page.
   */
  schedule?: (work: () => void) => () => void;
}

/**
 * Everything an agent says, and the functions to talk to it. The same object until something changes; the functions are always
 * the same.
 *
 * @example
 * function Stop({ view }: { view: AgentView }) {
 *   return view.isRunning ? <button onClick={() => view.stop()}>Stop</button> : null;
 * }
 */
export interface AgentView<A extends AgentLike = AgentLike> {
  /** The agent itself. */
  readonly agent: A;
  /**
   * Everything to show: the history, what was just sent, the answer that is streaming. The index in the list is a good key.
   */
  readonly messages: readonly ShownMessage[];
  /** The history alone: the same list while an answer streams. With `streaming` it makes long conversations cheap. */
  readonly history: readonly AgentMessage[];
  /** Messages that were sent and are not in the history yet. */
  readonly outbox: readonly AgentMessage[];
  /** The answer that is streaming. */
  readonly streaming: StreamingMessage | undefined;
  /** The tool calls of the newest turn, with streaming arguments, progress and results. */
  readonly calls: readonly AgentCall[];
  /** The newest events. */
  readonly events: readonly AgentEvent[];
  /** The calls that wait for `approve` or `deny`, each with the `id` of its question. */
  readonly pendingApprovals: readonly ToolQuestion[];
  /** Everything that waits for a person: these calls, and what `answer` answers. */
  readonly pendingQuestions: readonly Question[];
  /** Messages that were sent into the run and have not been read yet. */
  readonly queued: readonly QueuedInput[];
  /** The usage of all runs together; it grows when a run ends. */
  readonly usage: Usage;
  readonly isRunning: boolean;
  /**
   * `submitted`: the model was called and has not begun to answer. `approval`: everything waits for a person. `error`:
   * the last run ended with `error`.
   */
  readonly status: "idle" | "submitted" | "streaming" | "tools" | "approval" | "error";
  /** Why the last run failed; `undefined` again when the next one begins. */
  readonly error: AgentError | undefined;
  /** How the last run ended. */
  readonly stopReason: RunStopReason | undefined;
  /** Starts a run. Throws while another one is in progress: use `steer` or `followUp` then. The promise never rejects. */
  readonly send: (input: Input | Input[], options?: Omit<RunOptions, "model">) => Promise<AgentResult>;
  /** Continues from the history as it is, or resumes the run of a checkpoint. */
  readonly resume: (options?: Omit<RunOptions, "model">) => Promise<AgentResult>;
  /** Interrupts the run: the message is read in the next turn. */
  readonly steer: (input: Input, options?: SteerOptions) => Receipt;
  /** Queues a message that is read when the run would end. */
  readonly followUp: (input: Input) => Receipt;
  /** Stops the run; whatever exists by then is kept. */
  readonly stop: (reason?: unknown) => void;
  /** Allows a call, with other arguments if you pass them. */
  readonly approve: (id: string, args?: { [key: string]: JsonValue }) => void;
  /** Rejects a call; the model is told the reason. */
  readonly deny: (id: string, reason?: string) => void;
  /** Takes the history back to its first messages, as `agent.rewind` does; returns, or resolves to, what was cut. */
  readonly rewind: (length: number, branch?: readonly AgentMessage[]) => AgentMessage[] | Promise<AgentMessage[]>;
  /** Answers a question of any kind, by its `id`. */
  readonly answer: (id: string, answer: Answer) => void;
}

/**
 * Connects a React component to an agent: everything the agent says, with at most one render per frame, and the functions to
 * talk to it.
 *
 * Pass a function, and the component makes an agent of its own, which is stopped and disposed of when the component unmounts.
 * An agent that you pass belongs to you: the component only listens, and the run goes on without it.
 *
 * @example
 * function Chat() {
 *   const { messages, isRunning, send, steer, stop } = useAgent(() => new Agent({ model, tools }));
 *   const submit = (text: string) => void (isRunning ? steer(text) : send(text));
 *   return <>{messages.map((message, i) => <Message key={i} message={message} />)}<Composer onSubmit={submit} onStop={stop} /></>;
 * }
 */
export function useAgent<A extends AgentLike>(agent: A | ((earlier?: { messages: AgentMessage[] }) => A), options?: UseAgentOptions): AgentView<A>;
