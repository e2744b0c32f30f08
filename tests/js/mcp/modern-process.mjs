// @ts-check
// One of several processes of a server: says its port, and counts in its answers what was answered by it.

import { inputRequired } from "@modelcontextprotocol/server";
import { handlerOf, serve, urlOf } from "./modern.mjs";

const name = process.argv[2];
const form = { message: "How many?", requestedSchema: { type: /** @type {const} */ ("object"), properties: { number: { type: /** @type {const} */ ("number") } }, required: ["number"] } };
const tools = ["count", "order"].map((tool) => ({ name: tool, inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }));
const http = await serve(handlerOf(() => tools, (params, { inputResponses, requestState }) => {
  if (params.name === "order" && !inputResponses) return inputRequired({ inputRequests: { number: inputRequired.elicit(form) }, requestState: `begun at ${name}` });
  return { content: [{ type: "text", text: params.name === "order" ? `${inputResponses.number.content.number}, ${requestState()}, ended at ${name}` : `at ${name}` }] };
}));
process.stdout.write(`${urlOf(http)}\n`);
