// @ts-check
// Plays the set `context_reduction`: what a model is shown of a history that goes through a reducer of the package.

import { Agent, budgetTrim, custom, keepLast } from "../../../pkg/entry/node.js";
import { asPeer } from "./view.mjs";

/** Where a trimmed history begins is the reducer's own. */
export const HIDDEN = ["metadata"];
/** What is seen of a history is what a model is sent. */
export const AS_SENT = true;

/** Why a case cannot be played by the package. @param {any} input @returns {string | undefined} */
export function unreachable({ op, tools = [], messages, rounds, metadata }) {
  if (op === "estimate_tokens" || op === "estimate_tool_overhead") return "the package does not show what a message weighs";
  if (op === "budget_aware" && tools.length > 0) return "a reducer is given messages, and the case counts tools";
  if (op !== "budget_aware" && op !== "reduce") return "`keepLast` is all of the passes, one after the other: none is there by itself";
  if (Object.keys(metadata ?? {}).length > 0) return "where a trimmed history begins is the reducer's own: none is given it";
  const histories = rounds ?? [messages];
  if (histories.flat().some(isForeign)) return "a message that is of no role of the package's is shown to no model";
  if (op === "reduce" && hasNeighbours(messages)) return "neighbours of one role are merged by the wires, after `keepLast` has counted answers";
  if (histories.some(hasTwins)) return "a call with the id of another keeps its own result: the peer's passes take both for one";
  return undefined;
}

/** @param {any[]} messages */
const hasNeighbours = (messages) => messages.some(({ role }, at) => role === "assistant" && messages[at + 1]?.role === role);

/** Whether two calls have the same id. @param {any[]} messages */
function hasTwins(messages) {
  const ids = messages.flatMap(({ content }) => content).filter((part) => part.type === "tool_call").map(({ id }) => id);
  return new Set(ids).size < ids.length;
}

/** Whether a message is of no role, or has parts of another. @param {any} message */
function isForeign({ role, content }) {
  const of = { user: ["text", "image"], assistant: ["text", "tool_call"], tool: ["tool_result"] }[/** @type {string} */ (role)];
  return of === undefined || (typeof content === "string" ? role === "tool" : content.some((/** @type {any} */ { type }) => !of.includes(type)));
}

/** @param {any} input */
export async function play({ op, messages, keep_last: keep = 64, ...budget }) {
  if (op === "reduce") return { messages: await shown(keepLast(keep === "max" ? Number.MAX_SAFE_INTEGER : keep), messages) };
  const { model_context: contextWindow, max_output_tokens: maxOutputTokens, threshold: fraction, keep_last_n_assistant: count } = budget;
  const reducer = budgetTrim({ contextWindow, maxOutputTokens, fraction, keepLast: count });
  const rounds = [];
  for (const round of budget.rounds) rounds.push({ messages: await shown(reducer, round) });
  return { rounds };
}

/** What a model is shown of a history, without the question that made it. @param {import("../../../pkg/entry/node.js").Reducer} reducer @param {any[]} messages */
async function shown(reducer, messages) {
  /** @type {any[]} */
  let seen = [];
  const model = custom("m", async function* (request) {
    seen = request.messages.slice(0, -1);
    yield { type: "done", stopReason: "stop" };
  });
  const saved = { version: 1, format: "stakai_message_v1", run_id: null, messages, metadata: {} };
  const agent = await Agent.restore(/** @type {any} */ (saved), { model, transformContext: reducer });
  await agent.prompt("go").orThrow();
  return asPeer(new Agent({ model, messages: seen }).checkpoint(), seen);
}
