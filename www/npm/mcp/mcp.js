// @ts-check
// Offers the tools of an MCP server as tools of an agent, through the official SDK.

import { kindOf, misuse } from "../shared.js";
import { APPROVAL } from "./approval.js";
import { connect, refuseOptionsOfAddresses } from "./connect.js";
import { offer } from "./offers.js";
import { McpServer } from "./server.js";
import { Watch } from "./watch.js";

/** @import { McpClient, McpToolsOptions, McpTransport } from "../mcp.js" */

const OPTIONS = ["prefix", "name", "only", "approval", "timeoutMs", "totalTimeoutMs", "maxResultBytes", "onError", "clientInfo", "resources", "onElicit", "headers", "fetch", "authProvider", "authorizationCode"];
const FUNCTIONS = /** @type {const} */ (["onError", "fetch", "name"]);

/**
 * Returns the tools of a server, kept up to date.
 * @param {McpClient | McpTransport | string | URL} source a connected Client of the SDK, a transport, or a URL @param {McpToolsOptions} [options]
 */
export async function mcpTools(source, options = {}) {
  if (typeof options !== "object" || options === null) throw misuse(`the options of mcpTools must be an object, got ${kindOf(options)}`);
  for (const name of Object.keys(options)) if (!OPTIONS.includes(name)) throw misuse(`unknown option \`${name}\` of mcpTools; there are ${OPTIONS.join(", ")}`);
  const { approval = "destructive", prefix } = options;
  // What comes before the first `__` of a tool's name is its server, so no prefix may look like another's tool.
  if (typeof prefix === "string" && !/^(?!.*__)[a-zA-Z0-9_-]*[a-zA-Z0-9-]$|^$/.test(prefix)) throw misuse(`\`prefix\` may have letters, digits, - and single underscores, none at its end, got ${JSON.stringify(prefix)}`);
  if (typeof approval !== "function" && !Object.hasOwn(APPROVAL, approval)) throw misuse(`\`approval\` must be ${Object.keys(APPROVAL).map((word) => JSON.stringify(word)).join(", ")} or a function, got ${JSON.stringify(approval)}`);
  for (const name of FUNCTIONS) if (options[name] !== undefined && typeof options[name] !== "function") throw misuse(`\`${name}\` must be a function, got ${kindOf(options[name])}`);
  const { onElicit } = options;
  if (onElicit !== undefined && onElicit !== false && onElicit !== "ask" && typeof onElicit !== "function") throw misuse(`\`onElicit\` must be a function, "ask" or false, got ${kindOf(onElicit)}`);
  const given = asClient(source);
  if (given && !given.transport) throw misuse("the MCP client is not connected; await client.connect(transport) first");
  const server = new McpServer(options, given === undefined);
  let withdraw = () => {};
  const prepare = async (/** @type {McpClient} */ client) => void (withdraw = await offer(client, Watch.of(client), server.elicitor));
  if (given) {
    refuseOptionsOfAddresses(options, "a Client");
    await prepare(given);
  }
  const client = given ?? (await connect(/** @type {McpTransport | string | URL} */ (source), options, prepare));
  server.attach(client, withdraw);
  if (typeof source === "string" || source instanceof URL) server.renew = async () => server.attach(await connect(source, { ...options, authorizationCode: undefined }, prepare), withdraw);
  try {
    await server.refresh();
  } catch (error) {
    await server.dispose();
    throw error;
  }
  return server;
}

/** @param {McpClient | McpTransport | string | URL} source @returns {McpClient | undefined} */
function asClient(source) {
  const client = /** @type {McpClient} */ (source);
  return typeof client?.callTool === "function" ? client : undefined;
}
