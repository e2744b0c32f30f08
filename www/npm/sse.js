// @ts-check
// Server-sent events, written.

const encoder = new TextEncoder();

/** One server-sent event. JSON has no line breaks. @param {number | undefined} id @param {string} data @param {string} [type] */
export function sse(id, data, type) {
  return `${id === undefined ? "" : `id: ${id}\n`}${type ? `event: ${type}\n` : ""}data: ${data}\n\n`;
}

/** A life sign that is no event. */
const LIFE_SIGN = ": \n\n";

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
