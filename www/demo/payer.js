// @ts-check
// The process of the agent: a Worker, which the page ends as the operating system ends a program, without a word. All that it
// knows is in its journal; the bank and the person are on the other side of `postMessage`.

// @ts-ignore: built, not checked in
import * as built from "./pkg/entry/web.js";
// @ts-ignore: built, not checked in
import * as builtTape from "./pkg/tape.js";
import { OFFLINE, clerk } from "./clerk.js";
import { POLICIES, tools } from "./invoices.js";
import { Journal } from "./journal.js";
import { isOnDevice, modelOf, rowOf } from "./providers.js";

/** @typedef {import("../npm/index.js").Agent} Agent */
/** @typedef {import("./process.js").Start} Start */

const { Agent, tool, custom } = /** @type {typeof import("../npm/index.js")} */ (built);
const tape = /** @type {typeof import("../npm/tape.js")} */ (builtTape);

/** The memories of the engines of this process, for the button that writes over them. @type {Set<WebAssembly.Memory>} */
const memories = new Set();
const Instance = WebAssembly.Instance;
WebAssembly.Instance = /** @type {any} */ (class extends Instance {
  /** @param {WebAssembly.Module} module @param {WebAssembly.Imports} imports */
  constructor(module, imports) {
    super(module, imports);
    if (this.exports["memory"]) memories.add(/** @type {WebAssembly.Memory} */ (this.exports["memory"]));
  }
});

const LOCK = "turnwheel-demo-agent";
const post = (/** @type {object} */ message) => globalThis.postMessage(message);

/** What this process was started with. @type {Start} */
let start;
let isOffline = false;
let isArmed = false;
/** @type {Agent} */
let agent;
/** @type {import("../npm/tape.js").Recorder} */
let recorder;
/** What the page has been asked and has not answered. @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
const asked = new Map();
let calls = 0;
/** The prompts that are still to be played. @type {string[]} */
const waiting = [];
let wake = () => {};

/** Asks the page, which answers with the same number. @param {string} kind @param {object} given @returns {Promise<any>} */
const ask = (kind, given) => new Promise((resolve, reject) => {
  asked.set(++calls, { resolve, reject });
  post({ kind, n: calls, ...given });
});

const now = () => Date.now() + start.offset;

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
const pause = (ms, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, ms * start.pace);
  signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
});

const bank = {
  pay: (/** @type {object} */ order) => ask("pay", { order }),
  all: () => ask("payments", {}),
};

/** A model that runs in the page, which a Worker cannot reach by itself. @param {import("../npm/index.js").ModelRequest} request */
async function* answeredByPage(request) {
  const n = ++calls;
  /** @type {any[]} */
  const come = [];
  let more = () => {};
  asked.set(n, { resolve: (event) => (come.push(event), more()), reject: (error) => (come.push({ type: "error", error: { code: "unknown", message: error.message } }), more()) });
  post({ kind: "model", n, request });
  for (let isOver = false; !isOver; ) {
    if (come.length === 0) await new Promise((resolve) => (more = () => resolve(undefined)));
    const event = come.shift();
    if (event) yield event;
    isOver = event?.type === "done" || event?.type === "error";
  }
  asked.delete(n);
}

/** @param {import("./providers.js").Choice} choice */
function modelFor(choice) {
  if (isOnDevice(rowOf(choice.row))) return custom(choice.model, answeredByPage);
  const script = clerk({ pause, isOffline: () => isOffline, id: () => Math.random().toString(36).slice(2, 8) });
  const send = (/** @type {any} */ input, /** @type {any} */ init) => (isOffline ? Promise.reject(new TypeError(OFFLINE)) : fetch(input, init));
  return modelOf(/** @type {any} */ (built), choice, { script, fetch: send });
}

/** @returns {import("../npm/index.js").AgentOptions} */
function options() {
  const takeInjection = () => isArmed && !(isArmed = false);
  return {
    model: modelFor(start.choice),
    systemPrompt: `You pay the invoices in the inbox, each exactly once. (Version ${start.version} of this page.)`,
    tools: tools(tool, { bank, now, takeInjection }),
    policies: POLICIES,
    includeRequests: true,
    gate: "prefix",
    // Replayed too, so it goes by the error alone: offline is tried again for as long as it takes, anything else three times.
    retry: (error, attempt) => (error.message.includes(OFFLINE) ? 600 * Math.min(attempt, 5) : error.retryable && attempt < 3 && 1000 * attempt),
  };
}

