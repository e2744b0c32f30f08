// @ts-check
// Runs inside a durable engine: `host.step`. Each effect is a step with a stable name, whose record the engine stores; in a
// later process the same run is lived again from the records. Loaded with the first agent whose host has a `step`.
//
// The journal of an agent has the clock, the order of results and the mail of its runs and of those inside their calls. What one
// run does with its effects is in run.js.

import { AgentError, complain, hostWithDefaults, loadRest, misuse, textOf, uuid } from "../core.js";
import { Chance } from "./chance.js";
import { cutsIn } from "./cuts.js";
import { hashOf } from "./long-names.js";
import { Outside } from "./outside.js";
import { RunSteps } from "./run.js";
import { faultOf, Step } from "./step.js";
import { VERSION } from "./version.js";

/** @import { Core } from "../agent/core.js" */
/** @import { Driver } from "../run/driver.js" */
/** @import { StoredAnswer } from "./answer.js" */
/** @import { Cuts } from "./cuts.js" */
/** @import { Come } from "./outside.js" */
/** @import { Outcome, StepRecord } from "./step.js" */
/** What enters. @typedef {Step | Come} Arrival */
/** What reaches a run from outside, with a name of its own; some of it ends what is at work. @typedef {{ id: string, run: string, command: any, cuts?: Cuts }} Mail */

/** So much of a prompt, in characters, is compared with that of an earlier process. */
const MARKED = 16_384;

/** How many microtasks a delivered result gets to become what follows from it. */
const TICKS = 24;

export class Journal {
  /** @param {Core} core of the outermost agent */
  constructor(core) {
    const given = core.options.host;
    this.given = given;
    this.step = /** @type {NonNullable<typeof given.step>} */ (given.step);
    this.maxBytes = given.steps?.maxBytes ?? Infinity;
    this.isOrdered = given.steps?.ordered === true;
    this.clock = core.host.now;
    /** Identifies this process among those that live the run. */
    this.life = uuid();
    /** The highest time of a record so far: what `host.now` says. */
    this.now = 0;
    /** The highest number of a record so far. */
    this.n = 0;
    this.chance = new Chance("");
    this.host = hostWithDefaults({ now: () => this.now, random: () => this.chance.number(), id: () => this.chance.id() });
    /** How many runs have begun. */
    this.runs = 0;
    /** The runs in progress, by their prefix. @type {Map<string, RunSteps>} */
    this.active = new Map();
    /** The steps whose result has not entered. @type {Set<Step>} */
    this.open = new Set();
    /** Whether stored results may be left. */
    this.replaying = true;
    /** What the engine itself waits for: decisions and delays. */
    this.outside = new Outside(this);
    /** Mail that is in no record yet. @type {Mail[]} */
    this.mail = [];
    /** How mail of this process enters, by its id. @type {Map<string, () => void>} */
    this.entrances = new Map();
    this.mails = 0;
    /** What waits until no step is open. @type {(() => void)[]} */
    this.ends = [];
    /** The run of the outermost agent. @type {Driver | undefined} */
    this.root = undefined;
    this.isEntering = false;
    this.isLooping = false;
    this.again = false;
    /** @type {unknown} */
    this.failure = undefined;
  }

  /** An agent inside shares the journal. @param {Core} core */
  adopt(core) {
    const journal = this;
    core.journal = this;
    core.host = this.host;
    core.subscribers.info = {
      get replaying() {
        return journal.replaying;
      },
    };
  }

  /** Begins a run of the outermost agent. @param {Driver} driver @param {string | undefined} promptJson @returns {Promise<RunSteps>} */
  async begin(driver, promptJson) {
    const { core } = driver;
    this.root = driver;
    const number = ++this.runs;
    const prefix = number > 1 ? `r${number}/` : "";
    const { tools, systemPrompt } = core.settings;
    const seen = { engine: VERSION, language: "javascript", tools: tools.definitions().map(({ name }) => name), systemPrompt, runId: driver.runId, sessionId: core.session.id, prompt: markOf(promptJson) };
    const record = await /** @type {Promise<StepRecord>} */ (new Promise((enter) => {
      this.add(new Step(`${prefix}begin`), { kind: "begin" }, async () => {
        this.replaying = number > 1 && this.replaying;
        return { value: seen };
      }, enter);
    }));
    const begun = /** @type {typeof seen} */ (record.value ?? seen);
    if (begun.language !== seen.language) throw misuse(`the journal was begun in ${begun.language ?? "another language"}, which writes other records: it goes on there alone`);
    if (begun.prompt !== seen.prompt) throw misuse("the journal is that of a run with another prompt: whoever lives a run again gives it the same one, as the engine has it in its input");
    const missing = begun.tools.filter((name) => !seen.tools.includes(name));
    if (missing.length > 0) complain("turnwheel: the run that goes on had tools that the agent has not any more:", missing.join(", "));
    if (!driver.isIdGiven) driver.takeId(begun.runId);
    if (core.options.sessionId === undefined) core.session.id = begun.sessionId;
    this.chance = new Chance(driver.runId);
    return new RunSteps(driver, this, prefix);
  }

