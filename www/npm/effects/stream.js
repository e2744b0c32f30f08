// @ts-check
// Reads a model that the host streams itself.

import { DELTAS } from "../boundary/protocol.js";
import { setupOf } from "../models/setup.js";
import { AgentError, infoOf, LONGEST_RESULT, quiet } from "../core.js";
import { quietly } from "./slot.js";

/** @import { AssistantMessageEvent, ModelRequest } from "../index.js" */
/** @import { Driver } from "../run/driver.js" */
/** @import { Slot } from "./slot.js" */
/** @typedef {{ kind: "stream", model: number, request: ModelRequest }} StreamEffect */

/** @type {Map<string, number>} */
const KINDS = new Map(Object.entries(DELTAS));

/** Whether the engine can take a value as the place of a block: a whole number of 32 bits. @param {unknown} value @returns {value is number} */
const isIndex = (value) => typeof value === "number" && value >>> 0 === value;

/** @param {Driver} run @param {number} slot @param {StreamEffect} effect @param {Slot} state */
export function streamAnswer(run, slot, effect, state) {
  readStream(run, slot, effect, state).catch(async (error) => run.engineRun.fail(slot, error, await failureOf(run, error)));
}

/** What a stream threw: an error of another library tells its status and more. @param {Driver} run @param {unknown} error */
async function failureOf({ core, engineRun }, error) {
  quiet(error);
  try {
    if (AgentError.isInstance(error) || typeof error !== "object") return infoOf(error);
    const { thrownInfo } = await import("../errors/thrown-info.js");
    return thrownInfo(engineRun.engine, error, core.host.now());
  } catch {
    return infoOf(error);
  }
}

/** @param {Driver} run @param {number} slot @param {StreamEffect} effect @param {Slot} state */
async function readStream(run, slot, effect, state) {
  const { engineRun } = run;
  const { signal } = state;
  const iterator = await iteratorOf(run, effect, signal);
  signal.addEventListener("abort", () => quietly(() => iterator.return?.()), { once: true });
  const halves = new Halves();
  const limit = setupOf(run.core.settings.models.known[effect.model]).limits?.answer ?? LONGEST_RESULT;
  for (;;) {
    // Nobody reads ahead while what came cannot be read yet.
    const flows = engineRun.engine.flows();
    if (flows) await flows;
    const { done, value } = await iterator.next();
    if (signal.aborted) return;
    if (done) return engineRun.streamEnd(slot);
    const { type, contentIndex, delta } = /** @type {{ type?: unknown, contentIndex?: unknown, delta?: unknown }} */ (value ?? {});
    const kind = typeof type === "string" && KINDS.get(type);
    if (kind && typeof delta === "string" && isIndex(contentIndex)) {
      if (delta.length > limit) throw tooLong(limit);
      engineRun.streamDelta(slot, kind, contentIndex, halves.whole(kind, contentIndex, delta));
      continue;
    }
    halves.flush((kind, contentIndex, half) => engineRun.streamDelta(slot, kind, contentIndex, half));
    if (type === "error" && isForeign(/** @type {{ error?: unknown }} */ (value).error)) throw /** @type {{ error?: unknown }} */ (value).error;
    quiet(value);
    const text = eventText(value);
    // Besides what is kept of it, an event has a few words of its own.
    if (text.length > limit + 1_000) throw tooLong(limit);
    // Nobody reads on after that, and nothing is cancelled: the signal stays as it is.
    if (type === "done") state.complete = true;
    engineRun.streamEvent(slot, text);
    if (type === "done") {
      engineRun.streamEnd(slot);
      return quietly(() => iterator.return?.());
    }
  }
}

/** Calls the host's function. @param {Driver} run @param {StreamEffect} effect @param {AbortSignal} signal @returns {Promise<AsyncIterator<AssistantMessageEvent>>} */
async function iteratorOf(run, effect, signal) {
  const { core } = run;
  const model = core.settings.models.known[effect.model];
  const request = { ...effect.request, messages: run.resolveRefs(effect.request.messages) };
  const context = { signal, ...run.about(), sleep: (/** @type {number} */ ms) => core.host.sleep(ms, signal) };
  const events = /** @type {any} */ (await model?.streamFn?.(/** @type {ModelRequest} */ (request), context));
  const iterator = events?.[Symbol.asyncIterator]?.() ?? events?.[Symbol.iterator]?.();
  quiet(iterator ? 0 : events);
  if (!iterator) throw new TypeError(`the streamFn of model \`${model?.id}\` must give an async iterable of events`);
  return iterator;
}

/** The engine says the same of an answer that is too long; a single event is not copied to it first. @param {number} limit */
const tooLong = (limit) => new AgentError({ code: "server", message: `the answer is longer than ${limit} bytes`, retryable: false });

/** Whether an error is not of our own form: an Error, or the plain one of another library. @param {any} error */
const isForeign = (error) => !AgentError.isInstance(error) && (error instanceof Error || typeof (error?.statusCode ?? error?.isRetryable) !== "undefined");

/** An event as JSON, which would leave nothing of an Error. @param {AssistantMessageEvent} event */
function eventText(event) {
  const error = /** @type {{ error?: unknown } | undefined} */ (event)?.error;
  // Events of a host may have anything; what is no JSON is an error of the call.
  return JSON.stringify(error instanceof Error ? { ...event, error: infoOf(error) } : event) ?? "0";
}

/** The engine takes whole characters only: half of a surrogate pair waits here for its other half. */
class Halves {
  constructor() {
    /** By block. @type {Map<number, string>} */
    this.waiting = new Map();
  }

  /** Returns what is whole of a delta and of the half that waited for it. @param {number} kind @param {number} contentIndex @param {string} delta */
  whole(kind, contentIndex, delta) {
    if (this.waiting.size === 0 && !endsInHalf(delta)) return delta;
    const block = contentIndex * 4 + kind;
    const text = (this.waiting.get(block) ?? "") + delta;
    this.waiting.delete(block);
    if (!endsInHalf(text)) return text;
    this.waiting.set(block, text.slice(-1));
    return text.slice(0, -1);
  }

  /** Gives up waiting. @param {(kind: number, contentIndex: number, half: string) => void} send */
  flush(send) {
    for (const [block, half] of this.waiting) send(block % 4, Math.floor(block / 4), half);
    this.waiting.clear();
  }
}

/** Whether a text ends in the first half of a surrogate pair. @param {string} text */
function endsInHalf(text) {
  return (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
}
