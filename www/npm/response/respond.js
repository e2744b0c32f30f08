// @ts-check
// A run as a Response. The code that makes the body is loaded when somebody reads it, so an app that never
// asks for a response does not ship it.

import { misuse } from "../errors/errors.js";
import { checkNames, kindOf } from "../errors/names.js";
import { common } from "../host/copies.js";

/** @import { AgentEvent, AgentResult, EventResponseInit, UIMessageResponseInit } from "../index.js" */
/** @import { AgentEnd } from "../events/fold.js" */
/**
 * What a response needs of a run, which may be here or elsewhere.
 * @typedef {object} Source
 * @property {string} runId
 * @property {AgentEnd | undefined} end the event that ended it
 * @property {import("../events/fold.js").Fold} fold what its events add up to
 * @property {Promise<AgentResult>} result
 * @property {(id: string) => boolean} isForPeople whether a question was one for a person when it was asked
 * @property {boolean} hasOutput whether the answer has a schema
 * @property {(listener: (event: AgentEvent) => void) => () => void} subscribe
 * @property {(ms: number, signal: AbortSignal) => Promise<unknown>} sleep
 * @property {(reason?: unknown) => void} abort
 */
/** @typedef {AgentEvent & { output?: unknown }} RecordedEvent */
/**
 * The events of a run since a response was first requested. A UI message stream ends where the run waits for a
 * person; `segments` says where.
 * @typedef {{ events: RecordedEvent[], isOver: boolean, waiting: Set<() => void>, segments: number[] }} Recording
 */
/** @typedef {EventResponseInit & UIMessageResponseInit} Init */

/** @type {Record<"events" | "uiMessages", Record<string, string>>} */
const HEADERS = {
  events: { "content-type": "text/event-stream", "cache-control": "no-store, no-transform", "x-accel-buffering": "no" },
  uiMessages: { "content-type": "text/event-stream", "cache-control": "no-store, no-transform", "x-accel-buffering": "no", "x-vercel-ai-ui-message-stream": "v1" },
};

const OPTIONS = ["status", "statusText", "headers", "keepAliveMs", "abortOnLeave"];
const KNOWN = {
  events: [...OPTIONS, "lastEventId"],
  uiMessages: [...OPTIONS, "messageId", "messageMetadata", "onError", "toolOutput", "waitsForApproval", "dataParts", "aiVersion"],
};

/** The recordings of the runs of which a response was requested. @type {WeakMap<Source, Recording>} */
const recordings = (common.recordings ??= new WeakMap());

/** @param {Source} run @param {"events" | "uiMessages"} kind @param {Init} [init] */
export function respond(run, kind, init = {}) {
  if (typeof init !== "object" || init === null) throw misuse(`the options of a response must be an object, got ${kindOf(init)}`);
  checkNames("unknown option", init, KNOWN[kind]);
  const after = Number(init.lastEventId ?? 0);
  if (!(Number.isInteger(after) && after >= 0)) throw misuse(`\`lastEventId\` must be the number of an event, got ${JSON.stringify(init.lastEventId)}`);
  const known = recordings.get(run);
  // What a reader of events missed it knows by their numbers; a message cannot begin in its middle.
  if (!known && kind === "uiMessages" && (run.end || run.fold.turn || run.fold.turns > 0)) throw misuse("a UI message stream begins with its run, which has begun; ask for it right after `prompt`, before any `await`");
  const recording = known ?? record(run);
  recordings.set(run, recording);
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(HEADERS[kind])) headers.set(name, value);
  // A header takes Latin letters only, and an id may have others.
  headers.set("x-turnwheel-run", run.runId.replace(/\p{Surrogate}/gu, "\ufffd").replace(/[^!-$&-~]/gu, encodeURIComponent));
  /** @type {Promise<import("./sse.js").Body> | undefined} */
  let loaded;
  const source = () => (loaded ??= import("./bodies.js").then((module) => module[kind](run, recording, after, init)));
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

/** @param {Source} run @returns {Recording} */
function record(run) {
  const { end } = run;
  /** @type {Recording} */
  const recording = { events: end ? [end] : [], isOver: end !== undefined, waiting: new Set(), segments: [0] };
  const take = (/** @type {RecordedEvent} */ event) => {
    recording.events.push(event);
    recording.isOver = event.type === "agent_end";
    for (const wake of recording.waiting) wake();
    recording.waiting.clear();
  };
  if (recording.isOver) return recording;
  const leave = run.subscribe((event) => {
    if (event.runId !== run.runId) return;
    if (event.type !== "agent_end") return take(event);
    leave();
    if (!run.hasOutput) return take(event);
    // The structured output is known slightly later than the event.
    run.result.then(({ output }) => take(output === undefined ? event : { ...event, output }));
  });
  return recording;
}
