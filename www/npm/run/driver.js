// @ts-check
// The implementation of a run, which the agent holds while the run is in progress: it puts the parts together,
// begins and ends the run, and writes its checkpoints.

import { EngineRun } from "../boundary/engine-run.js";
import { hasStack } from "../boundary/stack.js";
import { EffectMemory } from "../effects/memory.js";
import { AgentError, closeTurn, Fold, fromEngine, jsonOf, misuse, noUsage, resultOf, VERSION } from "../shared.js";
import { handled } from "../rules/host-call.js";
import { Abortion } from "./abortion.js";
import { Batches } from "./batches.js";
import { Ending } from "./ending.js";
import { Outlet } from "./outlet.js";
import { believableOptions, optionsJson } from "./options.js";
import { Poller } from "./poller.js";
import { Origin } from "./origin.js";
import { AgentRun } from "./run.js";
import { watched } from "./unread.js";

/** @import { AgentEvent, AgentMessage, AgentResult, Checkpoint, JsonValue, RunInfo, RunOptions } from "../index.js" */
/** @import { AgentEnd } from "../shared.js" */
/** @import { Core } from "../agent/core.js" */
/** @import { Engine } from "../boundary/engine.js" */
/** @import { EngineState } from "../checkpoint/format.js" */
/** @import { Ref } from "../rules/transform.js" */
/** @typedef {Extract<AgentEvent, { type: "run_resumed" }>} RunResumed */

export class Driver {
  /** @param {Core} core @param {AgentMessage[] | null} prompts @param {RunOptions} options */
  constructor(core, prompts, options) {
    const { signal, runId } = options;
    const { restored } = core.runs;
    const promptJson = prompts === null ? undefined : jsonOf("the prompt is", prompts);
    this.version = VERSION;
    this.core = core;
    this.epoch = core.runs.epoch;
    this.runId = runId ?? restored?.runId ?? core.host.id();
    this.isIdGiven = (runId ?? restored?.runId) !== undefined;
    /** What its durable engine does for it, if there is one. @type {import("../steps.js").DurablePorts | undefined} */
    this.ports = undefined;
    const given = { ...believableOptions(restored?.options, core), ...options };
    /** @type {{ [name: string]: JsonValue } | undefined} */
    this.metadata = given.metadata ?? /** @type {any} */ (restored?.run)?.metadata;
    /** What holds for this run, whatever the agent is set to: JSON for the engine. */
    this.options = optionsJson(core, given);
    this.around = core.settings.around;
    /** The attempt in progress, if `wrapModel` is set. @type {import("../effects/around.js").Attempt | undefined} */
    this.attempt = undefined;
    /** What `prepareTurn` shows of the history in this turn. @type {readonly AgentMessage[] | undefined} */
    this.turnView = undefined;
    /** The agents inside the tools; loaded with the first. @type {import("./children.js").Children | undefined} */
    this.children = undefined;
    /** The questions of running tools; loaded with the first. @type {import("./asks.js").Asks | undefined} */
    this.asks = undefined;
    // A model chooses the ids of its calls: `constructor` is one like any other.
    /** The checkpoints from which agents inside calls go on, by call id. @type {{ [callId: string]: Checkpoint }} */
    this.waitingChildren = Object.assign(Object.create(null), restored?.children);
    /** Whether this run is inside a call of another that has no result yet. */
    this.isInside = false;
    this.origin = new Origin(prompts, restored, core.history.messages);
    this.fold = new Fold(core.history.messages);
    this.outlet = new Outlet(this);
    this.engineRun = new EngineRun(this);
    this.batches = new Batches(this);
    this.poller = new Poller(this);
    this.memory = new EffectMemory();
    this.ending = new Ending();
    /** Whether the listeners have heard of the run. */
    this.isAnnounced = false;
    /** Decisions that came before the run began. @type {(() => void)[]} */
    this.early = [];
    this.run = new AgentRun(this, this.ending.result);
    this.abortion = new Abortion(signal, (reason) => this.abort(reason));
    queueMicrotask(() => this.#start(promptJson));
  }

  /** @param {string | undefined} promptJson */
  async #start(promptJson) {
    const { core, origin, abortion, engineRun } = this;
    try {
      if (core.options.host.step) {
        const { DurablePorts, inServer } = await import("../steps.js");
        if (!core.registration.scope.isServer || !core.durable) await inServer(core.registration);
        this.ports = core.durable ??= new DurablePorts(core);
        this.ports.begin(this);
        if (this.isOver) return;
      } else if (core.registration.scope === this.around.run?.core.registration.scope) this.ports = this.around.run.ports;
      if (this.ports) core.subscribers.info = infoOf(this);
      core.registration.scope.engine?.discardIfKilled();
      let ready = core.registration.ready();
      if (ready instanceof Promise) ready = await ready;
      const hasBegun = !ready.isWhole && (await this.#beginsInPart(ready, promptJson));
      if (!hasBegun) {
        const loading = core.settings.load();
        if (!ready.isWhole || loading) {
          await Promise.all([ready.whole(), loading]);
          ready = await core.registration.ready();
        }
        engineRun.begin(ready, promptJson);
        this.ports?.enter(this);
      }
      core.runs.restored = undefined;
      for (const post of this.early) post();
      core.runs.byHandle.set(engineRun.handle, this);
      origin.restoreTurn(this.fold);
      if (abortion.text !== undefined) engineRun.abortAtStart(abortion.text);
      this.poller.poll();
      // The request is on its way; what checks the calls of the answer can come after it.
      if (hasBegun) ready.alsoNeeds(async () => core.settings.load());
    } catch (error) {
      this.#fail(fromEngine(error));
    }
  }

  /**
   * Begins in an engine of which parts are missing, as soon as what is there is enough.
   * @param {Engine} engine @param {string | undefined} promptJson
   */
  async #beginsInPart(engine, promptJson) {
    while (!engine.isWhole && !this.origin.restored && promptJson !== undefined && !this.abortion.isAsked) {
      if (engine.tries(() => this.engineRun.begin(engine, promptJson))) return true;
      await engine.more();
    }
    return false;
  }

