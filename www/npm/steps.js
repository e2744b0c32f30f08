// @ts-check
// Runs inside a durable engine; loaded with the first agent whose host has a `step`, and by no other page.

import { enterServer, ready } from "./boundary/server.js";

/** @import { Registration } from "./boundary/registration.js" */

/** Chooses the engine that knows steps, and loads it. @param {Registration} registration */
export async function inServer(registration) {
  enterServer(registration, "`host.step`", "this one has run in that of pages");
  await ready();
}

export { stepsOf } from "./steps/journal.js";
