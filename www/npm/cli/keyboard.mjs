// @ts-check
// Lines from the keyboard, or from a pipe: prompts, answers to questions, and what is typed while an answer comes.

import { createInterface } from "node:readline";

export class Keyboard {
  /** Whether an answer comes: what is typed then steers it. A pipe has all lines at once, so its lines wait. */
  isBusy = false;
  #terminal;
  /** @type {string[]} */
  #lines = [];
  #isClosed = false;
  /** Takes the next line. @type {((line: string | undefined) => void) | undefined} */
  #taker;
  /** Several calls may ask at once; they are asked one after the other. @type {Promise<unknown>} */
  #last = Promise.resolve();

  /** @param {{ steer(line: string): void, stop(): void }} to */
  constructor({ steer, stop }) {
    const isTerminal = Boolean(process.stdin.isTTY);
    this.#terminal = createInterface({ input: process.stdin, ...(isTerminal && { output: process.stdout }), terminal: isTerminal });
    this.#terminal.on("line", (line) => {
      if (this.#taker) this.#give(line);
      else if (this.isBusy && isTerminal) steer(line);
      else this.#lines.push(line);
    });
    this.#terminal.on("close", () => {
      this.#isClosed = true;
      this.#give(undefined);
    });
    // A terminal in raw mode gives Ctrl-C as a key; otherwise it is a signal.
    this.#terminal.on("SIGINT", stop);
    process.on("SIGINT", stop);
  }

  /** The next line; `undefined` at the end of the input. @param {string} prompt @param {AbortSignal} [signal] @returns {Promise<string | undefined>} */
  async next(prompt, signal) {
    const waiting = this.#lines.shift();
    if (waiting !== undefined || this.#isClosed || signal?.aborted) return waiting;
    if (process.stdin.isTTY) {
      this.#terminal.setPrompt(prompt);
      this.#terminal.prompt();
    }
    return new Promise((/** @type {(line: string | undefined) => void} */ resolve) => {
      this.#taker = resolve;
      signal?.addEventListener("abort", () => this.#give(undefined), { once: true });
    });
  }

  /** A line is for one taker: a pipe has the next one at once. @param {string | undefined} line */
  #give(line) {
    const taker = this.#taker;
    this.#taker = undefined;
    taker?.(line);
  }

  /** The answer to a question; an empty one if there is none. @param {string} question @param {AbortSignal} signal @returns {Promise<string>} */
  ask(question, signal) {
    const answer = this.#last.then(async () => {
      if (signal.aborted) return "";
      if (process.stdin.isTTY) process.stdout.write("\n");
      else process.stdout.write(question);
      return (await this.next(question.trimStart(), signal)) ?? "";
    });
    this.#last = answer;
    return answer;
  }

  close() {
    this.#terminal.close();
  }
}
