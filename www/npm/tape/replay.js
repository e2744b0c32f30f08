// @ts-check
// Lives a tape again. The fold is in the module; here are the moments, the events and what is really run beside it.

import { checkNames, kindOf, misuse, resultOf, textOf } from "../shared.js";
import { TapeDivergence, thrownBy } from "./divergence.js";
import { liveModel, liveTool } from "./live.js";
import { calls, forgetPlayer, ready } from "./module.js";
import { noTool, rulesOf } from "./text.js";

/** @import { AgentEvent, AgentResult } from "../index.js" */
/** @import { Frame, ReplayOptions, Tape, TapeEntry } from "../tape.js" */

/** The events that say when they were. */
const TIMED = new Set(["agent_start", "run_resumed", "agent_end", "turn_start", "turn_end", "message_start", "message_end", "tool_execution_start", "tool_execution_end"]);

/** How many things are taken from the module at once. */
const AT_ONCE = 512;

/** Lives a tape again. @param {Tape} tape @param {ReplayOptions} [options] */
export function replay(tape, options = {}) {
  checkNames("unknown option of replay", options, ["tools", "model", "wire", "speed", "onEvent", "onDivergence"]);
  if (!isTape(tape)) throw misuse(`replay needs a tape, got ${kindOf(tape)}; Tape.parse(text) makes one of a text`);
  const { tools, model, speed, wire } = options;
  if (tools !== undefined && (typeof tools !== "object" || Array.isArray(tools))) throw misuse(`\`tools\` of a replay are an object of tools by their names, such as { search }; got ${kindOf(tools)}`);
  for (const [name, tool] of Object.entries(tools ?? {})) if (typeof tool?.execute !== "function") throw misuse(`\`tools.${name}\` must be a tool with \`execute\`, got ${kindOf(tool)}`);
  const known = tools ? rulesOf(tape).tools : [];
  // A test that compares nothing would pass.
  for (const name of Object.keys(tools ?? {})) if (!known.some((tool) => tool.name === name)) throw misuse(noTool(name, known));
  if (model !== undefined && typeof model?.id !== "string") throw misuse(`\`model\` must be a model, such as openai("gpt-5-mini", { apiKey }); got ${kindOf(model)}`);
  if (speed !== undefined && !(typeof speed === "number" && speed > 0)) throw misuse(`\`speed\` must be a number above 0: 2 is twice as fast as it was; got ${textOf(speed)}`);
  if (wire !== undefined && typeof wire !== "boolean") throw misuse(`\`wire\` must be true or false, got ${kindOf(wire)}`);
  for (const name of /** @type {const} */ (["onEvent", "onDivergence"])) if (options[name] !== undefined && typeof options[name] !== "function") throw misuse(`\`${name}\` must be a function, got ${kindOf(options[name])}`);
  return new Replay(tape, options);
}

/** @param {any} tape @returns {tape is Tape} */
export const isTape = (tape) => typeof tape?.toText === "function" && typeof tape.header === "object";

class Replay {
  /** @type {Tape} */ #tape;
  /** @type {ReplayOptions} */ #options;
  /** The tape in the module, for moments. */ #open = 0;
  /** @type {TapeEntry[] | undefined} */ #entries;
  /** @type {Promise<AgentResult> | undefined} */ #result;

  /** @param {Tape} tape @param {ReplayOptions} options */
  constructor(tape, options) {
    this.#tape = tape;
    this.#options = options;
  }

