// @ts-check
// One step, and the record that is stored of it.

import { textOf } from "../core.js";

/** @import { Mail } from "./journal.js" */
/** What became of the work: a value, what was thrown, or that nobody wanted it any more. @typedef {{ value?: any, error?: string, cancelled?: true }} Outcome */
/**
 * What is stored: of which step (but for what `perform` has made), when it ended by the real clock, the how many-th of this process
 * it was, and the mail that came before.
 * @typedef {Outcome & { v: 1, name?: string, at: number, n: number, mail?: Mail[] }} StepRecord
 */

/** What a value becomes that is too large to be stored. @typedef {(bytes: number, limit: number) => any} TooLarge */

let arrivals = 0;
/** Numbers what an engine gives back. */
export const arrived = () => ++arrivals;

export class Step {
  /** @param {string} name @param {TooLarge} [tooLarge] */
  constructor(name, tooLarge) {
    this.name = name;
    this.tooLarge = tooLarge;
    /** @type {Promise<StepRecord> | undefined} */
    this.work = undefined;
    this.isBegun = false;
    /** What its work has ended with, in this process. @type {StepRecord | undefined} */
    this.ended = undefined;
    /** What the engine has stored. @type {StepRecord | undefined} */
    this.stored = undefined;
    this.arrival = 0;
    /** What the work threw. @type {unknown} */
    this.thrown = undefined;
    /** Whether nobody waits for it any more. */
    this.isDropped = false;
    /** Whether the work was ended, perhaps before it began. */
    this.isOver = false;
    /** Ends the work, at once. @type {() => void} */
    this.end = () => {};
    /** @type {Promise<Outcome>} */
    this.dropped = new Promise((resolve) => (this.end = () => ((this.isOver = true), resolve({ cancelled: true }))));
    /** Ends the work for mail that would end it. */
    this.force = this.end;
    /** Called before the mail of the record enters. @type {(record: StepRecord) => void} */
    this.prepare = () => {};
    /** @type {(record: StepRecord) => void} */
    this.enter = () => {};
  }

  drop() {
    this.isDropped = true;
    this.end();
  }

  get record() {
    return this.stored;
  }

  set record(record) {
    this.stored = record;
    this.arrival = arrived();
  }

  /** When it ended. */
  get key() {
    return /** @type {StepRecord} */ (this.ended ?? this.stored);
  }

  /** @param {unknown} error @returns {Outcome} */
  threw(error) {
    this.thrown = error;
    return { error: textOf(error) };
  }

  /** The record of an outcome: plain JSON, as long as may be stored. @param {Outcome} outcome @param {{ at: number, n: number, mail: Mail[] }} when @param {number} maxBytes @returns {StepRecord} */
  recordOf(outcome, { at, n, mail }, maxBytes) {
    const own = { v: /** @type {const} */ (1), name: this.name, at, n };
    const rest = mail.length > 0 ? { mail } : {};
    try {
      const text = JSON.stringify({ ...own, ...outcome, ...rest });
      const bytes = lengthOf(text);
      if (bytes <= maxBytes) return JSON.parse(text);
      const value = this.tooLarge?.(bytes, maxBytes);
      return { ...own, ...(value === undefined ? { error: tooLargeText(this.name, bytes, maxBytes) } : { value }), ...rest };
    } catch (error) {
      return { ...own, ...this.threw(error), ...rest };
    }
  }
}

/** The last moment of a clock. */
const END_OF_TIME = 8.64e15;

/** Why something is no record of a step, or nothing if it is one. @param {any} record @param {string} name */
export function faultOf(record, name) {
  const { at, n, mail = [] } = record ?? {};
  if (record?.v !== 1 || !(at >= 0 && at <= END_OF_TIME) || !Number.isFinite(n) || !Array.isArray(mail)) return "it gave something else, or the record is of a newer turnwheel";
  if (record.name !== undefined && record.name !== name) return `it gave the record of \`${record.name}\``;
  return "value" in record || "error" in record || "cancelled" in record ? undefined : "the record does not say what came of it: it was damaged";
}

/** @param {string} what @param {number} bytes @param {number} limit */
export const tooLargeText = (what, bytes, limit) => `the result of \`${what}\` has ${bytes} bytes, and at most ${limit} can be stored (\`host.steps.maxBytes\`)`;

/** @param {string} text in bytes of UTF-8 */
function lengthOf(text) {
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // Half of a pair is half of four bytes.
    length += unit < 0x80 ? 1 : unit < 0x800 || (unit & 0xf800) === 0xd800 ? 2 : 3;
  }
  return length;
}
