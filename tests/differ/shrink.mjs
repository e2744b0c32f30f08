// @ts-check
// Makes a sequence shorter for as long as it still shows the difference: without steps, answers, options, tools.

/** @import { Plan } from "./plan.mjs" */

/** How often a shorter one is tried. */
const TRIES = 300;

/** The lists that entries are dropped from. @type {(keyof Plan)[]} */
const LISTS = ["steps", "after", "script", "childScript", "tools"];
/** The records that members are dropped from. @type {(keyof Plan)[]} */
const RECORDS = ["options", "functions"];

/** @param {Plan} plan @param {(plan: Plan) => Promise<boolean>} isShown whether a shorter one shows it, too @returns {Promise<Plan>} */
export async function shrink(plan, isShown) {
  let best = plan;
  let tries = 0;
  const holds = async (/** @type {Plan} */ shorter) => {
    if (tries++ >= TRIES || !(await isShown(shorter))) return false;
    best = shorter;
    return true;
  };
  for (let size = -1; size !== sizeOf(best) && tries < TRIES; ) {
    size = sizeOf(best);
    for (const name of LISTS) await withFewer(name);
    for (const name of RECORDS) for (const member of Object.keys(best[name])) await holds({ ...best, [name]: without(best[name], member) });
    if (best.history > 0) await holds({ ...best, history: 0 });
    for (const name of /** @type {const} */ (["steps", "after", "script"])) await simpler(name);
  }
  return best;

  /** Drops halves of a list, then quarters, then single entries. @param {keyof Plan} name */
  async function withFewer(name) {
    const list = () => /** @type {any[]} */ (best[name]);
    for (let length = Math.ceil(list().length / 2); length >= 1; length = length > 1 ? Math.ceil(length / 2) : 0) {
      for (let from = list().length - length; from >= 0; from -= length) {
        if (from + length > list().length) continue;
        await holds({ ...best, [name]: [...list().slice(0, from), ...list().slice(from + length)] });
      }
    }
  }

  /** Leaves out the members of steps and answers. @param {"steps" | "after" | "script"} name */
  async function simpler(name) {
    for (let at = 0; at < best[name].length; at++) {
      for (const member of Object.keys(best[name][at] ?? {})) {
        if (["do", "input", "value", "name", "decision", "which"].includes(member)) continue;
        await holds({ ...best, [name]: /** @type {any[]} */ (best[name]).map((each, i) => (i === at ? without(each, member) : each)) });
      }
    }
  }
}

/** @param {any} record @param {string} member */
const without = (record, member) => Object.fromEntries(Object.entries(record).filter(([name]) => name !== member));

/** @param {Plan} plan */
const sizeOf = (plan) => JSON.stringify(plan).length;
