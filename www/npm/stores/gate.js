// @ts-check
// What an agent has begun: its tools and its calls of models, those of its sub-agents too. Once the gate is closed no model is
// called any more, and what has begun may end. Tools that an answer asked for are let in: they were announced, so a process that
// found them unfinished could not tell that they had never begun.

/** Between the end of one thing and the beginning of the next, no run takes longer. */
const QUIET_MS = 100;

export class Gate {
  #isClosed = false;
  /** What has begun, by the calls that lead to it. @type {Map<string, number>} */
  #open = new Map();
  /** How much has begun so far. */
  #begun = 0;
  /** @type {(() => void)[]} */
  #waiting = [];

  /**
   * Calls a model, or waits until nobody wants it any more.
   * @template T @param {string[]} path @param {AbortSignal} signal @param {() => T | Promise<T>} work @returns {Promise<T>}
   */
  async pass(path, signal, work) {
    if (this.#isClosed) {
      this.#noteInside(path);
      await new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    }
    return this.enter(path, work);
  }

  /** @template T @param {string[]} path @param {() => T | Promise<T>} work @returns {Promise<T>} */
  async enter(path, work) {
    this.#noteInside(path);
    const key = JSON.stringify(path);
    this.#begun += 1;
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const count = (this.#open.get(key) ?? 0) - 1;
      if (count > 0) this.#open.set(key, count);
      else this.#open.delete(key);
      this.#check();
    }
  }

  /** A call that runs an agent has not to end: the agent goes on from its own checkpoint. @param {string[]} path */
  #noteInside(path) {
    for (let i = 1; i < path.length; i++) this.#open.delete(JSON.stringify(path.slice(0, i)));
    this.#check();
  }

  /** Lets no model be called any more. Resolves when all that had begun has ended. @returns {Promise<void>} */
  close() {
    this.#isClosed = true;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#check();
    });
  }

  #check() {
    if (!this.#isClosed || this.#open.size > 0) return;
    const begun = this.#begun;
    setTimeout(() => {
      if (this.#open.size === 0 && this.#begun === begun) for (const resolve of this.#waiting.splice(0)) resolve();
    }, QUIET_MS);
  }
}
