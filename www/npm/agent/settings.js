// @ts-check
// What an agent is set to, and its form for the engine: plain values, and the names of the functions that are set.

import { FUNCTIONS, POLICIES, STAGES } from "../boundary/protocol.js";
import { loadingReducers } from "../context/reducers.js";
import { jsonOf, misuse, others, shownOf, withoutInfinity } from "../shared.js";
import { DEEPEST_NESTING } from "../checkpoint/questions.js";
import { setupOf } from "../models/setup.js";
import { ModelList } from "../models/list.js";
import { ToolSet } from "../tools/set.js";
import { StructuredOutput } from "./output.js";

/** @import { CheckedOptions } from "../options/options.js" */
/** @import { Around } from "../tools/subagent.js" */

export class Settings {
  /** @param {CheckedOptions} options @param {boolean} once whether the agent does a single run */
  constructor(options, once) {
    this.options = options;
    this.systemPrompt = options.systemPrompt ?? "";
    this.streamOptions = options.streamOptions;
    this.budget = options.budget;
    /** What stands around execution. @type {Around} */
    this.around = { wrapTool: options.wrapTool, wrapModel: options.wrapModel, path: [], maxDepth: options.maxDepth ?? 8 };
    if (this.around.maxDepth > DEEPEST_NESTING) throw misuse(`\`maxDepth\` must be at most ${DEEPEST_NESTING}, got ${shownOf(options.maxDepth)}`);
    this.output = new StructuredOutput(options.output);
    // In the loop of the specification, two tools may share a name.
    this.tools = new ToolSet(options.tools, once);
    this.models = new ModelList(options.model, options.fallback);
  }

  /** Loads what the checks of the schemas and the reducers need, if that is not there yet. @returns {Promise<void> | undefined} */
  load() {
    const reducers = loadingReducers() ?? this.loadAnswers();
    if (reducers) return reducers.then(() => this.load());
    for (const { load } of [...this.tools.offered, this.output]) {
      const loading = load?.();
      if (loading) return loading;
    }
  }

  /** Loads what answers the questions of a budget, if it asks, and of tools that are answered elsewhere. @param {import("../index.js").Budget} [budget] @returns {Promise<unknown> | undefined} */
  loadAnswers(budget = this.budget) {
    if ((budget?.onExceed === "ask" || this.tools.hasExternal) && !others.check) return loadAnswers();
  }

  /** Takes over what stands around the execution of the agent that calls this one, where this one has nothing of its own. @param {Around} around */
  inherit(around) {
    const { wrapTool = around.wrapTool, wrapModel = around.wrapModel } = this.options;
    this.around = { ...around, wrapTool, wrapModel };
  }

  toJson() {
    const { options, models } = this;
    const { compaction, policies } = options;
    // JSON leaves functions out.
    return jsonOf("the options are", {
      has: this.#functions(),
      // The engine says where an attempt begins and ends.
      hooks: STAGES.filter((stage) => (this.around.wrapModel && stage.endsWith("Inference")) || [options.hooks ?? []].flat().some((hook) => typeof hook[stage] === "function")),
      preDispatch: policies?.preDispatch?.length,
      models: models.settings(),
      ...this.tools.settings(),
      systemPrompt: this.systemPrompt,
      streamOptions: this.streamOptions,
      budget: budgetSettings(this.budget),
      maxTurns: options.maxTurns ?? 100,
      retry: retrySettings(options.retry),
      approval: options.approval, toolExecution: options.toolExecution, maxConcurrentTools: options.maxConcurrentTools,
      gate: options.gate, earlyDecisions: options.earlyDecisions, steering: options.steering, followUp: options.followUp, timeouts: { ...options.timeouts, modelMs: withoutInfinity(options.timeouts ?? {}).modelMs },
      maxRecoveriesPerTurn: typeof compaction === "object" ? compaction.maxRecoveriesPerTurn : undefined,
      includeRequests: options.includeRequests, sessionState: options.sessionState, output: this.output.schema,
      outputRetries: options.outputRetries, cache: options.cache, transfer: options.transfer, wrapsModels: this.around.wrapModel !== undefined || undefined, steps: this.#steps(),
    });
  }

  /** What the durable engine of the host can do. */
  #steps() {
    const { step, wait, sleep, steps } = this.options.host;
    return step && { waits: wait !== undefined, sleeps: sleep !== undefined, ...steps };
  }

  /** The names of the functions that are set. */
  #functions() {
    const { options, models } = this;
    const { compaction, policies } = options;
    /** @type {string[]} */
    const has = [...FUNCTIONS, /** @type {const} */ ("retry"), /** @type {const} */ ("toolExecution")].filter((name) => typeof options[name] === "function");
    // Which model `prepareTurn` will give is not known.
    if (options.prepareTurn || models.known.some((model) => typeof setupOf(model).apiKey === "function")) has.push("getApiKey");
    if (options.host.wait && !options.host.step && !options.approveTool) has.push("approveTool");
    if (compaction) has.push(compaction === "summarize" ? "summarize" : "compaction");
    if (options.resultTexts) has.push("resultTexts");
    for (const slot of POLICIES) if ((policies?.[slot]?.length ?? 0) > 0) has.push(slot);
    return has;
  }
}

/** Loads what answers other questions than those about calls. */
export const loadAnswers = () => import("../messages/answer.js").then(({ allowOthers }) => allowOthers());

/** Without a limit is without the member. @param {import("../index.js").Budget | undefined} budget */
export function budgetSettings(budget) {
  return budget && Object.fromEntries(Object.entries(budget).filter(([, value]) => value !== Infinity));
}

/** @param {CheckedOptions["retry"]} given */
function retrySettings(given) {
  const { multiplier, ...retry } = /** @type {Record<string, number | boolean | undefined>} */ (given ?? {});
  return { ...withoutInfinity(retry), multiplierThousandths: multiplier && Math.round(Number(multiplier) * 1000) };
}
