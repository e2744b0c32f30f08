// @ts-check
// Subclasses of DurableAgent that do what users do, and what goes wrong there. Each is bound by its name in capitals.

import { Agent, custom, scripted } from "turnwheel";
import { DurableAgent, route } from "turnwheel/cloudflare";

/** Answers with what was said last, from the conversation alone. @param {any} request */
function* answer({ messages }) {
  yield { type: "start" };
  yield { type: "text_start", contentIndex: 0 };
  yield { type: "text_delta", contentIndex: 0, delta: `You said ${messages.at(-1).content[0].text}` };
  yield { type: "text_end", contentIndex: 0 };
  yield { type: "done", stopReason: "stop" };
}

const echo = () => custom("echo", /** @type {any} */ (answer));

/** Waits in its model until the ledger answers. @param {any} env @param {string} name */
const slow = (env, name) => custom("slow", /** @type {any} */ (async function* (/** @type {any} */ request) {
  await env.LEDGER.fetch(`http://ledger/model/${name}`);
  yield* answer(request);
}));

class Base extends DurableAgent {
  /** @param {{ name?: string }} _id @returns {any} */
  options(_id) {
    return { model: echo() };
  }

  /** What the object has, for the tests. @param {Request} request @returns {Promise<Response>} */
  async fetch(request) {
    const what = new URL(request.url).pathname.split("/").at(-1);
    const { sql } = this.ctx.storage;
    if (what === "evict") this.ctx.abort("thrown out");
    if (what === "rows") return Response.json({ rows: sql.exec("SELECT kind, data, at FROM turnwheel_alarms ORDER BY at").toArray(), alarm: await this.ctx.storage.getAlarm() });
    // As Cloudflare does it when the time has come.
    if (what === "ring") return (await this.alarm(), Response.json({}));
    return super.fetch(request);
  }
}

/** Fails as often as the ledger says. */
export class Failing extends Base {
  /** @param {{ name?: string }} id */
  async options(id) {
    const response = await this.env.LEDGER.fetch(`http://ledger/options/${id.name}`);
    if (!response.ok) throw new Error("the vault is closed");
    return { model: id.name === "slow" ? slow(this.env, "slow") : echo() };
  }
}

/** Has an alarm of its own, and calls the base's. */
export class Polite extends Base {
  async alarm() {
    await this.env.LEDGER.fetch("http://ledger/alarm/polite");
    await super.alarm();
  }
}

/** Has an alarm of its own, and forgets the base's. */
export class Forgetful extends Base {
  async alarm() {
    await this.env.LEDGER.fetch("http://ledger/alarm/forgetful");
  }
}

/** Notes what was stored when it heard of each event, lets in who says so, and knows its limits. */
export class Watched extends Base {
  /** @type {any[]} */
  heard = [];

  /** @param {any} event */
  onEvent(event) {
    const [{ data }] = this.ctx.storage.sql.exec("SELECT data FROM turnwheel_events WHERE type = 'message' ORDER BY id DESC LIMIT 1").toArray();
    this.heard.push([event.type, JSON.parse(data).type]);
    if (event.type === "agent_end") throw new Error("the ear hurts");
  }

  /** @param {Request} request @param {string} command */
  async authorize(request, command) {
    return request.headers.get("x-may") === command;
  }

  limits() {
    return { historyBytes: 600 };
  }

  handlerOptions() {
    return { cors: ["https://app.example"] };
  }

  /** @param {Request} request */
  async fetch(request) {
    if (request.url.endsWith("/heard")) return Response.json(this.heard);
    return super.fetch(request);
  }
}

/** Its model waits, so that what is scheduled finds a run. */
export class Busy extends Base {
  options() {
    return { model: slow(this.env, "busy") };
  }
}

export class Unsaid extends DurableAgent {}

export class Old extends Base {}

export default {
  /** @param {Request} request @param {any} env */
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const [, kind = "", name = "", method = ""] = pathname.split("/");
    if (kind === "plain") {
      // Not in an object: as code in a plain Worker might try it.
      try {
        return Response.json(new Failing(/** @type {any} */ ({ waitUntil() {} }), env));
      } catch (/** @type {any} */ { code, message }) {
        return Response.json({ code, message });
      }
    }
    if (kind === "host") return Response.json((await new Agent({ model: scripted(["hello"]) }).prompt("Go")).text);
    const namespace = env[kind.toUpperCase()];
    if (!method.startsWith("rpc-")) return route(request, namespace, { prefix: `/${kind}` }) ?? new Response("not routed", { status: 404 });
    const stub = namespace.get(namespace.idFromName(name));
    try {
      return Response.json({ value: await stub[method.slice(4)](...(await request.json())) });
    } catch (error) {
      return Response.json({ error: String(error) });
    }
  },
};
