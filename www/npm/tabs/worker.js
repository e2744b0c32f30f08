// @ts-check
// A tab that leaves the agent to a SharedWorker. A worker that crashes is gone for all tabs, without an event, and only its lock
// says so: then a tab starts it again.

import { abortController, misuse } from "../shared.js";
import { hold } from "../stores/hold.js";

/** @import { Tab } from "./tab.js" */

/** A worker that has not answered by then is taken for one that does not run. */
const START_MS = 10_000;
const POLL_MS = 50;

/** Starts the worker that owns the agent, again whenever it is gone. If it does not run, this tab owns the agent. @param {Tab} tab @param {() => SharedWorker} start */
export async function followWorker(tab, start) {
  const { asks, channels, options } = tab;
  while (!tab.isOff) {
    const since = performance.now();
    let isBroken = false;
    try {
      start().addEventListener("error", () => (isBroken = true));
    } catch (error) {
      isBroken = true;
      options.onError(error);
    }
    const isHeard = () => asks.heardAt >= since;
    for (let waited = 0; !isHeard() && !isBroken && waited < START_MS; waited += POLL_MS) {
      if (tab.isOff) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      tab.ping();
    }
    if (!isHeard()) {
      options.onError(misuse("the SharedWorker does not answer, so this tab owns the agent; does the worker call `shared` with the same id?"));
      return void tab.wait();
    }
    // Whoever gets the lock knows that the worker is gone.
    const { signal } = (tab.waiting = abortController());
    const held = await hold(channels.name, { waitMs: Infinity, signal });
    held?.release();
    if (!held) return;
  }
}
