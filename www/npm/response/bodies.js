// @ts-check
// The bodies of responses: a run's events as server-sent events, and as the AI SDK's UI message stream. Each
// listener reads the shared list of events at its own pace; all that is kept for it is its position.

import { body, sse, waitForWake } from "./sse.js";
import { UIMessages } from "./uimessages.js";

/** @import { Init, Recording, Source } from "./respond.js" */
/** @import { Body } from "./sse.js" */
/** @import { Chunk } from "./uimessages.js" */

/** The key under which an entry of the package gives its own way to write a body: a function of the run, its recording and the options. */
export const BODY = Symbol.for("turnwheel.body");

/** How many events are sent in one chunk. */
const EVENTS_PER_CHUNK = 64;

/**
 * How a body waits for the next event, and leaves.
 * @param {Source} run @param {Recording} recording @param {Init} init
 * @param {() => number} at the position of this listener
 */
const waitFor = (run, recording, { keepAliveMs, abortOnLeave }, at) => ({
  waitForMore: async (/** @type {AbortSignal} */ signal) => {
    if (at() >= recording.events.length && !recording.isOver) await waitForWake(recording.waiting, signal);
  },
  sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => run.sleep(ms, signal),
  keepAliveMs,
  onLeave: () => {
    if (abortOnLeave) run.abort("the listener left");
  },
});

/**
 * Streams the run's events.
 * @param {Source} run @param {Recording} recording @param {number} after
 * @param {Init & { [BODY]?: (run: Source, recording: Recording, init: Init) => Body }} init @returns {Body}
 */
export function events(run, recording, after, init) {
  const write = init[BODY];
  if (write) return write(run, recording, init);
  return body({
    ...waitFor(run, recording, init, () => after),
    take() {
      const from = after;
      after = Math.max(after, Math.min(recording.events.length, after + EVENTS_PER_CHUNK));
      return recording.events.slice(from, after).map((event, i) => sse(from + i + 1, JSON.stringify(event))).join("");
    },
    isOver: () => recording.isOver && after >= recording.events.length,
  });
}

/**
 * Streams UI messages. The stream ends where the run waits for a person, because useChat can only answer a
 * stream that has ended; the next response continues from there.
 * @param {Source} run @param {Recording} recording @param {number} _after @param {Init} init @returns {Body}
 */
export function uiMessages(run, recording, _after, init) {
  const { waitsForApproval = false } = init;
  const { segments } = recording;
  const segment = segments.length - 1;
  const stream = new UIMessages({ ...init, isForPeople: (id) => run.isForPeople(id) });
  let at = /** @type {number} */ (segments[segment]);
  for (const event of recording.events.slice(0, at)) stream.replay(event);
  let isDone = false;
  const pieces = (/** @type {Chunk[]} */ chunks) => chunks.map((chunk) => sse(undefined, JSON.stringify(chunk))).join("");
  const done = (/** @type {Chunk[]} */ chunks) => ((isDone = true), `${pieces(chunks)}data: [DONE]\n\n`);
  let hasBegun = false;
  return body({
    ...waitFor(run, recording, init, () => at),
    async take() {
      // What continues a message of the page leaves it its id.
      let text = hasBegun ? "" : pieces(stream.begin(run.runId, segment === 0 && recording.events[0]?.type === "agent_start"));
      hasBegun = true;
      if (isDone) return;
      const to = Math.min(segments[segment + 1] ?? Infinity, recording.events.length, at + EVENTS_PER_CHUNK);
      for (const event of recording.events.slice(at, to)) text += pieces(stream.take(event));
      at = to;
      if (stream.isOver) return text + done([]);
      if (at < recording.events.length && at !== segments[segment + 1]) return text;
      if (at === segments[segment + 1]) return text + done(stream.pause());
      if (waitsForApproval || !stream.isWaiting) return text;
      // Gives a listener the chance to decide right away: then no person needs to be asked.
      for (let i = 0; i < 8; i++) await undefined;
      if (at < recording.events.length) return text;
      segments[segment + 1] ??= at;
      return text + done(stream.pause());
    },
    isOver: () => isDone,
  });
}
