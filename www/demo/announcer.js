// @ts-check
// Announces a run to screen readers: in whole sentences, a few at a time, never token by token.

const INTERVAL_MS = 900;

export class Announcer {
  /** @param {HTMLElement} root a live region */
  constructor(root) {
    this.root = root;
    /** @type {string[]} */
    this.queue = [];
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
  }

  /** @param {string} text */
  say(text) {
    if (!text.trim()) return;
    this.queue.push(text.trim());
    this.timer ??= setTimeout(() => this.#announce(), INTERVAL_MS);
  }

  clear() {
    this.queue = [];
    this.root.textContent = "";
  }

  #announce() {
    this.timer = undefined;
    this.root.textContent = this.queue.join(" ");
    this.queue = [];
  }
}
