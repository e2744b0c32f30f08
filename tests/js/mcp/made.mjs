// @ts-check
// Servers made with the official SDK, connected within the process, for the tests of turnwheel/mcp.

import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Agent, call, readRun, scripted } from "../kit.mjs";

/** A tool as a server lists it. @param {string} name @param {any} [more] */
export const bare = (name, more = {}) => ({ name, inputSchema: { type: "object" }, ...more });

/** A result that is a text. @param {unknown} text */
export const said = (text) => ({ content: [{ type: "text", text: typeof text === "string" ? text : JSON.stringify(text) }] });

/**
 * A server, and the transport of its client. `answer` gets the parameters of a call, and the SDK's `extra`.
 * @param {() => any[]} tools @param {(params: any, extra: any) => any} answer @param {any} [capabilities]
 */
export async function serverOf(tools, answer, capabilities = {}) {
  const made = new Server({ name: "small", version: "1" }, { capabilities: { tools: { listChanged: true }, ...capabilities } });
  made.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: await tools() }));
  made.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => answer(params, extra));
  const [here, there] = InMemoryTransport.createLinkedPair();
  await made.connect(there);
  return { made, here };
}

/**
 * Runs an agent that makes these calls at once; returns their results in the order of the calls.
 * @param {any} tools @param {any[]} calls
 */
export async function results(tools, ...calls) {
  const agent = new Agent({ model: scripted([call(...calls), "done"]), tools, approval: { mode: "bypassed" } });
  const { events } = await readRun(agent.prompt("Go"));
  return events.filter((event) => event.type === "tool_execution_end").sort((a, b) => (a.callId < b.callId ? -1 : 1)).map((event) => event.result);
}
