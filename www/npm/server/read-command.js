// @ts-check
// Reads the body of a command.

import { parseJson } from "../remote/json.js";
import { didYouMean, kindOf } from "../shared.js";
import { RequestError } from "./errors.js";

/** @import { Command, CommandName } from "./commands.js" */

const MAX_TEXT = 1000;
/** Ids are remembered, so they are short. */
const MAX_ID = 200;

/** What a client may set for a run, where the host allows it. */
export const RUN_OPTIONS = ["metadata", "streamOptions", "activeTools", "systemPrompt", "budget"];
/** What each command may have besides its id. @type {Record<CommandName, string[]>} */
const MEMBERS = {
  prompt: ["input", "runId", ...RUN_OPTIONS], continue: ["runId", ...RUN_OPTIONS], steer: ["input", "when"], "follow-up": ["input"],
  resolve: ["question", "callId", "decision", "decisions"], abort: ["reason", "runId"], reset: [], rewind: ["length", "branch"], "clear-queues": [],
};

/** @param {Request} request @param {number} limit in bytes @returns {Promise<Command>} */
export async function readCommand(request, limit) {
  const type = request.headers.get("content-type") ?? "";
  // A form on another site could send any other type without a preflight.
  if (type.split(";")[0]?.trim().toLowerCase() !== "application/json") throw new RequestError(415, "invalid_request", `a command is JSON: send content-type application/json, got ${type.slice(0, 100) || "none"}`);
  const text = await readAtMost(request, limit);
  if (text === undefined) throw new RequestError(413, "invalid_request", `a command may have ${limit} bytes`);
  const command = parse(text);
  // An abort must not fail for its reason: a long one is cut.
  if (typeof command.reason === "string") command.reason = command.reason.slice(0, MAX_TEXT) || undefined;
  for (const [key, most] of /** @type {[string, number][]} */ ([["id", MAX_ID], ["runId", MAX_ID], ["reason", MAX_TEXT]])) {
    const value = command[key];
    if (value !== undefined && (typeof value !== "string" || value === "" || value.length > most)) throw new RequestError(400, "invalid_request", `\`${key}\` must be a text of at most ${most} characters`);
  }
  return command;
}

/**
 * Refuses members that a command does not have: whoever sends them expects something that would not happen.
 * @param {CommandName} name @param {Command} command
 */
export function checkMembers(name, command) {
  const known = ["id", ...MEMBERS[name]];
  for (const member of Object.keys(command)) if (!known.includes(member)) throw new RequestError(400, "misuse", `\`${name}\` has no \`${member.slice(0, 100)}\`${didYouMean(member.slice(0, 100), known)}`);
}

/** @param {string} text @returns {Record<string, any>} */
function parse(text) {
  let command;
  try {
    command = text === "" ? {} : parseJson(text, () => {
      throw new Error("it has a member `__proto__`");
    });
  } catch (error) {
    throw new RequestError(400, "invalid_request", `the command is no JSON: ${/** @type {Error} */ (error).message.slice(0, 200)}`);
  }
  if (typeof command !== "object" || command === null || Array.isArray(command)) throw new RequestError(400, "invalid_request", `a command is an object, got ${kindOf(command)}`);
  return command;
}

/** How long the first bytes of a body may take. */
const BODY_MS = 10_000;

/** What was read does not come again, and nobody says so. */
const readBefore = () => new RequestError(400, "misuse", "the body does not come: something in front of `agentHandler` has read it, such as express.json(); mount the handler before that");

/** The first bytes of a body. @template T @param {Promise<T>} bytes @returns {Promise<T>} */
const inTime = (bytes) => new Promise((resolve, reject) => {
  const timer = setTimeout(() => reject(readBefore()), BODY_MS);
  bytes.then(resolve, reject).finally(() => clearTimeout(timer));
});

/** Reads the body as text; returns nothing if it is longer, whatever length was announced. @param {Request} request @param {number} limit */
async function readAtMost(request, limit) {
  const announced = Number(request.headers.get("content-length"));
  if (announced > limit) return;
  if (request.bodyUsed) throw readBefore();
  let text = "";
  // Firefox has no streams of requests; what is asked there was made in the same page.
  if (request.body === undefined) return (text = await request.text()).length > limit ? undefined : text;
  if (request.body === null) return "";
  const decoder = new TextDecoder();
  let size = 0;
  for (const reader = request.body.getReader(); ; ) {
    const { done, value } = await (size === 0 ? inTime(reader.read()) : reader.read());
    if (done && size === 0 && announced > 0) throw readBefore();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > limit) {
      await reader.cancel().catch(() => {});
      return;
    }
    text += decoder.decode(value, { stream: true });
  }
}
