// @ts-check
// Where an inspector takes what it shows from: an agent, here or elsewhere, a log that the page fills, or a tape.

import { kindOf, misuse } from "../shared.js";
import { InspectorLog } from "./model/log.js";
import { openTape } from "./tape-log.js";

/** @import { InspectedAgent, InspectorSource } from "../inspector.js" */
/** What is shown, whether it may still grow, and how to let go of it. @typedef {{ log: InspectorLog, isLive: boolean, toText?: () => string, close: () => void }} Opened */

/**
 * Opens a source. A tape takes a moment: it is lived again first.
 * @param {InspectorSource} source @returns {Opened | Promise<Opened>}
 */
export function open(source) {
  const given = /** @type {any} */ (source);
  if (given instanceof InspectorLog) return { log: given, isLive: true, close: () => {} };
  if (typeof given?.subscribe === "function" && Array.isArray(given.messages)) {
    const log = new InspectorLog();
    return { log, isLive: true, close: log.follow(/** @type {InspectedAgent} */ (given)) };
  }
  if (typeof given?.toText === "function" && given.header) return openTape(given);
  const hint = typeof given === "string" ? "; Tape.parse(text) of turnwheel/tape makes a tape of a text" : "";
  throw misuse(`\`source\` must be an agent, a remote agent, a tape or an InspectorLog, got ${kindOf(given)}${hint}`);
}
