// @ts-check
// Stable names of effects, as a tape has them: src/machine/name.rs says the same. The same run, lived again, has the same names.

/** @import { Driver } from "../run/driver.js" */

/** Gives the effects of one run their names, in the order in which they start. */
export class EffectNames {
  /** @param {string} [prefix] what comes before every name */
  constructor(prefix = "") {
    this.prefix = prefix;
    this.turn = -1;
    /** How often each name was given in this turn. @type {Map<string, number>} */
    this.given = new Map();
  }

  /**
   * Names an effect that starts now. One that starts again in the same turn gets a number.
   * @param {Driver} run @param {string} kind @param {string} [mark] stands before a number that is always there
   */
  name({ fold }, kind, mark) {
    const turn = fold.turn?.turnIndex ?? Math.max(fold.turns - 1, 0);
    if (turn !== this.turn) {
      this.turn = turn;
      this.given.clear();
    }
    const name = `${this.prefix}t${turn}/${kind}`;
    const count = (this.given.get(name) ?? 0) + 1;
    this.given.set(name, count);
    return mark ? name + mark + count : count > 1 ? `${name}.${count}` : name;
  }
}

/** The place of a call in its answer, for ids of providers are texts of any length. @param {Driver} run @param {string} callId */
export const placeOf = (run, callId) => [...run.fold.knownCalls().keys()].indexOf(callId);
