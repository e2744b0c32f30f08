// @ts-check
// The stock reducers: context transformers that shorten what the model is shown. What they do is in reduction.js, which
// is loaded once somebody makes one of them; a run begins when it is there.

import { checkShape } from "../options/shape.js";
import { common, kindOf, misuse } from "../shared.js";

/** @import { AgentMessage, BudgetTrimOptions, Reducer, SlidingWindowOptions } from "../index.js" */
/** @import { Shape } from "../options/shape.js" */
/** @typedef {typeof import("./reduction.js")} Reduction */

/** An agent may have reducers of another copy. @type {{ reduction?: Reduction | undefined, loading?: Promise<void> | undefined }} */
const late = (common.reducers ??= {});

/** The promise of what the reducers need, if somebody has made one and it is not there yet. */
export function loadingReducers() {
  return late.reduction ? undefined : late.loading;
}

function load() {
  late.loading ??= import("./reduction.js").then(
    (loaded) => void (late.reduction = loaded),
    (error) => {
      late.loading = undefined;
      throw error;
    },
  );
  // Whoever starts a run hears of a failure.
  late.loading.catch(() => {});
}

/**
 * Makes a reducer of a function in reduction.js.
 * @param {string} name for errors @param {(reduction: Reduction) => (messages: readonly AgentMessage[], overflow: boolean) => readonly AgentMessage[] | void} make
 * @returns {Reducer}
 */
function reducer(name, make) {
  load();
  /** @type {ReturnType<typeof make> | undefined} */
  let work;
  return (messages, overflow) => {
    if (!late.reduction) throw misuse(`\`${name}\` is still being loaded; agents wait for that, and a call of your own can wait for the next task`);
    work ??= make(late.reduction);
    return work(messages, overflow);
  };
}

/** @param {string} name @param {any} options @param {{ [name: string]: Shape }} shape @param {string[]} required */
function check(name, options, shape, required) {
  if (options === undefined) throw misuse(`\`${name}\` needs its options: { ${required.join(", ")} }`);
  checkShape(name, options, shape);
  for (const key of required) if (options[key] === undefined) throw misuse(`\`${name}\` needs \`${key}\``);
}

/** @param {SlidingWindowOptions} options */
export function slidingWindow(options) {
  check("slidingWindow", options, { tokens: "count", overflowTokens: "count", anchor: "whole" }, ["tokens"]);
  return reducer("slidingWindow", ({ windowed }) => windowed(options));
}

/** @param {number} count of the newest results, and of the newest answers, that stay whole */
export function keepLast(count) {
  checkShape("keepLast", count ?? null, "count");
  return reducer("keepLast", ({ keptLast }) => keptLast(count));
}

/** @param {{ keepLast: number }} options */
export function pruneToolResults(options) {
  check("pruneToolResults", options, { keepLast: "count" }, ["keepLast"]);
  return reducer("pruneToolResults", ({ pruned }) => pruned(options.keepLast));
}

/** @param {BudgetTrimOptions} options */
export function budgetTrim(options) {
  check("budgetTrim", options, { contextWindow: "whole", maxOutputTokens: "whole", fraction: "finite", keepLast: "whole" }, ["contextWindow"]);
  return reducer("budgetTrim", ({ trimmed }) => trimmed(options));
}

/** @param {readonly Reducer[]} reducers each is given what the one before it left */
export function reduce(reducers) {
  if (!Array.isArray(reducers) || !reducers.every((each) => typeof each === "function")) throw misuse(`\`reduce\` needs an array of reducers, got ${kindOf(reducers)}`);
  const list = [...reducers];
  return reducer("reduce", ({ inOrder }) => inOrder(list));
}
