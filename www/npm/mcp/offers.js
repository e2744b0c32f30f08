// @ts-check
// What the client offers a server: answers to its questions.

import { misuse } from "../shared.js";
import { isSuccessor } from "./call.js";

/** @import { McpClient, McpToolsOptions } from "../mcp.js" */
/** @import { Elicitor } from "./elicit.js" */
/** @import { Watch } from "./watch.js" */

/** Answers questions; loaded with the first one. @typedef {() => Promise<Elicitor>} Elicitors */

/** What a connection of our own declares. @param {McpToolsOptions} options */
export function capabilitiesOf({ onElicit }) {
  return onElicit === false ? {} : { elicitation: { form: {}, url: {} } };
}

const METHOD = "elicitation/create";

/**
 * Registers the handler. Returns a function that takes it away.
 * @param {McpClient} client @param {Watch} watch @param {Elicitors | undefined} elicitor @returns {Promise<() => void>}
 */
export async function offer(client, watch, elicitor) {
  if (!elicitor) return () => {};
  const registrar = /** @type {any} */ (client);
  if (typeof registrar.setRequestHandler !== "function") throw misuse("this client takes no handlers for the server's requests; `onElicit` needs a Client of the SDK");
  const schemas = isSuccessor(client) ? undefined : /** @type {any} */ (await import("@modelcontextprotocol/sdk/types.js"));
  const handler = (/** @type {any} */ { params }, /** @type {any} */ extra) => watch.during(idOf(extra), METHOD, signalOf(extra), async (request) => (await elicitor()).answer(watch, params, request));
  try {
    registrar.assertCanSetRequestHandler?.(METHOD);
    registrar.setRequestHandler(schemas ? schemas.ElicitRequestSchema : METHOD, handler);
  } catch (error) {
    throw misuse(`the client cannot answer the server's requests: ${/** @type {Error} */ (error).message}; declare the capability when you make the Client, and leave its handler to mcpTools`, error);
  }
  return () => registrar.removeRequestHandler?.(METHOD);
}

/** @param {any} extra the SDK's, or its successor's */
const idOf = (extra) => extra?.requestId ?? extra?.mcpReq?.id;
/** @param {any} extra @returns {AbortSignal} */
const signalOf = (extra) => extra?.signal ?? extra?.mcpReq?.signal ?? new AbortController().signal;