  // ---- what others ask of a run

  /** What every function of the host is told about the run. @returns {RunInfo} */
  about() {
    const { core, runId, fold, metadata } = this;
    const turnIndex = fold.turn?.turnIndex ?? fold.turns;
    return { runId, sessionId: /** @type {string} */ (core.session.id), turnIndex, ...(metadata !== undefined && { metadata }) };
  }

  get isOver() {
    return this.ending.isOver;
  }

  /** Whether what it tells of now is repeated from what a durable engine has stored. */
  get isReplaying() {
    return this.ports?.isReplaying(this) === true;
  }

  /** The run has the id of the one that it lives again. @param {string} runId */
  takeId(runId) {
    this.runId = this.run.runId = runId;
  }

  /** The event that ended the run. */
  get end() {
    return this.fold.end;
  }

  get result() {
    return this.ending.result;
  }

  /** Whether a question was one for a person when it was asked. @param {string} id */
  isForPeople(id) {
    return !this.core.approvals.hidden.has(id);
  }

  /** Whether the answer has a schema. */
  get hasOutput() {
    return this.core.settings.output.given !== undefined;
  }

  /** @param {(event: AgentEvent) => void} listener */
  subscribe(listener) {
    return this.core.subscribers.add(listener);
  }

  /** @param {number} ms @param {AbortSignal} signal */
  sleep(ms, signal) {
    return this.core.host.sleep(ms, signal);
  }

  /** @param {unknown} [reason] @param {boolean} [isFinal] whether nobody will live the run again */
  abort(reason, isFinal) {
    const { abortion, engineRun } = this;
    if (this.isOver || abortion.isAsked) return;
    if (isFinal) this.ports?.giveUp(this);
    else if (this.ports?.takesAbort(this, reason)) return;
    // A signal may be given in the depth of a recursion, and nobody hears what its listeners throw.
    if (!hasStack()) return queueMicrotask(() => this.abort(reason));
    const text = abortion.ask(reason);
    this.children?.closeAll(abortion.effectReason());
    if (engineRun.handle !== 0) engineRun.abort(text);
  }

  /** The iterator was left early: that stops the run. */
  left() {
    if (this.isOver) this.drop();
    this.abort("the iteration was left");
  }

  /** The iterator has taken the last event. */
  drained() {
    if (this.core.runs.unread === this && !this.isInside) this.drop();
  }

