// @ts-check
// Carries out what only a whole engine asks for; the other effects are in effects.js.

import { complain, placeOf, quiet, toDecision } from "../core.js";
import { queuesOf } from "../rules/host-queue.js";
import { transformAnswer } from "../rules/transform.js";
import { streamAnswer } from "./stream.js";
import { executeTool } from "./tool-call.js";

/** @import { EffectKind } from "../boundary/protocol.js" */
/** @import { Perform } from "./effects.js" */

/** @type {Partial<Record<EffectKind, Perform>>} */
export const REST_EFFECTS = {
  stream: streamAnswer,
  tool: executeTool,

  async approve(run, _slot, { id, callId, toolName, arguments: args, requiresApproval }, { signal }) {
    const request = { id, callId, toolName, arguments: args, requiresApproval, ...run.about() };
    const { approveTool, host } = run.core.options;
    try {
      const decision = await (approveTool ? approveTool(request, { signal }) : host.wait?.(run.memory.names.name(run, `approve/${placeOf(run, callId)}`), request));
      quiet(decision);
      return toDecision(decision);
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
  steering: async (run, _slot, { promise }) => queuesOf(run).take(promise),
  followUp: async (run, _slot, { promise }) => queuesOf(run).take(promise),
};
