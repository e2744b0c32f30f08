// @ts-check
// What a run inside a durable engine does with its effects: most are steps, whose records enter in the order of the journal.

import { complain, misuse, placeOf, rest, SUB_AGENT, textOf, toDecision } from "../core.js";
import { answerOf, eventsOf } from "./answer.js";
import { isCutting } from "./cuts.js";
import { hookKind, isEnd, mayHaveRun, modelData } from "./data.js";
import { StepNames, toolKind } from "./long-names.js";
import { Step, tooLargeText } from "./step.js";

/** @import { Driver } from "../run/driver.js" */
/** @import { Effect } from "../effects/effects.js" */
/** @import { Slot } from "../effects/slot.js" */
/** @import { Journal } from "./journal.js" */
/** @import { StoredAnswer } from "./answer.js" */
/** @import { Answer } from "./outside.js" */
/** @import { Outcome, StepRecord } from "./step.js" */
/** Carries out an effect the ordinary way. @typedef {(run: Driver, slot: number, effect: any, state: Slot) => Promise<unknown> | void} Perform */
/**
 * An attempt to call a model: its step, the slot that waits now, and what ends the work. `answer` is there when it is replayed.
 * `arrived` is what had arrived when it ended in this process. @typedef {{ step: Step, slot: number, end(outcome: Outcome): void, live(): Promise<void>, answer?: StoredAnswer, arrived?: StoredAnswer, isKey: boolean, isEntered: boolean, isCut?: boolean, isWatched?: boolean, onEnter?: (record: StepRecord) => void }} Attempt
 */

export class RunSteps {
  /** @param {Driver} run @param {Journal} journal @param {string} prefix */
  constructor(run, journal, prefix) {
    this.run = run;
    this.journal = journal;
    this.prefix = prefix;
    this.names = new StepNames(prefix);
    /** @type {Attempt | undefined} */
    this.attempt = undefined;
    /** The steps of slots that wait for them. @type {Map<number, Step>} */
    this.bySlot = new Map();
    /** Effects that are no steps and end by themselves; for a call of a sub-agent, its name. @type {Map<number, string>} */
    this.loose = new Map();
    /** Time limits: their names, and when they are over by the clock of the journal, if they go by that. @type {Map<number, { name: string, until?: number }>} */
    this.limits = new Map();
    /** The names of what the engine itself waits for. @type {Map<number, string>} */
    this.waiting = new Map();
    /** Changes of the session state, by the slot of the call. @type {Map<number, [string, string | undefined][]>} */
    this.changes = new Map();
    /** The step that waits for mail. @type {{ step: Step, end(): void } | undefined} */
    this.mailStep = undefined;
    rest.queuesOf(run).isLazy = true;
    journal.active.set(prefix, this);
  }

  /** Whether the run is still working on what has entered. */
  get isBusy() {
    const { run, loose, attempt } = this;
    const { poller, engineRun } = run;
    if (run.isOver) return false;
    if (engineRun.handle === 0 || poller.isWaiting || poller.isDelivering || !engineRun.engine.isWhole) return true;
    if (attempt?.isEntered) return true;
    for (const [slot, name] of loose) {
      const child = this.journal.active.get(`${name}/`);
      if (engineRun.slots.has(slot) && (!child || child.run.isOver)) return true;
    }
    return false;
  }

  /** The run is over. */
  leave() {
    this.journal.active.delete(this.prefix);
    for (const step of this.bySlot.values()) step.drop();
    this.attempt?.step.drop();
    this.mailStep?.end();
    this.mailStep = undefined;
    this.journal.pump();
  }

  /** Where an agent inside a call takes its steps. @param {number} slot */
  inside(slot) {
    const name = this.loose.get(slot);
    return name === undefined ? undefined : { journal: this.journal, prefix: `${name}/` };
  }

