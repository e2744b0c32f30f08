// @ts-check
// An agent that looks up three things at once, asks a person, and pays back what never came.

import { openai, scripted, tool } from "turnwheel";

const { OPENAI_API_KEY, OFFICE } = process.env;
export const instructions = "You look after orders. Look first, then pay back what never came.";

const parameters = /** @type {const} */ ({ type: "object", properties: { customer: { type: "string" } }, required: ["customer"] });

/** Asks the office, if there is one. @param {string} what @param {string} customer */
const ask = async (what, customer) => (OFFICE ? (await fetch(`${OFFICE}/${what}/${customer}`)).text() : `${what} of ${customer}`);

/** @param {string} name */
const look = (name) => tool({ name, description: `Looks up the ${name} of a customer`, parameters, idempotent: true, execute: ({ customer }) => ask(name, customer) });

export const tools = [
  look("order"), look("payment"), look("delivery"),
  // Not idempotent: if the process ends while it runs, it is not run again, and the model is told so.
  tool({ name: "refund", description: "Pays an order back", parameters, requiresApproval: true, execute: ({ customer }) => ask("refund", customer) }),
];

/** Without a key: an answer that depends on the conversation alone, so that it is the same in every process. @param {import("turnwheel").ModelRequest} request @returns {import("turnwheel").ScriptItem} */
function scriptedAnswer({ messages }) {
  const customer = /Ada|Grace/.exec(JSON.stringify(messages))?.[0] ?? "nobody";
  const call = (/** @type {string} */ toolName) => ({ callId: toolName, toolName, arguments: { customer } });
  const results = messages.filter(({ role }) => role === "tool_result").length;
  if (results === 0) return { text: "I look.", toolCalls: ["order", "payment", "delivery"].map(call) };
  if (results === 3) return { text: "It never came. I ask.", toolCalls: [call("refund")] };
  return "Done.";
}

export const model = OPENAI_API_KEY ? openai("gpt-5-mini", { apiKey: OPENAI_API_KEY }) : scripted(Array.from({ length: 100 }, () => scriptedAnswer));

/** Tells people what is asked: a chat's webhook, say. @param {{ id: string, name: string, request: import("turnwheel").ApprovalRequest }} question */
export async function tell(question) {
  console.log("somebody has to decide:", JSON.stringify(question));
  if (OFFICE) await fetch(`${OFFICE}/question`, { method: "POST", body: JSON.stringify(question) });
  return null;
}
