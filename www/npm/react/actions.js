// @ts-check
// What a component can do with its agent.

import { misuse } from "../shared.js";

/** @import { AgentMessage, AgentResult, Answer, Input, JsonValue, SteerOptions, ToolDecision } from "../index.js" */
/** @import { AgentLike, QueuedInput } from "../react.js" */
/** @import { AgentStore } from "./store.js" */
/** @typedef {Omit<import("../index.js").RunOptions, "model">} RunOptions */
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
    /** @param {Input} input @param {SteerOptions} [options] */
    steer: (input, options) => post(store, "steer", input, options),
    /** @param {Input} input */
    followUp: (input) => post(store, "followUp", input),
    // May be called after the component is gone; then there is nothing to stop.
    /** @param {unknown} [reason] */
    stop: (reason) => store.agent?.abort(reason),
    /** @param {number} length @param {readonly AgentMessage[]} [branch] */
    rewind: (length, branch) => {
      const agent = agentOf(store);
      if (!agent.rewind) throw misuse("the agent has no `rewind`, so its history cannot be taken back");
      return agent.rewind(length, branch);
    },
    /** @param {string} id @param {{ [key: string]: JsonValue }} [given] */
    approve: (id, given) => decide(store, id, given === undefined ? "approve" : { action: "approve", arguments: given }),
    /** @param {string} id @param {string} [reason] */
    deny: (id, reason) => decide(store, id, reason === undefined ? "reject" : { action: "reject", reason }),
    /** @param {string} id @param {Answer} answer */
    answer: (id, answer) => {
      const agent = agentOf(store);
      if (!agent.resolve) throw misuse("the agent has no `resolve`, so it cannot be answered by the id of a question");
      agent.resolve(id, answer);
    },
  };
}

/** @param {AgentStore} store @returns {AgentLike} */
function agentOf({ agent }) {
  if (!agent) throw misuse("the component of this agent is gone, and the agent with it; make the agent outside of it to keep it");
  return agent;
}

/**
 * Answers the question that is shown: whoever clicked has seen that one, whatever the agent has asked since.
 * @param {AgentStore} store @param {string} id of the question, or of the call @param {ToolDecision} decision
 */
function decide(store, id, decision) {
  const agent = agentOf(store);
  const open = store.shown?.pendingApprovals ?? [];
  const about = open.filter((question) => question.callId === id);
  const shown = open.find((question) => question.id === id) ?? about.find(({ path }) => !path?.length) ?? (about.length === 1 ? about[0] : undefined);
  if (shown?.id !== undefined && agent.resolve) agent.resolve(shown.id, decision);
  else agent.resolveTool(id, decision);
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

/** @param {AgentStore} store @param {"steer" | "followUp"} kind @param {Input} input @param {SteerOptions} [options] */
function post(store, kind, input, options) {
  const { state } = store;
  const receipt = agentOf(store)[kind](input, options);
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