  /** The time for the engine: while an answer streams in, the real one, for limits of silence. */
  get time() {
    const { attempt, journal } = this;
    return attempt?.step.isBegun && !attempt.step.ended && !attempt.answer && !attempt.isCut ? Math.max(journal.clock(), journal.now) : journal.now;
  }

  // ---- effects

  /** Carries out an effect. @param {number} slot @param {Effect} effect @param {Slot} state @param {Perform} begin @param {() => void} perform the ordinary way */
  perform(slot, effect, state, begin, perform) {
    const { run } = this;
    const { kind } = effect;
    const ordinary = () => begin(run, slot, effect, state);
    switch (kind) {
      case "key":
      case "http":
      case "stream":
        return this.#call(slot, effect, ordinary);
      case "gate":
        return this.#end(slot, /** @type {any} */ (effect).events);
      case "tool":
        return this.#tool(slot, /** @type {any} */ (effect), ordinary, perform);
      case "approve":
        return this.#approve(slot, effect, ordinary);
      case "sleep":
        return this.#sleep(slot, /** @type {any} */ (effect), state);
      case "hook":
        return this.#hook(slot, effect, ordinary, perform);
      case "transform":
      case "compact":
        return this.#once(slot, this.names.name(run, kind), ordinary);
      case "steering":
        return this.#once(slot, this.names.name(run, "queue", "."), ordinary);
      case "followUp":
        return this.#once(slot, this.names.name(run, "follow_up", "."), ordinary);
      default:
        this.loose.set(slot, "");
        return perform();
    }
  }

