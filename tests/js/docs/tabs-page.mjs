// @ts-check
// As much of a browser as `shared` needs: Web Locks and IndexedDB, in Node, where every call of `shared` is a tab. The real
// behaviour is tested in browsers: tests/js/browser/shared.test.mjs.

import "./indexed-db.mjs";

/** @typedef {{ name: string, give(lock: object | null): unknown, done(value?: any): void, fail(error: unknown): void }} Asked */

/** Who has each lock, and who waits for it. @type {Map<string, { held?: Asked, waiting: Asked[] }>} */
const locks = new Map();

/** @param {string} name */
function next(name) {
  const lock = locks.get(name);
  if (!lock || lock.held) return;
  const asked = lock.waiting.shift();
  if (asked) hold(lock, asked);
}

/** @param {{ held?: Asked, waiting: Asked[] }} lock @param {Asked} asked */
function hold(lock, asked) {
  lock.held = asked;
  const end = (/** @type {(value: any) => void} */ settle) => (/** @type {any} */ value) => {
    settle(value);
    if (lock.held !== asked) return;
    delete lock.held;
    next(asked.name);
  };
  Promise.resolve().then(() => asked.give({ name: asked.name })).then(end(asked.done), end(asked.fail));
}

const lockManager = {
  /** @param {string} name @param {any} options @param {(lock: object | null) => unknown} give */
  request(name, { ifAvailable, steal, signal } = {}, give) {
    const lock = locks.get(name) ?? { waiting: [] };
    locks.set(name, lock);
    return new Promise((done, fail) => {
      const asked = { name, give, done, fail };
      const abort = () => new DOMException("The request was aborted", "AbortError");
      if (steal) {
        lock.held?.fail(abort());
        return hold(lock, asked);
      }
      if (ifAvailable && lock.held) return void Promise.resolve(give(null)).then(done, fail);
      if (signal?.aborted) return fail(abort());
      lock.waiting.push(asked);
      signal?.addEventListener("abort", () => {
        if (!lock.waiting.includes(asked)) return;
        lock.waiting = lock.waiting.filter((one) => one !== asked);
        fail(abort());
      });
      next(name);
    });
  },
};
Object.defineProperty(globalThis, "navigator", { value: { locks: lockManager }, configurable: true });
