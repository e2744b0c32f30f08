// @ts-check
// The page that inspector.test.mjs drives: an inspector, and functions that give it something to show.

import { Agent, custom, scripted, subagent, tool } from "/pkg/entry/web.js";
import { InspectorLog } from "/pkg/inspector.js";
import { RemoteAgent } from "/pkg/remote.js";
import { longRun } from "/tests/js/browser/inspector/events.mjs";

const inspector = /** @type {any} */ (document.querySelector("turnwheel-inspector"));
const frames = (/** @type {number} */ count) => new Promise((resolve) => {
  const next = (/** @type {number} */ left) => (left === 0 ? resolve(undefined) : requestAnimationFrame(() => next(left - 1)));
  next(count);
});

Object.assign(globalThis, {
  Agent, InspectorLog, RemoteAgent, custom, inspector, frames, scripted, subagent, tool,
  /** @param {number} count */
  showLongRun(count) {
    const log = new InspectorLog();
    longRun((event, known) => log.push(event, known), { count });
    inspector.source = log;
    return log.end;
  },
});
document.documentElement.dataset["ready"] = "";
