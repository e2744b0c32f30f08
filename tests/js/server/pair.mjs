// @ts-check
// An agent behind a handler, a mirror of it, and requests to the handler.

import assert from "node:assert/strict";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, testTool } from "../kit.mjs";

export const json = (/** @type {any} */ value) => JSON.parse(JSON.stringify(value));
/** Waits for a connection end quickly; timeouts on a silent one never do. */
export const host = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms === 7000 || ms >= 15_000 ? new Promise((resolve) => signal.addEventListener("abort", resolve)) : new Promise((resolve) => setImmediate(resolve))) };
export const AT = "http://agents.localhost/agents/7";

/** An agent behind a handler, and a mirror of it. @param {any} options of the agent @param {any} [served] @param {any} [remote] */
export function pair(options, served = {}, remote = {}) {
  const agent = new Agent(options);
  const handler = agentHandler(agent, { host, ...served });
  /** @type {{ method: string, path: string }[]} */
  const requests = [];
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    const request = new Request(url, init);
    requests.push({ method: request.method, path: new URL(request.url).pathname.split("/").at(-1) ?? "" });
    return handler(request);
  };
  const mirror = new RemoteAgent({ url: AT, fetch, host, ...remote });
  return { agent, handler, mirror, requests, another: (more = {}) => new RemoteAgent({ url: AT, fetch, host, ...more }) };
}

/** Asserts that both know the same. @param {any} agent @param {any} mirror */
export function same(agent, mirror) {
  for (const key of ["messages", "pendingApprovals", "isRunning", "usage"]) assert.deepEqual(json(mirror[key]), json(agent[key]), key);
}

export const pay = (/** @type {any} */ execute) => testTool("pay", execute, { requiresApproval: true });

/** @param {any} handler @param {string} path @param {any} [init] */
export async function ask(handler, path, init) {
  const response = await handler(new Request(`${AT}/${path}`, init));
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text && JSON.parse(text) };
}
export const post = (/** @type {any} */ value, /** @type {any} */ headers = {}) => ({ method: "POST", body: typeof value === "string" ? value : JSON.stringify(value), headers: { "content-type": "application/json", ...headers } });
