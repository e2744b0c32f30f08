// @ts-check
// Writes server-sent events.

import { abortController } from "../host/abort.js";

const encoder = new TextEncoder();

/**
 * Formats one server-sent event. `data` is JSON, so it has no line breaks.
 * @param {number | undefined} id @param {string} data @param {string} [type]
 */
export function sse(id, data, type) {
  return `${id === undefined ? "" : `id: ${id}\n`}${type ? `event: ${type}\n` : ""}data: ${data}\n\n`;
}

/** A keep-alive: a comment, not an event. */
const KEEP_ALIVE = ": \n\n";
/** Servers close a silent connection: Bun after ten seconds by its default, which it counts in steps of four. */
export const KEEP_ALIVE_MS = 7000;

/**
 * Where the texts of a body come from.
 * @typedef {object} TextSource
 * @property {() => string | undefined | Promise<string | undefined>} take
 * @property {() => boolean} isOver
 * @property {(signal: AbortSignal) => Promise<unknown>} waitForMore
 * @property {(ms: number, signal: AbortSignal) => Promise<unknown>} sleep
 * @property {number | undefined} [keepAliveMs]
 * @property {() => void} [onLeave]
 */
/** @typedef {{ start(controller: ReadableStreamDefaultController<Uint8Array>): void, pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void>, cancel(): void, end(): void }} Body */

/**
 * A body that is produced piece by piece, as fast as it is read.
 * @param {TextSource} source @returns {Body}
 */
export function body({ take, isOver, waitForMore, sleep, keepAliveMs = KEEP_ALIVE_MS, onLeave }) {
  let isLeft = false;
  let isFirst = true;
  /** Ends the current wait. @type {AbortController | undefined} */
  let timer;
  /** @type {ReadableStreamDefaultController<Uint8Array> | undefined} */
  let stream;
  const leave = () => {
    isLeft = true;
    timer?.abort();
    onLeave?.();
  };
  return {
    start(controller) {
      stream = controller;
    },
    async pull(controller) {
      while (!isLeft) {
        const text = await take();
        if (isLeft) return;
        if (!text && isOver()) return controller.close();
        // Some servers send the headers only with the first bytes.
        if (text || isFirst) {
          isFirst = false;
          return controller.enqueue(encoder.encode(text || KEEP_ALIVE));
        }
        timer = abortController();
        const silence = keepAliveMs > 0 && keepAliveMs < Infinity ? sleep(keepAliveMs, timer.signal).then(() => "silence", () => {}) : new Promise(() => {});
        const what = await Promise.race([waitForMore(timer.signal), silence]);
        timer.abort();
        if (what !== "silence") continue;
        // If the host's sleep returns at once, other tasks must get to run between two keep-alives.
        await new Promise((wake) => setTimeout(wake));
        if (!isLeft) return controller.enqueue(encoder.encode(KEEP_ALIVE));
      }
    },
    cancel: leave,
    /** Ends the body before its time, even if nobody reads it. */
    end() {
      if (isLeft) return;
      leave();
      try {
        stream?.close();
      } catch {
        // It broke before.
      }
    },
  };
}

/**
 * Waits to be called back, until the signal aborts.
 * @param {Set<() => void>} waiting @param {AbortSignal} signal @returns {Promise<void>}
 */
export function waitForWake(waiting, signal) {
  return new Promise((resolve) => {
    waiting.add(resolve);
    signal.addEventListener("abort", () => waiting.delete(resolve));
  });
}
