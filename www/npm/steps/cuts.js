// @ts-check
// What ends at once what is at work: an abort, an `immediate` letter, a time limit of a run. The mail itself has what had arrived
// by then of the answers that it cuts: their own records may be stored later than it, or never.

/** @import { Mail } from "./journal.js" */
/** Where the answers are, as what comes before the names of their steps, and what had arrived, by step. @typedef {{ under: string, answers: { [step: string]: any } }} Cuts */

/** Whether a command ends what is at work, as soon as it enters. @param {any} command @param {{ when?: string, inFlight?: string } | undefined} steering */
export const isCutting = ({ kind, letter }, steering) => kind === "cancel" || (kind === "steer" && (letter?.when ?? steering?.when) === "immediate" && steering?.inFlight !== "finish");

/** Whether mail cuts the answer of a run. A letter cuts those inside its run. @param {Mail} mail @param {string} prefix */
export const cutsIn = ({ run, command, cuts }, prefix) => cuts !== undefined && prefix.startsWith(cuts.under) && !(command.kind === "steer" && prefix === run);
