// @ts-check
// The streams on which listeners hear the events of an agent, each at its own pace.

import { body, sse, waitForWake } from "../response/sse.js";
import { RequestError } from "./errors.js";

/** @import { Host } from "../shared.js" */
/** @import { Feed } from "./feed.js" */
/** @import { Body } from "../response/sse.js" */
/** @import { Limits } from "./commands.js" */

/** How many letters are sent at once; so much a listener that stops to read holds up to. */
const PIECE = 65_536;
/** A listener that has read nothing for so many keep-alives is gone. */
const MISSED_KEEP_ALIVES = 6;
const PATIENCE_MS = 1000;

/** @typedef {Pick<Limits, "listeners" | "listenersPerCaller" | "backlogBytes">} StreamLimits */

export class EventStreams {
  /** @param {Feed} feed @param {Host} host @param {{ limits: StreamLimits, keepAliveMs: number }} options */
  constructor(feed, host, { limits, keepAliveMs }) {
    this.feed = feed;
    this.host = host;
    this.limits = limits;
    this.keepAliveMs = keepAliveMs;
    /** @type {Set<Listener>} */
    this.listeners = new Set();
    this.isClosed = false;
    /** When the listeners are looked through next: after so many bytes. */
    this.sweepAt = limits.backlogBytes / 4;
    // Those who come back get the state as it is.
    feed.onUnkept = () => {
      for (const one of [...this.listeners]) if (one.hasBegun) one.end();
    };
    feed.onAppend = () => {
      if (feed.window.appended < this.sweepAt) return;
      const { appended } = feed.window;
      this.sweepAt = appended + limits.backlogBytes / 4;
      // Whoever reads at all has read by then.
      host.sleep(PATIENCE_MS).then(() => this.#sweep(appended - limits.backlogBytes), () => {});
    };
  }

  close() {
    this.isClosed = true;
    this.feed.wake();
  }

  /** @param {Request} request @param {URL} url @param {string} caller */
  open(request, url, caller) {
    const given = request.headers.get("last-event-id") ?? url.searchParams.get("lastEventId");
    const last = given === null || given === "" ? undefined : Number(given);
    if (last !== undefined && !(Number.isSafeInteger(last) && last >= 0)) throw new RequestError(400, "invalid_request", `the last event's id must be a number, got ${JSON.stringify(given?.slice(0, 100))}`);
    this.#makeRoom(caller);
    const listener = new Listener(this, last, caller);
    request.signal?.addEventListener("abort", () => listener.leave());
    const source = (listener.body = body({
      sleep: this.host.sleep, keepAliveMs: this.keepAliveMs, onLeave: () => listener.leave(),
      take: () => listener.take(),
      isOver: () => this.isClosed,
      waitForMore: (signal) => listener.wait(signal),
    }));
    return new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers: { "content-type": "text/event-stream", "cache-control": "no-store, no-transform", "x-accel-buffering": "no", "x-content-type-options": "nosniff" } });
  }

  /** Refuses if there are too many listeners. @param {string} caller */
  #makeRoom(caller) {
    const { listeners, listenersPerCaller } = this.limits;
    this.#sweep();
    const own = [...this.listeners].filter((one) => one.caller === caller).length;
    const most = caller !== "" && own >= listenersPerCaller ? own : this.listeners.size >= listeners ? this.listeners.size : -1;
    if (most >= 0) throw new RequestError(429, "throttled", `there are ${most} listeners already`, { "retry-after": "5" });
  }

  /**
   * Ends the streams of those who are gone, and of those who read so slowly that too much waits for them: they may come back.
   * @param {number} [readTo] who has not read since so much had been appended is too slow
   */
  #sweep(readTo = -1) {
    const { keepAliveMs, host } = this;
    const since = keepAliveMs > 0 ? host.now() - MISSED_KEEP_ALIVES * keepAliveMs : -Infinity;
    for (const one of [...this.listeners]) if (one.seenAt < since || (!one.isReading && one.seenAppended < readTo)) one.end();
  }
}

/** One listener, and how far it has read. */
class Listener {
  /** @param {EventStreams} streams @param {number | undefined} last the id of the last event that it has heard @param {string} caller */
  constructor(streams, last, caller) {
    this.streams = streams;
    this.feed = streams.feed;
    this.last = last;
    this.after = last ?? -1;
    this.hasBegun = false;
    /** Whether it was told that it knows everything up to now. */
    this.isReady = false;
    this.caller = caller;
    /** What of a long text was not sent yet. */
    this.rest = "";
    /** How often the conversation had been forgotten when that was written. */
    this.resets = 0;
    /** Whether it waits for more, rather than for somebody who reads. */
    this.isReading = false;
    /** @type {Body | undefined} */
    this.body = undefined;
    /** When it was last seen to read. Some hosts drop a connection without notice. */
    this.seenAt = 0;
    /** How much had been appended to the log then. */
    this.seenAppended = 0;
    this.#noteSeen();
    streams.listeners.add(this);
  }

  #noteSeen() {
    this.seenAt = this.streams.host.now();
    this.seenAppended = this.feed.window.appended;
  }

  leave() {
    this.streams.listeners.delete(this);
    this.rest = "";
  }

  end() {
    this.leave();
    this.body?.end();
  }

  /** Returns what it has not heard yet, or a part of that. */
  async take() {
    const { feed } = this;
    this.isReading = true;
    this.#noteSeen();
    feed.catchUp();
    // Of a conversation that was forgotten meanwhile, not even the rest of a text is sent.
    if (this.rest !== "" && this.resets !== feed.resets) {
      this.end();
      return "";
    }
    const { resets } = feed;
    const text = this.rest || (await this.#read());
    if (resets !== feed.resets && text !== "") {
      this.end();
      return "";
    }
    // A pair of surrogates stays together.
    const end = /[\ud800-\udbff]/.test(text.charAt(PIECE - 1)) ? PIECE + 1 : PIECE;
    this.rest = text.slice(end);
    this.resets = resets;
    this.isReading = text === "";
    return text.slice(0, end);
  }

  async #read() {
    const { feed } = this;
    const { log } = feed;
    let text = this.hasBegun ? "" : this.#begin();
    // The listener fell behind what is stored.
    if (this.after < log.first) text = this.#begin();
    // What is told of an agent as a whole must not be what it was when another instance took it over.
    if (text) await log.verify?.();
    const records = this.streams.isClosed ? [] : await log.read(this.after, 64);
    for (const { id, type, data, history } of records) {
      if (text.length > PIECE) break;
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
    if (!feed.hasGap && last !== undefined && last >= feed.log.first && last <= feed.log.last) return "";
    const { at, text } = feed.snapshotText();
    this.after = at;
    return text;
  }

  /** @param {AbortSignal} signal */
  async wait(signal) {
    const { feed, streams } = this;
    if (this.rest === "" && this.after >= feed.log.last && !streams.isClosed) await waitForWake(feed.waiting, signal);
  }
}
