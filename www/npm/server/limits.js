// @ts-check
// How much may be asked of an agent.

import { RequestError } from "./errors.js";
import { bytesOf } from "./letters.js";

/** @import { AgentMessage } from "../index.js" */

/** Lets so many commands pass in a minute. */
export class Throttle {
  /** @param {number} perMinute @param {() => number} now */
  constructor(perMinute, now) {
    this.perMinute = perMinute;
    this.now = now;
    this.tokens = perMinute;
    this.refilled = now();
  }

  pass() {
    const { perMinute } = this;
    if (perMinute === Infinity) return;
    const now = this.now();
    // A clock that was set back takes nothing away.
    const passed = Math.max(0, now - this.refilled);
    this.tokens = Math.min(perMinute, this.tokens + (passed * perMinute) / 60_000);
    this.refilled = now;
    if (this.tokens < 1) throw new RequestError(429, "throttled", `more than ${perMinute} commands a minute`, { "retry-after": String(Math.ceil((60 * (1 - this.tokens)) / perMinute)) });
    this.tokens -= 1;
  }
}

/** Measures a history, each message once. */
export class Room {
  /** @param {number} limit in bytes @param {number} queueLimit for the messages that wait */
  constructor(limit, queueLimit) {
    this.limit = limit;
    this.queueLimit = queueLimit;
    this.bytes = 0;
    this.counted = 0;
    /** @type {readonly AgentMessage[] | undefined} */
    this.list = undefined;
  }

  /** Refuses if the history, with the messages waiting for it, is full. @param {readonly AgentMessage[]} messages @param {number} waiting bytes */
  check(messages, waiting) {
    const { limit } = this;
    if (limit === Infinity) return;
    if (this.list !== messages) [this.list, this.counted, this.bytes] = [messages, 0, 0];
    for (; this.counted < messages.length; this.counted++) this.bytes += bytesOf(JSON.stringify(messages[this.counted]));
    const bytes = this.bytes + waiting;
    if (bytes >= limit) throw new RequestError(413, "invalid_request", `the conversation is full: it has ${bytes} bytes of ${limit}; begin a new one`);
  }
  /** Refuses if too much waits to be read by the agent. @param {number} waiting bytes */
  checkQueue(waiting) {
    if (waiting >= this.queueLimit) throw new RequestError(413, "invalid_request", `the messages that wait for the agent have ${waiting} bytes of ${this.queueLimit}; wait until it has read them, or clear the queues`);
  }
}
