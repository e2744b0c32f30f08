// @ts-check
// The first failure is seen: an error of a run that nobody reads goes to the console.

/** @import { Driver } from "./driver.js" */

/** How long somebody may take to read it. */
const PATIENCE_MS = 1000;
/** What was said last: a key that is missing is said once, however many runs it fails. */
let said = "";

/**
 * Gives the end of a run to somebody, and notes whether its error is read.
 * @template {{ stopReason: string, error?: { message: string } | undefined }} T @param {Driver} run @param {T} end @returns {T}
 */
export function watched({ core, ending, isInside, ports }, end) {
  const { hooks, quiet } = core.options;
  const { stopReason, error } = end;
  // Whoever subscribes hears of it, also who leaves with the event of the end. A durable engine would take the timer for a step.
  if (ending.isRead || stopReason !== "error" || quiet || isInside || ports || core.subscribers.size > 0 || [hooks].flat().some((each) => each?.onError)) {
    ending.isRead = true;
    return end;
  }
  if (ending.isRead === undefined) ending.patience = setTimeout(() => {
    const cause = `${error?.message}`;
    if (!ending.isRead && cause !== said) console.error(`turnwheel: a run failed: ${(said = cause)} (nobody read \`result.error\`; \`await run.orThrow()\` throws it)`);
  }, PATIENCE_MS);
  ending.isRead ??= false;
  const read = (/** @type {unknown} */ value) => {
    ending.isRead = true;
    // A process that has nothing else to do ends at once.
    clearTimeout(ending.patience);
    return value;
  };
  return Object.defineProperties({ ...end }, {
    stopReason: { get: () => read(stopReason) },
    error: { get: () => read(error) },
    // Node would show a getter as one.
    [Symbol.for("nodejs.util.inspect.custom")]: { value: () => read(end), enumerable: false },
  });
}
