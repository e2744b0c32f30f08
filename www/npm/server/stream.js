// @ts-check
// The streams on which listeners hear the events of an agent, each at its own pace.

import { body, sse, waitForWake } from "../response/sse.js";
import { RequestError } from "./errors.js";

/** @import { Host } from "../shared.js" */
/** @import { Feed } from "./feed.js" */

export class EventStreams {
  /** @param {Feed} feed @param {Host} host @param {{ limit: number, keepAliveMs: number }} options */
  constructor(feed, host, { limit, keepAliveMs }) {
    this.feed = feed;
    this.host = host;
    this.limit = limit;
    this.keepAliveMs = keepAliveMs;
    /** When each listener was last seen to read. Some hosts drop a connection without notice. @type {Map<object, number>} */
    this.listeners = new Map();
    this.isClosed = false;
  }

  close() {
    this.isClosed = true;
    this.feed.wake();
  }

  /** @param {Request} request @param {URL} url */
  open(request, url) {
    const given = request.headers.get("last-event-id") ?? url.searchParams.get("lastEventId");
    const last = given === null || given === "" ? undefined : Number(given);
    if (last !== undefined && !(Number.isSafeInteger(last) && last >= 0)) throw new RequestError(400, "invalid_request", `the last event's id must be a number, got ${JSON.stringify(given)}`);
    this.#makeRoom();
    const listener = new Listener(this, last);
    request.signal?.addEventListener("abort", () => listener.leave());
    const source = body({
      sleep: this.host.sleep, keepAliveMs: this.keepAliveMs, onLeave: () => listener.leave(),
      take: () => listener.take(),
      isOver: () => this.isClosed,
      waitForMore: (signal) => listener.wait(signal),
    });
    return new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-content-type-options": "nosniff" } });
  }

  /** Forgets those who seem to be gone, and refuses if there are too many others. */
  #makeRoom() {
    const { listeners, keepAliveMs, limit } = this;
    for (const [other, seenAt] of listeners) if (keepAliveMs > 0 && seenAt < this.host.now() - 3 * keepAliveMs) listeners.delete(other);
    if (listeners.size >= limit) throw new RequestError(429, "throttled", `there are ${listeners.size} listeners already`, { "retry-after": "5" });
  }
}

/** One listener, and how far it has read. */
class Listener {
  /** @param {EventStreams} streams @param {number | undefined} last the id of the last event that it has heard */
  constructor(streams, last) {
    this.streams = streams;
    this.feed = streams.feed;
    this.last = last;
    this.after = last ?? -1;
    this.hasBegun = false;
    /** Whether it was told that it knows everything up to now. */
    this.isReady = false;
    this.#noteSeen();
  }

  #noteSeen() {
    this.streams.listeners.set(this, this.streams.host.now());
  }

  leave() {
    this.streams.listeners.delete(this);
  }

  /** Returns what it has not heard yet. */
  async take() {
    const { feed } = this;
    const { log } = feed;
    this.#noteSeen();
    feed.catchUp();
    let text = this.hasBegun ? "" : this.#begin();
    // The listener fell behind what is stored.
    if (this.after < log.first) text = this.#begin();
    const records = this.streams.isClosed ? [] : await log.read(this.after, 64);
    for (const { id, type, data, history } of records) {
      this.after = id;
      if (type === "command") continue;
      if (history) text += sse(undefined, history, "history");
      text += sse(id, data, type === "message" ? undefined : type);
    }
    if (!this.isReady && this.after >= log.last) {
      this.isReady = true;
      text += sse(undefined, "{}", "ready");
    }
    // Nothing is sent that could still be lost.
    if (text) await log.sync?.();
    return text;
  }

  /** Begins after the last event that it has heard, or with a snapshot. */
  #begin() {
    const { last, feed } = this;
    this.hasBegun = true;
    if (last !== undefined && last >= feed.log.first && last <= feed.log.last) return "";
    const { at, state } = feed.snapshot();
    this.after = at;
    return sse(at, JSON.stringify(state), "state");
  }

  /** @param {AbortSignal} signal */
  async wait(signal) {
    const { feed, streams } = this;
    if (this.after >= feed.log.last && !streams.isClosed) await waitForWake(feed.waiting, signal);
  }
}
