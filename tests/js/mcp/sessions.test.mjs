// @ts-check
// A server over HTTP that forgets its sessions, as one does that was started again: the connection begins a new one.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { test } from "node:test";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { mcpTools } from "../../../pkg/mcp.js";
import { Agent, call, scripted, settle } from "../kit.mjs";

/** A server whose sessions can be forgotten. @param {{ after(end: () => unknown): void }} t */
async function forgetful(t) {
  /** @type {Map<string, StreamableHTTPServerTransport>} */
  const sessions = new Map();
  const said = { sessions: 0, calls: 0, isGone: false };
  const open = async () => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID(), onsessioninitialized: (id) => void sessions.set(id, transport) });
    const server = new McpServer({ name: "shop", version: "1" });
    for (const name of ["count", ...(said.sessions > 1 ? ["sell"] : [])]) server.registerTool(name, { annotations: { readOnlyHint: true } }, async () => (said.calls++, { content: [{ type: "text", text: `${name} ${said.sessions}` }] }));
    await server.connect(/** @type {any} */ (transport));
    return transport;
  };
  const http = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    let body = "";
    for await (const piece of request) body += piece;
    const known = typeof id === "string" ? sessions.get(id) : undefined;
    if (said.isGone || (id && !known)) return response.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id: null }));
    if (/"initialize"/.test(body)) said.sessions++;
    await (known ?? (await open())).handleRequest(request, response, body ? JSON.parse(body) : undefined);
  });
  await new Promise((listening) => http.listen(0, "127.0.0.1", () => listening(undefined)));
  t.after(() => (http.closeAllConnections(), http.close()));
  return { url: `http://127.0.0.1:${/** @type {any} */ (http.address()).port}/mcp`, said, forget: () => sessions.clear() };
}

/** @param {any} tools @param {...string} names */
async function results(tools, ...names) {
  const { messages } = await new Agent({ model: scripted([call(...names), "ok"]), tools: [...tools] }).prompt("Go.");
  return messages.flatMap((message) => (message.role === "tool_result" ? [`${message.isError ? "error: " : ""}${/** @type {any} */ (message.content[0]).text}`] : []));
}

test("calls, lists and later calls go on in one new session; a tool that is new there is taken over", async (t) => {
  const server = await forgetful(t);
  const tools = await mcpTools(server.url);
  assert.deepEqual(await results(tools, "count"), ["count 1"]);
  server.forget();
  assert.deepEqual(await results(tools, "count", "count"), ["count 2", "count 2"]);
  assert.deepEqual([server.said.sessions, server.said.calls, tools.isConnected], [2, 3, true]);
  for (let i = 0; i < 2_000 && tools.tools.length < 2; i++) await settle();
  assert.deepEqual(tools.tools.map(({ name }) => name), ["count", "sell"]);
  server.forget();
  await tools.refresh();
  assert.deepEqual([server.said.sessions, await results(tools, "sell")], [3, ["sell 3"]]);
  await tools.dispose();
});

test("a server that does not come back is an error of the call, and not asked for ever", async (t) => {
  const server = await forgetful(t);
  const tools = await mcpTools(server.url);
  server.said.isGone = true;
  assert.match((await results(tools, "count"))[0] ?? "", /^error: .*no MCP server answers at http:/);
  server.said.isGone = false;
  server.forget();
  assert.deepEqual(await results(tools, "count"), ["count 2"]);
  await tools.dispose();
});
