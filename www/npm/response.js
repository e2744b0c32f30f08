// @ts-check
// The bodies of responses: a run's events as server-sent events, and as the UI message stream of the AI SDK. Each listener
// reads what was told at its own pace: nothing is kept for it but a number.

import { UIMessages } from "./uimessages.js";

/** So many events go out in one piece. */
const PIECE = 64;
const encoder = new TextEncoder();

/** One server-sent event. JSON has no line breaks. @param {number | undefined} id @param {string} data @param {string} [type] */
export function sse(id, data, type) {
  return `${id === undefined ? "" : `id: ${id}\n`}${type ? `event: ${type}\n` : ""}data: ${data}\n\n`;
}

/** A life sign that is no event. */
export const LIFE_SIGN = ": \n\n";

/**
 * A body that is written piece by piece, as fast as somebody reads.
 * @param {{ take(): string | undefined | Promise<string | undefined>, isOver(): boolean, more(signal: AbortSignal): Promise<unknown>, sleep(ms: number, signal: AbortSignal): Promise<unknown>, keepAliveMs?: number, leave?(): void }} source
 */
export function body({ take, isOver, more, sleep, keepAliveMs = 15_000, leave }) {
  let isLeft = false;
  /** Of the silence that is waited through. @type {AbortController | undefined} */
  let timer;
  return {
    /** @param {ReadableStreamDefaultController<Uint8Array>} controller */
    async pull(controller) {
      while (!isLeft) {
        const text = await take();
        if (isLeft) return;
        if (text) return controller.enqueue(encoder.encode(text));
        if (isOver()) return controller.close();
        timer = new AbortController();
        const silence = keepAliveMs > 0 && keepAliveMs < Infinity ? sleep(keepAliveMs, timer.signal).then(() => "silence", () => {}) : new Promise(() => {});
        const what = await Promise.race([more(timer.signal), silence]);
        timer.abort();
        if (what !== "silence") continue;
        // Where the host's sleep is none, others must get their turn between two signs.
        await new Promise((wake) => setTimeout(wake));
        if (!isLeft) return controller.enqueue(encoder.encode(LIFE_SIGN));
      }
    },
    cancel() {
      isLeft = true;
      timer?.abort();
      leave?.();
    },
  };
}

/** Waits to be called, until the signal says that nobody waits any more. @param {Set<() => void>} waiting @param {AbortSignal} signal @returns {Promise<void>} */
export function heardOf(waiting, signal) {
  return new Promise((resolve) => {
    waiting.add(resolve);
    signal.addEventListener("abort", () => waiting.delete(resolve));
  });
}

/** @param {any} driver @param {import("./respond.js").Told} told @param {() => number} at how far this listener is */
const waitFor = (driver, told, at) => ({
  more: async (/** @type {AbortSignal} */ signal) => {
    if (at() >= told.events.length && !told.isOver) await heardOf(told.waiting, signal);
  },
  sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => driver.core.sleep(ms, signal),
});

/** The run's events. @param {any} driver @param {import("./respond.js").Told} told @param {number} after @param {any} init */
export function events(driver, told, after, { keepAliveMs, abortOnLeave }) {
  return body({
    ...waitFor(driver, told, () => after), keepAliveMs,
    take() {
      const from = after;
      after = Math.max(after, Math.min(told.events.length, after + PIECE));
      return told.events.slice(from, after).map((event, i) => sse(from + i + 1, JSON.stringify(event))).join("");
    },
    isOver: () => told.isOver && after >= told.events.length,
    leave: () => abortOnLeave && driver.abort("the listener left"),
  });
}

/**
 * The UI message stream. It ends where the run waits for a person, because useChat answers only what has ended; the next
 * response goes on from there.
 * @param {any} driver @param {import("./respond.js").Told} told @param {number} _after @param {any} init
 */
export function uiMessages(driver, told, _after, init) {
  const { keepAliveMs, abortOnLeave, waitsForApproval = false } = init;
  const segments = (told.segments ??= [0]);
  const segment = segments.length - 1;
  const asksPeople = !driver.core.options?.approveTool;
  const stream = new UIMessages({ ...init, asksPeople });
  let at = /** @type {number} */ (segments[segment]);
  for (const event of told.events.slice(0, at)) stream.know(event);
  let isDone = false;
  const pieces = (/** @type {any[]} */ chunks) => chunks.map((chunk) => sse(undefined, JSON.stringify(chunk))).join("");
  const done = (/** @type {any[]} */ chunks) => ((isDone = true), `${pieces(chunks)}data: [DONE]\n\n`);
  let first = pieces(stream.begin(driver.runId));
  return body({
    ...waitFor(driver, told, () => at), keepAliveMs,
    async take() {
      let text = first;
      first = "";
      if (isDone) return;
      const to = Math.min(segments[segment + 1] ?? Infinity, told.events.length, at + PIECE);
      for (const event of told.events.slice(at, to)) text += pieces(stream.take(event));
      at = to;
      if (stream.isOver) return text + done([]);
      if (at < told.events.length && at !== segments[segment + 1]) return text;
      if (at === segments[segment + 1]) return text + done(stream.pause());
      if (waitsForApproval || !stream.waits) return text;
      // Who decides right away, in a listener, is no person.
      for (let i = 0; i < 8; i++) await undefined;
      if (at < told.events.length) return text;
      segments[segment + 1] ??= at;
      return text + done(stream.pause());
    },
    isOver: () => isDone,
    leave: () => abortOnLeave && driver.abort("the listener left"),
  });
}
