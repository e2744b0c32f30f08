// @ts-check
// Converts the outputs of tools. A value that is no JSON is an error that says what in it is not.

import { isPromise, quiet } from "../errors/errors.js";
import { isOfClass, kindOf } from "../errors/names.js";

/** @import { FileBlock, ImageBlock, JsonValue, TextBlock, Transfer } from "../index.js" */
/** @typedef {{ content: (TextBlock | ImageBlock | FileBlock)[], details?: JsonValue, isError?: boolean, transfer?: Transfer["transfer"] }} Result */

/** The default limit for the texts of a result, and the limit for an image or a file: as for an answer of a model. */
export const LONGEST_RESULT = 1 << 23;
/** The limit for the details of a result and for a value of the session state: they are read as trees. */
export const LONGEST_DETAILS = 1 << 22;
/** The limit for the text of an error; the engine has the same, with what it writes around the text. */
const LONGEST_ERROR = 65_000;

/**
 * Converts a tool's output to a result. An output that is not JSON becomes an error that says so.
 * @param {unknown} output
 * @returns {Result}
 */
export function toResult(output) {
  if (output === undefined) return { content: [{ type: "text", text: "" }] };
  if (typeof output === "string") return { content: [{ type: "text", text: output }] };
  const flaw = flawOf(output, "the result");
  if (flaw) return { content: [{ type: "text", text: `the tool's result is no JSON: ${flaw}` }], isError: true };
  const { content, details, isError, transfer: given } = /** @type {any} */ (output) ?? {};
  const transfer = isTransfer(output) ? { to: given.to, ...(given.reason !== undefined && { reason: given.reason }) } : undefined;
  // With other members present, an empty `content` array is just another member.
  const isResult = content?.length !== 0 || hasOnly(output, RESULT);
  const blocks = isResult && Array.isArray(content) ? content.map(blockOf) : [undefined];
  if (!blocks.includes(undefined)) {
    return { content: /** @type {Result["content"]} */ (blocks), ...(details !== undefined && { details }), isError: isError === true, ...(transfer && { transfer }) };
  }
  if (transfer) return { content: [], transfer };
  return { content: [{ type: "text", text: JSON.stringify(output) }] };
}

/** The key of the mark of what the package's own functions made: addresses and transfers count only with it. */
export const MADE = /* @__PURE__ */ Symbol.for("turnwheel.made");

/**
 * A plain block of a result; nothing if it is none. An address counts only if `imageAt` or `fileAt` made it: a tool may pass on
 * what a stranger wrote.
 * @param {any} block
 */
function blockOf(block) {
  const { type, url } = Object(block);
  if (!SHOWN.includes(type) || (url !== undefined && (type === "text" || block[MADE] !== true))) return;
  const { text, mimeType, data, name, signature } = block;
  if (type === "text") return { type, text, ...(signature !== undefined && { signature }) };
  return { type, ...(mimeType !== undefined && { mimeType }), ...(url === undefined ? { data } : { url }), ...(type === "file" && name !== undefined && { name }) };
}

/**
 * Whether the output hands the conversation over. It must be made by `transferTo`, be `{ transfer: { to, reason? } }` and nothing
 * else: other values merely have a member of that name.
 * @param {any} output
 */
function isTransfer(output) {
  const transfer = output?.transfer;
  return output?.[MADE] === true && typeof transfer?.to === "string" && hasOnly(transfer, ["to", "reason"]) && hasOnly(output, RESULT);
}

/** The blocks that a result may have. */
const SHOWN = ["text", "image", "file"];
const RESULT = ["transfer", "content", "details", "isError"];

/** @param {any} value @param {string[]} names */
function hasOnly(value, names) {
  return Object.keys(value).every((name) => names.includes(name));
}

/**
 * Returns why a value is not JSON, or nothing if it is.
 * @param {unknown} value @param {string} where @returns {string | undefined}
 */
export function flawOf(value, where) {
  const flaw = flawIn(value, new Set(), where);
  if (flaw) quiet(value);
  return flaw;
}

/** @param {unknown} value @param {Set<object>} above @param {string} where @returns {string | undefined} */
function flawIn(value, above, where) {
  if (value === null || typeof value === "string" || typeof value === "boolean" || value === undefined) return;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${where} is ${value}`;
  if (typeof value !== "object") return `${where} is a ${typeof value}`;
  if (above.has(value)) return `${where} contains itself`;
  if (isPromise(value)) return `${where} is a promise; await it first`;
  // A Buffer has a `toJSON`, which makes a list of numbers of it.
  if (ArrayBuffer.isView(value)) return `${where} is ${kindOf(value)}; bytes are base64 in { content: [{ type: "file", mimeType, data }] }, or of type "image"`;
  if (typeof (/** @type {any} */ (value).toJSON) === "function") return;
  if (!Array.isArray(value) && isOfClass(value) && !isRecord(value)) return `${where} is ${kindOf(value)}`;
  above.add(value);
  for (const [key, item] of Object.entries(value)) {
    const flaw = flawIn(item, above, Array.isArray(value) ? `${where}[${key}]` : `${where}.${key}`);
    if (flaw) return flaw;
  }
  above.delete(value);
}

/** A copy of JSON. It may be behind a reactive proxy, which structuredClone refuses. @template T @param {T} value @returns {T} */
export function plainCopy(value) {
  try {
    return structuredClone(value);
  } catch (error) {
    if (flawOf(value, "it")) throw error;
    return JSON.parse(JSON.stringify(value));
  }
}

/** Whether JSON.stringify preserves the contents of a class instance. @param {any} value */
function isRecord(value) {
  return Object.keys(value).length > 0 && !(value instanceof Error || ArrayBuffer.isView(value) || Symbol.iterator in value);
}

/** The beginning of an error's text, which may repeat what a model or a server sent. @param {string} text */
export function limitError(text) {
  return text.length > LONGEST_ERROR ? `${text.slice(0, LONGEST_ERROR)}\n[truncated: ${LONGEST_ERROR} of ${text.length} characters shown]` : text;
}
