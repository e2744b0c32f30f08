// @ts-check
// An agent in the engine: where its commands cross to wasm. The engine learns of an agent when its first run
// begins; commands wait until then. Whatever the engine refuses becomes an AgentError.

import { Scope, shared } from "./engine.js";
import { late } from "./rest.js";
import { needStack } from "./stack.js";
import { complain, fromEngine, misuse } from "../shared.js";
import { uuid } from "../host/uuid.js";

/** @import { Answer } from "../index.js" */
/** @import { Core } from "../agent/core.js" */
/** @import { Engine } from "./engine.js" */
/** @import { EngineState } from "../checkpoint/format.js" */
/** @import { RuleName } from "./protocol.js" */
/** @typedef {Engine["glue"]} Glue */
/**
 * A command that waits for the engine: the function that posts it, and its form in a checkpoint.
 * @typedef {{ post(glue: Glue): void, command: object }} Waiting
 */

export class Registration {
  /** @param {Core} core */
  constructor(core) {
    this.core = core;
    /** The public agent: once nobody holds it, the engine forgets it. @type {object} */
    this.owner = core;
    /** The agents that share an instance with this one. */
    this.scope = core.options.isolate ? new Scope() : shared;
    /** @type {Engine | undefined} */
    this.engine = undefined;
    this.number = 0;
    /** By how many bytes the instance grew when it took this agent in. */
    this.weight = 0;
    /** Whether a run of it has begun: which engine it takes is chosen then. */
    this.hasRun = false;
    /** Whether it runs inside a call, in the engine of the agent around it. */
    this.isInside = false;
    /** Commands that wait for the engine. @type {Waiting[]} */
    this.waiting = [];
    /** State from a checkpoint, until the engine has taken it over. @type {EngineState | undefined} */
    this.state = undefined;
    /** What the engine took over of a checkpoint, and the decisions since: an agent that has not run may yet change its engine. */
    this.unrun = { state: /** @type {EngineState | undefined} */ (undefined), decisions: /** @type {Waiting[]} */ ([]) };
    /** The other fields of that checkpoint. @type {Record<string, unknown> | undefined} */
    this.otherFields = undefined;
    /** How often something was posted that the engine must see. */
    this.posts = 0;
    /** What the engine does not know yet, while parts of it are missing: a reset, the settings. */
    this.missed = { reset: false, settings: false };
    /** Hears that the agent has entered an instance: a recorder of it. @type {((number: number) => void) | undefined} */
    this.entered = undefined;
    /** Hears that a run has ended: a recorder of it. @type {(() => void) | undefined} */
    this.ended = undefined;
    /** Hears of an agent that begins inside a call of this one: a recorder of it. @type {((core: Core, path: string[]) => void) | undefined} */
    this.calls = undefined;
  }

  /** Its number in the engine; 0 before the first run, and 0 if the wasm instance has died. */
  get handle() {
    return this.engine?.dead ? 0 : this.number;
  }

  /** Returns the engine with this agent registered in it. @returns {Engine | Promise<Engine>} */
  ready() {
    if (this.engine?.dead) this.lost(this.engine);
    // Also in one that has been given up since: something of this agent is still in there.
    if (this.engine) return this.#registerIn(this.engine);
    const engine = this.scope.ready();
    return engine instanceof Promise ? engine.then((loaded) => this.#registerIn(loaded)) : this.#registerIn(engine);
  }

  /** @param {Engine} engine @returns {Engine | Promise<Engine>} */
  #registerIn(engine) {
    if (engine.isWhole) return this.#register(engine);
    // What a checkpoint or a command says takes the whole engine.
    if (this.state || this.waiting.length > 0 || engine.isHeld) return engine.whole().then(() => this.ready());
    return engine.tries(() => this.#register(engine)) ? engine : engine.more().then(() => this.ready());
  }

  /** @param {Engine} engine */
  #register(engine) {
    if (this.handle === 0) {
      registry?.unregister(this);
      const before = engine.memory.buffer.byteLength;
      const number = this.#enter(engine);
      this.engine = engine;
      this.number = number;
      this.entered?.(number);
      const weight = (this.weight = engine.memory.buffer.byteLength - before);
      engine.weight += weight;
      engine.agents.set(number, new WeakRef(this));
      this.core.history.noteSynced();
      registry?.register(this.owner, { engine, number, weight }, this);
    }
    // A command that is refused ends the run; those behind it wait for the next one.
    for (let next; (next = this.waiting.shift()); ) engine.call(next.post);
    return engine;
  }

  /** @param {Engine} engine @returns {number} its number */
  #enter(engine) {
    // Host objects are read before the call, never inside it: an exception thrown in there ends every run.
    const settings = this.core.settings.toJson();
    const history = this.core.history.toJson();
    const state = this.core.stateJson();
    const number = engine.call((glue) => glue.agent_new(settings, history, this.#host(engine)));
    try {
      if (state) engine.call((glue) => glue.agent_restore(number, state));
    } catch (error) {
      engine.tell((glue) => glue.agent_drop(number));
      throw error;
    }
    if (!this.hasRun) this.unrun.state = this.state;
    this.state = undefined;
    return number;
  }

  /** A run of it begins. */
  noteRun() {
    this.hasRun = true;
    this.unrun = { state: undefined, decisions: [] };
  }

  /** What was decided before its first run goes with it into another engine. */
  #takeDecisions() {
    this.waiting.unshift(...this.unrun.decisions.splice(0));
  }

