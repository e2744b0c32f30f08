// @ts-check
// Connects to an MCP server with a client of our own.

import { kindOf, misuse, textOf } from "../shared.js";
import { jsonSchemaValidator } from "./json-schema.js";

/** @import { McpClient, McpToolsOptions, McpTransport } from "../mcp.js" */

/** @param {McpTransport | string | URL} source @param {McpToolsOptions} options @returns {Promise<McpClient>} */
export async function connect(source, { clientInfo = { name: "turnwheel", version: "1" } }) {
  const transport = await transportOf(source);
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const client = new Client(clientInfo, { jsonSchemaValidator });
  try {
    await client.connect(transport);
  } catch (error) {
    throw new Error(`no MCP server answers at ${source instanceof URL || typeof source === "string" ? source : "the other end of the transport"}: ${textOf(error)}`, { cause: error });
  }
  return client;
}

/** @param {McpTransport | string | URL} source @returns {Promise<any>} a transport of the SDK */
async function transportOf(source) {
  const { start, send } = /** @type {Partial<McpTransport>} */ (source) ?? {};
  if (typeof start === "function" && typeof send === "function") return source;
  if (typeof source !== "string" && !(source instanceof URL)) throw misuse(`mcpTools takes a connected Client, a transport or an address, got ${kindOf(source)}`);
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  let url;
  try {
    url = new URL(source, globalThis.location?.href);
  } catch (error) {
    throw misuse(`mcpTools takes the address of a server, such as http://localhost:3000/mcp, got ${JSON.stringify(source)}`, error);
  }
  return new StreamableHTTPClientTransport(url);
}
