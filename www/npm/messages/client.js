// @ts-check
// What a client of an agent says, read once at its door: out comes a fresh plain value, built member by member, and nobody
// behind the door looks at the original. What a client may do is decided by the table in authority.js.

import { fromClient, isBlock, kindOf, misuse, readBlock, toMessage } from "../shared.js";
import { CLIENTS } from "./authority.js";

/** @import { Answer } from "../index.js" */

/** Thrown where a client asks for what it may not do. */
export class NotAllowed extends Error {}

/** The acts that an option of a door may name. */
export const ANSWERS = /** @type {const} */ (["tool", "elicitation", "tool_call", "arguments", "result", "budget"]);

/** @param {unknown} answers the option of a door @param {string} name */
export function checkAnswersOption(answers, name) {
  if (answers !== undefined && !(Array.isArray(answers) && answers.every((act) => ANSWERS.includes(act)))) throw misuse(`\`${name}\` must be a list of ${ANSWERS.map((act) => `"${act}"`).join(", ")}`);
}

/** Whether a client may do something. @param {string} act @param {readonly string[]} [allowed] what its door allows */
export function mayClient(act, allowed) {
  return CLIENTS[act] === "yes" ? (allowed?.includes(act) ?? true) : CLIENTS[act] === "asked" && allowed?.includes(act) === true;
}

/**
 * Reads an answer to a question. What is no answer at all is left to the agent, which says so.
 * @param {any} given @param {readonly string[]} [allowed] what the door allows @returns {Answer}
 */
export function readAnswer(given, allowed) {
  const answer = answerOf(given);
  const act = actOf(answer);
  if (act && !mayClient(act, allowed)) throw new NotAllowed(`clients may not ${act === "result" ? "give a result in place of a call" : act === "arguments" ? "give other arguments" : act === "tool_call" ? "give the result of a call" : `answer questions of the kind "${act}"`}; see the option \`answers\``);
  return fromClient(answer);
}

/** A fresh copy, with the members that such an answer has. @param {any} given @returns {any} */
function answerOf(given) {
  // A text cannot be marked as a client's.
  if (given === "approve" || given === "reject") return { action: given };
  if (typeof given !== "object" || given === null) return given;
  const { action, arguments: args, reason, content, isError, raise, output, error } = given;
  if (action === "reject") return { action, ...(reason !== undefined && { reason: checkText(reason, "the `reason` of a decision") }) };
  if (action === "decline" || action === "cancel") return { action };
  if (raise !== undefined) return { raise };
  if (error !== undefined) return { error: checkText(error, "the `error` of an answer") };
  if (Object.hasOwn(given, "output")) return { output, ...(isError !== undefined && { isError }) };
  if (action === "accept") return { action, ...(content !== undefined && { content }) };
  if (action === "approve") return { action, ...(Object.hasOwn(given, "arguments") && { arguments: args }) };
  if (action === "result") return { action, content, ...(isError !== undefined && { isError }) };
  return { ...given };
}

/** @param {unknown} text @param {string} what */
function checkText(text, what) {
  if (typeof text !== "string") throw misuse(`${what} must be a text, got ${kindOf(text)}`);
  return text;
}

/** What an answer does. Whoever may answer may say no. @param {any} answer */
function actOf(answer) {
  if (answer?.raise !== undefined) return "budget";
  if ("output" in Object(answer) || "error" in Object(answer)) return "tool_call";
  const { action = answer, arguments: args } = Object(answer);
  if (action === "reject" || action === "decline" || action === "cancel") return;
  if (action === "approve" && args !== undefined) return "arguments";
  return action === "accept" ? "elicitation" : action === "result" ? "result" : "tool";
}

/**
 * Reads what a client says to the agent: a text, a list of blocks, a message of the user or one of the kinds that the host allows,
 * or a list of these.
 * @param {any} input @param {{ custom?: boolean | readonly string[] | undefined, where?: string }} options @returns {any}
 */
export function readInput(input, { custom, where = "input" }) {
  if (typeof input === "string") return input;
  if (Array.isArray(input)) {
    if (input.length === 0) throw misuse(`${where} needs at least one message or block, got an empty array`);
    if (input.every(isBlock)) return input.map((block, i) => readUserBlock(block, `${where}[${i}]`));
    return input.map((item, i) => readInput(item, { custom, where: `${where}[${i}]` }));
  }
  const { role } = Object(input);
  if (role === "custom") checkCustom(input, custom, where);
  // Whatever else it is, it is no input, and this says why.
  if (role !== "user" && role !== "custom") return void toMessage(input, where);
  checkMembers(input, role, where);
  const { content, kind, data, timestamp, id } = input;
  if (timestamp !== undefined && !Number.isFinite(timestamp)) throw misuse(`${where}.timestamp must be a number, got ${kindOf(timestamp)}`);
  if (role === "custom") return { role, kind, data, ...(timestamp !== undefined && { timestamp }) };
  if (typeof content !== "string" && !Array.isArray(content)) throw misuse(`${where}: the content of a message must be a text or an array of blocks, got ${kindOf(content)}`);
  const blocks = typeof content === "string" ? content : content.map((block, i) => readUserBlock(block, `${where}.content[${i}]`));
  if (id !== undefined && !(typeof id === "string" && id.length <= MAX_ID)) throw misuse(`${where}.id must be a text of at most ${MAX_ID} characters, got ${kindOf(id)}`);
  return { role, content: blocks, ...(timestamp !== undefined && { timestamp }), ...(id && { id }) };
}

/** An id is kept with its message. */
const MAX_ID = 200;

/** The members of what a client says. @type {Record<string, string[]>} */
const MEMBERS = { user: ["role", "content", "timestamp", "id"], custom: ["role", "kind", "data", "timestamp"], text: ["type", "text"], image: ["type", "mimeType", "data"], file: ["type", "mimeType", "data", "name"] };

/** @param {any} block @param {string} where */
function readUserBlock(block, where) {
  checkMembers(block, block?.type, where);
  return readBlock(block, where, "user");
}

/** Refuses members that a client has no business with. @param {any} given @param {unknown} kind a role, or the type of a block @param {string} where */
function checkMembers(given, kind, where) {
  const known = Object.hasOwn(MEMBERS, String(kind)) ? MEMBERS[String(kind)] : undefined;
  if (!known || typeof given !== "object" || given === null) return;
  for (const name of Object.keys(given)) if (!known.includes(name)) throw misuse(`${where} has an unknown member ${JSON.stringify(name.slice(0, 100))}; a client may send ${known.join(", ")}`);
}

/** @param {any} message @param {boolean | readonly string[] | undefined} custom @param {string} where */
function checkCustom({ kind }, custom, where) {
  if (custom === true || (Array.isArray(custom) && custom.includes(kind))) return;
  throw new NotAllowed(`${where}: clients may not send custom messages${custom ? ` of the kind ${JSON.stringify(kind)}` : ""}; see the option \`customMessages\``);
}
