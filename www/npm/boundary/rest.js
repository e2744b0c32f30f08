// @ts-check
// The script that only a whole engine needs (../rest.js): what comes after the first answer, and the host's rules. It is a
// part like those of the wasm file: pages load it while the model thinks, others with the entry.

import { common, textOf } from "../shared.js";

/** @typedef {typeof import("../rest.js").REST} Rest */

/** It is there as soon as an engine is whole: for every copy of the package, since its own imports may have made another one. @type {{ rest: Rest }} */
export const late = (common.late ??= {});

/** @param {Rest} module */
export function useRest(module) {
  late.rest = module;
}

/** Loads it, unless it is there. What could not be loaded is tried again when it is asked for again. @returns {Promise<void>} */
export async function loadRest() {
  if (late.rest) return;
  const { REST } = await import("../rest.js").catch((cause) => {
    throw new Error(`the part of turnwheel that runs tools cannot be loaded: ${textOf(cause)}`, { cause });
  });
  useRest(REST);
}
