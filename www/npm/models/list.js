// @ts-check
// The models of an agent: the one that is asked first, and those to fall back to.

import { misuse } from "../shared.js";
import { modelSettings, setupOf } from "./setup.js";

/** @import { ModelWithSetup } from "./setup.js" */

export class ModelList {
  /** @param {ModelWithSetup} model @param {ModelWithSetup[]} [fallback] */
  constructor(model, fallback = []) {
    this.fallback = fallback;
    /** In the order in which they are asked. @type {ModelWithSetup[]} */
    this.list = [];
    /**
     * The same, and earlier ones that a run may still call, indexed by their number in the engine.
     * @type {ModelWithSetup[]}
     */
    this.known = [];
    this.set(model, false);
  }

  get first() {
    return /** @type {ModelWithSetup} */ (this.list[0]);
  }

  /** @param {ModelWithSetup} model @param {boolean} isRunning whether a run may still call the earlier ones */
  set(model, isRunning) {
    if (model === undefined) throw misuse('there is no model; set `model`, for example openai("gpt-5-mini", { apiKey })');
    const list = [model, ...this.fallback];
    list.forEach((each, i) => modelSettings(each, i > 0 ? `fallback[${i - 1}]` : undefined));
    this.list = list;
    if (!isRunning) this.known = [];
    for (const each of list) if (!this.known.includes(each)) this.known.push(each);
  }

  /** The id of a model on a server without a price, if there is one. */
  withoutPrice() {
    return this.list.find((model) => (setupOf(model).wire || setupOf(model).estimatesUsage) && setupOf(model).price === undefined)?.id;
  }

  /** For the engine. */
  settings() {
    return this.list.map((model) => this.settingsOf(model));
  }

  /** The settings of a model, which a run may call from now on. @param {ModelWithSetup} model */
  settingsOf(model) {
    const settings = modelSettings(model);
    if (!this.known.includes(model)) this.known.push(model);
    return { ...settings, index: this.known.indexOf(model) };
  }
}
