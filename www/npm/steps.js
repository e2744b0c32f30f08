// @ts-check
// Durable runs: the ports of the server engine that `host.step`, `host.wait` and `host.sleep` stand behind. Loaded with the first
// agent whose host has a `step`, and by no other page. The Rust half is steps.rs of the engine.

import { enterServer, ready } from "./boundary/server.js";
import { abortText, AgentError, complain, loadRest, misuse, others, textOf, toDecision } from "./core.js";

/** @import { StepEffect } from "./index.js" */
/** @import { Core } from "./agent/core.js" */
/** @import { Registration } from "./boundary/registration.js" */
/** @import { Calls } from "./boundary/server-glue.js" */
/** @import { EffectKind } from "./boundary/protocol.js" */
/** @import { Perform } from "./effects/effects.js" */
/** @import { Driver } from "./run/driver.js" */
/** A step, as the engine asks for it. @typedef {{ number: number, name: string, effect: StepEffect & Record<string, any> }} StepAsked */

/** Chooses the engine that knows steps, and loads it. @param {Registration} registration */
export async function inServer(registration) {
  enterServer(registration, "`host.step`", "make a new agent for it, from its `checkpoint()`");
  await Promise.all([ready(), loadRest()]);
}

/** What the host's durable engine does for an agent, and for those inside its calls. */
export class DurablePorts {
  /** @param {Core} core of the outermost agent */
  constructor(core) {
    this.core = core;
    /** Who waits for the record of a step, by the step's number. @type {Map<number, (record: any) => void>} */
    this.working = new Map();
    /** The records that hosts have been given and have not given back. @type {Map<number, any>} */
    this.told = new Map();
    /** @type {Driver | undefined} */
    this.outermost = undefined;
    /** Why the run is to end, until the abort enters it. @type {{ reason: unknown } | undefined} */
    this.aborted = undefined;
    /** What a durable run does otherwise than others. @type {Partial<Record<EffectKind, Perform>>} */
    this.effects = {
      step: (run, slot, asked) => this.#step(run, slot, asked),
      record: (run, slot, { number, record }) => this.#record(run, slot, number, record),
      state: (run, slot, { key, value }) => enterState(run, slot, key, value),
      abort: (run, slot, { reason }) => this.#enterAbort(run, slot, reason),
      wait: (run, slot, { kind: _, name, about, ...request }) => this.#wait(run, slot, name, { kind: about, ...request }),
      backOff: (run, slot, { name, ms }, { signal }) => this.#sleep(run, slot, name, ms, signal),
      sleep: (_run, _slot, { ms }, { signal }) => limit(core, ms, signal),
    };
  }

  /** @param {Driver} run of the outermost agent */
  begin(run) {
    this.outermost = run;
    this.told.clear();
    this.aborted = undefined;
  }

  /** An agent inside a call is part of the journal of the run around it, unless it has a `host.step` of its own. @param {Driver} run */
  enter({ around, engineRun, core }) {
    const { run: outer, slot } = around;
    if (outer && slot !== undefined && core.durable === undefined) engineRun.engine.tell((glue) => server(glue).run_inside(engineRun.handle, outer.engineRun.handle, slot));
  }

  get host() {
    return this.core.options.host;
  }

  /** Gives a step to the host, and its record to the engine. @param {Driver} run @param {number} slot @param {StepAsked} asked */
  #step(run, slot, { number, name, effect }) {
    run.engineRun.slots.delete(slot);
    /** @type {Promise<any> | undefined} */
    let record;
    const work = (/** @type {{ attempt?: number } | undefined} */ info) => (record ??= this.#work(run, number, info?.attempt ?? 0));
    asks(() => this.host.step?.(name, work, dataOf(run, effect)), (/** @type {any} */ given) => {
      // Most hosts give back the very value that they were given.
      const isTold = this.told.has(number) && given === this.told.get(number);
      const text = isTold ? "" : JSON.stringify(given) ?? "null";
      this.told.delete(number);
      if (effect.kind === "begin") this.#begin(run, given?.value);
      const { outermost } = this;
      // A run inside a call may be over by then, and what was stored of it still has its place.
      outermost?.engineRun.engine.tell((glue) => server(glue).step_stored(outermost.engineRun.handle, number, text));
      outermost?.poller.poll();
    }, (error) => {
      const message = `\`host.step\` failed at \`${name}\`: ${textOf(error)}`;
      this.outermost?.crash(new AgentError({ code: "internal", message, retryable: false, phase: "step" }, error));
    });
  }

