// @ts-check
// What came of a recorded answer, in a form in which the wires of the package and the bridge can be compared.

import { anthropic, Agent, checkRun, gemini, openai, openaiResponses } from "../kit.mjs";

/** @type {Record<string, (id: string, options: any) => any>} */
const WIRES = { "openai-chat": openai, "openai-responses": openaiResponses, anthropic, gemini };

/** A model on a wire of the package. @param {string} wire @param {typeof fetch} fetch */
export function nativeModel(wire, fetch) {
  const make = WIRES[wire];
  if (!make) throw new Error(`its wire is not built: ${wire}`);
  return make("recorded", { apiKey: "not-a-secret", fetch });
}

/** Plays one turn to its end. @param {any} model @param {any} expected */
export async function play(model, expected) {
  const names = [...new Set((expected.tool_calls ?? []).map((/** @type {any} */ call) => call.name))];
  const tools = names.map((name) => ({ name, description: "", parameters: { type: "object" }, execute: () => "" }));
  const run = new Agent({ model, tools, retry: { maxAttempts: 1 }, maxTurns: 1 }).prompt("Go");
  const events = [];
  for await (const event of run) events.push(event);
  const { all, result } = checkRun(events, await run.result);
  return { message: all("message_end")[0].message, error: result.error?.info, ran: all("tool_execution_start").map(({ toolName, arguments: args }) => [toolName, args]) };
}

/**
 * The parts of an outcome that are compared, by their names. Where the two sides cannot be alike, their difference is taken
 * out here: who made the message and when, ids that were not given, a zero that says nothing.
 * @param {any} outcome @param {any} expected
 */
export function comparable({ message, error, ran }, expected) {
  const { content, usage, stopReason } = message;
  const { input, output, cacheRead, cacheWrite, reasoning, estimated } = usage;
  return {
    text: joined(content, "text"),
    thinking: thoughtsOf(content),
    calls: content.filter((/** @type {any} */ { type }) => type === "tool_call").map((/** @type {any} */ call, /** @type {number} */ i) => [call.toolName, call.arguments, expected.tool_calls?.[i]?.id ? (call.metadata?.originalCallId ?? call.callId) : ""]),
    raw: content.flatMap((/** @type {any} */ block) => (block.type === "raw" ? rawKind(block.data) : [])),
    // A refusal is a filter to the AI SDK; what is used by an answer that failed nobody is told.
    stop: stopReason === "refusal" ? "content_filter" : stopReason,
    usage: error ? "" : estimated ? "estimated" : [input, output, cacheRead, cacheWrite, reasoning || 0],
    error: error && [error.code, error.retryable, error.retryAfterMs ?? ""],
    ran,
  };
}

/** @param {any[]} content @param {string} type */
const joined = (content, type) => content.filter((block) => block.type === type).map((block) => block[type]).join("");

/** The thoughts, those of one item joined. @param {any[]} content */
function thoughtsOf(content) {
  /** @type {{ text: string, redacted: boolean, signed: boolean }[]} */
  const thoughts = [];
  let before;
  for (const block of content) {
    if (block.type === "thinking") {
      const item = /"itemId":"([^"]*)"/.exec(block.signature ?? "")?.[1];
      const signed = isSigned(block.signature);
      const last = item !== undefined && item === before ? thoughts.at(-1) : undefined;
      if (last) Object.assign(last, { text: `${last.text}\n\n${block.thinking}`, signed: last.signed || signed });
      else thoughts.push({ text: block.thinking, redacted: block.redacted ?? false, signed });
      before = item;
    } else before = undefined;
  }
  return thoughts;
}

/** Whether a signature has more in it than names. @param {string | undefined} signature */
function isSigned(signature) {
  if (!signature) return false;
  if (!signature.startsWith("{")) return true;
  const values = (/** @type {any} */ value, /** @type {string} */ key) => (typeof value === "object" && value !== null ? Object.entries(value).some(([name, inner]) => values(inner, name)) : !["itemId", "id", "type", "status", "format", "index"].includes(key) && value !== null);
  /** @type {(value: any, key: string) => boolean} */
  return values(JSON.parse(signature), "");
}

/** What a block is that only its provider understands; the AI SDK has words of its own. @param {any} data */
function rawKind(data) {
  const { type = Object.keys(data)[0] ?? "" } = data;
  if (type === "source") return [];
  if (type === "tool-call" || /(tool_use|_call|toolCall|executableCode)$/.test(type)) return ["call"];
  if (type === "tool-result" || /(_result|_output|toolResponse|codeExecutionResult)$/.test(type)) return ["result"];
  return ["other"];
}