  /**
   * Moves to the scope of the agent that calls this one as a tool, unless it is isolated itself.
   * @param {Scope | undefined} scope
   */
  join(scope) {
    if (!scope || this.core.options.isolate) return;
    // A restored agent is in an engine before its first run.
    if (this.engine && !this.hasRun && this.scope !== scope) this.release();
    if (this.engine) return;
    if (this.scope.isServer && !scope.isServer) throw misuse("the agent is recorded, and an agent that runs inside a call lives in the engine of the agent around it: record that one, whose tape has those of the agents inside, or set `isolate: true` here");
    this.scope = scope;
    this.isInside = true;
  }

  /** Removes this agent from the engine; a later run registers it again. */
  unregister() {
    if (this.handle === 0) return;
    registry?.unregister(this);
    this.engine?.drop(this.number, this.weight);
    this.#leave();
  }

  #leave() {
    this.engine = undefined;
    this.number = 0;
  }

  /**
   * Leaves an instance that is given up, with all of its state; a later run registers it again. Whoever still has
   * something to hear from that instance stays in it.
   */
  release() {
    const { core } = this;
    const { current, unread } = core.runs;
    if (this.handle === 0 || current || unread || core.receipts.open.size > 0) return;
    this.state = this.checkpoint(core.host.now());
    this.unregister();
    this.#takeDecisions();
  }

  /**
   * The instance died. What JavaScript knows of this agent goes into the next one: the state of its session, the
   * letters that nobody has read, a run from a checkpoint that has not gone on.
   * @param {Engine} engine
   */
  lost(engine) {
    // It may have begun a run in the next one already.
    if (this.engine !== engine) return;
    const { session, receipts, runs } = this.core;
    registry?.unregister(this);
    this.#leave();
    this.state = runs.restored ?? this.unrun.state ?? { session: Object.fromEntries(session.state), usage: session.usage };
    this.#takeDecisions();
    this.waiting.unshift(...receipts.takeLetters());
  }

  /** What the engine calls. Holds only a weak reference, so that a forgotten agent can be collected. */
  #host(/** @type {Engine} */ engine) {
    const ref = new WeakRef(this.core);
    // A run that is in a step holds its agent.
    const core = () => /** @type {Core} */ (ref.deref());
    return {
      wake: (/** @type {number} */ handle) => ref.deref()?.runs.byHandle.get(handle)?.poller.wake(),
      // While parts are missing, a step may be undone; what the host was asked cannot be.
      rule: (/** @type {RuleName} */ name, /** @type {string} */ input) => (core().registration.isWhole ? late.rest.callRule(core(), name, input) : engine.refuse()),
      id: () => newId(ref.deref()),
      forget: (/** @type {number} */ version) => void ref.deref()?.settings.tools.forget(version),
      validate: (/** @type {number} */ tools, /** @type {string} */ call) => (core().registration.isWhole ? late.rest.validate(core(), tools, call) : engine.refuse()),
      random: () => ref.deref()?.host.random() ?? 0,
    };
  }

  /** Calls into the engine for the host. @template T @param {(glue: Glue) => T} work @returns {T} */
  call(work) {
    needStack();
    this.posts++;
    return /** @type {Engine} */ (this.engine).call(work);
  }

  // ---- commands

  /**
   * Posts a command: at once if the engine is ready, otherwise when it is.
   * @param {(glue: Glue) => void} post @param {object} command its form in a checkpoint
   */
  post(post, command) {
    if (this.core.disposed) throw misuse("the agent was disposed of");
    if (!this.#now(post)) this.waiting.push({ post, command });
  }

  /** Calls into the engine if the agent is there. @param {(glue: Glue) => void} post @returns {boolean} */
  #now(post) {
    if (this.handle === 0 || !this.isWhole) return false;
    this.call(post);
    return true;
  }

  /** Whether all parts of the engine are there. */
  get isWhole() {
    return this.engine?.isWhole ?? true;
  }

  /** All parts are there: tells the engine what was asked meanwhile. A command that is refused ends the run. */
  catchUp() {
    const { reset, settings } = this.missed;
    if (reset) this.reset();
    if (settings) this.configure();
    try {
      for (let next; (next = this.waiting.shift()); ) this.#now(next.post);
    } catch (error) {
      const { current } = this.core.runs;
      if (!current) throw error;
      current.crash(fromEngine(error));
    }
  }

  /** Posts a message; `posted` gets the number of its receipt. @param {string} message @param {{ kind: string, letter: { when?: string | undefined } }} command @param {{ posted(id: number, letter: Waiting): void, refused(): void }} receipt */
  postMessage(message, command, receipt) {
    const { kind, letter } = command;
    const post = (/** @type {Glue} */ glue) => {
      try {
        receipt.posted(glue.post_message(this.handle, kind === "follow_up", message, letter.when ?? ""), { post, command });
      } catch (error) {
        receipt.refused();
        throw error;
      }
    };
    this.post(post, command);
  }

  clearQueues() {
    if (this.unrun.state) this.unrun.state = { ...this.unrun.state, mail: [] };
    this.post((glue) => glue.clear_queues(this.handle), { kind: "clear_queues" });
  }

  /** @param {{ [id: string]: Answer }} decisions @param {boolean} byId whether the keys are ids of questions, not of calls */
  postDecisions(decisions, byId) {
    this.#postCommand(byId ? { kind: "answer", answers: decisions } : { kind: "resolve_all", decisions });
  }

  /** Ends the run when what was posted before has had its turn. @param {string} reason */
  postCancel(reason) {
    this.#postCommand({ kind: "cancel", reason });
  }

  /** Tells the listeners that a decision was refused. @param {"id" | "callId"} key @param {string} id of a question or a call */
  refuseDecision(key, id) {
    this.#postCommand({ kind: "refuse", [key]: id, reason: `no question is open about ${id}` });
  }

  /** @param {object} command */
  #postCommand(command) {
    const json = JSON.stringify(command);
    const post = (/** @type {Glue} */ glue) => glue.post_command(this.handle, json);
    const isNow = this.handle !== 0 && this.isWhole;
    this.post(post, command);
    if (isNow && !this.hasRun) this.unrun.decisions.push({ post, command });
  }

  /** Sends changed settings. A run in progress uses them from its next turn on. */
  configure() {
    this.missed.settings = !this.isWhole;
    if (this.handle === 0 || !this.isWhole) return;
    const settings = this.core.settings.toJson();
    this.#now((glue) => glue.agent_configure(this.handle, settings));
    // For the run in progress; the next one waits for it.
    this.core.settings.load()?.catch(() => {});
  }

  /** Forgets what waits for the engine. */
  forget() {
    this.waiting = [];
    this.unrun = { state: undefined, decisions: [] };
    this.state = undefined;
    this.otherFields = undefined;
  }

  /** The history is another one from a message on, and a run that waited to go on does not. @param {number} length @param {string} branch as JSON */
  rewind(length, branch) {
    this.waiting = this.waiting.filter(({ command }) => !isOfRun(command));
    this.unrun = { state: withoutRun(this.unrun.state), decisions: [] };
    this.state = withoutRun(this.state);
    if (this.handle === 0) return;
    if (this.isWhole) return void this.call((glue) => glue.agent_rewind(this.handle, length, branch));
    // Its engine is not all there, so no tool has run: what there is to know is known here.
    const { session, receipts } = this.core;
    this.unregister();
    this.state = { session: Object.fromEntries(session.state), usage: session.usage };
    this.waiting.unshift(...receipts.takeLetters());
  }

  reset() {
    this.missed.reset = !this.isWhole;
    this.#now((glue) => glue.agent_reset(this.handle));
  }

  /** Whether messages wait that a host queue returned and no turn has taken. */
  hasWaiting() {
    const { engine, handle } = this;
    if (!engine || handle === 0 || !this.isWhole) return false;
    needStack();
    return engine.call((glue) => glue.has_waiting(handle));
  }

  /** The engine's state of this agent, if the agent is there. @param {number} now @returns {EngineState | undefined} */
  checkpoint(now) {
    const { handle } = this;
    return handle !== 0 && this.isWhole ? JSON.parse(this.call((glue) => glue.checkpoint(handle, 0, false, now))) : undefined;
  }
}

