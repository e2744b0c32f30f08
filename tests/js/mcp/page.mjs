// The page for browser/mcp.test.mjs: an agent with the tools of a server, over streamable HTTP.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Agent, scripted } from "turnwheel";
import { jsonSchemaValidator, mcpTools } from "turnwheel/mcp";

/** @param {any} tools @param {any[]} calls @param {(event: any, agent: Agent) => void} [onEvent] */
async function run(tools, calls, onEvent = () => {}) {
  const toolCalls = calls.map(([toolName, args = {}], i) => ({ callId: `c${i}`, toolName, arguments: args }));
  const agent = new Agent({ model: scripted([{ toolCalls }, "done"]), tools });
  const events = [];
  agent.subscribe((event) => (events.push(event), onEvent(event, agent)));
  const { stopReason } = await agent.prompt("Go");
  const results = events.filter(({ type }) => type === "tool_execution_end").map(({ result }) => result);
  return { stopReason, results, updates: events.filter(({ type }) => type === "tool_execution_update").map(({ update }) => update.details) };
}

Object.assign(globalThis, {
  async address(url) {
    const server = await mcpTools(url, { prefix: "all" });
    const outcome = await run(server.tools, [["all__echo", { message: "hi" }], ["all__get-structured-content", { location: "Chicago" }], ["all__get-tiny-image"], ["all__trigger-long-running-operation", { duration: 0.3, steps: 3 }]]);
    await server.dispose();
    return outcome;
  },
  async abort(url) {
    const client = new Client({ name: "page", version: "1" }, { jsonSchemaValidator });
    const transport = new StreamableHTTPClientTransport(new URL(url));
    const sent = [];
    const send = transport.send.bind(transport);
    transport.send = (message, options) => (sent.push(message.method), send(message, options));
    await client.connect(transport);
    const server = await mcpTools(client);
    const outcome = await run(server.tools, [["trigger-long-running-operation", { duration: 60, steps: 600 }]], (event, agent) => { if (event.type === "tool_execution_update") agent.abort("enough"); });
    await client.close();
    return { ...outcome, cancelled: sent.includes("notifications/cancelled") };
  },
  async changes(url) {
    const client = new Client({ name: "page", version: "1" }, { capabilities: { elicitation: {} }, jsonSchemaValidator });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const server = await mcpTools(client);
    const has = () => server.tools.some(({ name }) => name === "trigger-elicitation-request");
    if (!has()) await new Promise((resolve) => server.onChange(() => has() && resolve()));
    await client.close();
    return server.tools.length;
  },
  async gone(url) {
    globalThis.kept = await mcpTools(url);
    return kept.name;
  },
  async after() {
    return (await run(kept.tools, [["echo", { message: "hi" }]])).results[0];
  },
  async compiles(url) {
    const client = new Client({ name: "page", version: "1" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const message = await mcpTools(client).then(() => "", (error) => error.message);
    await client.close();
    return message;
  },
  nobody: (url) => mcpTools(url).then(() => "", (error) => error.message),
});
document.documentElement.dataset.ready = "";
