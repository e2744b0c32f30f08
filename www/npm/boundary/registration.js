// @ts-check
// An agent in the engine: where its commands cross to wasm. The engine learns of an agent when its first run
// begins; commands wait until then. Whatever the engine refuses becomes an AgentError.

import { discardInstance, getEngine } from "./engine.js";
import { AgentError, fromEngine, misuse } from "../shared.js";
import { uuid } from "../host/uuid.js";
import { callRule, validate } from "../rules/rules.js";

/** @import { ToolDecision } from "../index.js" */
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
    /** @type {Engine | undefined} */
    this.engine = undefined;
    this.number = 0;
    /** Commands that wait for the engine. @type {Waiting[]} */
    this.waiting = [];
    /** State from a checkpoint, until the engine has taken it over. @type {EngineState | undefined} */
    this.state = undefined;
    /** The other fields of that checkpoint. @type {Record<string, unknown> | undefined} */
    this.otherFields = undefined;
    /** How often something was posted that the engine must see. */
    this.posts = 0;
  }

  /** Its number in the engine; 0 before the first run, and 0 if the wasm instance has died. */
  get handle() {
    return this.engine?.dead ? 0 : this.number;
  }

  /** Returns the engine with this agent registered in it. @returns {Engine | Promise<Engine>} */
  ready() {
    const engine = getEngine();
    return engine instanceof Promise ? engine.then((loaded) => this.#register(loaded)) : this.#register(engine);
  }

  /** @param {Engine} engine */
  #register(engine) {
    if (this.handle === 0) {
      registry?.unregister(this);
      this.engine = engine;
      this.number = this.#enter(engine, engine.glue);
      this.core.history.noteSynced();
      registry?.register(this.owner, { engine, handle: this.handle }, this);
    }
    // A command that is refused ends the run; those behind it wait for the next one.
    for (let next; (next = this.waiting.shift()); ) next.post(engine.glue);
    return engine;
  }

  /** @param {Engine} engine @param {Glue} glue @returns {number} its number */
  #enter(engine, glue) {
    // Host objects are read before the call, never inside it: an exception thrown in there ends every run.
    const settings = this.core.settings.toJson();
    const history = this.core.history.toJson();
    const state = this.core.stateJson();
    const number = this.call(() => glue.agent_new(settings, history, this.#host()));
    try {
      if (state) this.call(() => glue.agent_restore(number, state));
    } catch (error) {
      if (!engine.dead) glue.agent_drop(number);
      throw error;
    }
    this.state = undefined;
    return number;
  }

  /** Removes this agent from the engine; a later run registers it again. */
  unregister() {
    if (this.handle === 0) return;
    registry?.unregister(this);
    this.engine?.glue.agent_drop(this.handle);
    this.number = 0;
  }

  /** What the engine calls. Holds only a weak reference, so that a forgotten agent can be collected. */
  #host() {
    const ref = new WeakRef(this.core);
    // A run that is in a step holds its agent.
    const core = () => /** @type {Core} */ (ref.deref());
    return {
      wake: (/** @type {number} */ handle) => ref.deref()?.runs.byHandle.get(handle)?.poller.wake(),
      rule: (/** @type {RuleName} */ name, /** @type {string} */ input) => callRule(core(), name, input),
      id: () => newId(ref.deref()),
      forget: (/** @type {number} */ version) => void ref.deref()?.settings.tools.forget(version),
      validate: (/** @type {[number, string, string, string]} */ ...call) => validate(core(), ...call),
      random: () => ref.deref()?.host.random() ?? 0,
    };
  }

  /** Calls into the engine. Whatever it throws becomes an AgentError. @template T @param {() => T} work @returns {T} */
  call(work) {
    this.posts++;
    try {
      return work();
    } catch (error) {
      // The engine reports a refusal as a string; anything else is a trap or a stack overflow.
      if (typeof error !== "string" && !AgentError.isInstance(error)) this.crashed(error);
      throw fromEngine(error);
    }
  }

  /** The wasm instance died. @param {unknown} error */
  crashed(error) {
    if (this.engine) discardInstance(this.engine, error);
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
    const { engine } = this;
    if (!engine || this.handle === 0) return false;
    this.call(() => post(engine.glue));
    return true;
  }

  /** Posts a message; `posted` gets the number of its receipt. @param {boolean} followUp @param {string} message @param {object} command @param {{ posted(id: number): void, refused(): void }} receipt */
  postMessage(followUp, message, command, receipt) {
    const post = (/** @type {Glue} */ glue) => {
      try {
        receipt.posted(glue.post_message(this.handle, followUp, message));
      } catch (error) {
        receipt.refused();
        throw error;
      }
    };
    this.post(post, command);
  }

  clearQueues() {
    this.post((glue) => glue.clear_queues(this.handle), { kind: "clear_queues" });
  }

  /** @param {{ [id: string]: ToolDecision }} decisions @param {boolean} byId whether the keys are ids of questions, not of calls */
  postDecisions(decisions, byId) {
    this.#postCommand(byId ? { kind: "answer", answers: decisions } : { kind: "resolve_all", decisions });
  }

  /** Tells the listeners that a decision was refused. @param {"id" | "callId"} key @param {string} id of a question or a call */
  refuseDecision(key, id) {
    this.#postCommand({ kind: "refuse", [key]: id, reason: `no question is open about ${id}` });
  }

  /** @param {object} command */
  #postCommand(command) {
    const json = JSON.stringify(command);
    this.post((glue) => glue.post_command(this.handle, json), command);
  }

  /** Sends changed settings. A run in progress uses them from its next turn on. */
  configure() {
    if (this.handle === 0) return;
    const settings = this.core.settings.toJson();
    this.#now((glue) => glue.agent_configure(this.handle, settings));
  }

  /** Forgets what waits for the engine. */
  forget() {
    this.waiting = [];
    this.state = undefined;
    this.otherFields = undefined;
  }

  reset() {
    this.#now((glue) => glue.agent_reset(this.handle));
  }

  /** Whether messages wait that a host queue returned and no turn has taken. */
  hasWaiting() {
    return this.handle !== 0 && this.engine?.glue.has_waiting(this.handle);
  }

  /** The engine's state of this agent, if the agent is there. @param {number} now @returns {EngineState | undefined} */
  checkpoint(now) {
    const { engine, handle } = this;
    return engine && handle !== 0 ? JSON.parse(this.call(() => engine.glue.checkpoint(handle, 0, false, now))) : undefined;
  }
}

/** The engine calls this, so it must not throw. @param {Core | undefined} core */
function newId(core) {
  try {
    return core?.host.id() ?? uuid();
  } catch (error) {
    console.error("turnwheel: host.id failed", error);
    return uuid();
  }
}

/**
 * Unregisters agents that were garbage-collected.
 * @type {FinalizationRegistry<{ engine: Engine, handle: number }> | undefined}
 */
const registry =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : new FinalizationRegistry(({ engine, handle }) => {
        if (engine !== getEngine()) return;
        engine.glue.agent_drop(handle);
        for (const run of engine.runs) if (!run.deref()) engine.runs.delete(run);
      });
