// @ts-check
// Checks of options that are numbers or functions.

import { misuse } from "../errors/errors.js";
import { checkNames, kindOf, shownOf } from "../errors/names.js";

/**
 * Returns the given numbers, with defaults for the missing ones.
 * @template {string} Name @param {string} where @param {object | undefined} given @param {Record<Name, number>} defaults @returns {Record<Name, number>}
 */
export function numbersWithDefaults(where, given = {}, defaults) {
  const all = { ...defaults };
  checkNames(`unknown option \`${where}.`, given ?? {}, defaults);
  for (const [name, value] of Object.entries(given ?? {})) {
    if (value === undefined) continue;
    if (typeof value !== "number" || !(value >= 0)) throw misuse(`\`${where}.${name}\` must be a number from 0 on, got ${shownOf(value)}`);
    all[/** @type {Name} */ (name)] = value;
  }
  return all;
}

/**
 * Throws if one of these options is given and is not a function.
 * @param {object} options @param {string[]} names
 */
export function checkFunctions(options, names) {
  for (const name of names) {
    const given = /** @type {Record<string, unknown>} */ (options)[name];
    if (given !== undefined && typeof given !== "function") throw misuse(`\`${name}\` must be a function, got ${kindOf(given)}`);
  }
}