  // ---- steps

  /**
   * Opens a step. `execute` does what there is to do, unless its record is stored; `enter` gets the record when its turn has come.
   * @param {Step} step @param {any} effect @param {(info?: { attempt?: number }) => Promise<Outcome>} execute @param {(record: StepRecord) => void} enter
   */
  add(step, effect, execute, enter) {
    step.enter = enter;
    this.open.add(step);
    const work = (/** @type {{ attempt?: number } | undefined} */ info) => (step.work ??= this.#work(step, execute, info));
    let stored;
    try {
      stored = Promise.resolve(this.step.call(this.given, step.name, work, effect));
    } catch (error) {
      stored = Promise.reject(error);
    }
    stored.then((record) => this.#resolved(step, record), (error) => this.#failed(step, error));
    return step;
  }

  /** @param {Step} step @param {(info?: { attempt?: number }) => Promise<Outcome>} execute @param {{ attempt?: number } | undefined} info @returns {Promise<StepRecord>} */
  async #work(step, execute, info) {
    step.isBegun = true;
    this.pump();
    const outcome = step.isOver ? CANCELLED : await Promise.race([step.dropped, execute(info).catch((error) => step.threw(error))]);
    const at = Math.max(this.clock(), this.now);
    const record = step.recordOf(outcome, { at, n: ++this.n, mail: this.mail.splice(0) }, this.maxBytes);
    step.ended = record;
    this.pump();
    return record;
  }

  /** @param {Step} step @param {any} record */
  #resolved(step, record) {
    const fault = faultOf(record, step.name);
    if (fault) return this.#failed(step, misuse(`\`host.step\` must give back what its work returned; for \`${step.name}\` ${fault}`));
    step.record = record;
    this.n = Math.max(this.n, record.n);
    this.pump();
  }

