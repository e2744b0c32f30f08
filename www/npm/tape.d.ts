/**
 * Stable: a version that changes something here says so in CHANGELOG.md, with the way to go.
 * @module
 */

import type { Agent, AgentEvent, AgentMessage, AgentOptions, AgentResult, AgentRun, Checkpoint, JsonValue, Model, ModelRequest, Question, ToolDefinition, ToolQuestion, Usage } from "./index.js";

/**
 * Writes down what goes into an agent from now on, which is all it takes to live its runs again. The agent must be idle: no run
 * of it is active. The page loads the module of this entry for it, and the agent goes on there.
 *
 * @example
 * const recorder = await record(agent);
 * await agent.prompt("What is 17 + 25?");
 * const tape = recorder.toTape();
 */
export function record(agent: Agent<any>, options?: RecordOptions): Promise<Recorder>;

/**
 * The same at once, once the module is there: `await ready()` before. It also takes a run of `agentLoop` that has not begun, in
 * the statement after it was started.
 *
 * @example
 * await ready();
 * const run = agentLoop(["Hello"], { model });
 * const recorder = recordNow(run);
 * const { text } = await run;
 */
export function recordNow(agent: Agent<any> | AgentRun<any>, options?: RecordOptions): Recorder;

/**
 * What a recorder writes, and how much of it it keeps. Keys and values of headers are never written.
 *
 * @example
 * const options: RecordOptions = { keep: 5_000_000, redact: (where, text) => text.replaceAll(user.email, "user@example.com") };
 */
export interface RecordOptions {
  /** How much is kept when a run begins: `"all"`, the default; `"run"`: only that run, with what was before it as its history; or runs while they fit into this many characters. */
  keep?: "run" | "all" | number;
  /** The longest content of an image or a file, in characters; of a longer one the tape has a placeholder. 1 MiB unless said otherwise. */
  maxBytes?: number;
  /** Sees every text before it is written, and returns what is written. `where` names the member that holds it, such as `delta`, `text` or `arguments`. */
  redact?: (where: string, text: string) => string;
  /**
   * Whether the bytes of answers over HTTP are written too, in the reads in which they came, beside what was decoded of them: for a
   * report about a wire. `replay(tape, { wire: true })` decodes them again. Of an answer with a key in it, or of more than 8 MiB, the
   * tape says only how long it was. Not with `redact`, which finds no texts in bytes that are cut anywhere. Default false.
   */
  wire?: boolean;
  /** Whether agents inside calls get tapes of their own, on this one: see {@link Tape.child}. Default true; their events are on the tape anyway. */
  children?: boolean;
}

/**
 * Writes a tape while its agent works. Read as it grows, line by line, or whole.
 *
 * @example
 * for await (const line of recorder) await file.appendFile(`${line}\n`); // ends when the recorder is stopped
 */
export interface Recorder extends AsyncIterable<string> {
  /** The length of what is written so far, in characters. */
  readonly bytes: number;
  /** Writes a mark for people, such as `user clicked Stop`. */
  note(text: string): void;
  /** Ends the tape. The last line then says what a replay of it must give. The agent goes on. */
  stop(): void;
  /** The tape so far. */
  toTape(): Tape;
  /** The text of the tape so far. */
  toText(): string;
}

/**
 * The first line of a tape.
 *
 * @example
 * const written = ({ engine, createdAt }: TapeHeader) => `turnwheel ${engine}, ${new Date(createdAt).toISOString()}`;
 */
export interface TapeHeader {
  /** The version of the format. */
  tape: 1 | 2;
  /** The version of turnwheel that wrote it. */
  engine: string;
  /** Milliseconds since 1970. */
  createdAt: number;
  /** The numbers of events and of started effects that were left out before, if `keep` has left out any. */
  from?: [events: number, starts: number];
}

/**
 * The tape of an agent inside a call. `path` are the ids of the calls that lead to it.
 *
 * @example
 * for (const { path, tape: inner } of tape.children) console.log(path.join("/"), inner.events);
 */
export interface ChildTape { path: string[]; tape: Tape }

/**
 * A recorded tape: lines of JSON. docs/tape.md describes them.
 *
 * @example
 * const tape = Tape.parse(readFileSync("weather.tape", "utf8"));
 * const other = await Tape.read((await fetch("/weather.tape")).body!);
 */
