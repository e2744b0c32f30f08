// @ts-check
// What a client may say to the agent: messages of the user. Messages of other roles, and members that a message does not
// have, come from nobody who is asked for a decision, so they are refused.

import { kindOf } from "../shared.js";
import { RequestError } from "./errors.js";

/** @import { AgentHandlerOptions } from "../server.js" */

/** The members of a user's message, and of the blocks in it. @type {Record<string, string[]>} */
const MEMBERS = { user: ["role", "content", "timestamp"], custom: ["role", "kind", "data", "timestamp"], text: ["type", "text"], image: ["type", "mimeType", "data"], file: ["type", "mimeType", "data", "name"] };

/**
 * Refuses what a client may not say. What is no input at all is left to the agent, which says so itself.
 * @param {any} input @param {AgentHandlerOptions["customMessages"]} customMessages @param {string} [where]
 */
export function checkInput(input, customMessages, where = "input") {
  if (Array.isArray(input) && input.length === 0) throw new RequestError(400, "misuse", `${where} needs at least one message or block, got an empty array`);
  if (Array.isArray(input)) return input.forEach((item, i) => checkInput(item, customMessages, `${where}[${i}]`));
  if (typeof input !== "object" || input === null) return;
  const { role, type, content, timestamp } = input;
  if (role === undefined) return checkMembers(input, type, where);
  if (role === "custom") checkCustom(input, customMessages, where);
  checkMembers(input, role, where);
  if (timestamp !== undefined && !Number.isFinite(timestamp)) throw new RequestError(400, "misuse", `${where}.timestamp must be a number, got ${kindOf(timestamp)}`);
  if (Array.isArray(content)) content.forEach((block, i) => checkMembers(block, block?.type, `${where}.content[${i}]`));
}

/** @param {any} message @param {AgentHandlerOptions["customMessages"]} customMessages @param {string} where */
function checkCustom({ kind }, customMessages, where) {
  if (customMessages === true || (Array.isArray(customMessages) && customMessages.includes(kind))) return;
  throw new RequestError(403, "auth", `${where}: clients may not send custom messages${customMessages ? ` of the kind ${JSON.stringify(kind)}` : ""}; see the option \`customMessages\``);
}

/** @param {any} given @param {unknown} kind a role, or the type of a block @param {string} where */
function checkMembers(given, kind, where) {
  const known = Object.hasOwn(MEMBERS, String(kind)) ? MEMBERS[String(kind)] : undefined;
  if (!known || typeof given !== "object" || given === null) return;
  for (const name of Object.keys(given)) if (!known.includes(name)) throw new RequestError(400, "misuse", `${where} has an unknown member ${JSON.stringify(name.slice(0, 100))}; a client may send ${known.join(", ")}`);
}
