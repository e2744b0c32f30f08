// @ts-check
// Names that engines can store: at most so long, also deep inside the calls of sub-agents.

import { EffectNames, placeOf } from "../core.js";

/** @import { Driver } from "../run/driver.js" */

/** The longest name, and the longest part of a tool's name in it, in bytes. */
const LONGEST = 200;
const LONGEST_TOOL = 64;

export class StepNames extends EffectNames {
  /** @override @param {Driver} run @param {string} kind @param {string} [mark] */
  name(run, kind, mark) {
    return shortened(super.name(run, kind, mark));
  }
}

/** @param {Driver} run @param {{ callId: string, name: string }} call */
export const toolKind = (run, { callId, name }) => `${placeOf(run, callId)}-${cut(name, LONGEST_TOOL)}`;

/** FNV-1a, 64 bits. @param {string | Uint8Array} given */
export function hashOf(given) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of typeof given === "string" ? new TextEncoder().encode(given) : given) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return String(hash);
}

/** Cuts a name that is too long, and ends it in a hash of the whole. @param {string} name */
function shortened(name) {
  if (name.length * 3 <= LONGEST) return name;
  const bytes = new TextEncoder().encode(name);
  if (bytes.length <= LONGEST) return name;
  const hash = hashOf(bytes);
  return `${cut(name, LONGEST - hash.length - 1)}~${hash}`;
}

/** The beginning of a text, in whole letters. @param {string} text @param {number} length in bytes */
function cut(text, length) {
  const bytes = new TextEncoder().encode(text);
  return bytes.length <= length ? text : new TextDecoder().decode(bytes.subarray(0, length), { stream: true });
}