export class Tape {
  /** Reads a tape. A last line that is cut, as a crash leaves it, is left out. Throws an AgentError if it is no tape, or one of a later version. */
  static parse(text: string | Iterable<string>): Tape;
  /** Reads a tape from a stream of bytes or of text, such as the body of a response. */
  static read(stream: ReadableStream<Uint8Array | string>): Promise<Tape>;
  /** @deprecated Use {@link Tape.parse}. */
  constructor(mark: symbol, lines: readonly string[]);
  readonly header: TapeHeader;
  /** The number of lines. */
  readonly length: number;
  /** The number of events, if the tape was stopped; otherwise found by its first replay. */
  readonly events: number;
  /** Whether the recording was stopped in order. One that was cut replays up to its end. */
  readonly complete: boolean;
  /** The tapes of the agents inside calls (sub-agents), at any depth, in the order in which they ended. */
  readonly children: ChildTape[];
  /**
   * The tape of the agent inside a call, by the ids of the calls that lead to it: it is replayed, forked and served like any other.
   * The first one, if a later call has the same id. Throws if there is none, and says which there are.
   *
   * @example
   * const inner = tape.child(["call_1"]);
   * console.log((await replay(inner).result).text);
   */
  child(path: readonly string[]): Tape;
  /** The whole text, which {@link Tape.parse} reads. */
  toText(): string;
}

/**
 * A moment of a tape: what there is once `n` events have been emitted.
 *
 * @example
 * const { phase, messages, pendingApprovals } = replay(tape).seek(12);
 */
export interface Frame {
  /** The number of events. */
  n: number;
  /** The time, in milliseconds since 1970. */
  at: number;
  /** The history. */
  messages: AgentMessage[];
  /** What the run does: `idle`, `choosing`, `preparing`, `compacting`, `questioned`, `inferring`, `dispatching`, `polling`, `closing` or `ended`. */
  phase: string;
  /** The calls that wait for a decision, as `agent.pendingApprovals` has them. */
  pendingApprovals: ToolQuestion[];
  /** The open questions of all kinds, in the order in which they were asked, as `agent.pendingQuestions` has them. */
  pendingQuestions: Question[];
  /** What the run has used so far. */
  usage: Usage;
  /** The request that was sent last, without its key. */
  request?: ModelRequest;
  /** What `Agent.restore` takes. */
  checkpoint: Checkpoint;
}

/**
 * Something on a tape, in the order of the run. Lanes of a timeline are made of these; `spansOf` of `turnwheel/otel` takes them too.
 *
 * @example
 * const started = replay(tape).entries().flatMap((entry) => (entry.kind === "start" ? [entry.name] : [])); // "t0/model", "t0/tool/0-weather", …
 */
export type TapeEntry = {
  /** The number of events before it. */
  n: number;
  /** The time, in milliseconds since 1970. */
  at: number;
  /** The number of messages in the history. */
  messages: number;
} & (
  /** A run begins, or goes on from a checkpoint. */
  | { kind: "run"; run: { runId: string; sessionId: string; metadata?: { [name: string]: JsonValue } } }
  | { kind: "event"; event: AgentEvent }
  /** Something begins that the run waits for, such as `t0/model`, `t0/tool/0-search`, `t0/approve/0`, `t0/sleep/1`. `effect` says what. */
  | { kind: "start"; name: string; effect: { [member: string]: JsonValue } }
  /** It has answered; `last` unless more can follow. */
  | { kind: "reply"; name: string; last: boolean; reply: JsonValue }
  /** A tool that runs gets the answer to its question; `number` counts the questions of the call from 1. */
  | { kind: "answer"; name: string; number: number; answer: JsonValue }
  /** It is not wanted any more. */
  | { kind: "cancel"; name: string }
  /** Something from outside: `begin`, `continue`, `resume`, `steer`, `command`, `abort`. */
  | { kind: "input"; input: { [member: string]: JsonValue } }
  /** A rule of the host was asked, such as a policy. */
  | { kind: "rule"; rule: string; place: number; asked: JsonValue; answer: JsonValue }
  | { kind: "note"; text: string }
);

/**
 * Lives a tape again: no model, no tools, no network, no waiting. Throws a TapeDivergence, from the iterator, `seek` and `result`,
 * if this version of the engine behaves differently. Load the module first: `await ready()`; the iterator and `result` do it
 * themselves.
 *
 * @example
 * for await (const event of replay(tape)) console.log(event.type);
 * const { text } = await replay(tape, { tools: { weather } }).result; // `weather` really runs, and is compared with the tape
 */
export function replay(tape: Tape, options?: ReplayOptions): Replay;

/**
 * How a tape is lived again.
 *
 * @example
 * const options: ReplayOptions = { model, onDivergence: ({ message }) => (console.warn(message), true) };
 */
export interface ReplayOptions {
  /** Tools that really run, by their names, where the tape has their results; a different result is a divergence. */
  tools?: { [name: string]: ToolDefinition };
  /** A model that is really asked, where the tape has its answers. */
  model?: Model;
  /** Decodes the bytes that a tape of `record(agent, { wire: true })` has, and compares with what was decoded then. Default false. */
  wire?: boolean;
  /** How much faster than it was; by default everything at once. */
  speed?: number;
  /** Called for every event; `n` counts from 1. */
  onEvent?: (event: AgentEvent, n: number) => void;
  /** Called when something live differs from the tape. Returning `true` goes on with the tape's value; otherwise the replay ends. */
  onDivergence?: (divergence: TapeDivergence) => boolean | void;
}

