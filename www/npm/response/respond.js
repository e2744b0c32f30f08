// @ts-check
// A run as a Response. The code that makes the body is loaded when somebody reads it, so an app that never
// asks for a response does not ship it.

import { checkNames, kindOf, misuse } from "../errors/errors.js";

/** @type {Record<"events" | "uiMessages", Record<string, string>>} */
const HEADERS = {
  events: { "content-type": "text/event-stream", "cache-control": "no-store" },
  uiMessages: { "content-type": "text/event-stream", "cache-control": "no-store", "x-vercel-ai-ui-message-stream": "v1" },
};

const OPTIONS = ["status", "statusText", "headers", "keepAliveMs", "abortOnLeave"];
const KNOWN = {
  events: [...OPTIONS, "lastEventId"],
  uiMessages: [...OPTIONS, "messageId", "messageMetadata", "onError", "toolOutput", "waitsForApproval"],
};

/**
 * The events of a run since a response was first requested.
 * @typedef {{ events: any[], isOver: boolean, waiting: Set<() => void>, segments?: number[] }} Recording
 */

/** @param {any} driver @param {"events" | "uiMessages"} kind @param {any} [init] */
export function respond(driver, kind, init = {}) {
  if (typeof init !== "object" || init === null) throw misuse(`the options of a response must be an object, got ${kindOf(init)}`);
  checkNames("unknown option", init, KNOWN[kind]);
  const after = Number(init.lastEventId ?? 0);
  if (!(Number.isInteger(after) && after >= 0)) throw misuse(`\`lastEventId\` must be the number of an event, got ${JSON.stringify(init.lastEventId)}`);
  const recording = (driver.recording ??= record(driver));
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(HEADERS[kind])) headers.set(name, value);
  headers.set("x-turnwheel-run", driver.runId);
  /** @type {Promise<any> | undefined} */
  let loaded;
  const source = () => (loaded ??= import("./bodies.js").then((module) => module[kind](driver, recording, after, init)));
  const body = new ReadableStream(
    {
      pull: async (controller) => (await source()).pull(controller),
      cancel: async () => (await source()).cancel(),
    },
    // Nothing is produced before somebody reads.
    { highWaterMark: 0 },
  );
  return new Response(body, { status: init.status, statusText: init.statusText, headers });
}

/** @param {any} driver @returns {Recording} */
function record(driver) {
  const { core, runId, end } = driver;
  /** @type {Recording} */
  const recording = { events: end ? [end] : [], isOver: end !== undefined, waiting: new Set() };
  const take = (/** @type {any} */ event) => {
    recording.events.push(event);
    recording.isOver = event.type === "agent_end";
    for (const wake of recording.waiting) wake();
    recording.waiting.clear();
  };
  if (recording.isOver) return recording;
  const leave = core.subscribe((/** @type {any} */ event) => {
    if (event.runId !== runId) return;
    if (event.type !== "agent_end") return take(event);
    leave();
    if (!core.output) return take(event);
    // The structured output is known slightly later than the event.
    driver.result.then(({ output }) => take(output === undefined ? event : { ...event, output }));
  });
  return recording;
}