  /** An effect whose value is its answer. @param {number} slot @param {string} name @param {() => Promise<unknown> | void} work @param {any} [effect] */
  #once(slot, name, work, effect = { kind: "host" }) {
    const { run } = this;
    const step = new Step(name);
    this.bySlot.set(slot, step);
    this.journal.add(step, effect, async () => ({ value: (await work()) ?? null }), (record) => {
      this.bySlot.delete(slot);
      if (record.error !== undefined || record.cancelled) run.engineRun.reject(slot, step.thrown ?? new Error(record.error ?? "cancelled"));
      else run.engineRun.resolve(slot, record.value, "now");
    });
  }

  /** The agents inside a call end now. What had arrived there is in no record: it is taken back, in this life as in a later one. @param {number} slot */
  takesBack(slot) {
    const call = this.loose.get(slot);
    if (call) for (const steps of this.journal.inside(`${call}/`)) steps.cut({}, false);
  }

  /** Nobody wants an effect any more. @param {number} slot */
  cancelled(slot) {
    this.bySlot.get(slot)?.drop();
    this.bySlot.delete(slot);
    this.loose.delete(slot);
    this.limits.delete(slot);
    this.#stopWaiting(slot);
    if (this.attempt?.slot === slot) {
      const { step, isWatched } = this.attempt;
      if (isWatched) this.journal.note(this, { kind: "silence" });
      step.drop();
      this.attempt = undefined;
    }
    this.journal.pump();
  }

  // ---- models

  /** The key, or the request, of an attempt. @param {number} slot @param {any} effect @param {() => Promise<unknown> | void} ordinary */
  #call(slot, effect, ordinary) {
    const { run } = this;
    const attempt = (this.attempt ??= this.#newAttempt(slot, effect));
    attempt.slot = slot;
    attempt.isKey = effect.kind === "key";
    attempt.isEntered = false;
    const { isKey } = attempt;
    if (attempt.answer) return isKey ? run.engineRun.resolve(slot, null, "now") : this.#feed(attempt, false);
    attempt.live().then(async () => {
      if (!run.engineRun.slots.has(slot)) return;
      if (!isKey) return void ordinary();
      try {
        const key = await ordinary();
        attempt.isEntered = false;
        run.engineRun.resolve(slot, key, "now");
      } catch (error) {
        attempt.onEnter = () => this.#noKey(attempt, error);
        attempt.end({ value: { content: [], key: textOf(error) } });
      }
    });
  }

  /** @param {Attempt} attempt @param {unknown} error */
  #noKey(attempt, error) {
    this.attempt = undefined;
    this.run.engineRun.reject(attempt.slot, error, true);
  }

  /** @param {number} slot @param {any} effect @returns {Attempt} */
  #newAttempt(slot, effect) {
    const { run } = this;
    const name = effect.summary ? this.names.name(run, "summary", ".") : this.names.name(run, "model");
    const step = new Step(name, (bytes, limit) => ({ content: [], error: { code: "internal", message: tooLargeText(name, bytes, limit), retryable: false } }));
    /** @type {Attempt} */
    const attempt = { step, slot, end: () => {}, live: () => begun, isKey: false, isEntered: false };
    const outcome = new Promise((/** @type {(outcome: Outcome) => void} */ resolve) => (attempt.end = resolve));
    /** @type {() => void} */
    let begin = () => {};
    const begun = new Promise((/** @type {(value: void) => void} */ resolve) => (begin = resolve));
    const work = () => (begin(), outcome);
    const end = step.force;
    // What has arrived is kept: the engine is told that the answer ends here, and says what it has.
    step.force = () => {
      const isStreaming = step.isBegun && !step.isDropped && !attempt.isKey && !attempt.arrived && run.engineRun.slots.has(attempt.slot);
      if (isStreaming) run.engineRun.streamEvent(attempt.slot, JSON.stringify({ type: "error", error: { code: "aborted", message: "not wanted any more", retryable: false } }));
      else if (!attempt.arrived) end();
    };
    // The pieces come before the mail that came before the end.
    step.prepare = (record) => {
      if (step.ended || attempt.answer) return;
      attempt.answer = record.value ?? { content: [], error: { code: "internal", message: record.error ?? "the call was cancelled", retryable: false } };
      const { key } = attempt.answer ?? {};
      if (!attempt.isKey || key === undefined) this.#feedStart(attempt);
    };
    this.journal.add(step, modelData(run, effect), work, (record) => {
      if (attempt.onEnter) return attempt.onEnter(record);
      const key = attempt.answer?.key;
      if (key === undefined) this.#feed(attempt, true);
      else this.#noKey(attempt, new Error(key));
    });
    return attempt;
  }

  /** An answer has ended in this process. @param {number} slot @param {any[]} events */
  #end(slot, events) {
    const { run, attempt } = this;
    if (!attempt || attempt.answer) {
      // What is lived again ends like this too.
      this.attempt = undefined;
      return run.engineRun.resolve(slot, null, "now");
    }
    attempt.slot = slot;
    attempt.arrived = answerOf(events.filter(({ type }) => !isEnd(type)));
    this.journal.arrived(this.prefix, attempt.step.name, attempt.arrived);
    attempt.onEnter = ({ value, error }) => {
      this.attempt = undefined;
      const refused = value?.error ?? (error === undefined ? undefined : { code: "internal", message: error, retryable: false });
      const instead = refused && events.at(-1)?.type !== "error" && { events: [{ type: "start" }, { type: "error", error: refused }] };
      run.engineRun.resolve(slot, instead || null, "now");
    };
    attempt.end({ value: answerOf(events) });
  }

  /** Gives a stored answer to the request that waits: its pieces, or its end. @param {Attempt} attempt @param {boolean} isAtEnd */
  #feed({ slot, answer }, isAtEnd) {
    const { engineRun } = this.run;
    for (const event of eventsOf(/** @type {StoredAnswer} */ (answer))) {
      if (isAtEnd === isEnd(event.type)) engineRun.streamEvent(slot, JSON.stringify(event));
    }
    if (isAtEnd) engineRun.streamEnd(slot);
  }

  /**
   * The answer in progress is cut now. It has what had arrived when the mail came that cuts it, or nothing.
   * @param {{ [step: string]: StoredAnswer }} answers @param {boolean} isOwn whether the mail has come in this process
   */
  cut(answers, isOwn) {
    const { attempt, run } = this;
    if (!attempt || attempt.answer || attempt.isCut) return;
    const known = answers[attempt.step.name];
    if (isOwn && known) return void (attempt.isCut = true);
    attempt.step.force();
    attempt.answer = known ?? { content: [] };
    if (attempt.arrived) run.engineRun.resolve(attempt.slot, { events: eventsOf(attempt.answer) }, "now");
    else this.#feedStart(attempt);
  }

  /** Gives the pieces of a stored answer, as soon as there is a request for them. @param {Attempt} attempt */
  #feedStart(attempt) {
    if (!attempt.isKey) return this.#feed(attempt, false);
    attempt.isEntered = true;
    this.run.engineRun.resolve(attempt.slot, null, "now");
  }

  // ---- tools

  /** @param {number} slot @param {{ name: string, callId: string }} effect @param {() => any} ordinary @param {() => void} perform */
  #tool(slot, effect, ordinary, perform) {
    const { run, journal } = this;
    const { engineRun, core } = run;
    const { name, callId } = effect;
    const definition = core.settings.tools.byName.get(name)?.definition;
    const kind = toolKind(run, effect);
    if (definition?.[SUB_AGENT]) {
      this.loose.set(slot, this.names.name(run, `tool/${kind}`));
      return perform();
    }
    /** @type {[string, string | undefined][]} */
    const changes = [];
    const call = run.fold.knownCalls().get(callId);
    const data = { kind: "tool", name, arguments: call?.arguments ?? {}, callId };
    const execute = (/** @type {string | undefined} */ life) => {
      const step = new Step(this.names.name(run, `tool/${kind}`), (bytes, limit) => ({ result: { content: [{ type: "text", text: tooLargeText(name, bytes, limit) }], isError: true } }));
      this.bySlot.set(slot, step);
      const work = async (/** @type {{ attempt?: number } | undefined} */ info) => {
        if (life !== undefined && mayHaveRun(journal, life, info)) return { value: { result: { interrupted: true } } };
        this.changes.set(slot, changes);
        const result = await ordinary();
        this.changes.delete(slot);
        return result === undefined ? /** @type {Outcome} */ ({ cancelled: true }) : { value: { result, ...(changes.length > 0 && { state: changes }) } };
      };
      journal.add(step, data, work, (record) => {
        this.bySlot.delete(slot);
        const { result, state = [] } = record.value ?? { result: record.error === undefined ? { cancelled: true } : { failed: record.error } };
        for (const [key, value] of state) engineRun.setState(slot, key, value ?? undefined);
        engineRun.resolve(slot, result, "now");
      });
    };
    if (definition?.idempotent) return execute(undefined);
    const marker = new Step(this.names.name(run, `start/${kind}`));
    this.bySlot.set(slot, marker);
    journal.add(marker, { kind: "start" }, async () => ({ value: journal.life }), ({ value }) => execute(String(value)));
  }

  /** Whether a change of the session state enters with the record of its tool. @param {number} slot @param {string} key @param {string | undefined} value */
  keepsState(slot, key, value) {
    const changes = this.changes.get(slot);
    changes?.push([key, value]);
    return changes !== undefined;
  }

  // ---- people

  /** @param {number} slot @param {any} effect @param {() => any} ordinary */
  #approve(slot, effect, ordinary) {
    const { run } = this;
    const { approveTool, host } = run.core.options;
    const name = this.names.name(run, `approve/${placeOf(run, effect.callId)}`);
    if (approveTool || !host.wait) return this.#once(slot, name, ordinary);
    const { kind: _, ...request } = effect;
    this.#outside(slot, name, host.wait(name, { ...request, ...run.about() }), ({ value, error }) => {
      try {
        if (error !== undefined) throw new Error(error);
        run.engineRun.resolve(slot, toDecision(value), "now");
      } catch (failure) {
        complain("turnwheel: host.wait failed:", failure);
        run.engineRun.reject(slot, failure);
      }
    });
  }

  /** What the engine itself waits for. @param {number} slot @param {string} name @param {PromiseLike<unknown>} promise @param {(answer: Answer) => void} enter */
  #outside(slot, name, promise, enter) {
    this.waiting.set(slot, name);
    const answered = Promise.resolve(promise).then((value) => ({ value }), (error) => ({ error: textOf(error) }));
    this.journal.outside.add(this, name, answered, (answer) => {
      this.waiting.delete(slot);
      enter(answer);
    });
  }

  /** @param {number} slot */
  #stopWaiting(slot) {
    const name = this.waiting.get(slot);
    if (this.waiting.delete(slot)) this.journal.outside.drop(/** @type {string} */ (name));
  }

  // ---- hooks

  /** @param {number} slot @param {any} effect @param {() => any} ordinary @param {() => void} perform */
  #hook(slot, effect, ordinary, perform) {
    const { run } = this;
    // What stands around an attempt lives in this process.
    if (run.around.wrapModel && effect.stage.endsWith("Inference")) {
      this.loose.set(slot, "");
      return perform();
    }
    this.#once(slot, this.names.name(run, hookKind(run, effect)), ordinary);
  }

  // ---- time

  /** @param {number} slot @param {{ ms: number, backOff?: boolean }} effect @param {Slot} state */
  #sleep(slot, { ms, backOff }, { signal }) {
    const { run, journal } = this;
    if (!backOff) return this.#limit(slot, ms, signal);
    const { host } = run.core.options;
    const until = journal.now + ms;
    const name = this.names.name(run, "sleep", "/");
    if (!host.sleep) {
      return this.#once(slot, name, async () => (await journal.host.sleep(ms, signal), null), { kind: "sleep", ms });
    }
    this.#outside(slot, name, host.sleep(ms, signal, name), () => {
      journal.now = Math.max(journal.now, until);
      run.engineRun.resolve(slot, null, "now");
    });
  }

  /** A limit runs by real time, in this process; that of the whole run goes by the journal. @param {number} slot @param {number} ms @param {AbortSignal} signal */
  async #limit(slot, ms, signal) {
    const { run, journal } = this;
    const name = this.names.name(run, "limit", "/");
    const isTotal = ms === run.core.options.timeouts?.totalMs && name.endsWith("t0/limit/1");
    this.limits.set(slot, isTotal ? { name, until: journal.now + ms } : { name });
    try {
      await journal.host.sleep(isTotal ? Math.max(journal.now + ms - journal.clock(), 0) : ms, signal);
    } catch {
      // Where there are no timers, there are no limits but that of the run.
      return;
    }
    this.#limitIsOver(slot);
  }

  /** @param {number} slot */
  #limitIsOver(slot) {
    const { journal, run } = this;
    const limit = this.limits.get(slot);
    if (!limit || !run.engineRun.slots.has(slot)) return;
    const isOfRun = limit.until !== undefined;
    const call = isOfRun ? undefined : this.bySlot.get(slot - 1);
    const child = isOfRun ? undefined : this.loose.get(slot - 1);
    if (!isOfRun && !call && !child && this.attempt && !journal.isEntering) return this.#watch(slot, this.attempt);
    // That of a call, of a call with an agent inside, or of the whole run.
    const under = call ? undefined : child ? `${child}/` : this.prefix;
    const forced = call ? [call] : journal.inside(under).flatMap(({ steps }) => steps);
    if (journal.takes(this, { kind: "limit", name: limit.name }, () => this.#limitIsOver(slot), forced, under)) return;
    this.limits.delete(slot);
    if (limit.until !== undefined) journal.now = Math.max(journal.now, limit.until);
    run.engineRun.resolve(slot, null, "now");
  }

  /** Only the engine knows whether an answer was silent for too long: then it cancels the attempt, whose record says why. @param {number} slot @param {Attempt} attempt */
  #watch(slot, attempt) {
    this.limits.delete(slot);
    attempt.isWatched = true;
    this.run.engineRun.resolve(slot, null, "now");
    attempt.isWatched = false;
  }

  /** The clock of the journal has gone on. */
  checkTime() {
    for (const [slot, { until = Infinity }] of this.limits) {
      if (until > this.journal.now) continue;
      this.limits.delete(slot);
      this.run.engineRun.resolve(slot, null, "now");
    }
  }

  // ---- mail

  /** Something reaches the run from outside. Returns whether it must wait; then `enter` is called later. @param {any} command @param {() => void} enter */
  takes(command, enter) {
    const { approvals, options } = this.run.core;
    const decides = (/** @type {string} */ id) => approvals.questions.get(id)?.kind === "tool";
    if (options.host.wait && !options.approveTool && !this.journal.isEntering && command.kind === "answer" && Object.keys(command.answers).some(decides)) {
      throw misuse("`host.wait` waits for this decision: give it to the durable engine, which stores it");
    }
    // What a running tool asks is part of its work, so the answer is too.
    if (command.kind === "answer" && Object.keys(command.answers).some((id) => approvals.questions.get(id)?.kind === "elicitation")) return false;
    return !this.run.isOver && this.journal.takes(this, command, enter, this.#forced(command), isCutting(command, options.steering) ? this.prefix : undefined);
  }

  /** What it waits for, but for mail. */
  get steps() {
    return [...this.bySlot.values(), ...(this.attempt ? [this.attempt.step] : [])];
  }

  /** The steps that such mail ends: one, so that it enters, and the answers inside, so that what had arrived of them is stored. @param {any} command @returns {Step[]} */
  #forced(command) {
    const { journal, prefix } = this;
    if (!isCutting(command, this.run.core.options.steering)) return [];
    if (command.kind === "cancel") return [...journal.open];
    const inside = journal.inside(prefix);
    const tools = inside.flatMap(({ bySlot }) => [...bySlot.values()].filter(({ name }) => name.includes("/tool/")));
    const answers = inside.flatMap((steps) => (steps.attempt && steps !== this ? [steps.attempt.step] : []));
    return [...tools.slice(0, 1), ...answers];
  }

  /** Mail of an earlier process enters. @param {any} command */
  takeMail(command) {
    const { run } = this;
    const { core } = run;
    if (command.kind === "cancel") run.abort(command.reason);
    else if (command.kind === "come") this.journal.outside.enter(command.name, command.answer);
    else if (command.kind === "silence") {
      // The limit of the attempt is the youngest.
      const [slot] = [...this.limits].filter(([, { until }]) => until === undefined).at(-1) ?? [];
      this.limits.delete(Number(slot));
      if (slot !== undefined) run.engineRun.resolve(slot, null, "now");
    }
    else if (command.kind === "limit") {
      for (const [slot, { name }] of this.limits) if (name === command.name) this.#limitIsOver(slot);
    } else {
      const json = JSON.stringify(command);
      core.registration.call((glue) => glue.post_command(core.registration.handle, json));
    }
  }

  /** The run waits for nobody but its host. */
  waitForMail() {
    if (this.mailStep) return;
    const step = new Step(this.names.name(this.run, "mail", "/"));
    let end = () => {};
    const came = new Promise((/** @type {(outcome: Outcome) => void} */ resolve) => (end = () => resolve({ value: null })));
    this.mailStep = { step, end };
    if (this.journal.mail.length > 0) end();
    this.journal.add(step, { kind: "mail" }, () => came, () => (this.mailStep = undefined));
  }

  /** Mail has come, to this run or another. */
  mailCame() {
    this.mailStep?.end();
  }
}
