// @ts-check
// Engines that take no functions: what a step does goes there as plain JSON. Temporal, Vercel Workflow.

import { misuse } from "../core.js";

/** @import { ByDataOptions } from "../durable.js" */
/** @import { AgentHost } from "../index.js" */

/** @param {ByDataOptions} options @returns {AgentHost} */
export function byData(options) {
  const { run, sleep, wait } = options ?? {};
  if (typeof run !== "function") throw misuse("`byData` needs a function `run` that carries out an effect in a step: byData({ run: (effect) => … })");
  return {
    step(name, work, effect) {
      if (effect.kind !== "model" && effect.kind !== "tool") return work();
      return run(/** @type {any} */ (effect), name);
    },
    ...(sleep && { sleep: (ms, _signal, name) => sleep(ms, name) }),
    ...(wait && { wait }),
    steps: { ordered: true },
  };
}