/**
 * A tape that is lived again.
 *
 * @example
 * const again = replay(tape);
 * for (let n = 0; n <= tape.events; n++) console.log(again.seek(n).phase);
 */
export interface Replay extends AsyncIterable<AgentEvent> {
  /** The moment after `n` events, from 0 to `tape.events`. */
  seek(n: number): Frame;
  /** Everything that is on the tape or follows from it, in order. */
  entries(): TapeEntry[];
  /** The result of the last run on the tape; of a run that is cut, what there is. */
  readonly result: Promise<AgentResult>;
}

/**
 * Says where `turnwheel-server.wasm` comes from, for hosts without files and `fetch`, such as Workers: bytes, or a compiled module.
 * It is the engine of agents that are recorded, of those with `host.step`, and of tapes that are played.
 *
 * @example
 * use(() => module); // import module from "turnwheel/turnwheel-server.wasm"
 */
export function use(source: () => ArrayBuffer | ArrayBufferView | WebAssembly.Module | Promise<ArrayBuffer | ArrayBufferView | WebAssembly.Module>): void;

/**
 * Loads the module of this entry. `record` and the asynchronous parts of a replay do so themselves.
 *
 * @example
 * await ready();
 * const { messages } = replay(tape).seek(3);
 */
export function ready(): Promise<void>;

/**
 * The engine, or something live, does not do what the tape says. `code` is `tape_divergence`.
 *
 * @example
 * await replay(tape, { tools: { weather } }).result.catch((error) => {
 *   if (error instanceof TapeDivergence) console.log(error.input, error.expected, error.got);
 * });
 */
export class TapeDivergence extends Error {
  readonly code: "tape_divergence";
  /** The input, counted from 0. */
  readonly input: number;
  /** What the tape says. */
  readonly expected: JsonValue;
  /** What came. */
  readonly got: JsonValue;
}

/**
 * An agent that has lived the events up to `at`, and goes on for real with these options: `continue()` it.
 *
 * @example
 * const other = await fork(tape, { at: 12, model: anthropic("claude-sonnet-4-5", { apiKey }), tools });
 * console.log((await other.continue()).text);
 */
export function fork(tape: Tape, options: { at: number } & AgentOptions): Promise<Agent>;

/**
 * A model and tools that answer from a tape, for tests of your own code. With `record: "missing"` what the tape does not have is
 * asked for real, and added to it; then there need not be a tape yet.
 *
 * @example
 * const { model, tools } = cassette(Tape.parse(readFileSync("weather.tape", "utf8")));
 * const agent = new Agent({ model, tools: tools() });
 *
 * @example
 * const served = cassette(tape, { record: "missing", match: "request", model: openai("gpt-5-mini", { apiKey }), tools: [weather] });
 * await new Agent({ model: served.model, tools: served.tools() }).prompt("Rain in Oslo?").orThrow();
 * if (served.added > 0) writeFileSync("weather.tape", served.toText());
 */
export function cassette(tape: Tape, options?: CassetteOptions): Cassette;
export function cassette(tape: Tape | undefined, options: CassetteOptions & { record: "missing"; model: Model }): Cassette;

/**
 * How a cassette finds its answers.
 *
 * @example
 * const options: CassetteOptions = { match: "request" };
 */
export interface CassetteOptions {
  /** `"order"`, the default: the first call gets the first answer. `"request"`: a call gets the answer to the same request; if there is none, the error says what differs. */
  match?: "order" | "request";
  /** `"never"`, the default: what the tape does not have is an error. `"missing"`: it is asked of `model` and `tools`, and added. */
  record?: "never" | "missing";
  /** The real model, for `record: "missing"`. */
  model?: Model;
  /** The real tools, for `record: "missing"`. */
  tools?: readonly ToolDefinition[];
  /** Sees every text that is added, and returns what is written: as in {@link RecordOptions}. */
  redact?: (where: string, text: string) => string;
}

/**
 * What a cassette serves.
 *
 * @example
 * const served: Cassette = cassette(tape);
 * assert.deepEqual(served.unused, []); // at the end of the test
 */
export interface Cassette {
  /** Answers with what the tape has. */
  readonly model: Model;
  /** The tools of these names, or all that the tape has. */
  tools(names?: readonly string[]): ToolDefinition[];
  /** What was on the tape and nobody asked for: the names of the effects. */
  readonly unused: readonly string[];
  /** How many answers of the real model and of real tools were added. A failed answer of a model is not. */
  readonly added: number;
  /** The tape, with what was added. */
  toTape(): Tape;
  /** The text of it. */
  toText(): string;
}
