// @ts-check
// What the page itself keeps of its run for the next time it is opened: which run it is, how it was prompted, and what somebody
// has done to it. No key.

import { FIRST_CHOICE } from "./providers.js";

/** @typedef {import("./providers.js").Choice} Choice */
/**
 * `offset` is how far the page's clock is ahead, `sleeps` by which jumps, and `marks` what was pressed when, on that clock.
 * @typedef {{ run: string, prompts: string[], version: number, offset: number, sleeps: { at: number, ms: number }[], isArmed: boolean, isOffline: boolean, marks: { at: number, text: string }[], choice: Choice }} State
 */

const STORED = "turnwheel-demo-run";
/** The newest marks are kept. */
const MOST_MARKS = 200;

/** @returns {State} */
export const firstState = () => ({ run: "", prompts: [], version: 1, offset: 0, sleeps: [], isArmed: false, isOffline: false, marks: [], choice: FIRST_CHOICE });

/** @returns {State} */
export function loadState() {
  try {
    const stored = JSON.parse(localStorage.getItem(STORED) ?? "{}");
    const state = { ...firstState(), ...stored };
    const isWhole = typeof state.run === "string" && [state.prompts, state.sleeps, state.marks].every(Array.isArray) && Number.isSafeInteger(state.offset) && typeof state.choice?.row === "string";
    return isWhole ? { ...state, choice: { ...FIRST_CHOICE, ...state.choice } } : firstState();
  } catch {
    // Another version of the page, or a person, has written it.
    return firstState();
  }
}

/** @param {State} state */
export function saveState(state) {
  state.marks.splice(0, state.marks.length - MOST_MARKS);
  const { apiKey, ...choice } = state.choice;
  localStorage.setItem(STORED, JSON.stringify({ ...state, choice }));
}

/** A time on the page's clock without the sleeps before it, in which nothing happened. @param {State} state @param {number} at */
export const awake = ({ sleeps }, at) => at - sleeps.filter((sleep) => at >= sleep.at).reduce((sum, { ms }) => sum + ms, 0);
