// @ts-check
// The answers of context transformers. Messages that the engine has are referred to, not sent.

import { misuse, quiet } from "../core.js";

/** @import { AgentMessage, CompactionReport } from "../index.js" */
/**
 * A message, or a range of the history, [from, to].
 * @typedef {AgentMessage | [number, number]} Ref
 */
/** @typedef {{ view: Ref[], report?: Partial<CompactionReport> } | { replace: Ref[], report: Partial<CompactionReport> | null } | null} Transformed */

/**
 * Converts a transformer's answer.
 * @param {any} answer @param {AgentMessage[]} history @param {number} [length] of the list that the transformer received
 * @returns {Transformed}
 */
export function transformAnswer(answer, history, length = history.length) {
  if (answer === undefined || answer === null) return null;
  quiet(answer);
  if (typeof answer !== "object" || answer instanceof Promise) {
    throw misuse("a context transformer must give nothing, an array of messages, or { messages, report? }");
  }
  if (Array.isArray(answer)) {
    const view = refs(answer, history);
    const isWhole = answer.length === history.length && view.length === 1 && Array.isArray(view[0]);
    // A stock reducer reports what it left out of its view.
    const { report } = /** @type {{ report?: Partial<CompactionReport> }} */ (/** @type {unknown} */ (answer));
    return isWhole ? null : { view, ...(report && { report }) };
  }
  if (!Array.isArray(answer.messages)) throw misuse("a context transformer that gives an object must give { messages: [...] }");
  const { report } = answer;
  return { replace: refs(answer.messages, history), report: report ? { text: "", droppedCount: Math.max(0, length - answer.messages.length), ...report } : null };
}

/** @param {readonly AgentMessage[]} messages @param {AgentMessage[]} history */
function refs(messages, history) {
  /** @type {Ref[]} */
  const found = [];
  /** @type {Map<AgentMessage, number> | undefined} */
  let indexes;
  /** @type {[number, number]} */
  let range = [0, 0];
  for (const message of messages) {
    const next = range[1];
    // Usually the messages are in order, with a gap at times. If they are shuffled or new, a map is built.
    let at = indexes ? indexes.get(message) ?? -1 : history[next] === message ? next : history.indexOf(message, next);
    if (at < 0 && !indexes) {
      indexes = new Map(history.map((known, index) => [known, index]));
      at = indexes.get(message) ?? -1;
    }
    // The engine would read an array as a range.
    if (Array.isArray(message)) throw misuse("a context transformer must give messages, got an array among them");
    if (at < 0) found.push(message);
    else if (at === next && found.at(-1) === range) range[1]++;
    else found.push((range = [at, at + 1]));
  }
  return found;
}
