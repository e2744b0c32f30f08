// @ts-check
// An agent in the form that the AI SDK defines for agents, `agent-v1`.

import { checkNames, kindOf, misuse } from "../shared.js";
import { Chat } from "./chat.js";

/** @import { Agent } from "../index.js" */
/** @import { AiAgentLike } from "../ai-sdk.js" */

/** @param {Agent} agent @param {{ id?: string }} [options] @returns {AiAgentLike} */
export function toAgent(agent, options = {}) {
  if (typeof agent?.prompt !== "function" || typeof agent.subscribe !== "function") throw misuse(`toAgent takes an agent, got ${kindOf(agent)}`);
  checkNames("toAgent: unknown option", options, ["id"]);
  const chat = new Chat(agent, {}, "steer");
  const stream = async (/** @type {any} */ call) => (await import("./result.js")).begin(chat, call);
  return { version: "agent-v1", id: options.id, tools: {}, stream, generate: async (call) => (await stream(call)).whole() };
}