  /** The engine could not store a step: the run cannot go on in this process. @param {Arrival} step @param {unknown} error */
  #failed(step, error) {
    if (step instanceof Step) this.open.delete(step);
    if (this.failure !== undefined) return;
    this.failure = error;
    this.root?.crash(new AgentError({ code: "internal", message: `\`host.step\` failed at \`${step.name}\`: ${textOf(error)}`, retryable: false, phase: "step" }, error));
    this.root?.engineRun.drop();
    this.pump();
  }

  /** Lets results enter, one after the other, as far as it can be known which is next. */
  async pump() {
    this.again = true;
    if (this.isLooping) return;
    this.isLooping = true;
    while (this.again) {
      this.again = false;
      // What is reported in the same moment counts.
      await undefined;
      const step = this.#next();
      if (step) await this.#enterOrFail(step);
      else if (this.#isBusy()) continue;
      else this.#rest();
    }
    this.isLooping = false;
  }

  /** The step whose result enters next, if that is certain. @returns {Arrival | undefined} */
  #next() {
    if (this.#isBusy()) return;
    const open = [...this.open];
    if (this.isOrdered) return [...open.filter(({ record }) => record), ...this.outside.come].sort((a, b) => a.arrival - b.arrival)[0];
    if (open.some((step) => !step.isBegun && !step.record)) return;
    const ended = open.filter((step) => step.record ?? step.ended);
    ended.sort((a, b) => {
      const [one, other] = [a.key, b.key];
      return one.at - other.at || one.n - other.n;
    });
    return ended[0]?.record && ended[0];
  }

  /** Whether a run is still working on what has entered. */
  #isBusy() {
    for (const steps of this.active.values()) if (steps.isBusy) return true;
    return false;
  }

  /** A record may have been damaged, or be of another run: what cannot be read ends the run, and nobody waits for it. @param {Arrival} step */
  async #enterOrFail(step) {
    try {
      await this.#enter(step);
    } catch (error) {
      this.isEntering = false;
      this.#failed(step, misuse(`what the journal has of it cannot be read (${textOf(error)}): it was damaged, or is of another run`));
    }
  }

  /** @param {Arrival} step */
  async #enter(step) {
    if (!(step instanceof Step)) return this.outside.enter(step.name, step.answer);
    const record = /** @type {StepRecord} */ (step.record);
    this.again = true;
    this.open.delete(step);
    // Mail has come before the result, at the time before it; the pieces of an answer have come before the mail.
    if (!step.isDropped) step.prepare(record);
    for (const mail of record.mail ?? []) {
      const { id, run, command } = mail;
      const isOwn = this.entrances.has(id);
      const enter = this.entrances.get(id) ?? (() => this.active.get(run)?.takeMail(command));
      this.entrances.delete(id);
      // A limit is over when its step was ended.
      if (command.kind === "limit" || command.kind === "silence") this.now = Math.max(this.now, record.at);
      this.isEntering = true;
      for (const steps of this.active.values()) if (cutsIn(mail, steps.prefix)) steps.cut(mail.cuts?.answers ?? {}, isOwn);
      enter();
      this.isEntering = false;
      this.active.get(run)?.run.poller.poll();
      await ticks();
    }
    this.now = Math.max(this.now, record.at);
    for (const steps of this.active.values()) steps.checkTime();
    if (!step.isDropped) step.enter(record);
    await ticks();
  }

  /** Nothing is left to enter for now. */
  #rest() {
    const isWorking = this.open.size > 0 && [...this.open].every(({ isBegun, ended }) => isBegun && !ended);
    const isWaiting = this.outside.size > 0;
    if (this.open.size === 0) {
      for (const end of this.ends.splice(0)) end();
      const [outermost] = this.active.values();
      // Nobody but the host can move the run: that is a step too, so that it can be stored what it was.
      if (!isWaiting && outermost && !outermost.run.isOver) return outermost.waitForMail();
      if (isWaiting && this.outside.comesIn(outermost)) return;
    } else if (isWorking && !this.isOrdered) this.outside.ride();
    if (isWorking || isWaiting) this.replaying = false;
  }

  // ---- mail

  /**
   * Something reaches a run from outside. It rides in the record of the next step that ends, and enters right before what that
   * step answered: in this process, and in every later one. Returns whether it waits for that; then `enter` is called.
   * @param {RunSteps} steps @param {any} command @param {() => void} enter @param {Iterable<Step>} [forced] steps that it ends @param {string} [under] in which runs it ends all that is at work: what comes before the names of their steps
   */
  takes(steps, command, enter, forced = [], under) {
    if (this.isEntering || this.failure !== undefined) return false;
    // Nothing is stored that could carry it, and nobody lives the end of a run again.
    if (command.kind === "cancel" && this.open.size === 0) return false;
    this.note(steps, command, enter, under);
    for (const step of forced) step.force();
    for (const each of this.active.values()) each.mailCame();
    return true;
  }

  /**
   * Something has reached a run. It is in the record of the next step that ends; `enter` is called when that enters.
   * @param {RunSteps} steps @param {any} command @param {() => void} [enter] @param {string} [under] see `takes`
   */
  note(steps, command, enter = () => {}, under) {
    const id = `${this.life}:${++this.mails}`;
    this.mail.push({ id, run: steps.prefix, command, ...(under !== undefined && { cuts: { under, answers: {} } }) });
    this.entrances.set(id, enter);
    for (const { prefix, attempt } of this.active.values()) if (attempt?.arrived) this.arrived(prefix, attempt.step.name, attempt.arrived);
  }

  /** An answer has ended in this process, perhaps because it is cut. @param {string} prefix of its run @param {string} name of its step @param {StoredAnswer} answer what had arrived */
  arrived(prefix, name, answer) {
    for (const mail of this.mail) if (mail.cuts && cutsIn(mail, prefix)) mail.cuts.answers[name] ??= answer;
  }

  /** The runs whose steps have names that begin like this. @param {string} [under] */
  inside(under = "") {
    return [...this.active.values()].filter(({ prefix }) => prefix.startsWith(under));
  }

  /** Calls back when no step is open. @param {() => void} end */
  whenDone(end) {
    if (this.failure !== undefined) return end();
    this.ends.push(end);
    this.pump();
  }
}

/** @type {Outcome} */
const CANCELLED = { cancelled: true };

/** By what a prompt is known again: how long it is, and how it begins. When it was said is another matter. @param {string | undefined} promptJson */
function markOf(promptJson) {
  const said = promptJson?.replace(/"timestamp":\d+/g, "");
  return said && `${said.length}-${hashOf(said.slice(0, MARKED))}`;
}

async function ticks() {
  for (let i = 0; i < TICKS; i++) await undefined;
}

/**
 * The steps of a run that begins; the journal comes with its agent, or with the run around it.
 * @param {Driver} driver @param {string | undefined} promptJson nothing if it goes on with what there is @returns {Promise<RunSteps>}
 */
export async function stepsOf(driver, promptJson) {
  const { core, inside } = driver;
  if (inside) return new RunSteps(driver, inside.journal, inside.prefix);
  await loadRest();
  if (!core.journal) new Journal(core).adopt(core);
  return /** @type {Journal} */ (core.journal).begin(driver, promptJson);
}
