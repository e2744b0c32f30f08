// @ts-check
// An AG-UI server in Node, as docs/ag-ui.md has it: one agent per thread.

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { fromAGUI, toAGUIResponse } from "../../../pkg/ag-ui.js";

/**
 * Serves agents until the test ends.
 * @param {{ after(end: () => unknown): void }} test @param {(input: import("../../../pkg/ag-ui.js").AGUIInput) => any} makeAgent
 * @param {import("../../../pkg/ag-ui.js").AGUIResponseInit} [init] @param {Record<string, [string | Uint8Array, string]>} [files] what else there is: contents and types by path
 */
export async function serveAgents(test, makeAgent, init = {}, files = {}) {
  /** @type {Map<string, { agent: any, run: any }>} */
  const threads = new Map();
  /** @type {any[]} */
  const inputs = [];
  /** @param {Request} request */
  async function answer(request) {
    const posted = await request.json();
    inputs.push(posted);
    const input = fromAGUI(posted, { agent: (threadId) => threads.get(threadId)?.agent, answers: ["tool", "elicitation", "budget"] });
    const thread = threads.get(input.threadId) ?? { agent: makeAgent(input), run: undefined };
    threads.set(input.threadId, thread);
    if (input.prompt) thread.run = thread.agent.prompt(input.prompt);
    for (const [id, decision] of Object.entries(input.decisions)) thread.agent.resolveTools({ [id]: decision });
    for (const [id, answer] of Object.entries(input.answers)) thread.agent.resolve(id, answer);
    return toAGUIResponse(thread.run, { input, ...init });
  }
  const server = createServer(async (incoming, outgoing) => {
    const [contents, type] = files[incoming.url ?? ""] ?? [];
    if (incoming.method === "GET") return void (contents === undefined ? outgoing.writeHead(404).end() : outgoing.setHeader("content-type", String(type)).end(contents));
    const url = `http://127.0.0.1${incoming.url}`;
    const request = new Request(url, /** @type {any} */ ({ method: incoming.method, headers: { "content-type": "application/json" }, body: Readable.toWeb(incoming), duplex: "half" }));
    const response = await answer(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    const body = Readable.fromWeb(/** @type {any} */ (response.body));
    body.pipe(outgoing);
    outgoing.on("close", () => body.destroy());
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  test.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}/`, threads, inputs };
}
