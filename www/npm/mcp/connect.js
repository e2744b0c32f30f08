// @ts-check
// Connects to an MCP server with a client of our own.

import { AgentError, kindOf, misuse, textOf } from "../shared.js";
import { jsonSchemaValidator } from "./json-schema.js";
import { capabilitiesOf } from "./offers.js";

/** @import { McpClient, McpToolsOptions, McpTransport } from "../mcp.js" */

/** The options that are for an address only. */
const OF_ADDRESSES = /** @type {const} */ (["headers", "fetch", "authProvider", "authorizationCode"]);

/**
 * @param {McpTransport | string | URL} source @param {McpToolsOptions} options
 * @param {(client: McpClient) => Promise<unknown>} prepare called before the server can ask anything
 * @returns {Promise<McpClient>}
 */
export async function connect(source, options, prepare) {
  const { clientInfo = { name: "turnwheel", version: "1" } } = options;
  const transport = await transportOf(source, options);
  const { Client } = await library();
  // The server's newest protocol that both know: servers of 2025 are asked once whether they know a later one.
  const client = new Client(clientInfo, { jsonSchemaValidator, capabilities: capabilitiesOf(options), versionNegotiation: { mode: "auto" } });
  await prepare(/** @type {any} */ (client));
  try {
    if (options.authorizationCode !== undefined) await transport.finishAuth(options.authorizationCode);
    await client.connect(transport);
  } catch (error) {
    const where = source instanceof URL || typeof source === "string" ? String(source) : "the other end of the transport";
    throw unauthorized(where, error, options) ?? new Error(`no MCP server answers at ${where}: ${reasonOf(error)}`, { cause: error });
  }
  return /** @type {any} */ (client);
}

/**
 * The official client, which speaks with servers of all protocols since 2024. Where it is not installed, the client of the SDK, which knows
 * the protocols until 2025. A bundler puts only the former in.
 * @returns {Promise<any>}
 */
async function library() {
  try {
    return await import("@modelcontextprotocol/client");
  } catch (error) {
    const sdk = "@modelcontextprotocol/sdk/client";
    const load = (/** @type {string} */ name) => import(/* @vite-ignore */ /* webpackIgnore: true */ `${sdk}/${name}.js`);
    const [client, transport] = await Promise.allSettled([load("index"), load("streamableHttp")]);
    if (client.status === "fulfilled" && transport.status === "fulfilled") return { ...client.value, ...transport.value };
    throw misuse("mcpTools connects with @modelcontextprotocol/client, which cannot be loaded: npm install @modelcontextprotocol/client, or give mcpTools a connected Client", error);
  }
}

/** Why nobody answers. Early versions of the client have the cause in their data. @param {any} error */
function reasonOf(error) {
  const cause = error?.cause ?? error?.data?.cause;
  return textOf(cause ? new Error(error.message, { cause }) : error);
}

/** How a server is started that is a program. */
const BY_COMMAND = 'for a program: new StdioClientTransport({ command: "npx", args: ["-y", "the-server"] }) of @modelcontextprotocol/client/stdio';

/** What to write instead of something that is no server, as people know it from other libraries. @param {any} source */
function insteadOf(source) {
  if (Array.isArray(source)) return `; call it for each server, with a \`prefix\`: tools: [...await mcpTools(a, { prefix: "a" }), ...await mcpTools(b, { prefix: "b" })]`;
  if (typeof source?.url === "string") return "; write mcpTools(url, { headers })";
  return `; ${BY_COMMAND}`;
}

/** The options that cannot have an effect, because the connection is another's. @param {McpToolsOptions} options @param {string} source */
export function refuseOptionsOfAddresses(options, source) {
  for (const name of OF_ADDRESSES) if (options[name] !== undefined) throw misuse(`\`${name}\` is for the address of a server; ${source} brings its own`);
}

/** @param {McpTransport | string | URL} source @param {McpToolsOptions} options @returns {Promise<any>} a transport of the SDK */
async function transportOf(source, options) {
  const { start, send } = /** @type {Partial<McpTransport>} */ (source) ?? {};
  if (typeof start === "function" && typeof send === "function") {
    refuseOptionsOfAddresses(options, "a transport");
    return source;
  }
  if (typeof source !== "string" && !(source instanceof URL)) throw misuse(`mcpTools takes a connected Client, a transport or an address, got ${kindOf(source)}${insteadOf(source)}`);
  const { headers, fetch, authProvider, authorizationCode } = options;
  if (authorizationCode !== undefined && !authProvider) throw misuse("`authorizationCode` needs the `authProvider` that began the login");
  let url;
  try {
    url = new URL(source, globalThis.location?.href);
  } catch (error) {
    throw misuse(`mcpTools takes the address of a server, such as http://localhost:3000/mcp, got ${JSON.stringify(source)}; ${BY_COMMAND}`, error);
  }
  if (!/^https?:$/.test(url.protocol)) throw misuse(`mcpTools connects to addresses of http and https, got ${JSON.stringify(String(source))}; ${BY_COMMAND}`);
  if (headers !== undefined && typeof headers !== "object") throw misuse(`\`headers\` must be an object, such as { authorization: "Bearer …" }, got ${kindOf(headers)}`);
  const { StreamableHTTPClientTransport } = await library();
  return new StreamableHTTPClientTransport(url, { ...(headers && { requestInit: { headers } }), ...(fetch && { fetch }), ...(authProvider && { authProvider }) });
}

/** The status that a server answered with, if that is what an error is about; the SDK has it as `code`. @param {any} error @returns {unknown} */
export const statusOf = (error) => error?.status ?? error?.code;

/** What to do when a server wants to know who calls; undefined if that is not the reason. @param {string} where @param {unknown} error @param {McpToolsOptions} options */
export function unauthorized(where, error, { authProvider, authorizationCode } = {}) {
  const status = statusOf(error);
  const { name, constructor } = /** @type {Error} */ (error ?? {});
  // The error of the SDK has no name of its own.
  if (name !== "UnauthorizedError" && constructor?.name !== "UnauthorizedError" && status !== 401 && status !== 403) return;
  const next = authorizationCode !== undefined ? "the code of the login was not accepted"
    : authProvider ? "a login has begun; when it comes back, call mcpTools again with its code as `authorizationCode`"
    : "give `headers` with a token, or an `authProvider`";
  return new AgentError({ code: "auth", message: `${where} does not let this client in: ${next} (${textOf(error)})`, retryable: false }, error);
}
