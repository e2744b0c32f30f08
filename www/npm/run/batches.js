// @ts-check
// Where a batch of the engine becomes events: its entries are read one by one, and each has a handler
// (entries.js). A checkpoint that is taken meanwhile must know of all of the batch; then the rest is read at once,
// and what it says to others is kept for later.

import { emptyList } from "../v8.js";
import * as KIND from "../boundary/protocol.js";
import { late } from "../boundary/rest.js";
import { ENTRIES, isInFirst } from "./entries.js";

/** @import { AgentEvent } from "../index.js" */
/** @import { Engine } from "../boundary/engine.js" */
/** @import { Driver } from "./driver.js" */
/** @import { Handler } from "./entries.js" */
/**
 * The batch being delivered: its numbers, its text, and the position in both.
 * @typedef {{ table: number[], text: string, i: number, at: number }} Batch
 */
/**
 * Something to deliver later: an event, or an entry with the strings before it.
 * @typedef {{ event: AgentEvent } | { event?: undefined, entry: [number, number, string], strings: string[] }} Later
 */

export class Batches {
  /** @param {Driver} run */
  constructor(run) {
    this.run = run;
    /** @type {Batch | undefined} */
    this.batch = undefined;
    /** The batch whose next entry waits until all parts of the engine are there. @type {Batch | undefined} */
    this.waiting = undefined;
    /** What is left of the batch, after a checkpoint had to read all of it. @type {Later[] | undefined} */
    this.rest = undefined;
    /** Texts for the next entry that is not itself a text. @type {string[]} */
    this.strings = emptyList();
  }

  /** Delivers what lies in the engine's outbox. @param {Engine} engine */
  deliver(engine) {
    const { waiting } = this;
    this.waiting = undefined;
    const table = waiting ? undefined : engine.read();
    if (waiting || table || !engine.isWhole) {
      this.#deliverBatch(waiting ?? { table: table ?? [engine.kind, engine.number, engine.text.length], text: engine.text, i: 0, at: 0 }, engine);
      this.batch = undefined;
    } else this.#deliverEntry(engine.kind, engine.number, engine.text);
    if (this.rest) this.#deliverRest();
  }

  /** @param {Batch} batch @param {Engine} engine */
  #deliverBatch(batch, engine) {
    const { table, text } = (this.batch = batch);
    while (batch.i < table.length && !this.rest) {
      const { i, at } = batch;
      const kind = /** @type {number} */ (table[i]);
      const number = /** @type {number} */ (table[i + 1]);
      const end = at + /** @type {number} */ (table[i + 2]);
      const piece = text.substring(at, end);
      if (!engine.isWhole && !isInFirst(kind, piece)) {
        this.waiting = batch;
        return;
      }
      batch.at = end;
      batch.i += 3;
      this.#deliverEntry(kind, number, piece);
    }
  }

  /** @param {number} kind @param {number} number @param {string} piece */
  #deliverEntry(kind, number, piece) {
    const { run } = this;
    const event = handlerOf(kind)(run, number, piece);
    if (event) run.outlet.emit(event, run.engineRun.time);
  }

  #deliverRest() {
    for (let later; (later = this.rest?.shift()); ) {
      if (later.event) {
        this.strings = emptyList();
        this.run.outlet.emit(later.event, this.run.engineRun.time);
      } else {
        this.strings = later.strings;
        this.#deliverEntry(...later.entry);
      }
    }
    this.rest = undefined;
  }

  /** Reads the rest of the batch: updates this side's own state, and keeps what others must hear for later. */
  readRest() {
    const { batch, run } = this;
    if (!batch) return;
    const later = (this.rest ??= []);
    const { table, text } = batch;
    for (; batch.i < table.length; batch.i += 3) {
      const [kind, number, length] = /** @type {[number, number, number]} */ (table.slice(batch.i, batch.i + 3));
      const piece = text.substring(batch.at, (batch.at += length));
      const isLater = late.rest.LATER.has(kind);
      // The result of its call follows, and is in the checkpoint.
      if (kind === KIND.CANCEL) later.push(...(run.children?.endEarly(number) ?? []).map((event) => ({ event })));
      const event = isLater ? undefined : handlerOf(kind)(run, number, piece);
      if (event) later.push({ event });
      else if (isLater) later.push({ entry: [kind, number, piece], strings: this.takeStrings() });
    }
    this.batch = undefined;
  }

  /** Delivers these events before what is left of the batch. @param {AgentEvent[]} events */
  deliverFirst(events) {
    this.readRest();
    this.rest = [...events.map((event) => ({ event })), ...(this.rest ?? [])];
  }

  /** The events that were read and not delivered. @returns {AgentEvent[]} */
  undelivered() {
    return (this.rest ?? []).flatMap(({ event }) => event ?? []);
  }

  /** Takes the texts that came before an entry. */
  takeStrings() {
    const { strings } = this;
    this.strings = emptyList();
    return strings;
  }
}

/** The handlers by kind, and those of rest.js as soon as one of them is asked for. @type {Record<number, Handler>} */
const handlers = { ...ENTRIES };

/** @param {number} kind @returns {Handler} */
const handlerOf = (kind) => /** @type {Handler} */ (handlers[kind] ?? Object.assign(handlers, late.rest.ENTRIES)[kind]);
