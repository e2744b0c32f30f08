// @ts-check
// What the client offers a server: answers to its questions, a model, and where the work is; the last two only if the host says so.

import { misuse } from "../shared.js";
import { isSuccessor } from "./call.js";

/** @import { McpClient, McpToolsOptions } from "../mcp.js" */
/** @import { Elicitor } from "./elicit.js" */
/** @import { Watch } from "./watch.js" */

/** Answers questions; loaded with the first one. @typedef {() => Promise<Elicitor>} Elicitors */

/** What a connection of our own declares. @param {McpToolsOptions} options */
export function capabilitiesOf({ onElicit, onSample, roots }) {
  return { ...(onElicit !== false && { elicitation: { form: {}, url: {} } }), ...(onSample && { sampling: {} }), ...(roots && { roots: {} }) };
}

/**
 * Registers the handlers. Returns a function that takes them away.
 * @param {McpClient} client @param {McpToolsOptions} options @param {Watch} watch @param {Elicitors | undefined} elicitor @returns {Promise<() => void>}
 */
export async function offer(client, { onSample, roots }, watch, elicitor) {
  /** @type {[method: string, schema: string, handler: (request: any, extra: any) => unknown][]} */
  const handlers = [];
  if (elicitor) handlers.push(["elicitation/create", "ElicitRequestSchema", ({ params }, extra) => watch.during(idOf(extra), "elicitation/create", signalOf(extra), async (request) => (await elicitor()).answer(watch, params, request))]);
  if (onSample) handlers.push(["sampling/createMessage", "CreateMessageRequestSchema", ({ params }, extra) => watch.during(idOf(extra), "sampling/createMessage", signalOf(extra), async ({ controller }) => (await import("./sampling.js")).sample(onSample, params, controller.signal))]);
  if (roots) handlers.push(["roots/list", "ListRootsRequestSchema", async () => ({ roots: (await import("./sampling.js")).rootsOf(typeof roots === "function" ? await roots() : roots) })]);
  if (handlers.length === 0) return () => {};
  const registrar = /** @type {any} */ (client);
  if (typeof registrar.setRequestHandler !== "function") throw misuse("this client takes no handlers for the server's requests; `onElicit`, `onSample` and `roots` need a Client of the SDK");
  const schemas = isSuccessor(client) ? undefined : /** @type {any} */ (await import("@modelcontextprotocol/sdk/types.js"));
  /** @type {string[]} */
  const taken = [];
  const remove = () => taken.forEach((method) => registrar.removeRequestHandler?.(method));
  try {
    for (const [method, schema, handler] of handlers) {
      registrar.assertCanSetRequestHandler?.(method);
      registrar.setRequestHandler(schemas ? schemas[schema] : method, handler);
      taken.push(method);
    }
  } catch (error) {
    remove();
    throw misuse(`the client cannot answer the server's requests: ${/** @type {Error} */ (error).message}; declare the capability when you make the Client, and leave its handler to mcpTools`, error);
  }
  return remove;
}

/** @param {any} extra the SDK's, or its successor's */
const idOf = (extra) => extra?.requestId ?? extra?.mcpReq?.id;
/** @param {any} extra @returns {AbortSignal} */
const signalOf = (extra) => extra?.signal ?? extra?.mcpReq?.signal ?? new AbortController().signal;