  /** Removes the run from the engine, once nobody can ask for its state any more. */
  drop() {
    const { runs } = this.core;
    this.engineRun.drop();
    if (runs.unread === this) runs.unread = undefined;
  }

  // ---- what the entries of a batch ask of it

  /** Records what an event says of the run and its agent. @param {AgentEvent} event */
  mark(event) {
    if (event.type === "agent_start") this.isAnnounced = true;
    this.fold.mark(event);
    this.core.approvals.take(event);
    this.asks?.take(event);
  }

  /** Resolves references: a pair of numbers is a range of messages, without its end. @param {Ref[]} refs @returns {AgentMessage[]} */
  resolveRefs(refs) {
    const { messages } = this.fold;
    const [first] = refs;
    // Usually there is a single range: one copy is ten times as fast as flattening.
    if (refs.length === 1 && Array.isArray(first)) return messages.slice(...first);
    return refs.flatMap((ref) => (Array.isArray(ref) ? messages.slice(...ref) : ref));
  }

  /** The history was shortened: what follows is a new list. @param {number} length how much of the old one stays */
  truncate(length) {
    const { history } = this.core;
    const before = (this.origin.messages = this.fold.messages);
    this.fold.messages = before.slice(0, length);
    // A view of what is gone is none.
    this.turnView = undefined;
    if (history.messages === before) history.messages = this.fold.messages;
  }

  /** Resumes the run. Events that were never delivered come first. @param {RunResumed} event */
  resume(event) {
    this.isAnnounced = true;
    const inside = this.core.approvals.list().filter(({ path }) => path.length > 0);
    const others = inside.filter(({ kind }) => kind !== "tool");
    event.pendingApprovals.push(...inside.filter((question) => question.kind === "tool"));
    if (others.length > 0) event.pendingQuestions = [...(event.pendingQuestions ?? []), ...others];
    const undelivered = this.origin.resume(event, this.runId);
    for (const stored of undelivered) this.mark(stored);
    this.batches.deliverFirst([event, ...undelivered]);
  }

  // ---- checkpoints

  /** The run as it stands. @returns {Checkpoint} */
  checkpoint() {
    const { core, engineRun, origin, runId } = this;
    const { runs } = core;
    if (engineRun.handle === 0 || !engineRun.engine.isWhole) {
      const begin = origin.restored || this.isOver ? {} : { prompts: origin.prompts, ...(this.options && { options: believableOptions(JSON.parse(this.options), core) }) };
      return core.envelope({ ...core.unregisteredState(), ...begin }, origin.restored?.run && runId, core.history.messages.slice(0, origin.length));
    }
    if (engineRun.engine.busy) throw misuse("no checkpoint can be taken inside a policy or transformer; take it in a listener");
    if (engineRun.isGone || (this.isOver && runs.unread !== this)) {
      const other = runs.current ?? runs.unread;
      return other && other !== this ? other.checkpoint() : core.idleCheckpoint();
    }
    return this.#checkpoint();
  }