/** Whether a command that waits is about a run. @param {object} command */
const isOfRun = (command) => ["answer", "resolve", "resolve_all", "refuse", "cancel"].includes(/** @type {{ kind?: string }} */ (command).kind ?? "");

/** What stays of a state without its run: also the messages that waited in that run. @param {any} state @returns {EngineState | undefined} */
function withoutRun(state) {
  if (!state) return;
  const { run, prompts: _, options: __, children: ___, untold: ____, mail = [], ...rest } = state;
  const letters = (/** @type {string} */ kind, /** @type {any[] | undefined} */ list) => (list ?? []).map((letter) => ({ kind, letter }));
  return { ...rest, mail: [...letters("steer", run?.steering), ...letters("follow_up", run?.followUp), ...mail.filter((/** @type {object} */ command) => !isOfRun(command))] };
}

/** The engine calls this, so it must not throw. @param {Core | undefined} core */
function newId(core) {
  try {
    return core?.host.id() ?? uuid();
  } catch (error) {
    complain("turnwheel: host.id failed", error);
    return uuid();
  }
}

/**
 * Unregisters agents that were garbage-collected.
 * @type {FinalizationRegistry<{ engine: Engine, number: number, weight: number }> | undefined}
 */
const registry = typeof FinalizationRegistry === "undefined" ? undefined : new FinalizationRegistry(({ engine, number, weight }) => (engine.drop(number, weight), engine.replaceIfGrown()));
