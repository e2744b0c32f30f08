// @ts-check
// Restate: one await at a time. A single loop waits for whatever is open, and gives the results out one after the other.

import { misuse } from "../core.js";

/** @import { RestateContext, RestatePromiseLike, RestateTools } from "../durable.js" */
/** @import { AgentHost } from "../index.js" */
/** @typedef {{ promise: RestatePromiseLike<any>, resolve(value: any): void, reject(error: unknown): void }} Open */

/** The longest result that passed through a server, with room for what is around it. */
const MAX_BYTES = 32_000_000;

/** A macrotask, the shortest there is. @type {(go: (value: unknown) => void) => unknown} */
const soon = /** @type {any} */ (globalThis).setImmediate ?? setTimeout;

/** @param {RestateContext} ctx @param {RestateTools} tools @returns {AgentHost} */
export function restate(ctx, tools) {
  const { RestatePromise } = tools ?? {};
  if (typeof ctx?.run !== "function") throw misuse("`restate` takes the context of a handler: restate(ctx, { RestatePromise })");
  if (typeof RestatePromise?.race !== "function") throw misuse('`restate` needs `RestatePromise` of "@restatedev/restate-sdk": restate(ctx, { RestatePromise })');
  /** @type {Open[]} */
  const open = [];
  let isBusy = false;

  const one = (/** @type {RestatePromiseLike<any>} */ promise) => new Promise((/** @type {(value: any) => void} */ resolve, reject) => {
    open.push({ promise, resolve, reject });
    if (!isBusy) loop();
  });

  async function loop() {
    isBusy = true;
    for (;;) {
      // A step that is issued during a race is seen only after it.
      await new Promise((go) => soon(go));
      if (open.length === 0) break;
      try {
        const { place, value, failure } = await RestatePromise.race(open.map(({ promise }, place) => promise.map((value, failure) => ({ place, value, failure }))));
        const [first] = open.splice(place, 1);
        if (failure) first?.reject(failure);
        else first?.resolve(value);
      } catch (error) {
        for (const { reject } of open.splice(0)) reject(error);
      }
    }
    isBusy = false;
  }

  return {
    step: (name, work) => one(ctx.run(name, () => work())),
    sleep: (ms) => one(ctx.sleep(ms)),
    wait: (name) => one(ctx.promise(name).get()),
    steps: { maxBytes: MAX_BYTES, ordered: true },
  };
}
