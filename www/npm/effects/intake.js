// @ts-check
// The bytes of a response on their way to the engine.

import { kindOf, misuse } from "../shared.js";
import { lengthOf, pieceOf } from "../boundary/bytes.js";
import { emptyList, keepShape } from "../v8.js";

/** @import { Driver } from "../run/driver.js" */
/** @typedef {ReadableStreamDefaultReader<Uint8Array>} Reader */

/** How many microtasks bytes that have already arrived need to pass through the stream's layers. */
const FLUSH_TICKS = 4;
/**
 * Enough bytes for one call into the engine. Events decoded together are all delivered, even if a
 * listener aborts at the first.
 */
const FLUSH_BYTES = 1 << 12;
/** Enough reads for one call: the engine looks at the clock then. */
const FLUSH_READS = 64;

/** The most that is copied into the engine at once. */
const MAX_BYTES = 1 << 16;

/** Reads that arrive together become one call. */
export class Intake {
  /** @param {Driver} run @param {number} slot @param {Reader} reader */
  constructor(run, slot, reader) {
    this.run = run;
    this.slot = slot;
    this.reader = reader;
    this.read = reader.read;
    /** @type {Uint8Array[]} */
    this.chunks = emptyList();
    this.size = 0;
    /** How many microtasks until the bytes are passed on; 0 if none are waiting. */
    this.flushTicks = 0;
  }

  /**
   * Takes one read. Returns whether more is wanted: once an answer is complete, a single
   * further read is allowed.
   * @param {Uint8Array} bytes
   */
  take(bytes) {
    const { run } = this;
    if (!run.engineRun.slots.has(this.slot)) return false;
    const length = lengthOf(bytes);
    if (length === undefined) throw misuse(`the body of an answer must give bytes, as Uint8Array; \`fetch\` gave ${kindOf(bytes)}`);
    this.chunks.push(bytes);
    this.size += length;
    // While the run is iterated nothing is batched: an iterator sees an event only after everything
    // delivered along with it.
    if (this.size >= FLUSH_BYTES || this.chunks.length >= FLUSH_READS || run.outlet.queue.events !== undefined) this.flush();
    else if (this.flushTicks === 0) this.flushSoon();
    else this.flushTicks = FLUSH_TICKS;
    return true;
  }

  /** Waits as long as more bytes keep arriving. */
  async flushSoon() {
    for (this.flushTicks = FLUSH_TICKS; this.flushTicks > 0; this.flushTicks--) await undefined;
    this.flush();
  }

  flush() {
    const { chunks, size } = this;
    // Reads without bytes count too: the engine looks at the clock.
    if (chunks.length === 0) return;
    this.chunks = emptyList();
    this.size = 0;
    if (size <= MAX_BYTES) return this.run.engineRun.feed(this.slot, chunks);
    // A chunk may have any size. What the engine sees of it may end the answer.
    for (const bytes of chunks) {
      const length = lengthOf(bytes) ?? 0;
      for (let at = 0; at < length && this.run.engineRun.slots.has(this.slot); at += MAX_BYTES) {
        this.run.engineRun.feed(this.slot, [pieceOf(bytes, at, Math.min(length, at + MAX_BYTES))]);
      }
    }
  }
}

const nothing = /** @type {unknown} */ ({});
keepShape(new Intake(/** @type {Driver} */ (nothing), 0, /** @type {Reader} */ (nothing)));
