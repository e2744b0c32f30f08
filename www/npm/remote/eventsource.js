// @ts-check
// Reads server-sent events.

import { abortController } from "../shared.js";
import { protocolError } from "./check-event.js";

/** @typedef {{ id?: string, type: string, data: string }} ServerEvent */

/**
 * Yields the events of a body as they arrive. Throws if the body breaks off, stays silent for longer than
 * `stallMs`, or has an event of more than `eventBytes`.
 * @param {ReadableStream<Uint8Array>} body
 * @param {{ sleep(ms: number, signal: AbortSignal): Promise<unknown>, stallMs?: number, eventBytes?: number, onReceive?(): void, signal?: AbortSignal }} host
 * @returns {AsyncGenerator<ServerEvent>}
 */
export async function* readEvents(body, { sleep, stallMs = Infinity, eventBytes = Infinity, onReceive, signal }) {
  const reader = body.getReader();
  // Whatever fetched the body may not know of the signal.
  const cancel = () => void reader.cancel().catch(() => {});
  if (signal?.aborted) cancel();
  signal?.addEventListener("abort", cancel);
  const decoder = new TextDecoder();
  let rest = "";
  let endsWithReturn = false;
  // What has arrived of an event is held; every character of it has at least a byte.
  const check = (text = "") => {
    if (text.length > eventBytes) throw protocolError(`the server sent an event of more than ${eventBytes} bytes; see the option \`limits.eventBytes\``);
  };
  /** @type {{ id?: string, type: string, data?: string }} */
  let event = { type: "message" };
  try {
    for (;;) {
      const { done, value } = await withTimeout(reader.read(), stallMs, sleep);
      // An event without its closing empty line is incomplete, so it is dropped.
      if (done) return;
      onReceive?.();
      const text = decoder.decode(value, { stream: true });
      if (text === "") continue;
      // A line may end with a carriage return and a line feed, and the two may arrive separately.
      const lines = (endsWithReturn && text[0] === "\n" ? text.slice(1) : text).split(/\r\n|\n|\r/);
      // The part of a long line that has arrived is not scanned again.
      lines[0] = rest + lines[0];
      endsWithReturn = text.endsWith("\r");
      rest = /** @type {string} */ (lines.pop());
      for (const line of lines) {
        if (line === "") {
          if (event.data !== undefined) yield /** @type {ServerEvent} */ (event);
          event = { type: "message" };
          continue;
        }
        const [, field, text = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
        if (field === "data") event.data = event.data === undefined ? text : `${event.data}\n${text}`;
        else if (field === "id" && !text.includes("\0")) event.id = text;
        else if (field === "event") event.type = text || "message";
        check(event.data);
      }
      check(rest);
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
    cancel();
  }
}

/**
 * Returns what the promise resolves to, or throws if it takes longer than `ms`.
 * @template T @param {Promise<T>} promise @param {number} ms
 * @param {(ms: number, signal: AbortSignal) => Promise<unknown>} sleep @returns {Promise<T>}
 */
export async function withTimeout(promise, ms, sleep) {
  if (!(ms > 0 && ms < Infinity)) return promise;
  const timer = abortController();
  promise.catch(() => {});
  try {
    return await Promise.race([promise, sleep(ms, timer.signal).then(() => {
      throw new Error(`nothing came for ${ms} ms`);
    })]);
  } finally {
    timer.abort();
  }
}
