// @ts-check
// Changes of a list, since the protocol of July 2026: a client asks for them with a request whose answer does not end. Loaded
// with the first connection to such a server that says that its list may change.

import { sleep } from "../shared.js";

/** @import { McpClient } from "../mcp.js" */

/** How long to wait before the server is asked again when its answer has ended; doubled each time. */
const PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** How long the first list waits until the server says that it will tell of changes. */
const PATIENCE_MS = 1_000;

/**
 * Asks for changes until the signal is aborted. The notifications themselves come over the transport. Settles when the first list
 * may be read.
 * @param {McpClient} client @param {AbortSignal} signal @param {() => void} onGap called when changes may have been missed
 * @returns {Promise<void>}
 */
export async function subscribe(client, signal, onGap) {
  const began = performance.now();
  const patience = new AbortController();
  void keepAsking(client, signal, () => {
    if (performance.now() - began >= PATIENCE_MS || patience.signal.aborted) onGap();
    patience.abort();
  }).finally(() => patience.abort());
  await sleep({}, PATIENCE_MS, patience.signal);
}

/** @param {McpClient} client @param {AbortSignal} signal @param {() => void} onOpen */
async function keepAsking(client, signal, onOpen) {
  for (let pause = PAUSE_MS; !signal.aborted; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const began = performance.now();
    try {
      const { closed } = await client.listen?.({ toolsListChanged: true }, { signal });
      onOpen();
      await closed;
    } catch (error) {
      // It is an answer, and will be the same the next time.
      if (typeof (/** @type {any} */ (error)?.code) === "number") return;
    }
    if (performance.now() - began > LONGEST_PAUSE_MS) pause = PAUSE_MS;
    await pauseFor(pause, signal);
  }
}

/** Waits; a process that has nothing else to do may end meanwhile. @param {number} ms @param {AbortSignal} signal @returns {Promise<void>} */
function pauseFor(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    /** @type {any} */ (timer).unref?.();
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
