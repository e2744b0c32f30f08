// @ts-check
// A server for the workflow, without a framework. Next, Nuxt, SvelteKit and others have their own: there, the files of the workflow
// are enough.
//
//   POST /orders { "customer": "Ada" }                                begins one, and says its id
//   GET  /orders/ID                                                   how far it is
//   POST /orders/ID/decision { "name": …, "decision": "approve" }     the name is in the question that `tell` was told

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { json } from "node:stream/consumers";
import { Readable } from "node:stream";
import { getRun, resumeHook, start } from "workflow/api";
import { getWorld } from "workflow/runtime";

const folder = "./.well-known/workflow/v1";
const require = createRequire(import.meta.url);
const { workflows } = require(`${folder}/manifest.json`);
const [{ order }] = /** @type {any[]} */ (Object.values(workflows));
const port = Number(process.env.PORT ?? 8080);
process.env.WORKFLOW_TARGET_WORLD ??= "local";
process.env.WORKFLOW_LOCAL_BASE_URL ??= `http://127.0.0.1:${port}`;

/** @param {import("node:http").IncomingMessage} request @param {string} path @returns {Promise<Response>} */
async function answer(request, path) {
  const [, orders, id, what] = path.split("/");
  if (path.startsWith("/.well-known/workflow/")) {
    const { POST } = require(`${folder}/${path.split("/").pop()}.js`);
    return POST(new Request(`http://127.0.0.1:${port}${path}`, { method: "POST", headers: /** @type {any} */ (request.headers), body: /** @type {any} */ (Readable.toWeb(request)), duplex: "half" }));
  }
  // Authenticate the request here: whoever can reach it decides about refunds.
  if (orders !== "orders") return Response.json({ error: "ask for /orders" }, { status: 404 });
  const body = request.method === "POST" ? /** @type {any} */ (await json(request)) : {};
  if (id === undefined) return Response.json({ id: (await start(order, [body.customer])).runId });
  if (what === "decision") await resumeHook(`${id}/${body.name}`, body.decision);
  const run = getRun(id);
  const status = await run.status;
  return Response.json({ status, ...(status === "completed" && { output: await run.returnValue }) });
}

const server = createServer(async (request, response) => {
  const found = await answer(request, new URL(request.url ?? "/", "http://x").pathname).catch((error) => Response.json({ error: String(error) }, { status: 500 }));
  response.writeHead(found.status, Object.fromEntries(found.headers)).end(Buffer.from(await found.arrayBuffer()));
});
// A process that starts goes on with what another one began.
server.listen(port, process.env.HOST ?? "127.0.0.1", async () => (await getWorld()).start?.());
