// @ts-check
// A Worker that shares an agent between its requests, as its path says: one made where the Worker begins, one made at the
// first request, or one in a Durable Object.

import { DurableObject } from "cloudflare:workers";
import { Agent, scripted } from "turnwheel";
import { agentHandler } from "turnwheel/server";

const make = () => agentHandler(new Agent({ model: scripted(["done"]) }), { allowedHosts: true });
const global = make();
/** @type {ReturnType<typeof make> | undefined} */
let lazy;

export class Chat extends DurableObject {
  handler = make();

  /** @param {Request} request */
  fetch(request) {
    return this.handler(request);
  }
}

export default {
  /** @param {Request} request @param {any} env */
  fetch(request, env) {
    const [, kind] = new URL(request.url).pathname.split("/");
    if (kind === "object") return env.CHAT.get(env.CHAT.idFromName("a")).fetch(request);
    return kind === "global" ? global(request) : (lazy ??= make())(request);
  },
};
