// @ts-check
// Stable names of effects, as a tape has them: src/machine/name.rs says the same. The same run, lived again, has the same names.

/** @import { Driver } from "../run/driver.js" */

/** The longest name, and the longest part of a tool's name in it, in bytes. */
const LONGEST = 200;
const LONGEST_TOOL = 64;

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
    return shortened(mark ? name + mark + count : count > 1 ? `${name}.${count}` : name);
  }
}

/** The place of a call in its answer, for ids of providers are texts of any length. @param {Driver} run @param {string} callId */
export const placeOf = (run, callId) => [...run.fold.knownCalls().keys()].indexOf(callId);

/** @param {Driver} run @param {{ callId: string, name: string }} call */
export const toolKind = (run, { callId, name }) => `${placeOf(run, callId)}-${cut(name, LONGEST_TOOL)}`;

/** Cuts a name that is too long, and ends it in a hash of the whole (FNV-1a, 64 bits). @param {string} name */
function shortened(name) {
  if (name.length * 3 <= LONGEST) return name;
  const bytes = new TextEncoder().encode(name);
  if (bytes.length <= LONGEST) return name;
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return `${cut(name, LONGEST - String(hash).length - 1)}~${hash}`;
}

/** The beginning of a text, in whole letters. @param {string} text @param {number} length in bytes */
function cut(text, length) {
  const bytes = new TextEncoder().encode(text);
  return bytes.length <= length ? text : new TextDecoder().decode(bytes.subarray(0, length), { stream: true });
}
