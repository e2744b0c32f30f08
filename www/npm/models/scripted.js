// @ts-check
// A model that plays a script, for tests and demos.

import { checkNames, kindOf, misuse, sleep } from "../shared.js";
import { all, checkShape } from "../options/shape.js";
import { argumentsText } from "../messages/arguments-text.js";
import { withSetup } from "./setup.js";

/** @import { AssistantMessageEvent, ErrorInfo, Model, ModelRequest, ScriptItem } from "../index.js" */
/** @typedef {ScriptItem | ((request: ModelRequest) => ScriptItem | Promise<ScriptItem>)} ScriptStep */
/** @typedef {{ signal: AbortSignal, runId: string, sleep?(ms: number): Promise<void> }} Context */

/**
 * A model for tests and demos: the n-th call returns the n-th item.
 * @param {ScriptStep[]} items @returns {Model & { readonly requests: ModelRequest[], readonly unused: number }}
 */
export function scripted(items) {
  if (!Array.isArray(items)) throw misuse(`scripted needs an array of items, got ${kindOf(items)}`);
  items.forEach((item, i) => checkItem(item, `scripted: item ${i}`));
  let next = 0;
  /** @type {ModelRequest[]} */
  const requests = [];
  return withSetup(
    {
      provider: "scripted",
      id: "scripted",
      /** What it was asked, without keys. */
      requests,
      /** How many items nobody has asked for. */
      get unused() {
        return Math.max(items.length - next, 0);
      },
      /** @param {ModelRequest} request @param {Context} context @returns {AsyncGenerator<AssistantMessageEvent>} */
      async *streamFn(request, context) {
        const { apiKey, ...asked } = request;
        requests.push(asked);
        const item = items[next++];
        if (item === undefined) {
          const error = /** @type {ErrorInfo} */ ({ code: "invalid_request", message: `the script is exhausted: it has ${items.length} items` });
          return yield { type: "error", error };
        }
        yield* play(typeof item === "function" ? checkItem(await answered(item, request), `scripted: what item ${next - 1} gives`) : item, context);
      },
    },
    {},
  );
}

/**
 * Asks a function of the script. An assertion that fails in it is a rejection that nobody handles, too: it fails the test,
 * though the run only ends with an error.
 * @param {Extract<ScriptStep, Function>} item @param {ModelRequest} request
 */
async function answered(item, request) {
  try {
    return await item(request);
  } catch (error) {
    if (/** @type {Error} */ (error)?.name === "AssertionError") Promise.reject(error);
    throw error;
  }
}

/** @type {{ [name: string]: import("../options/shape.js").Shape }} */
const MEMBERS = { thinking: "text", toolCalls: "list", stopReason: "text", delayMs: "number", usage: { ...all(["input", "output", "cacheRead", "cacheWrite", "reasoning", "total", "cost"], "number"), estimated: "flag", own: "any" }, error: "object" };

/** Checks an item: a misspelt one would be a silent answer. @template {ScriptStep} T @param {T} item @param {string} where @returns {T} */
function checkItem(item, where) {
  if (typeof item === "string" || typeof item === "function" || Array.isArray(item)) return item;
  if (typeof item !== "object" || item === null) throw misuse(`${where} must be a text, an array of events, or { text, toolCalls, … }, got ${kindOf(item)}`);
  checkNames(`${where}: unknown member`, item, ["thinking", "text", "toolCalls", "stopReason", "usage", "delayMs", "error"]);
  const owner = `${where}: `;
  // Text in pieces must be texts too.
  const isPieces = Array.isArray(item.text) && item.text.every((piece) => typeof piece === "string");
  if (!isPieces) checkShape("text", item.text, "text", owner);
  for (const [name, shape] of Object.entries(MEMBERS)) checkShape(name, item[/** @type {keyof typeof item} */ (name)], shape, owner);
  if (item.error && typeof item.error.message !== "string") throw misuse(`${where}: an error needs a \`message\`, got ${kindOf(item.error.message)}`);
  for (const call of item.toolCalls ?? []) {
    checkNames(`${where}: unknown member of a call`, call, ["callId", "toolName", "arguments", "chunks"]);
    if (typeof call.toolName !== "string") throw misuse(`${where}: a call needs a \`toolName\`, got ${kindOf(call.toolName)}`);
    checkShape("callId", call.callId, "text", owner);
    checkShape("arguments", call.arguments, "object", owner);
    checkShape("chunks", call.chunks, "list", owner);
  }
  return item;
}

/** @param {ScriptItem} item @param {Context} context @returns {AsyncGenerator<AssistantMessageEvent>} */
async function* play(item, context) {
  if (Array.isArray(item)) return yield* item;
  const { thinking, text, toolCalls = [], stopReason, usage, delayMs, error } = typeof item === "string" ? { text: item } : item;
  // Somebody may call this streamFn with only the context that the contract promises.
  if (delayMs) await (context.sleep?.(delayMs) ?? sleep({}, delayMs, context.signal));
  yield { type: "start" };
  let contentIndex = 0;
  if (thinking) {
    yield { type: "thinking_start", contentIndex };
    yield { type: "thinking_delta", contentIndex, delta: thinking };
    yield { type: "thinking_end", contentIndex: contentIndex++ };
  }
  if (text !== undefined) {
    yield { type: "text_start", contentIndex };
    for (const delta of [text].flat()) yield { type: "text_delta", contentIndex, delta };
    yield { type: "text_end", contentIndex: contentIndex++ };
  }
  for (const [index, call] of toolCalls.entries()) {
    const { callId = `call_${index + 1}`, toolName, chunks = [argumentsText(call.arguments ?? {})] } = call;
    yield { type: "tool_call_start", contentIndex, callId, toolName };
    for (const delta of chunks) yield { type: "tool_call_delta", contentIndex, delta };
    yield { type: "tool_call_end", contentIndex: contentIndex++ };
  }
  if (error) yield { type: "error", error };
  else yield { type: "done", stopReason: stopReason ?? (toolCalls.length > 0 ? "tool_use" : "stop"), ...(usage && { usage }) };
}
