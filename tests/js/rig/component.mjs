// @ts-check
// The core module of component/ with the package's names, as far as scenarios use them: an agent is an instance, driven by
// messages. `CORE_MODULE` is the file that `cargo xtask conformance --engine component` built.

import { readFileSync } from "node:fs";
import { Validator } from "@cfworker/json-schema";
import { Run } from "./run.mjs";

const module = new WebAssembly.Module(readFileSync(/** @type {string} */ (process.env.CORE_MODULE)));
const MADE = Symbol.for("turnwheel.made");

/** Makes an instance. Returns its steps. */
function instance() {
  const { exports } = new WebAssembly.Instance(module);
  const { memory, alloc, step } = /** @type {any} */ (exports);
  return (/** @type {any} */ moment) => {
    const text = new TextEncoder().encode(JSON.stringify(moment));
    const at = alloc(text.length) >>> 0;
    new Uint8Array(memory.buffer, at, text.length).set(text);
    const answer = BigInt.asUintN(64, step(at, text.length));
    const bytes = new Uint8Array(memory.buffer, Number(answer >> 32n), Number(answer & 0xffff_ffffn));
    return JSON.parse(new TextDecoder().decode(bytes));
  };
}

/** The options as data: a function is the word `callback`. @param {any} options */
function configOf({ host: _, messages: __, ...options }) {
  const isFunction = (/** @type {any} */ value) => typeof value === "function";
  const text = JSON.stringify({ ...options, validate: () => {} }, (_, value) => (isFunction(value) ? "callback" : value));
  return JSON.parse(text, function (key, value) {
    // What belongs to the host alone.
    return ["execute", "streamFn"].includes(key) ? undefined : value;
  });
}

/** A message, or a text of the user. @param {any} given */
function user(given) {
  return typeof given === "string" ? { role: "user", content: [{ type: "text", text: given }], timestamp: 0 } : given;
}

/** A model that the host streams itself. @param {string} id @param {Function} streamFn @param {object} options */
export const custom = (id, streamFn, options) => ({ ...options, id, streamFn });

/** As the package marks it. @param {string} to */
export const transferTo = (to) => ({ [MADE]: true, transfer: { to } });

export class Agent {
  #options;
  #step = instance();
  /** @type {any[]} */
  #inputs = [];
  #isBusy = false;
  #runs = 0;
  /** @type {Run & { settle?: (result: any) => void } | undefined} */
  #run;
  /** @type {((event: any) => void)[]} */
  #listeners = [];
  /** What the host works on, by the id of the effect. @type {Map<number, AbortController>} */
  #open = new Map();

  /** @param {any} options */
  constructor(options) {
    this.#options = options;
    this.#now({ type: "create", config: configOf(options), history: options.messages ?? [] });
  }

  /** @param {any} given @param {any} [options] */
  prompt(given, options) {
    const messages = [given].flat().map(user);
    return this.#begin({ type: "prompt", messages, ...(options && { options }) });
  }

  continue() {
    return this.#begin({ type: "proceed" });
  }

  /** @param {any} input */
  #begin(input) {
    const run = /** @type {Run & { settle?: (result: any) => void }} */ (new Run(this));
    this.#now({ ...input, runId: `run-${this.#runs + 1}`, sessionId: "session" });
    this.#runs++;
    run.result = new Promise((resolve) => (run.settle = resolve));
    this.#run = run;
    queueMicrotask(() => this.#go());
    return run;
  }

  /** @param {(event: any) => void} listener */
  subscribe(listener) {
    this.#listeners.push(listener);
  }

  /** @param {string} text @param {any} [options] */
  steer(text, options) {
    this.#say({ type: "steer", text, ...options });
  }

  /** @param {string} text */
  followUp(text) {
    this.#say({ type: "followUp", text });
  }

  /** @param {string} reason */
  abort(reason) {
    this.#say({ type: "abort", reason });
  }

  reset() {
    this.#now({ type: "reset" });
  }

  get messages() {
    return this.#now({ type: "messages" }).find((output) => output.type === "messages").messages;
  }

  set output(/** @type {undefined} */ output) {
    this.#now({ type: "configure", config: configOf({ ...this.#options, output }) });
  }

