// @ts-check
// The conversation as a small model reads it: the tools as signatures in the system text, earlier answers in the
// form that its own have, results as a message of the user. It is the same text for every engine.

import { wordsOf } from "./model.js";
import { shapeOfArguments, spaced } from "./shape.js";

/** @import { JsonValue, LlmMessage, ModelRequest } from "../index.js" */
/** @import { Shape } from "./shape.js" */

/** `suffix` is in this request alone: later ones have the message without it. @typedef {{ role: "system" | "user" | "assistant", content: string, suffix?: string }} ChatMessage */

/**
 * What ends a turn or begins one in the templates of models that run in a page. The engines take it for that also where a tool, a
 * page or a server has written it, so it is written apart.
 */
const SPECIAL = /<(?=[|｜][^<>\n]{0,60}[|｜]?>|\/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|im_start|im_end|end_of_utterance|start_header_id|end_header_id)>)|\[(?=\/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])/gi;

/** @param {string} text */
const plain = (text) => text.replace(SPECIAL, "$& ");

/** Without it, small models make the same call for ever: measured. */
export const AFTER_RESULTS = 'If this answers the question, answer now with {"say": "…"} that tells the user the result.';

const FORM = 'Answer with one JSON object. To use tools: {"calls": [{"name": <tool>, "arguments": {…}}]}. To talk to the user: {"say": "…"}.';
const FORM_OF_DATA = "Answer with one JSON object. ";

/** Whether an answer has the form; where nothing can be called and no data is wanted, it is plain text. @param {ModelRequest} request */
export const hasForm = ({ tools, output, options }) => (tools.length > 0 && options.toolChoice !== "none") || output !== undefined;

/** @param {ModelRequest} request @param {string} afterResults @returns {ChatMessage[]} */
export function chatOf(request, afterResults) {
  const { systemPrompt, messages } = request;
  const isFormed = hasForm(request);
  const system = [systemPrompt, ...(isFormed ? [plain(instructions(request))] : [])].filter((part) => part !== "").join("\n\n");
  /** @type {ChatMessage[]} */
  const chat = system === "" ? [] : [{ role: "system", content: system }];
  /** @type {string[]} */
  let results = [];
  const flush = (/** @type {boolean} */ isLast) => {
    if (results.length > 0) chat.push({ role: "user", content: plain(["Tool results:", ...results].join("\n")), ...(isLast && afterResults !== "" && { suffix: `\n${afterResults}` }) });
    results = [];
  };
  const calls = new Map();
  for (const message of messages) {
    if (message.role === "tool_result") {
      results.push(`${calls.get(message.callId) ?? message.toolName} = ${message.isError ? "error: " : ""}${wordsOf(message)}`);
      continue;
    }
    flush(false);
    for (const block of message.content) if (block.type === "tool_call") calls.set(block.callId, `${block.toolName}(${argumentsOf(block.arguments)})`);
    chat.push({ role: message.role, content: plain(message.role === "assistant" ? replay(message, isFormed, request.output !== undefined) : wordsOf(message)) });
  }
  flush(true);
  return chat;
}

/** An earlier answer. @param {LlmMessage} message @param {boolean} isFormed @param {boolean} isData */
function replay(message, isFormed, isData) {
  const calls = message.content.flatMap((block) => (block.type === "tool_call" ? [{ name: block.toolName, arguments: block.arguments ?? {} }] : []));
  const text = wordsOf(message);
  return calls.length > 0 || isFormed ? replayOf(text, calls, isData) : text;
}

/** An answer, as the model would have written it. @param {string} text @param {{ name: string, arguments: any }[]} calls @param {boolean} isData */
export function replayOf(text, calls, isData) {
  if (calls.length > 0) return spaced({ calls });
  return isData && isJson(text) ? `{"say": ${text}}` : spaced({ say: text });
}

/** @param {ModelRequest} request */
function instructions({ tools, output, options }) {
  if (tools.length === 0 || options.toolChoice === "none") return `${FORM_OF_DATA}It has the data that is asked for: {"say": ${output ? describe(output) : "…"}}.`;
  const lines = tools.map(({ name, description, parameters }) => `${name}(${signature(shapeOfArguments(parameters))}): ${description.replace(/\s+/g, " ").trim()}`);
  return ["Tools:", ...lines, "", output ? FORM.replace('"say": "…"', () => `"say": ${describe(output)}`) : FORM].join("\n");
}

/** @param {unknown} schema */
const describe = (schema) => `<data of this JSON Schema: ${JSON.stringify(schema)}>`;

/** @param {Shape} shape */
function signature(shape) {
  if (shape.kind !== "object") return "…";
  // A name with a blank or a line in it would be more than a name.
  return shape.members.map(({ name, shape: inner, required }) => `${/^[\w$.-]+$/.test(name) ? name : JSON.stringify(name)}${required ? "" : "?"}: ${typeName(inner)}`).join(", ");
}

/** @param {Shape} shape @returns {string} */
function typeName(shape) {
  switch (shape.kind) {
    case "literal":
      return shape.values.map((value) => JSON.stringify(value)).join(" | ");
    case "either":
      return shape.of.map(typeName).join(" | ");
    case "array":
      return `${shape.items.kind === "either" || shape.items.kind === "literal" ? `(${typeName(shape.items)})` : typeName(shape.items)}[]`;
    case "object":
      return `{ ${signature(shape)} }`;
    default:
      return shape.kind;
  }
}

/** @param {unknown} given */
function argumentsOf(given) {
  if (typeof given !== "object" || given === null) return "";
  return Object.entries(given).map(([name, value]) => `${/^[\w$.-]+$/.test(name) ? name : JSON.stringify(name)}: ${spaced(/** @type {JsonValue} */ (value))}`).join(", ");
}

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
