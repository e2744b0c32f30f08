// @ts-check
// The channels of a tab: one for all, on which is asked, and one of its own, on which it is answered.

import { flawOf } from "./messages.js";

/** @import { Message } from "./messages.js" */

/** More notices than these say nothing new. */
const MAX_NOTICES = 10;
/** So many tabs are answered without opening their channel anew. */
const MAX_OPEN = 100;

export class Channels {
  /** @param {string} name @param {string} tab @param {number} messageBytes @param {(message: Message) => void} take */
  constructor(name, tab, messageBytes, take) {
    this.name = name;
    this.tab = tab;
    this.messageBytes = messageBytes;
    this.take = take;
    this.notices = 0;
    /** @type {BroadcastChannel[]} */
    this.open = [];
    /** The channels of tabs that are answered. @type {Map<string, BroadcastChannel>} */
    this.others = new Map();
  }

  join() {
    this.open = [this.name, `${this.name}:${this.tab}`].map((name) => {
      const channel = new BroadcastChannel(name);
      channel.onmessage = (event) => this.#heard(event);
      channel.onmessageerror = () => this.#note("it cannot be read");
      return channel;
    });
  }

  leave() {
    for (const channel of [...this.open, ...this.others.values()]) channel.close();
    this.open = [];
    this.others.clear();
  }

  /** Says something to all other tabs. @param {Message} message */
  post(message) {
    this.open[0]?.postMessage(message);
  }

  /** Says something to one tab. @param {string} tab @param {Message} message */
  answer(tab, message) {
    if (this.open.length === 0) return;
    const channel = this.others.get(tab) ?? new BroadcastChannel(`${this.name}:${tab}`);
    this.others.set(tab, channel);
    channel.postMessage(message);
    for (const [oldest, channel] of this.others) {
      if (this.others.size <= MAX_OPEN) return;
      channel.close();
      this.others.delete(oldest);
    }
  }

  /** @param {MessageEvent} event */
  #heard(event) {
    const flaw = flawOf(event, this.messageBytes);
    if (flaw) this.#note(flaw);
    else if (this.open.length > 0) this.take(event.data);
  }

  /** @param {string} flaw */
  #note(flaw) {
    if (this.notices++ < MAX_NOTICES) console.warn(`turnwheel/tabs: a message on the channel \`${this.name}\` was dropped: ${flaw}`);
  }
}
