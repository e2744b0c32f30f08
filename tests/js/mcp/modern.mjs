// @ts-check
// Servers of the protocol of July 2026, which remember nothing between two requests, for the tests of turnwheel/mcp.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";

/**
 * What answers requests. `answer` gets the parameters of a call, and what the server knows of the request.
 * @param {() => any[]} tools @param {(params: any, request: any) => any} answer @param {{ capabilities?: object, legacy?: "reject", list?: object }} [more]
 */
export function handlerOf(tools, answer, { capabilities = {}, legacy, list = {} } = {}) {
  return createMcpHandler(() => {
    const server = new Server({ name: "late", version: "1" }, { capabilities: { tools: { listChanged: true }, ...capabilities }, instructions: "Count well." });
    server.setRequestHandler("tools/list", async () => ({ tools: await tools(), ...list }));
    server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => answer(params, mcpReq));
    return server;
  }, { ...(legacy && { legacy }) });
}

/** The address of a server in this process, the options that lead there, and what it was sent. @param {ReturnType<typeof handlerOf>} handler */
export function inProcess(handler) {
  /** @type {any[]} */
  const sent = [];
  const to = { handler, isOff: false };
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    if (to.isOff) throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") });
    sent.push(init?.body ? JSON.parse(init.body) : { method: init?.method });
    return to.handler.fetch(new Request(url, init));
  };
  return { url: "http://late.localhost/mcp", fetch, sent, to };
}

/** Puts it behind a port of this machine. Returns the server. @param {{ fetch(request: Request): Promise<Response> }} handler @param {number} [port] @returns {Promise<import("node:http").Server>} */
export async function serve(handler, port = 0) {
  const http = createServer(async (incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.on("close", () => gone.abort());
    let body = "";
    for await (const piece of incoming) body += piece;
    const headers = /** @type {Record<string, string>} */ (incoming.headers);
    const response = await handler.fetch(new Request(`http://${incoming.headers.host}${incoming.url}`, { method: String(incoming.method), headers, signal: gone.signal, ...(body && { body }) }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) Readable.fromWeb(/** @type {any} */ (response.body)).on("error", () => {}).pipe(outgoing);
    else outgoing.end();
  });
  await new Promise((listening) => http.listen(port, "127.0.0.1", () => listening(undefined)));
  return http;
}

/** @param {import("node:http").Server} http */
export const urlOf = (http) => `http://127.0.0.1:${/** @type {any} */ (http.address()).port}/mcp`;

/** @param {import("node:http").Server} http */
export const end = (http) => new Promise((ended) => (http.close(ended), http.closeAllConnections()));
