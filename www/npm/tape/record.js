// @ts-check
// Records an agent: it moves into an instance of the module that can, and what is written there is taken from it now and then.

import { coreOf, driverOf } from "../core.js";
import { checkNames, complain, fromEngine, kindOf, misuse, textOf } from "../shared.js";
import { enterServer, isReady, ServerScope } from "../boundary/server.js";
import { calls, ready } from "./module.js";
import { Tape } from "./text.js";

/** @import { Agent, AgentRun } from "../index.js" */
/** @import { RecordOptions } from "../tape.js" */
/** @import { Calls } from "../boundary/server-glue.js" */
/** @import { Engine } from "../boundary/engine.js" */
/** @import { Attached } from "../boundary/server.js" */

/** Lines are taken out of the module when they are longer than this together, in bytes. */
const LONG = 1 << 18;

/** The longest content of an image or a file, unless the host says otherwise. */
const MAX_BYTES = 1 << 20;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Loads the module, and writes down what goes into an agent from then on.
 * @param {Agent<any>} agent @param {RecordOptions} [options]
 */
export async function record(agent, options) {
  if (!isReady()) await ready();
  return recordNow(agent, options);
}

/**
 * The same at once, for an agent or for a single run that has not begun. The module must be there already.
 * @param {Agent<any> | AgentRun<any>} given @param {RecordOptions} [options]
 */
export function recordNow(given, options = {}) {
  checkNames("unknown option of record", options, ["keep", "maxBytes", "redact", "wire", "children"]);
  const { keep = "all", maxBytes = MAX_BYTES, redact, wire = false, children = true } = options;
  if (keep !== "all" && keep !== "run" && !(typeof keep === "number" && keep >= 0)) throw misuse(`\`keep\` must be "all", "run" or a number of characters, got ${textOf(keep)}`);
  if (typeof maxBytes !== "number" || !(maxBytes >= 0)) throw misuse(`\`maxBytes\` must be a number from 0, got ${kindOf(maxBytes)}`);
  if (redact !== undefined && typeof redact !== "function") throw misuse(`\`redact\` must be a function, got ${kindOf(redact)}`);
  if (typeof wire !== "boolean") throw misuse(`\`wire\` must be true or false, got ${kindOf(wire)}`);
  if (typeof children !== "boolean") throw misuse(`\`children\` must be true or false, got ${kindOf(children)}`);
  if (wire && redact) throw misuse("`wire` and `redact` exclude each other: a text cannot be found in bytes that are cut anywhere; record without `wire`, or redact the tape yourself");
  if (!isReady()) throw misuse("the module of turnwheel/tape is not loaded yet: `await ready()` first");
  return new Recorder(coreBehind(given), { keep, maxBytes, redact, wire, children });
}

/** @param {any} given */
function coreBehind(given) {
  if (typeof given?.prompt === "function") return coreOf(given);
  if (typeof given?.then === "function" && given.result) return driverOf(given).core;
  throw misuse(`only an agent of this copy of turnwheel, or a run of it, can be recorded; got ${kindOf(given)}`);
}

/** Writes a tape while its agent works. */
class Recorder {
  /** @type {ReturnType<typeof coreOf>} */ #core;
  /** @type {Required<Pick<RecordOptions, "keep" | "maxBytes" | "wire" | "children">> & Pick<RecordOptions, "redact">} */ #options;
  /** The lines so far, and how many were left out at the beginning. @type {string[]} */ #lines = [];
  /** What was taken and nobody has read yet. @type {Uint8Array[]} */ #unread = [];
  #dropped = 0;
  #length = 0;
  /** Where the agent is: the calls of the instance, and its number there. @type {Attached | undefined} */ #at;
  /** The events and starts so far, when the agent is nowhere. */ #counts = [0, 0];
  #stopped = false;
  /** Called when there are more lines. @type {Set<() => void>} */ #waiting = new Set();
  /** @type {ServerScope} */ #scope;
  /** The recorders of agents inside calls that have not ended. @type {Set<Recorder>} */ #inner = new Set();
  /** Called at the end of a run. */
  #ended = () => {};

