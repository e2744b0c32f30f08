// @ts-check
// Finds a text in what happened. Words that arrived in pieces are found as one text; the place of a hit is the event that
// completed it. It works in small steps, between which a page can draw.

import { messageText, summary, textOf } from "./words.js";

/** @import { AgentEvent } from "../../index.js" */
/** @import { InspectorLog } from "./log.js" */
/** @typedef {{ n: number, text: string, at: number, length: number }} Hit the text around it, and where in that it is */

/** How much is shown around a hit. */
const AROUND = 48;
/** More are not listed. */
export const MOST_HITS = 1000;
/** Events in one step. */
const STEP = 500;

/** A text that arrived in pieces. */
class Pieces {
  constructor() {
    this.text = "";
    /** Where each piece ends, and with which event it came. @type {{ end: number, n: number }[]} */
    this.ends = [];
  }

  /** @param {string} piece @param {number} n */
  push(piece, n) {
    this.text += piece;
    this.ends.push({ end: this.text.length, n });
  }
}

class Search {
  /** @param {string} wanted in lower case */
  constructor(wanted) {
    this.wanted = wanted;
    /** @type {Hit[]} */
    this.hits = [];
    /** The blocks that arrive, of all agents. @type {Map<string, Pieces>} */
    this.open = new Map();
  }

  /** @param {string} text @param {(end: number) => number} eventAt */
  look(text, eventAt) {
    const { wanted, hits } = this;
    const lower = text.toLowerCase();
    for (let at = lower.indexOf(wanted); at >= 0 && hits.length < MOST_HITS; at = lower.indexOf(wanted, at + wanted.length)) {
      const from = Math.max(0, at - AROUND);
      hits.push({ n: eventAt(at + wanted.length), text: text.slice(from, at + wanted.length + AROUND), at: at - from, length: wanted.length });
    }
  }

  /** @param {AgentEvent} event @param {number} n @param {string} path @returns {void} */
  take(event, n, path) {
    switch (event.type) {
      case "message_update": {
        const key = `${path}\n${event.delta.contentIndex}`;
        const pieces = this.open.get(key) ?? new Pieces();
        this.open.set(key, pieces);
        return pieces.push(event.delta.delta, n);
      }
      case "message_end": {
        const isHeard = this.close(path);
        // The answer of a remote agent may be known only as a whole.
        if (!isHeard) this.look(textOf(event.message), () => n);
        return;
      }
      case "message_reset":
        this.close(path);
        return this.look(event.reason, () => n);
      case "subagent_event":
        return this.take(event.event, n, (event.path ?? [event.callId]).join("\n"));
      case "tool_execution_end":
        return this.look(textOf(event.result), () => n);
      // What they say was said by others.
      case "turn_end": case "agent_start": case "message_start": case "tool_calls_proposed": case "tool_approval_requested":
        return;
      case "agent_end":
        this.close(path);
        return this.look(event.error?.message ?? "", () => n);
      default:
        this.look(summary(event), () => n);
    }
  }

  /** Looks through the blocks that have arrived. @param {string} path */
  close(path) {
    let isHeard = false;
    for (const [key, { text, ends }] of this.open) {
      if (!key.startsWith(`${path}\n`)) continue;
      isHeard = true;
      this.open.delete(key);
      this.look(text, (end) => /** @type {{ n: number }} */ (ends.find((piece) => piece.end >= end)).n);
    }
    return isHeard;
  }
}

/**
 * Yields after every few hundred events; returns the hits in order.
 * @param {InspectorLog} log @param {string} text @returns {Generator<Hit[], Hit[]>}
 */
export function* search(log, text) {
  const wanted = text.trim().toLowerCase();
  const found = new Search(wanted);
  if (wanted === "") return [];
  for (let n = log.first + 1; n <= log.end && found.hits.length < MOST_HITS; n++) {
    found.take(/** @type {AgentEvent} */ (log.event(n)), n, "");
    if (n % STEP === STEP - 1) yield found.hits;
  }
  for (const key of [...found.open.keys()]) found.close(key.slice(0, key.lastIndexOf("\n")));
  for (const { n, message } of log.said) found.look(messageText(message), () => n);
  return found.hits.sort((a, b) => a.n - b.n).slice(0, MOST_HITS);
}
