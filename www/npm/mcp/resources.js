// @ts-check
// The resources of a server as two tools: one lists them, one reads one.

import { blockOf } from "./content.js";

/** @import { McpClient, McpTool } from "../mcp.js" */

/** Reading changes nothing, says the protocol. */
const annotations = { readOnlyHint: true };

/** @type {McpTool} */
export const LIST = {
  name: "list_resources", annotations,
  description: "Lists the resources (files, records, pages) that this server offers, a page at a time, and the templates of addresses whose {names} you may fill in.",
  inputSchema: { type: "object", properties: { cursor: { type: "string", description: "Of the page before, for the next one" } } },
};

/** @type {McpTool} */
export const READ = {
  name: "read_resource", annotations,
  description: "Reads a resource of this server by its address.",
  inputSchema: { type: "object", properties: { uri: { type: "string" } }, required: ["uri"] },
};

/** @param {McpClient} client @param {{ cursor?: string }} args @param {object} options */
export async function listResources(client, { cursor }, options) {
  const { resources, nextCursor } = await client.listResources?.(cursor === undefined ? undefined : { cursor }, options) ?? { resources: [] };
  // Templates are few; they stand before the first page.
  const { resourceTemplates = [] } = cursor === undefined ? await templatesOf(client, options) : {};
  const lines = [
    ...resourceTemplates.map((/** @type {any} */ one) => line(one.uriTemplate, one)),
    ...resources.map((/** @type {any} */ one) => line(one.uri, one)),
    ...(nextCursor ? [`There are more: list with the cursor ${JSON.stringify(nextCursor)}.`] : []),
  ];
  return { content: [{ type: "text", text: lines.join("\n") || "There are no resources." }], details: { resources, ...(resourceTemplates.length > 0 && { resourceTemplates }), ...(nextCursor && { nextCursor }) } };
}

/** @param {McpClient} client @param {object} options @returns {Promise<{ resourceTemplates?: any[] }>} */
async function templatesOf(client, options) {
  try {
    return await client.listResourceTemplates?.(undefined, options) ?? {};
  } catch (error) {
    // Servers need not have any, and some do not know the question.
    if (/** @type {{ code?: unknown } | null} */ (error)?.code === -32601) return {};
    throw error;
  }
}

/** @param {McpClient} client @param {{ uri: string }} args @param {object} options */
export async function readResource(client, { uri }, options) {
  const { contents = [] } = await client.readResource?.({ uri }, options) ?? {};
  const blocks = contents.map((/** @type {any} */ resource) => blockOf({ type: "resource", resource }));
  const isWhole = contents.every((/** @type {any} */ { text, mimeType }) => text !== undefined || mimeType?.startsWith("image/"));
  return { content: blocks, ...(!isWhole && { details: { contents } }) };
}

/** @param {string} address @param {{ name?: string, title?: string, mimeType?: string, description?: string }} of */
const line = (address, { name, title, mimeType, description }) => `${address}: ${[title ?? name, mimeType, description].filter(Boolean).join(", ")}`;
