// @ts-check
// Reads the body of a command.

import { kindOf } from "../shared.js";
import { RequestError } from "./errors.js";

/** @import { Command } from "./commands.js" */

const MAX_TEXT = 1000;

/** @param {Request} request @param {number} limit in bytes @returns {Promise<Command>} */
export async function readCommand(request, limit) {
  const type = request.headers.get("content-type") ?? "";
  // A form on another site could send any other type without a preflight.
  if (!/^application\/json\b/i.test(type)) throw new RequestError(415, "invalid_request", `a command is JSON: send content-type application/json, got ${type || "none"}`);
  const text = await readAtMost(request, limit);
  if (text === undefined) throw new RequestError(413, "invalid_request", `a command may have ${limit} bytes`);
  const command = parse(text);
  // An abort must not fail for its reason: a long one is cut.
  if (typeof command.reason === "string") command.reason = command.reason.slice(0, MAX_TEXT) || undefined;
  for (const key of ["id", "runId", "reason"]) {
    const value = command[key];
    if (value !== undefined && (typeof value !== "string" || value === "" || value.length > MAX_TEXT)) throw new RequestError(400, "invalid_request", `\`${key}\` must be a text of at most ${MAX_TEXT} characters`);
  }
  return command;
}

/** @param {string} text @returns {Record<string, any>} */
function parse(text) {
  let command;
  try {
    command = text === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw new RequestError(400, "invalid_request", `the command is no JSON: ${/** @type {Error} */ (error).message}`);
  }
  if (typeof command !== "object" || command === null || Array.isArray(command)) throw new RequestError(400, "invalid_request", `a command is an object, got ${kindOf(command)}`);
  return command;
}

/** Reads the body as text; returns nothing if it is longer. @param {Request} request @param {number} limit */
async function readAtMost(request, limit) {
  if (!request.body) return "";
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (const reader = request.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > limit) {
      await reader.cancel().catch(() => {});
      return;
    }
    text += decoder.decode(value, { stream: true });
  }
}
