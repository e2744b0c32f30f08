// @ts-check
// What the steps of a run say and are told.

import { placeOf } from "../core.js";

/** @import { Driver } from "../run/driver.js" */
/** @import { Journal } from "./journal.js" */

/** Whether a call that is about to begin may have begun before, in a process that has ended. @param {Journal} journal @param {string} life of the marker @param {{ attempt?: number } | undefined} info */
export function mayHaveRun(journal, life, info) {
  // Where each step has a process of its own, the marker is always of another one.
  if (journal.isOrdered && info?.attempt !== undefined) return info.attempt > 1;
  return life !== journal.life || (info?.attempt ?? 1) > 1;
}

/** @param {Driver} run @param {{ stage: string, call?: { callId: string } }} effect */
export function hookKind(run, { stage, call }) {
  const word = stage.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return `hook/${word}${call ? `/${placeOf(run, call.callId)}` : ""}`;
}

/** Whether an event is the end of an answer. @param {string} type */
export const isEnd = (type) => type === "done" || type === "error";

/** A call of a model as plain JSON: without its key. @param {Driver} run @param {any} effect */
export function modelData(run, { kind, model, request }) {
  const { known } = run.core.settings.models;
  const id = known[model]?.id;
  if (kind === "key" || !request) return { kind: "model", model: id };
  const { apiKey: _, messages, ...rest } = request;
  return { kind: "model", model: id, request: { ...rest, messages: run.resolveRefs(messages) } };
}
