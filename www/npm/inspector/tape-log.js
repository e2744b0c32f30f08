// @ts-check
// A tape as something to look at: it is lived again, and what happened is put into a log.

import { misuse } from "../shared.js";
import { InspectorLog } from "./model/log.js";
import { messageText } from "./model/words.js";

/** @import { AgentEvent, AgentMessage } from "../index.js" */
/** @import { InspectorFrame } from "../inspector.js" */
/** @import { Opened } from "./sources.js" */
/** @import { Request } from "./model/requests.js" */
/**
 * What is used of turnwheel/tape.
 * @typedef {{ n: number, at: number, messages: number } & ({ kind: "event", event: AgentEvent } | { kind: "note", text: string } | { kind: "input", input: { in?: string, letters?: { message?: AgentMessage }[] } }
 *   | { kind: "start", name: string, effect: { request?: Request } } | { kind: "reply", reply: any } | { kind: "run" | "cancel" | "rule" | "answer" })} Entry
 * @typedef {{ toText(): string, header: object }} TapeLike
 * @typedef {{ seek(n: number): { messages: AgentMessage[], checkpoint: any, usage: any }, entries(): Entry[] }} ReplayLike
 * @typedef {{ replay(tape: TapeLike): ReplayLike, ready(): Promise<void>, Tape: { parse(text: string): TapeLike } }} TapeModule
 */

/** @type {(() => Promise<TapeModule>) | undefined} */
let load;

/** Says how turnwheel/tape is loaded, once a tape is to be shown. @param {() => Promise<TapeModule>} loader */
export function useTapes(loader) {
  load = loader;
}

/** @returns {Promise<TapeModule>} */
async function tapes() {
  if (!load) throw misuse("this inspector cannot read tapes: turnwheel/tape is not there");
  const module = await load();
  await module.ready();
  return module;
}

/** Reads the text of a tape. @param {string} text @returns {Promise<TapeLike>} */
export async function parseTape(text) {
  return (await tapes()).Tape.parse(text);
}

/** How many entries are taken in between two breaths of the page. */
const SLICE = 500;
/** A request of the outermost agent; those inside calls have the names of the calls before them. */
const REQUEST = /^t\d+\/model/;

/** The log of a tape. Only its checkpoints are asked of the replay: they are what nobody can tell from the events. */
class TapeLog extends InspectorLog {
  /** @param {ReplayLike} replay */
  constructor(replay) {
    super({ limit: Infinity });
    this.replay = replay;
    const { messages, usage } = replay.seek(0);
    this.history.note(0, messages, true);
    this.state.usageBefore = usage;
  }

  /** @override @param {number} n @returns {InspectorFrame} */
  frame(n) {
    const { replay } = this;
    const frame = super.frame(n);
    return Object.defineProperty(frame, "checkpoint", { get: () => replay.seek(frame.n).checkpoint, enumerable: true });
  }
}

/**
 * The histories of a tape. While a history grows, all of its states are beginnings of its last one: it is asked for once.
 * @param {readonly Entry[]} entries @param {ReplayLike} replay
 */
function historiesOf(entries, replay) {
  /** The last event of each, with the number of its messages. @type {{ n: number, count: number }[]} */
  const ends = [];
  let isRewritten = true;
  for (const entry of entries) {
    if (entry.kind === "reply" && entry.reply?.kind === "prepared" && entry.reply.as !== "unchanged") isRewritten = true;
    if (entry.kind !== "event") continue;
    const last = ends.at(-1);
    const end = { n: entry.n, count: entry.messages };
    if (!last || isRewritten || entry.event.type === "context_compacted" || end.count < last.count) ends.push(end);
    else Object.assign(last, end);
    isRewritten = false;
  }
  return ends.map(({ n }) => ({ n, messages: replay.seek(n).messages }));
}

/** @param {TapeLike} tape @returns {Promise<Opened>} */
export async function openTape(tape) {
  const { replay } = await tapes();
  const replayed = replay(tape);
  const log = new TapeLog(replayed);
  const entries = replayed.entries();
  const histories = historiesOf(entries, replayed);
  /** @type {AgentMessage[]} */
  let messages = [];
  for (let index = 0; index < entries.length; index++) {
    const entry = /** @type {Entry} */ (entries[index]);
    if (entry.kind === "event") {
      if (entry.n > (histories[0]?.n ?? Infinity)) histories.shift();
      const whole = histories[0]?.messages ?? [];
      if (messages.length !== entry.messages || messages[0] !== whole[0]) messages = whole.slice(0, entry.messages);
      log.push(entry.event, { at: entry.at, messages });
    } else take(log, entry);
    if (index % SLICE === SLICE - 1) await new Promise((resolve) => setTimeout(resolve));
  }
  return { log, isLive: false, toText: () => tape.toText(), close: () => {} };
}

/** @param {TapeLog} log @param {Entry} entry no event */
function take(log, entry) {
  const { at } = entry;
  if (entry.kind === "note") log.mark("note", entry.text, at);
  else if (entry.kind === "start" && entry.effect.request && REQUEST.test(entry.name)) log.requests.push(log.end, entry.effect.request);
  else if (entry.kind === "input") {
    for (const { message } of entry.input.letters ?? []) log.mark("steer", message ? messageText(message) : "", at);
    if (entry.input.in === "abort") log.mark("stop", "stopped", at);
  }
}
