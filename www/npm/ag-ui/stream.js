// @ts-check
// A run as a stream of AG-UI events, and as a Response. The events of a run are recorded once, as for its other responses; a
// client that answers, or comes back, reads on from there.

import { BODY } from "../response/bodies.js";
import { body, sse, waitForWake } from "../response/sse.js";
import { checkNames, kindOf, misuse } from "../shared.js";
import { AGUIEvents } from "./events.js";

/** @import { AgentRun, JsonValue } from "../index.js" */
/** @import { AGUIEvent, AGUIOptions, AGUIResponseInit } from "../ag-ui.js" */
/** @import { Init, Recording, Source } from "../response/respond.js" */
/** @import { Body } from "../response/sse.js" */
/** @typedef {{ [key: string]: JsonValue }} State */

const OPTIONS = ["input", "threadId", "runId", "state", "onError"];
const EVENTS_PER_CHUNK = 64;

/** Where the responses of a run begin, and the session's state before its first event. @type {WeakMap<Recording, { segments: number[], state: State }>} */
const tracks = new WeakMap();

/**
 * The events of a run until it ends, or until it waits for the client.
 * @param {AgentRun} run @param {AGUIOptions} [options] @returns {AsyncIterable<AGUIEvent>}
 */
export function toAGUI(run, options = {}) {
  check(run, options, OPTIONS);
  /** @type {(opened: { source: Source, recording: Recording }) => void} */
  let resolve;
  const opened = new Promise((/** @type {(opened: { source: Source, recording: Recording }) => void} */ done) => (resolve = done));
  /** @param {Source} source @param {Recording} recording @returns {Body} */
  const open = (source, recording) => {
    resolve({ source, recording });
    return { start() {}, pull: async (controller) => controller.close(), cancel() {}, end() {} };
  };
  // The run is recorded from here on, whenever somebody reads.
  const response = run.toResponse(/** @type {object} */ ({ [BODY]: open }));
  return {
    async *[Symbol.asyncIterator]() {
      if (!response.bodyUsed) await response.text();
      const { source, recording } = await opened;
      const segment = new Segment(source, recording, options);
      while (!segment.isOver) {
        yield* await segment.take();
        if (segment.isBehind) await new Promise((wake) => recording.waiting.add(() => wake(undefined)));
      }
    },
  };
}

/**
 * The same as server-sent events.
 * @param {AgentRun} run @param {AGUIResponseInit} [init] @returns {Response}
 */
export function toAGUIResponse(run, init = {}) {
  check(run, init, [...OPTIONS, "status", "statusText", "headers", "keepAliveMs", "abortOnLeave"]);
  const rest = Object.fromEntries(Object.entries(init).filter(([name]) => !OPTIONS.includes(name)));
  /** @param {Source} source @param {Recording} recording @param {Init} own @returns {Body} */
  const write = (source, recording, { keepAliveMs, abortOnLeave }) => {
    const segment = new Segment(source, recording, init);
    return body({
      take: async () => (await segment.take()).map((event) => sse(undefined, JSON.stringify(event))).join(""),
      isOver: () => segment.isOver,
      waitForMore: async (signal) => {
        if (segment.isBehind) await waitForWake(recording.waiting, signal);
      },
      sleep: (ms, signal) => source.sleep(ms, signal),
      keepAliveMs,
      onLeave: () => {
        if (abortOnLeave && !segment.isOver) source.abort("the client left");
      },
    });
  };
  return run.toResponse(/** @type {object} */ ({ ...rest, [BODY]: write }));
}

/** What one response tells of a run: a run of its own for the client. */
class Segment {
  /** @param {Source} source @param {Recording} recording @param {AGUIOptions} options */
  constructor(source, recording, { input, threadId = input?.threadId, runId = input?.runId, state, onError }) {
    const track = tracks.get(recording) ?? { segments: [0], state: stateBefore(source, recording) };
    tracks.set(recording, track);
    this.recording = recording;
    this.segments = track.segments;
    this.number = track.segments.length - 1;
    const events = new AGUIEvents(source.runId, {
      threadId: threadId ?? source.runId,
      // For the client each response is a run, and the second one of a run needs an id of its own.
      runId: runId ?? (this.number === 0 ? source.runId : `${source.runId}.${this.number + 1}`),
      protocolVersion: input?.protocolVersion,
      frontendTools: new Set(input?.tools?.map(({ name }) => name)),
      isForPeople: (id) => source.isForPeople(id),
      state: state ?? track.state,
      showsState: state !== undefined || Object.keys(track.state).length > 0,
      onError: onError ?? (({ message }) => message),
    });
    this.events = events;
    this.at = /** @type {number} */ (track.segments[this.number]);
    for (const event of recording.events.slice(0, this.at)) events.take(event);
    events.rest();
    /** The events that were not taken yet. */
    this.first = events.begin();
  }

  get isOver() {
    return this.events.isOver && this.first.length === 0;
  }

  /** Whether the run must go on first. */
  get isBehind() {
    return !this.isOver && this.at >= this.recording.events.length && !this.recording.isOver;
  }

  /** @returns {Promise<AGUIEvent[]>} */
  async take() {
    const { recording, events, segments, number } = this;
    const taken = this.first.splice(0);
    if (events.isOver) return taken;
    const next = segments[number + 1];
    const to = Math.min(next ?? Infinity, recording.events.length, this.at + EVENTS_PER_CHUNK);
    for (const event of recording.events.slice(this.at, to)) taken.push(...events.take(event));
    this.at = to;
    if (to === next) return [...taken, ...events.pause()];
    if (events.isOver || to < recording.events.length || !events.isWaiting) return taken;
    // Gives a listener the chance to decide right away: then nobody needs to be asked.
    for (let i = 0; i < 8; i++) await undefined;
    if (to < recording.events.length) return taken;
    segments[number + 1] ??= to;
    return [...taken, ...events.pause()];
  }
}

/**
 * The session's state before the first event of a recording. What had been changed by the time somebody read was, as far as is
 * known, not there.
 * @param {Source & { core?: { session: { state: Map<string, JsonValue> } } }} source of a run that is elsewhere only the events are known
 * @param {Recording} recording @returns {State}
 */
function stateBefore({ core }, { events }) {
  const state = Object.fromEntries(core?.session.state ?? []);
  for (const event of events) if (event.type === "state_changed") for (const key of Object.keys(event.changes)) delete state[key];
  return state;
}

/** @param {AgentRun} run @param {object} options @param {string[]} known */
function check(run, options, known) {
  if (typeof run?.toResponse !== "function") throw misuse(`a run is needed, as \`prompt\` gives it, got ${kindOf(run)}`);
  checkNames("unknown option", options, known);
  const { threadId, runId, input, state, onError } = /** @type {Record<string, unknown>} */ (options);
  for (const [name, value] of Object.entries({ input, state })) if (value !== undefined && (typeof value !== "object" || value === null)) throw misuse(`\`${name}\` must be an object${name === "input" ? ", as fromAGUI gives it" : ""}, got ${kindOf(value)}`);
  if (onError !== undefined && typeof onError !== "function") throw misuse(`\`onError\` must be a function that gives the text for the client, got ${kindOf(onError)}`);
  if (runId !== undefined && typeof runId !== "string") throw misuse(`\`runId\` must be a text, got ${kindOf(runId)}`);
  if (threadId !== undefined && typeof threadId !== "string") throw misuse(`\`threadId\` must be a text, got ${kindOf(threadId)}`);
}
