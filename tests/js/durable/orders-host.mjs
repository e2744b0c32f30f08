// @ts-check
// The process around workerd that the test kills:   node orders-host.mjs FOLDER OFFICE
// Keeps its Workflows in the folder, passes on what they ask the office, and prints its address.

import { start } from "./bundle.mjs";

const [, , folder = "", office = ""] = process.argv;
const server = await start("orders.mjs", {
  durableObjects: {}, workflows: { ORDERS: { name: "orders", className: "Orders" } }, workflowsPersist: folder,
  handleRuntimeStdio: (/** @type {any} */ out, /** @type {any} */ errors) => void (out.resume(), errors.resume()),
  serviceBindings: { OFFICE: async (/** @type {any} */ request) => {
    const answer = await fetch(new URL(new URL(request.url).pathname, office), request.method === "POST" ? { method: "POST", body: await request.text() } : {});
    return /** @type {any} */ (new Response(await answer.text()));
  } },
});
process.stdout.write(`${await server.ready}\n`);
