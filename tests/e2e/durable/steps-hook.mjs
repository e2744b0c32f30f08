// @ts-check
// Loaded before the example of Vercel Workflow: tells the office of each step that begins, which is a request to the process. The
// office may never answer, because it kills the process.

import { Server } from "node:http";

const { OFFICE } = process.env;
const { emit } = Server.prototype;
let steps = 0;

Server.prototype.emit = /** @type {any} */ (function (/** @this {Server} */ ...args) {
  const [name, request] = /** @type {any[]} */ (args);
  if (name !== "request" || !String(request.url).endsWith("/step")) return emit.apply(this, /** @type {any} */ (args));
  fetch(`${OFFICE}/begin/x/${encodeURIComponent(`step ${++steps}`)}`).then(() => emit.apply(this, /** @type {any} */ (args)));
  return true;
});
