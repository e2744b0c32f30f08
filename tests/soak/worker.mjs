// @ts-check
// The Worker of the soak: every request is a life of an agent, many at once in one isolate; those that are stored live in
// Durable Objects, which are aborted in the middle and woken again by the next request.

import { DurableObject } from "cloudflare:workers";
import { getEngine } from "../../pkg/core.js";
import * as main from "../../pkg/entry/workerd.js";
import { RemoteAgent } from "../../pkg/remote.js";
import { agentHandler } from "../../pkg/server.js";
import { durableObjectStore } from "../../pkg/stores.js";
import { Life } from "./agents.mjs";
import { later } from "./tools.mjs";

/** @param {any} env @param {any} more */
function hostOf(env, more) {
  const { models, control, seed, only, sabotage, verbose } = env.ORDERS;
  const tell = async (/** @type {string} */ what, /** @type {any} */ report) => {
    const response = await fetch(`${control}/${what}`, { method: "POST", body: JSON.stringify(report) });
    return response.json();
  };
  return { lib: { ...main, RemoteAgent, agentHandler }, models, tell, seed, only, sabotage, die() {}, forgotten() {}, storage: () => ({ load() {}, save() {} }), ...(verbose && { log: (/** @type {string} */ line) => void tell("log", line) }), ...more };
}

/** @type {string[]} */
const rejections = [];
addEventListener("unhandledrejection", (/** @type {any} */ { reason }) => void rejections.push(String(reason?.stack ?? reason)));

/** The life of a stored agent, in the object that has its name. */
export class Chat extends DurableObject {
  /** @param {Request} request */
  async fetch(request) {
    const [, , id = "", deaths = ""] = new URL(request.url).pathname.split("/");
    const store = durableObjectStore(/** @type {any} */ (this).ctx.storage);
    const { env, ctx } = /** @type {any} */ (this);
    const saved = await store.load(id);
    const host = hostOf(env, {
      storage: () => ({ load: () => saved && JSON.parse(/** @type {any} */ (saved).messages[0]), save: (/** @type {any} */ saved) => store.saveNow(id, box(saved)) }),
      // Told from outside: what an object writes just before it is aborted is lost with it.
      deaths: Number(deaths),
      die(/** @type {any} */ life) {
        life.dead = true;
        ctx.abort("thrown out");
      },
    });
    await new Life(id, host).live();
    return Response.json({});
  }
}

/** What a life is stored as: in the shape of a checkpoint, which is all that the store takes. @param {any} saved @returns {any} */
const box = (saved) => ({ version: 1, format: "soak", run_id: null, messages: [JSON.stringify(saved)], metadata: {} });

export default {
  /** @param {Request} request @param {any} env */
  async fetch(request, env) {
    const [, what = "", id = ""] = new URL(request.url).pathname.split("/");
    if (what === "state") {
      for (let i = 0; i < 6; i++) {
        /** @type {any} */ (globalThis).gc();
        await later(5);
      }
      return Response.json({ wasm: /** @type {any} */ (getEngine()).memory.buffer.byteLength, rejections: rejections.splice(0) });
    }
    if (what === "stored") return env.CHAT.get(env.CHAT.idFromName(id)).fetch(request);
    await new Life(id, hostOf(env, {})).live();
    return Response.json({});
  },
};
