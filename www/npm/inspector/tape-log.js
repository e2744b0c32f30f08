// @ts-check
// A tape as something to look at: it is lived again, and each of its moments is asked of the replay.

import { misuse } from "../shared.js";
import { InspectorLog } from "./model/log.js";
import { isSame } from "./model/requests.js";
import { messageText } from "./model/words.js";

/** @import { AgentEvent, AgentMessage } from "../index.js" */
/** @import { InspectorFrame } from "../inspector.js" */
/** @import { Opened } from "./sources.js" */
/**
 * What is used of turnwheel/tape.
 * @typedef {{ n: number, at: number } & ({ kind: "event", event: AgentEvent } | { kind: "note", text: string } | { kind: "input", input: { in?: string, messages?: AgentMessage[], letters?: any[] } } | { kind: "start" | "reply" | "cancel" | "rule" })} Entry
 * @typedef {{ toText(): string, header: object }} TapeLike
 * @typedef {{ seek(n: number): { messages: AgentMessage[], request?: any, checkpoint: any, usage: any }, entries(): Entry[] }} ReplayLike
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

/** The log of a tape, whose moments are those of its replay. */
class TapeLog extends InspectorLog {
  /** @param {ReplayLike} replay */
  constructor(replay) {
    super({ limit: Infinity });
    this.replay = replay;
    /** The messages that were shown last, so that one that is the same stays the same object. @type {AgentMessage[]} */
    this.known = [];
  }

  /** Notes what was said to the agent, as its tape has it. @param {AgentMessage} message @param {number} at @param {"said" | "steer"} [kind] */
  say(message, at, kind = "said") {
    this.said.push({ n: this.end, message });
    this.mark(kind, messageText(message), at);
  }

  /** @override @param {number} n @returns {InspectorFrame} */
  frame(n) {
    const folded = super.frame(n);
    // The open questions are those of the events: an engine knows of a question before it tells.
    const { messages, request, usage, checkpoint } = this.replay.seek(folded.n);
    const { known } = this;
    return {
      ...folded, usage, messageCount: messages.length, messages, checkpoint,
      message(index) {
        const message = messages[index];
        if (message && !isSame(known[index], message)) known[index] = message;
        return message && known[index];
      },
      request: request && { n: undefined, ...request },
    };
  }
}

/** How many entries are taken in between two breaths of the page. */
const SLICE = 500;

/** @param {TapeLike} tape @returns {Promise<Opened>} */
export async function openTape(tape) {
  const { replay } = await tapes();
  const replayed = replay(tape);
  const log = new TapeLog(replayed);
  const entries = replayed.entries();
  for (let index = 0; index < entries.length; index++) {
    take(log, /** @type {Entry} */ (entries[index]));
    if (index % SLICE === SLICE - 1) await new Promise((resolve) => setTimeout(resolve));
  }
  return { log, isLive: false, toText: () => tape.toText(), close: () => {} };
}

/** @param {TapeLog} log @param {Entry} entry */
function take(log, entry) {
  const { at } = entry;
  if (entry.kind === "event") log.push(entry.event, { at });
  else if (entry.kind === "note") log.mark("note", entry.text, at);
  else if (entry.kind === "input") {
    const { in: kind, messages = [], letters = [] } = entry.input;
    for (const message of messages) log.say(message, at);
    for (const letter of letters) log.say(letter.message ?? letter, at, "steer");
    if (kind === "abort") log.mark("stop", "stopped", at);
  }
}
