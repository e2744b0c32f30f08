// @ts-check
// The loop in a Worker. One Durable Object holds the agent of one conversation; the page sends its
// configuration, and talks to it through RemoteAgent. Everything stays in memory, keys included;
// www/examples/durable-object is an example that stores its state.

import { DurableObject } from "cloudflare:workers";
import * as turnwheel from "../../pkg/entry/workerd.js";
import { agentHandler } from "../../pkg/server.js";
import { agentOptions } from "./agent.js";

/** @typedef {{ ORIGINS: string[], CONVERSATIONS: any }} Env */

export class Conversation extends DurableObject {
  /** @type {((request: Request) => Promise<Response>) | undefined} */
  handler = undefined;
  hold = 1;

  /** @param {Request} request */
  async fetch(request) {
    if (new URL(request.url).pathname.endsWith("/configure")) return this.configure(request);
    if (this.handler) return this.handler(request);
    return unknown();
  }

  /** @param {Request} request */
  async configure(request) {
    const { settings, messages, hold } = await request.json();
    this.hold = hold;
    if (!this.handler && !settings) return unknown();
    if (!this.handler) {
      const pace = () => this.hold;
      // If the page allows this call, it also answers it: the title belongs to the page.
      const options = agentOptions(/** @type {any} */ (turnwheel), settings, { pace, rename: () => {} });
      this.handler = agentHandler(new turnwheel.Agent({ ...options, messages }), { cors: /** @type {any} */ (this.env).ORIGINS, allowedHosts: true, answers: ["tool", "arguments", "result", "budget", "elicitation"] });
    }
    return new Response(null, { status: 204 });
  }
}

export default {
  /** Only the demo page may connect, and it may do anything. @param {Request} request @param {Env} env */
  async fetch(request, env) {
    const origin = request.headers.get("origin") ?? "";
    if (!env.ORIGINS.includes(origin)) return refused(403, "only the demo page may ask");
    const cors = { "access-control-allow-origin": origin, "access-control-allow-headers": "content-type, last-event-id", "access-control-max-age": "600", vary: "origin" };
    if (request.method === "OPTIONS") return new Response(null, { status: 204, headers: cors });
    const [, id = ""] = /^\/([\w-]{1,64})\/[a-z-]+$/.exec(new URL(request.url).pathname) ?? [];
    const response = id ? await env.CONVERSATIONS.get(env.CONVERSATIONS.idFromName(id)).fetch(request) : refused(404, "ask for /CONVERSATION/COMMAND");
    const headers = new Headers(response.headers);
    for (const [name, value] of Object.entries(cors)) headers.set(name, value);
    return new Response(response.body, { status: response.status, headers });
  },
};

const unknown = () => refused(404, "this Worker does not know the conversation: it was started anew since");

/** @param {number} status @param {string} message */
function refused(status, message) {
  return Response.json({ error: { code: "invalid_request", message } }, { status });
}
