// @ts-check
// A run of an engine that is not the package, with the names of the package's.

export class Run {
  /** @type {Promise<any>} */
  result = Promise.resolve();
  #agent;
  /** @type {any[]} */
  #events = [];
  #isOver = false;
  #wake = () => {};

  /** @param {{ abort(reason: string): void, messages: any[] }} agent */
  constructor(agent) {
    this.#agent = agent;
  }

  /** @param {any} event */
  tell(event) {
    this.#events.push(event);
    this.#wake();
  }

  end() {
    this.#isOver = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.#events.length > 0) yield this.#events.shift();
      if (this.#isOver) return;
      await new Promise((wake) => void (this.#wake = () => wake(undefined)));
    }
  }

  /** @param {string} reason */
  abort(reason) {
    this.#agent.abort(reason);
  }

  get messages() {
    return this.#agent.messages;
  }
}