  /** Says something now, outside of a run. @param {any} input @returns {any[]} */
  #now(input) {
    const { outputs } = this.#step({ ...this.#moment(), inputs: [input] });
    const refused = outputs.find((/** @type {any} */ output) => output.type === "refused");
    if (refused) throw new Error(refused.message);
    return outputs;
  }

  #moment() {
    return { now: this.#options.host.now(), seed: this.#runs + 1 };
  }

  /** Says something as soon as the engine listens. @param {any} input */
  #say(input) {
    this.#inputs.push(input);
    if (!this.#isBusy) queueMicrotask(() => this.#go());
  }

  /** Makes steps until there is nothing left to say. */
  #go() {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let goes = true; goes; ) {
      const { outputs, again } = this.#step({ ...this.#moment(), inputs: this.#inputs.splice(0) });
      for (const output of outputs) this.#take(output);
      goes = again || this.#inputs.length > 0;
    }
    this.#isBusy = false;
  }

  /** @param {any} output */
  #take(output) {
    const { type, id, event, result, effect, message } = output;
    if (type === "start") this.#start(id, effect);
    else if (type === "cancel") {
      this.#open.get(id)?.abort();
      this.#open.delete(id);
    } else if (type === "event") this.#tell(event);
    else if (type === "ended") {
      this.#run?.end();
      this.#run?.settle?.(result);
    } else throw new Error(`${type}: ${message}`);
  }

  /** @param {any} event */
  #tell(event) {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch { /* The others still receive it. */ }
    }
    this.#run?.tell(event);
  }

  /** Works on an effect, at once as far as it goes. @param {number} id @param {any} effect */
  #start(id, effect) {
    const controller = new AbortController();
    this.#open.set(id, controller);
    const finish = (/** @type {any} */ input) => {
      // What was cancelled is not wanted any more.
      if (this.#open.delete(id)) this.#say({ id, ...input });
    };
    const fail = (/** @type {any} */ error) => finish({ type: "failed", message: error?.message ?? String(error) });
    try {
      const work = this.#work(id, effect, controller.signal);
      if (typeof work?.then === "function") work.then(finish, fail);
      else finish(work);
    } catch (error) {
      fail(error);
    }
  }

  /** @param {number} id @param {any} effect @param {AbortSignal} signal @returns {any} */
  #work(id, effect, signal) {
    if (effect.kind === "sleep") return this.#options.host.sleep(effect.ms, signal).then(() => ({ type: "woke" }));
    if (effect.kind === "execute") return this.#execute(id, effect, signal);
    if (effect.name === "streamModel") return this.#stream(id, effect.argument, signal);
    const answer = this.#call(effect.name, effect.argument, signal);
    const answered = (/** @type {any} */ value) => ({ type: "answered", value: value ?? null });
    return typeof answer?.then === "function" ? answer.then(answered) : answered(answer);
  }

  /** @param {number} id @param {any} argument @param {AbortSignal} signal */
  async #stream(id, { index, runId, request }, signal) {
    const { streamFn } = [this.#options.model, ...this.#options.fallback][index];
    for await (const value of streamFn(request, { signal, runId })) {
      if (signal.aborted) break;
      this.#say({ type: "progress", id, value });
    }
    return { type: "end" };
  }

  /** @param {number} id @param {any} effect @param {AbortSignal} signal */
  #execute(id, { tool: toolName, arguments: args, state: values, ...call }, signal) {
    const tool = this.#options.tools.find((/** @type {any} */ tool) => tool.name === toolName);
    /** @type {Record<string, any>} */
    const state = {};
    const shared = {
      get: (/** @type {string} */ key) => state[key] ?? values[key],
      set: (/** @type {string} */ key, /** @type {any} */ value) => void (state[key] = value),
    };
    const update = (/** @type {any} */ value) => this.#say({ type: "progress", id, value });
    const isResult = (/** @type {any} */ value) => value?.[MADE] || value?.content;
    const returned = (/** @type {any} */ value) => ({ type: "returned", state, ...(isResult(value) ? { result: value } : { value }) });
    const output = tool.execute(args, { ...call, toolName, signal, update, state: shared });
    return typeof output?.then === "function" ? output.then(returned) : returned(output);
  }

  /** Calls a function of the options. @param {string} name @param {any} argument @param {AbortSignal} signal @returns {any} */
  #call(name, argument, signal) {
    const { policies, ...options } = this.#options;
    const { messages, overflow } = argument ?? {};
    const info = { cachedMessages: argument?.cachedMessages };
    const [, slot] = name.split(".");
    if (slot) return verdict(policies[slot][argument.policy](argument));
    switch (name) {
      case "validate": return flaws(argument);
      case "transformContext": return view(options.transformContext(messages, overflow, info));
      case "asyncTransformContext": return options.asyncTransformContext(messages, overflow, signal, info).then(view);
      case "retry": return options.retry(argument.error, argument.attempt);
      case "getApiKey": return options.getApiKey(argument.provider);
      case "getSteeringMessages": case "getFollowUpMessages": return options[name]().map(user);
      default: return options[name](argument, { signal });
    }
  }
}

/** @param {any} answer */
const verdict = (answer) => (answer?.inject ? { ...answer, inject: answer.inject.map(user) } : answer);
/** @param {any} answer */
const view = (answer) => (Array.isArray(answer) ? { view: answer } : answer);

/** @param {any} question */
function flaws({ parameters, call }) {
  const { valid, errors } = new Validator(parameters, "2020-12", false).validate(call.arguments);
  return valid ? null : errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`).join("\n");
}

/** @param {string[]} prompts @param {any} config */
export const agentLoop = (prompts, config) => new Agent(config).prompt(prompts);

/** @param {any[]} messages @param {any} config */
export const agentLoopContinue = (messages, config) => new Agent({ ...config, messages }).continue();