  /** Begins the work of a step, whose record is told when it ends. @param {Driver} run @param {number} number @param {number} attempt */
  #work(run, number, attempt) {
    return new Promise((resolve) => {
      this.working.set(number, resolve);
      const handle = run === this.outermost ? run.engineRun.handle : 0;
      run.engineRun.engine.tell((glue) => server(glue).step_work(handle, number, attempt));
      run.poller.poll();
    });
  }

  /** @param {Driver} run @param {number} slot @param {number} number @param {any} record */
  #record(run, slot, number, record) {
    run.engineRun.slots.delete(slot);
    this.told.set(number, record);
    this.working.get(number)?.(record);
    this.working.delete(number);
  }

  /** A run has the ids of the one that it repeats. @param {Driver} run @param {any} begun */
  #begin(run, begun) {
    const { core } = run;
    if (typeof begun?.runId === "string" && !run.isIdGiven) run.takeId(begun.runId);
    if (typeof begun?.sessionId === "string" && core.options.sessionId === undefined) core.session.id = begun.sessionId;
    const missing = [begun?.tools ?? []].flat().filter((name) => !core.settings.tools.byName.has(name));
    if (missing.length > 0) complain("turnwheel: the run that goes on had tools that the agent has not any more:", missing.join(", "));
  }

  /** @param {Driver} run @param {number} slot @param {string} name @param {any} request */
  #wait(run, slot, name, request) {
    asks(() => this.host.wait?.(name, { ...request, ...run.about() }), (answer) => run.engineRun.resolve(slot, request.kind === "tool" ? toDecision(answer) : resultOf(answer), "now"), (error) => {
      complain("turnwheel: host.wait failed:", error);
      run.engineRun.reject(slot, error);
    });
  }

  /** @param {Driver} run @param {number} slot @param {string} name @param {number} ms @param {AbortSignal} signal */
  #sleep(run, slot, name, ms, signal) {
    const slept = () => run.engineRun.resolve(slot, null, "now");
    asks(() => this.host.sleep?.(ms, signal, name), slept, slept);
  }

  /** An abort of the outermost run enters it from its journal, so that it is in a record. Returns whether it does. @param {Driver} run @param {unknown} reason */
  takesAbort(run, reason) {
    if (run !== this.outermost || run.engineRun.handle === 0) return false;
    if (!this.aborted) {
      this.aborted = { reason };
      run.engineRun.abort(abortText(reason));
    }
    return true;
  }

  /** An abort enters, perhaps that of an earlier process: what the run has begun is told why it ends. @param {Driver} run @param {number} slot @param {string} text */
  #enterAbort({ abortion, engineRun }, slot, text) {
    engineRun.slots.delete(slot);
    const { aborted } = this;
    if (!abortion.isAsked) abortion.ask(aborted && abortText(aborted.reason) === text ? aborted.reason : text);
  }

  /** Why a run has ended without an `agent_end`. @param {Driver} run */
  failureOf(run) {
    let json = "";
    run.engineRun.engine.tell((glue) => void (json = server(glue).run_failure(run.engineRun.handle)));
    return new AgentError(json ? JSON.parse(json) : { code: "internal", message: "the run ended without a result", retryable: false });
  }

  /** Whether what a run tells of now is repeated from what is stored. @param {Driver} run */
  isReplaying(run) {
    let answer = false;
    run.engineRun.engine.tell((glue) => void (answer = server(glue).run_is_replaying(run.engineRun.handle, run.poller.isDelivering)));
    return answer;
  }

  /** Whether the host itself waits for an answer to one of these questions. @param {(import("./index.js").Question | undefined)[]} questions */
  waits(questions) {
    return this.host.wait !== undefined && questions.some((question) => question?.kind === "tool_call" || (question?.kind === "tool" && !this.core.options.approveTool));
  }

  /** Nobody will replay a run: its end need not be stored. @param {Driver} run */
  giveUp(run) {
    run.engineRun.engine.tell((glue) => server(glue).run_give_up(run.engineRun.handle));
  }
}

/**
 * Asks the host for something. An engine that gives everything back in one order gives it in that order to the loop too, so each
 * answer takes the same way there.
 * @template T @param {() => T | PromiseLike<T>} work @param {(given: T) => void} take @param {(error: unknown) => void} failed
 */
function asks(work, take, failed) {
  new Promise((/** @type {(given: T | PromiseLike<T>) => void} */ resolve) => resolve(work())).then(take).catch(failed);
}

/** The result of a call without `execute`, as a decision. @param {any} given */
function resultOf(given) {
  const answer = /** @type {any} */ (others.convert?.(given) ?? toDecision(given));
  if (answer === "reject" || answer.action === "reject" || answer.action === "result") return answer;
  if (!answer.output) throw misuse(`the answer to a call of a tool without \`execute\` must be { output }, { error } or a rejection, got ${JSON.stringify(given)}`);
  return { action: "result", content: answer.output, isError: answer.isError };
}

/** The calls that the server engine has alone. @param {unknown} glue */
const server = (glue) => /** @type {Calls} */ (glue);

/** A step as the host is told of it: plain JSON. @param {Driver} run @param {StepEffect & Record<string, any>} effect @returns {StepEffect} */
function dataOf(run, effect) {
  if (effect.kind !== "model" || !effect.request) return effect;
  const { apiKey: _, messages, ...rest } = /** @type {any} */ (effect.request);
  return { ...effect, request: { ...rest, messages: run.resolveRefs(messages) } };
}

/** What a call has changed in the session state is that of the run now. @param {Driver} run @param {number} slot @param {string} key @param {any} value */
function enterState({ core, engineRun }, slot, key, value) {
  engineRun.slots.delete(slot);
  if (value === undefined) core.session.state.delete(key);
  else core.session.state.set(key, value);
}

/** A time limit runs in this process. Where there are no timers, there are no limits but that of the run. @param {Core} core @param {number} ms @param {AbortSignal} signal */
function limit(core, ms, signal) {
  return core.host.sleep(ms, signal).then(() => null, () => new Promise(() => {}));
}