  /** The moment after so many events. @param {number} n @returns {Frame} */
  seek(n) {
    if (!Number.isInteger(n) || n < 0) throw misuse(`a moment is a whole number of events from 0, got ${n}`);
    if (n > this.#tape.events) throw misuse(`the tape has ${this.#tape.events} events, so there is no moment after ${n}`);
    this.#open ||= open(this.#tape);
    const handle = this.#open;
    const frame = JSON.parse(ask((glue) => glue.tape_frame(handle, n)));
    // The messages stand in these again: they are made where somebody looks at them.
    lazily(frame, "request", () => parsed(ask((glue) => glue.tape_frame_request(handle, n))));
    lazily(frame, "checkpoint", () => JSON.parse(ask((glue) => glue.tape_frame_checkpoint(handle, n))));
    return frame;
  }

  /** Everything in order. @returns {TapeEntry[]} */
  entries() {
    return (this.#entries ??= [...entriesOf(this.#tape)]);
  }

  /** The result of the last run. */
  get result() {
    return (this.#result ??= this.#run(() => {}));
  }

  /** @returns {AsyncIterator<AgentEvent>} */
  async *[Symbol.asyncIterator]() {
    await ready();
    const { speed, onEvent, wire } = this.#options;
    if (wire) this.#decode();
    let before;
    for (const entry of entriesOf(this.#tape)) {
      await this.#check(entry);
      if (entry.kind !== "event") continue;
      const wait = speed && before !== undefined ? (entry.at - before) / speed : 0;
      before = entry.at;
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      onEvent?.(entry.event, entry.n);
      yield entry.event;
    }
  }

  /** @param {(event: AgentEvent) => void} each @returns {Promise<AgentResult>} */
  async #run(each) {
    /** @type {AgentEvent | undefined} */
    let last;
    for await (const event of this) {
      each(event);
      last = event;
    }
    if (last?.type === "agent_end") return resultOf(last);
    const { at, messages, usage } = this.seek(this.#tape.events);
    return resultOf({ type: "agent_end", at, runId: last?.runId ?? "", messages, usage, turns: 0, stopReason: "aborted" });
  }

  /** The bytes on the tape are decoded again, and what comes of them is compared with its pieces. */
  #decode() {
    try {
      ask((glue) => glue.tape_decode(this.#tape.toText()));
    } catch (error) {
      if (!(error instanceof TapeDivergence) || this.#options.onDivergence?.(error) !== true) throw error;
    }
  }

  /** What is live runs where the tape has a start, and is compared with the tape's reply. @param {TapeEntry} entry */
  async #check(entry) {
    const { tools, model, onDivergence } = this.#options;
    if (entry.kind === "event" && entry.event.type === "tool_execution_start") this.#names.set(entry.event.callId, entry.event.toolName);
    if (entry.kind === "start" && entry.effect.kind === "tool" && tools) {
      const name = this.#names.get(/** @type {string} */ (entry.effect.callId)) ?? "";
      if (Object.hasOwn(tools, name)) this.#live.set(entry.name, liveTool(tools[name], name, entry));
    }
    if (entry.kind === "start" && entry.effect.kind === "model" && model) this.#live.set(entry.name, liveModel(model, entry));
    if (entry.kind === "answer") this.#live.get(entry.name)?.answer?.(entry);
    if (entry.kind !== "reply") return;
    const live = this.#live.get(entry.name);
    if (!live) return;
    const difference = await live.compare(entry);
    if (!difference) return;
    const divergence = new TapeDivergence({ input: entry.n, ...difference }, `\`${entry.name}\` is not what the tape has: expected ${JSON.stringify(difference.expected)}, got ${JSON.stringify(difference.got)}`);
    if (onDivergence?.(divergence) !== true) throw divergence;
  }

  /** @type {Map<string, import("./live.js").Live>} */ #live = new Map();
  /** The tools of calls. @type {Map<string, string>} */ #names = new Map();
}

/** @param {string} json of a value, or nothing */
const parsed = (json) => (json === "" ? undefined : JSON.parse(json));

/** A member that is made when somebody looks at it. @param {object} object @param {string} name @param {() => unknown} make */
function lazily(object, name, make) {
  /** @type {unknown} */
  let value;
  let isMade = false;
  Object.defineProperty(object, name, { enumerable: true, configurable: true, get: () => (isMade ? value : ((isMade = true), (value = make()))) });
}

/** @param {Tape} tape @returns {number} */
function open(tape) {
  const handle = ask((glue) => glue.tape_open(tape.toText()));
  return handle;
}

/** Everything on a tape and what follows from it. @param {Tape} tape @returns {Generator<TapeEntry>} */
export function* entriesOf(tape) {
  const handle = open(tape);
  try {
    for (;;) {
      const entries = JSON.parse(ask((glue) => glue.tape_advance(handle, AT_ONCE)));
      if (entries.length === 0) return;
      for (const entry of entries) {
        // What begins or ends says when.
        if (entry.kind === "event" && TIMED.has(entry.event.type)) entry.event.at = entry.at;
        yield entry;
      }
    }
  } finally {
    ask((glue) => glue.tape_close(handle));
  }
}

/** @template T @param {(glue: ReturnType<typeof calls>) => T} work @returns {T} */
function ask(work) {
  const glue = calls();
  try {
    return work(glue);
  } catch (error) {
    // A refusal is a text; anything else is the end of the instance.
    if (typeof error !== "string") forgetPlayer();
    throw thrownBy(error);
  }
}
