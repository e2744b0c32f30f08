// @ts-check
// What a page may show of a checkpoint before the engine is there.

import { allQuestions } from "./questions.js";
import { fromCheckpoint, reading } from "./read.js";

/** @param {unknown} checkpoint */
export function peek(checkpoint) {
  return reading(() => {
    const { messages, state } = fromCheckpoint(checkpoint);
    return { messages, pendingQuestions: state ? allQuestions(state, messages, () => true) : [] };
  });
}
