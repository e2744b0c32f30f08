// @ts-check
// Carries out what the engine asks for: model calls, tools, approvals, timers. Each effect has a slot, and its
// answer goes back to that slot. The Rust half is ports.rs of the engine.

import { complain, toDecision } from "../shared.js";
import { setupOf } from "../models/setup.js";
import { transformAnswer } from "../rules/transform.js";
import { placeOf } from "../steps/names.js";
import { fetchAnswer } from "./http.js";
import { Slot } from "./slot.js";
import { streamAnswer } from "./stream.js";
import { executeTool } from "./tool-call.js";

/** @import { Driver } from "../run/driver.js" */
/** @import { EffectKind } from "../boundary/protocol.js" */
/**
 * An effect as the engine describes it; the members depend on the kind.
 * @typedef {{ kind: EffectKind } & Record<string, any>} Effect
 */

/** Starts an effect. @param {Driver} run @param {number} slot @param {Effect} effect */
export function startEffect(run, slot, effect) {
  const state = new Slot();
  const { engineRun } = run;
  engineRun.slots.set(slot, state);
  // The request of an attempt is made inside `wrapModel`.
  const { attempt } = run;
  if (attempt && (effect.kind === "http" || effect.kind === "stream")) return attempt.start(() => state.aborted || perform(run, slot, effect, state));
  perform(run, slot, effect, state);
}

/** @param {Driver} run @param {number} slot @param {Effect} effect @param {Slot} state */
function perform(run, slot, effect, state) {
  if (run.steps) run.steps.perform(slot, effect, state, EFFECTS, () => carryOut(run, slot, effect, state));
  else carryOut(run, slot, effect, state);
}

/** @param {Driver} run @param {number} slot @param {Effect} effect @param {Slot} state */
function carryOut(run, slot, effect, state) {
  const { engineRun } = run;
  const work = EFFECTS[effect.kind](run, slot, /** @type {any} */ (effect), state);
  // A value that is not JSON counts as a failure like any other.
  const when = effect.kind === "tool" ? "soon" : "now";
  if (work) work.then((answer) => engineRun.resolve(slot, answer, when)).catch((error) => engineRun.reject(slot, error, effect.kind === "key"));
}

/** @type {Record<EffectKind, (run: Driver, slot: number, effect: any, state: Slot) => Promise<unknown> | void>} */
const EFFECTS = {
  http: fetchAnswer,
  stream: streamAnswer,
  tool: executeTool,

  async key(run, _slot, { provider, model }) {
    const { core } = run;
    const { getApiKey } = core.options;
    // The model's own key function; another model's key must not reach this model's server. A key given as
    // a string is known to the engine.
    const modelKey = setupOf(core.settings.models.known[model]).apiKey;
    const keys = run.memory.keysOf(run.fold.turn);
    const key = keys.has(provider) ? keys.get(provider) : await getApiKey?.(provider, run.about());
    keys.set(provider, key);
    return key ?? (typeof modelKey === "function" && !run.abortion.isAsked ? await modelKey(run.about()) : null) ?? null;
  },

  async approve(run, _slot, { id, callId, toolName, arguments: args, requiresApproval }, { signal }) {
    const request = { id, callId, toolName, arguments: args, requiresApproval, ...run.about() };
    const { approveTool, host } = run.core.options;
    try {
      return toDecision(await (approveTool ? approveTool(request, { signal }) : host.wait?.(run.memory.names.name(run, `approve/${placeOf(run, callId)}`), request)));
    } catch (error) {
      // The call is rejected, and only the model would hear why.
      if (!signal.aborted) complain(`turnwheel: ${approveTool ? "approveTool" : "host.wait"} failed:`, error);
      throw error;
    }
  },

  async hook(run, _slot, { stage, kind, ...details }, { signal }) {
    const context = { ...run.about(), ...details };
    if (context.messages) context.messages = run.resolveRefs(context.messages);
    if (stage === "beforeInference" && run.around.wrapModel) {
      const { Attempt } = await import("./around.js");
      // Nothing starts after an abort; its end was told in the meantime.
      if (run.abortion.isAsked) return null;
      await (run.attempt = new Attempt()).begin(run, { attempt: context.attempt, model: context.model, messages: context.messages }, signal);
    }
    if (stage === "afterInference") {
      const { attempt } = run;
      run.attempt = undefined;
      await attempt?.end(context.message);
    }
    // Whoever heard of a beginning hears of its end.
    const isEnd = stage === "afterInference" || stage === "afterToolExecution";
    for (const hooks of [run.core.options.hooks ?? []].flat()) {
      // The previous hook may have stopped the run; then the others are not called.
      if (run.abortion.isAsked && !isEnd) break;
      try {
        await /** @type {Record<string, Function | undefined>} */ (hooks)[stage]?.(context);
      } catch (error) {
        // A failing onError hook changes nothing.
        if (stage !== "onError") throw error;
      }
    }
    return null;
  },

  async prepareTurn(run, _slot, { usage }, { signal }) {
    const { preparedTurn } = await import("./prepared-turn.js");
    return preparedTurn(run, usage, signal);
  },

  async transform(run, _slot, { overflow, cached }, { signal }) {
    const messages = run.turnView ?? run.fold.messages;
    const info = { cachedMessages: cached, ...run.about() };
    return transformAnswer(await run.core.options.asyncTransformContext?.(messages.slice(), overflow, signal, info), run.fold.messages, messages.length);
  },

  async compact(run, _slot, _effect, { signal }) {
    const { core, fold } = run;
    const { compaction } = core.options;
    if (typeof compaction !== "object") return null;
    const log = fold.messages;
    const { messages, report } = await compaction.engine(log.slice(), core.settings.models.first, signal, run.about());
    const answer = transformAnswer({ messages, report: report ?? {} }, log);
    return answer && "replace" in answer ? { messages: answer.replace, report: answer.report } : null;
  },

  // Both wait for an answer of the host that was promised to a rule; see rules/host-queue.js.
  steering: async ({ memory }, _slot, { promise }) => memory.queues.take(promise),
  followUp: async ({ memory }, _slot, { promise }) => memory.queues.take(promise),

  async sleep(run, _slot, { ms, backOff }, { signal }) {
    const { core } = run;
    const until = core.host.now() + ms;
    await core.host.sleep(ms, signal, run.memory.names.name(run, backOff ? "sleep" : "limit", "/"));
    // If the host's own sleep ended too early, the engine sleeps again; other tasks must get to run in between.
    if (core.options.host.sleep && !signal.aborted && core.host.now() < until) await new Promise((wake) => setTimeout(wake));
    return null;
  },

  // Only runs with steps have gates, and they open them.
  gate() {},
};