  /** @param {ReturnType<typeof coreOf>} core @param {any} options */
  constructor(core, options) {
    const { registration, runs, receipts } = core;
    if (runs.unread || (runs.current && runs.current.engineRun.handle !== 0)) throw misuse("a run is active; record an agent before its first run");
    if (core.disposed) throw misuse("the agent was disposed of");
    if (registration.entered) throw misuse("the agent is recorded already");
    this.#core = core;
    this.#options = options;
    if (!runs.current) registration.release();
    if (registration.handle !== 0) throw misuse(`${receipts.open.size} messages wait for the next run; record the agent before they are posted`);
    // One that begins inside a call is with its caller already.
    this.#scope = enterServer(registration, "a recording", "record the agent before that, or record a new one, which `Agent.restore(agent.checkpoint())` makes");
    registration.entered = (number) => this.#attach(number);
    registration.ended = () => this.#over();
    if (options.children) registration.calls = (inner, path) => this.#include(inner, path);
    this.#push(calls().tape_header(core.host.now()));
  }

  /** The agent has entered an instance. @param {number} number */
  #attach(number) {
    if (this.#stopped) return;
    this.#leave();
    const { maxBytes, redact, keep, wire } = this.#options;
    const glue = /** @type {Calls} */ (/** @type {unknown} */ (this.#core.registration.engine?.glue));
    const redactor = redact && { redact: (/** @type {string} */ place, /** @type {string} */ text) => redacted(redact, place, text) };
    glue.agent_record(number, keep !== "all", maxBytes, redactor, wire, JSON.stringify(this.#counts), this.#core.host.now());
    // Its first line is here already.
    glue.record_take(number);
    const scope = /** @type {ServerScope} */ (/** @type {Engine} */ (this.#core.registration.engine).scope);
    if (scope !== this.#scope) {
      // It runs inside a call of another agent, and lives where that one does.
      this.#scope.readers -= this.#waiting.size;
      scope.readers += this.#waiting.size;
      this.#scope = scope;
    }
    this.#at = { glue, number, recorder: new WeakRef(this) };
    this.#scope.attached.add(this.#at);
  }

  /** Takes what is left in an instance that the agent has left. */
  #leave() {
    if (!this.#at) return;
    this.#pull(true);
    const at = this.#at;
    this.#at = undefined;
    try {
      this.#counts = JSON.parse(at.glue.record_counts(at.number));
      this.#scope.leave(at);
    } catch (error) {
      complain("turnwheel: the tape may have a gap, because its engine broke", error);
    }
  }

  /** An agent begins inside a call: what it does by itself goes onto a tape of its own, whose lines are on this one. @param {ReturnType<typeof coreOf>} core @param {string[]} path */
  #include(core, path) {
    if (this.#stopped || core.registration.entered) return;
    try {
      const inner = new Recorder(core, { ...this.#options, keep: "all" });
      this.#inner.add(inner);
      inner.#ended = () => {
        if (!this.#inner.delete(inner)) return;
        inner.stop();
        const head = `{"child":${JSON.stringify(path)},"line":`;
        // Those of agents further inside have their own path.
        this.#push(inner.#lines.map((line) => (line.startsWith('{"child":') ? line : `${head}${line}}`)).join("\n"));
      };
    } catch (error) {
      complain("turnwheel: an agent inside a call has no tape of its own", error);
    }
  }

  /** A run has ended. */
  #over() {
    queueMicrotask(() => {
      this.#pull();
      this.#ended();
    });
  }

  /** Something may have been written. */
  look() {
    if (!this.#at) return;
    if (this.#waiting.size > 0 || this.#at.glue.record_size(this.#at.number) > LONG) this.#pull();
  }

  /** Takes the lines that the module has written. @param {boolean} [isLast] */
  #pull(isLast) {
    if (!this.#at || this.#stopped) return;
    try {
      const { glue, number } = this.#at;
      const bytes = glue.record_take(number);
      if (bytes.length > 0) this.#unread.push(bytes);
    } catch (error) {
      if (!isLast) throw fromEngine(error);
    }
    // Who keeps a part must see where runs begin.
    if (this.#waiting.size > 0 || this.#options.keep !== "all") this.#read();
  }

  /** Reads what was taken: not before somebody wants it, which is nobody while the agent works. */
  #read() {
    const taken = this.#unread;
    this.#unread = [];
    // A call takes whole lines.
    for (const bytes of taken) this.#push(decoder.decode(bytes));
  }

  /** @param {string} text */
  #push(text) {
    this.#read();
    if (text === "") return;
    for (const line of text.split("\n")) {
      if (line === "") continue;
      this.#lines.push(line);
      this.#length += line.length + 1;
    }
    this.#keepWithin();
    for (const wake of [...this.#waiting]) wake();
  }

  /** Leaves out runs that are not kept any more. */
  #keepWithin() {
    const { keep } = this.#options;
    if (keep === "all" || (typeof keep === "number" && this.#length <= keep)) return;
    // Where runs begin: with the rules, and after them the run.
    const starts = [];
    for (let i = 1; i < this.#lines.length; i++) if (this.#lines[i].startsWith('{"run":')) starts.push(this.#lines[i - 1].startsWith('{"rules":') ? i - 1 : i);
    let first = starts.at(-1) ?? 1;
    if (typeof keep === "number") {
      let length = this.#length;
      first = 1;
      for (const [n, at] of starts.entries()) {
        if (length <= keep || n === starts.length - 1) break;
        const next = starts[n + 1];
        for (let i = n === 0 ? 1 : at; i < next; i++) length -= this.#lines[i].length + 1;
        first = next;
      }
    }
    if (first <= 1 || !starts.includes(first)) return;
    const to = this.#lines.slice(first).map(toOf).find((to) => to !== undefined);
    const header = JSON.stringify({ ...JSON.parse(this.#lines[0]), from: to ?? [0, 0] });
    this.#dropped += first - 1;
    this.#lines = [header, ...this.#lines.slice(first)];
    this.#length = this.#lines.reduce((sum, line) => sum + line.length + 1, 0);
  }

  get bytes() {
    this.#pull();
    this.#read();
    return this.#length;
  }

  /** @param {string} text */
  note(text) {
    if (typeof text !== "string") throw misuse(`a note is a text, got ${kindOf(text)}`);
    if (this.#stopped) return;
    if (this.#at) this.#at.glue.record_note(this.#at.number, text);
    else this.#push(JSON.stringify({ at: this.#core.host.now(), to: this.#counts, note: this.#options.redact ? redacted(this.#options.redact, "note", text) : text }));
    if (this.#waiting.size > 0) this.#pull();
  }

  stop() {
    if (this.#stopped) return;
    for (const inner of this.#inner) inner.#ended();
    this.#pull();
    this.#push(calls().tape_seal(this.toText()));
    this.#stopped = true;
    const { registration } = this.#core;
    registration.entered = registration.ended = registration.calls = undefined;
    if (this.#at) this.#scope.leave(this.#at);
    this.#at = undefined;
    for (const wake of [...this.#waiting]) wake();
  }

  toTape() {
    return Tape.parse(this.toText());
  }

  toText() {
    this.#pull();
    this.#read();
    return `${this.#lines.join("\n")}\n`;
  }

  /** The lines, as they come. */
  async *[Symbol.asyncIterator]() {
    let next = 0;
    /** @type {() => void} */
    let wake = () => {};
    const hear = () => wake();
    this.#waiting.add(hear);
    this.#scope.readers++;
    try {
      for (;;) {
        this.#pull();
        this.#read();
        const more = new Promise((resolve) => (wake = () => resolve(undefined)));
        while (next - this.#dropped < this.#lines.length) yield this.#lines[Math.max(next++ - this.#dropped, 0)];
        if (this.#stopped) return;
        await more;
      }
    } finally {
      this.#waiting.delete(hear);
      this.#scope.readers--;
    }
  }
}

/** What may be written of a text. A function that throws must not let it through. @param {(where: string, text: string) => string} redact @param {string} place @param {string} text */
function redacted(redact, place, text) {
  try {
    return String(redact(place, text));
  } catch (error) {
    complain("turnwheel: redact threw, so the text is left out of the tape", error);
    return "[redact threw]";
  }
}

/** The events and starts before a line. @param {string} line @returns {[number, number] | undefined} */
function toOf(line) {
  return JSON.parse(line).to;
}
