// @ts-check
// What a component can do with its agent.

import { misuse } from "../shared.js";

/** @import { AgentResult, Input, JsonValue } from "../index.js" */
/** @import { AgentLike, QueuedInput } from "../react.js" */
/** @import { AgentStore } from "./store.js" */
/** @typedef {{ signal?: AbortSignal | undefined, runId?: string }} RunOptions */
/** @typedef {ReturnType<typeof makeActions>} Actions */

/** @param {AgentStore} store */
export function makeActions(store) {
  return {
    /** @param {Input | Input[]} input @param {RunOptions} [options] */
    send: (input, options) => {
      const agent = agentOf(store);
      const { messages } = agent;
      const [last, length] = [messages.at(-1), messages.length];
      const run = agent.prompt(input, options);
      store.state.history.send(input, last, length);
      return track(store, run);
    },
    /** @param {RunOptions} [options] */
    resume: (options) => track(store, agentOf(store).continue(options)),
    /** @param {Input} input */
    steer: (input) => post(store, "steer", input),
    /** @param {Input} input */
    followUp: (input) => post(store, "followUp", input),
    // May be called after the component is gone; then there is nothing to stop.
    /** @param {unknown} [reason] */
    stop: (reason) => store.agent?.abort(reason),
    /** @param {string} callId @param {{ [key: string]: JsonValue }} [given] */
    approve: (callId, given) => void agentOf(store).resolveTool(callId, given === undefined ? "approve" : { action: "approve", arguments: given }),
    /** @param {string} callId @param {string} [reason] */
    deny: (callId, reason) => void agentOf(store).resolveTool(callId, reason === undefined ? "reject" : { action: "reject", reason }),
  };
}

/** @param {AgentStore} store @returns {AgentLike} */
function agentOf({ agent }) {
  if (!agent) throw misuse("the component of this agent is gone, and the agent with it; make the agent outside of it to keep it");
  return agent;
}

/** Follows a run that the component started. @param {AgentStore} store @param {{ readonly result: Promise<AgentResult> }} run */
function track(store, { result }) {
  store.state.clearOutcome();
  store.scheduleUpdate();
  const finish = (/** @type {unknown} */ error) => {
    store.state.history.sent();
    if (error) store.state.fail(error);
    store.scheduleUpdate();
  };
  result.then(({ stopReason, error }) => finish(stopReason === "error" && error), finish);
  return result;
}

/** @param {AgentStore} store @param {"steer" | "followUp"} kind @param {Input} input */
function post(store, kind, input) {
  const { state } = store;
  const receipt = agentOf(store)[kind](input);
  /** @type {QueuedInput} */
  const message = { kind: kind === "steer" ? "steer" : "follow_up", input };
  const settled = () => {
    state.queued = state.queued.filter((other) => other !== message);
    store.scheduleUpdate();
  };
  state.queued = [...state.queued, message];
  store.scheduleUpdate();
  receipt.then(settled, settled);
  return receipt;
}