/** Plays the prompts of the run, from its journal as far as that goes. */
async function play() {
  let place = 0;
  const journal = await Journal.open(start.run);
  agent = new Agent({ ...options(), host: { now, step: (name, work) => journal.step(`${place}/${name}`, work) } });
  recorder = await tape.record(agent);
  report(agent);
  waiting.push(...start.prompts);
  for (;; place++) {
    while (waiting.length === 0) await new Promise((resolve) => (wake = () => resolve(undefined)));
    await follow(agent.prompt(String(waiting.shift())), place + 1);
  }
}

/** Replays a part of a tape and goes on from there, without a journal. @param {{ text: string, at: number }} from */
async function playFork({ text, at }) {
  await tape.ready();
  agent = await tape.fork(tape.Tape.parse(text), { at, ...options() });
  recorder = await tape.record(agent);
  report(agent);
  if (!agent.canContinue) return post({ kind: "nothing" });
  post({ kind: "questions", questions: agent.pendingQuestions });
  await follow(agent.continue(), 1);
}

/** @param {Agent} agent */
function report(agent) {
  agent.subscribe((event, info) => post({ kind: "event", event, at: now(), replaying: info?.replaying === true }));
}

/** @param {import("../npm/index.js").AgentRun} run @param {number} prompts how many are done when it has ended */
async function follow(run, prompts) {
  const { stopReason, error } = await run.result;
  if (error?.phase === "engine") {
    post({ kind: "crashed", message: error.message });
    // This process is not to be used any more: its page ends it.
    return new Promise(() => {});
  }
  post({ kind: "settled", prompts, stopReason, ...(error && { error: JSON.parse(JSON.stringify(error.info)), message: error.message }) });
}

/** Writes over the memory of the engine. The next call into it traps. */
function crash() {
  for (const memory of memories) new Uint8Array(memory.buffer).fill(0xff);
  try {
    agent?.steer("Is anybody there?").catch(() => {});
  } catch (error) {
    post({ kind: "crashed", message: String(error) });
  }
}

const failed = (/** @type {Error} */ error) => post({ kind: "failed", message: error.message });

/** Waits until this process is the one that has the agent; then the page says what there is to do. */
async function claim() {
  const hold = (/** @type {boolean} */ isWanted) => {
    post({ kind: isWanted ? "owner" : "elsewhere" });
    return isWanted ? new Promise(() => {}) : undefined;
  };
  if (!navigator.locks) return post({ kind: "owner" });
  await navigator.locks.request(LOCK, { ifAvailable: true }, (lock) => hold(lock !== null));
  await navigator.locks.request(LOCK, () => hold(true));
}

/** @type {{ [kind: string]: (message: any) => void }} */
const HANDLERS = {
  // Of two tabs one has the agent. The lock is free again when this process is gone, however it went.
  claim: () => void claim().catch(failed),
  begin: (message) => {
    start = message;
    ({ isOffline, isArmed } = message);
    void (start.fork ? playFork(start.fork) : play()).catch(failed);
  },
  decide: ({ id, answer, times }) => {
    const taken = Array.from({ length: times }, () => agent?.resolve(id, answer) ?? false);
    post({ kind: "decided", id, answer, taken });
  },
  // The page has it written down: a process that has not begun reads it with the others.
  prompt: ({ text }) => void (start && (waiting.push(text), wake())),
  offline: (message) => void ({ isOffline } = message),
  arm: () => void (isArmed = true),
  tape: ({ n }) => post({ kind: "tape", n, text: recorder?.toText() ?? "" }),
  choice: ({ choice }) => {
    if (!start) return;
    start.choice = choice;
    if (agent) agent.model = modelFor(choice);
  },
  crash,
  answer: ({ n, value, error }) => {
    const { resolve, reject } = asked.get(n) ?? {};
    if (error === undefined) resolve?.(value);
    else reject?.(new Error(error));
    if (!value?.type) asked.delete(n);
  },
};
addEventListener("message", ({ data }) => HANDLERS[data.kind]?.(data));
