// @ts-check
// turnwheel-web with the package's names, as far as scenarios use them: an agent in Rust, compiled to wasm with the
// crate web-player, to which models, tools, approvers and policies are JavaScript functions. `WEB_PLAYER` is the module
// that `cargo xtask conformance --engine web` built.

import { pathToFileURL } from "node:url";
import { Run } from "./run.mjs";

const { Player } = await import(pathToFileURL(/** @type {string} */ (process.env.WEB_PLAYER)).href);

/**
 * turnwheel-web takes time from the page: here that of the scenario.
 * @param {{ now(): number, sleep(ms: number, signal: AbortSignal): Promise<void> }} host
 */
function useClock(host) {
  /** @type {Map<any, AbortController>} */
  const timers = new Map();
  let next = 1;
  Date.now = () => host.now();
  globalThis.setTimeout = /** @type {any} */ (
    (/** @type {() => void} */ ring, /** @type {number} */ ms) => {
      const controller = new AbortController();
      timers.set(next, controller);
      host.sleep(ms, controller.signal).then(ring);
      return next++;
    }
  );
  globalThis.clearTimeout = (/** @type {any} */ id) => timers.get(id)?.abort();
}

/** A model that the host streams itself. @param {string} id @param {Function} streamFn @param {object} options */
export const custom = (id, streamFn, options) => ({ ...options, id, streamFn });

/** As the package marks it. @param {string} to */
export const transferTo = (to) => ({ [Symbol.for("turnwheel.made")]: true, transfer: { to } });

export class Agent {
  #player;
  #runs = 0;

  /** @param {any} options */
  constructor({ messages = [], ...options }) {
    useClock(options.host);
    this.#player = new Player(options, messages);
  }

  /** @param {string[]} texts */
  prompt(texts) {
    const messages = texts.map((text) => ({ role: "user", content: [{ type: "text", text }], timestamp: 0 }));
    return this.#begin((run) => this.#player.prompt(`run-${++this.#runs}`, messages, run));
  }

  continue() {
    return this.#begin((run) => this.#player.continueRun(`run-${++this.#runs}`, run));
  }

  /** @param {(onEvent: (event: any) => void) => Promise<any>} start */
  #begin(start) {
    const run = new Run(this.#player);
    run.result = start((event) => run.tell(event)).finally(() => run.end());
    return run;
  }

  /** @param {(event: any) => void} listener */
  subscribe(listener) {
    this.#player.subscribe(listener);
  }

  /** @param {string} text */
  steer(text) {
    this.#player.steer(text);
  }

  /** @param {string} text */
  followUp(text) {
    this.#player.followUp(text);
  }

  /** @param {string} reason */
  abort(reason) {
    this.#player.abort(reason);
  }

  reset() {
    this.#player.reset();
  }

  get messages() {
    return this.#player.messages;
  }

  set output(/** @type {undefined} */ _) {
    this.#player.clearOutput();
  }
}

/** @param {string[]} prompts @param {any} config */
export const agentLoop = (prompts, config) => new Agent(config).prompt(prompts);

/** @param {any[]} messages @param {any} config */
export const agentLoopContinue = (messages, config) => new Agent({ ...config, messages }).continue();
