// @ts-check
// What an agent begins: its tools and its calls of models, those of its sub-agents too. Once the gate is closed nothing begins
// any more, and what has begun may end.

export class Gate {
  #isClosed = false;
  /** What has begun, by the calls that lead to it. @type {Map<string, number>} */
  #open = new Map();
  /** @type {(() => void)[]} */
  #waiting = [];

  /**
   * Does the work, or waits until nobody wants it any more.
   * @template T @param {string[]} path @param {AbortSignal} signal @param {() => T | Promise<T>} work @returns {Promise<T>}
   */
  async pass(path, signal, work) {
    // A call that runs an agent has not to end: the agent goes on from its own checkpoint.
    for (let i = 1; i < path.length; i++) this.#open.delete(JSON.stringify(path.slice(0, i)));
    if (this.#isClosed) {
      this.#check();
      await new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    }
    const key = JSON.stringify(path);
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

  /** Lets nothing begin any more. Resolves when all that had begun has ended. @returns {Promise<void>} */
  close() {
    this.#isClosed = true;
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#check();
    });
  }

  #check() {
    if (!this.#isClosed || this.#open.size > 0) return;
    // What has ended enters the run before the run is stored.
    setTimeout(() => {
      if (this.#open.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    });
  }
}