  #checkpoint() {
    const { core, outlet, batches, engineRun, ending } = this;
    core.registration.posts++;
    engineRun.reportAnnounced();
    outlet.release();
    batches.readRest();
    // A slow iterator is behind: events it has not taken yet count as undelivered.
    const unread = core.subscribers.dispatching > 0 ? [] : outlet.queue.unread();
    const pending = [outlet.coalescer?.afterHeld ?? [], batches.undelivered()].flat();
    // The end of a run inside a call is told again, so that the call gets its result.
    const state = engineRun.checkpoint(ending.isTold && !this.isInside && !unread.some(({ type }) => type === "agent_end"));
    this.#takeChildren(state);
    // Taking the checkpoint informed the engine of finished tools.
    this.poller.wake();
    if (!state.run) return core.envelope(state);
    // The end will be announced again, and its usage counted again.
    if (this.end) state.usage = ending.usageBefore;
    const untold = [...unread, ...pending, ...(state.untold ?? [])].filter(({ type }) => type !== "agent_end");
    state.untold = this.children?.untold(untold, state.children) ?? untold;
    return core.envelope(state, this.runId);
  }

  /** Puts the agents inside the calls that are open into the state. @param {EngineState} state */
  #takeChildren(state) {
    const { children: _, ...own } = state;
    const all = { ...this.waitingChildren, ...this.children?.checkpoints() };
    const open = (own.run?.phase.calls ?? []).filter(({ callId, status }) => status !== "done" && Object.hasOwn(all, callId));
    if (open.length > 0) state.children = Object.fromEntries(open.map(({ callId }) => [callId, /** @type {Checkpoint} */ (all[callId])]));
    else delete state.children;
  }

  // ---- the end

  /** The end is about to be announced. @param {AgentEnd} end */
  announceEnd(end) {
    const { core, ending } = this;
    this.fold.end = end;
    ending.usageBefore = core.session.usage;
    // Not after a listener has reset the agent: its usage was set to zero then.
    if (core.runs.current === this) core.session.addUsage(end.usage);
    this.outlet.release();
    core.beforeRunEnd(this);
    ending.isTold = true;
    return watched(this, end);
  }

  /** The end was announced. @param {string} output the structured answer, or an empty text */
  finish(output) {
    const { core, abortion, engineRun } = this;
    if (!this.end && this.ports) return this.#fail(this.ports.failureOf(this));
    const end = /** @type {AgentEnd} */ (this.end);
    const error = end.error && new AgentError(end.error, end.error.code === "aborted" ? abortion.reason : engineRun.shown(core.thrown.causeOf(end.error)));
    this.#close(resultOf(end, { text: output, output: output && core.settings.output.valueOf(output), error }));
  }

  /** The wasm instance died. @param {AgentError} error */
  crash(error) {
    if (this.isOver) return;
    this.core.receipts.settleAll({ delivered: false, reason: "lost" });
    this.#fail(error);
  }

  /** Ends a run that never began, or whose instance died: everything open is closed here. @param {AgentError} error */
  #fail(error) {
    const end = this.end ?? this.#announceBreak(error);
    this.#close(resultOf({ ...end, usage: noUsage(), stopReason: "error", error: error.info }, { error }));
  }

  /** @param {AgentError} error @returns {AgentEnd} */
  #announceBreak({ info }) {
    const { core, runId, fold, outlet, origin, ending } = this;
    if (!this.isAnnounced) outlet.emit({ type: "agent_start", runId, at: core.host.now() });
    closeTurn(fold, { runId, error: info, reason: "error", timestamp: core.host.now(), model: core.settings.models.first }, (event) => {
      fold.take(event);
      outlet.emit(event);
    });
    // The engine, which calls the hooks otherwise, has no part in this end.
    for (const hooks of [core.options.hooks ?? []].flat()) {
      try {
        handled(hooks.onError?.({ ...this.about(), error: info }));
      } catch {
        // A failing onError hook changes nothing.
      }
    }
    const messages = fold.messages.slice(origin.length);
    /** @type {AgentEnd} */
    const end = { type: "agent_end", runId, messages, stopReason: "error", usage: noUsage(), turns: 0, error: info, at: core.host.now() };
    fold.end = end;
    core.beforeRunEnd(this);
    ending.isTold = true;
    outlet.emit(watched(this, end));
    return end;
  }

  /** @param {AgentResult} result */
  #close(result) {
    const { core, outlet, engineRun, ending } = this;
    outlet.release();
    const isAborted = result.stopReason === "aborted";
    if (this.isInside) core.receipts.settleAll({ delivered: false, reason: isAborted ? "aborted" : "run_ended" });
    else if (isAborted && core.receipts.open.size > 0 && !core.disposed) core.receipts.noteAbort();
    ending.isOver = true;
    this.abortion.unlisten();
    this.attempt?.end(undefined).catch(() => {});
    engineRun.cancelAll();
    core.runs.byHandle.delete(engineRun.handle);
    engineRun.forget();
    // Of a run that a listener of its end has reset nobody wants a checkpoint.
    if ((outlet.queue.hasUnread || this.isInside) && core.runs.epoch === this.epoch) core.runs.unread = this;
    else this.drop();
    core.afterRunEnd(this);
    outlet.queue.close();
    ending.settle(watched(this, result));
  }
}

/** What listeners are told beside an event. @param {Driver} run */
const infoOf = (run) => ({
  get replaying() {
    return run.isReplaying;
  },
});
