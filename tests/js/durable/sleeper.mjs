// @ts-check
// An agent in a Durable Object, put to sleep by hand. From 100 ms on, a back-off counts as long.

import { Agent, custom, scripted, tool } from "turnwheel";
import { DurableAgent, route } from "turnwheel/cloudflare";

/** @param {string} text @param {any} [toolCall] */
function* answer(text, toolCall) {
  yield { type: "start" };
  yield { type: "text_start", contentIndex: 0 };
  yield { type: "text_delta", contentIndex: 0, delta: text };
  yield { type: "text_end", contentIndex: 0 };
  if (toolCall) {
    yield { type: "tool_call_start", contentIndex: 1, callId: toolCall, toolName: toolCall };
    yield { type: "tool_call_delta", contentIndex: 1, delta: "{}" };
    yield { type: "tool_call_end", contentIndex: 1 };
  }
  yield { type: "done", stopReason: toolCall ? "tool_use" : "stop" };
}

/** How many back-offs wait for the alarm. @param {any} sql @returns {number} */
const sleepersIn = (sql) => sql.exec("SELECT name FROM sqlite_master WHERE name = 'turnwheel_alarms'").toArray().length && sql.exec("SELECT count(*) AS n FROM turnwheel_alarms WHERE kind = 'sleep'").one().n;

export class Chat extends DurableAgent {
  alarmAfterMs = 100;

  /** @param {any} ctx @param {any} env */
  constructor(ctx, env) {
    const { storage } = ctx;
    storage.sql.exec("CREATE TABLE IF NOT EXISTS slept (alarm INTEGER)");
    const setAlarm = storage.setAlarm.bind(storage);
    // Recorded in the same task that sets the alarm.
    Object.defineProperty(storage, "setAlarm", { value: (/** @type {number} */ at) => {
      if (sleepersIn(storage.sql) > 0) storage.sql.exec("INSERT INTO slept VALUES (?)", at);
      return setAlarm(at);
    } });
    super(ctx, env);
  }

  /** @returns {any} */
  options() {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE IF NOT EXISTS asked (n INTEGER)");
    const asked = () => Number(sql.exec("SELECT count(*) AS n FROM asked").one().n);
    const model = custom("sleeper", /** @type {any} */ (function* (/** @type {any} */ { messages }) {
      const last = messages.at(-1);
      const text = last.content[0].text;
      if (text === "busy" && asked() === 0) {
        sql.exec("INSERT INTO asked VALUES (1)");
        yield { type: "error", error: { code: "throttled", message: "later", retryable: true, retryAfterMs: 600 } };
      } else if (last.role === "tool_result") yield* answer(`It said: ${text}`);
      else if (text === "busy" || text === "ask") yield* answer("So.", text === "ask" ? "pay" : "note");
      else if (text === "where") yield* answer("So.", "locate");
      else yield* answer(`You said ${text}`);
    }));
    const execute = async (/** @type {any} */ _, /** @type {any} */ { callId }) => (await this.env.LEDGER.fetch(`http://ledger/${callId}`), "done");
    const parameters = { type: "object" };
    // Killed while the engine is working, which other objects of the isolate share.
    const suicide = () => { if (this.ctx.id.name === "suicide") this.ctx.abort("thrown out"); };
    return { model, policies: { preTurn: [suicide] }, tools: [tool({ name: "note", description: "", parameters, execute }), tool({ name: "pay", description: "", parameters, requiresApproval: true, execute }), tool({ name: "locate", description: "", parameters })] };
  }

  limits() {
    return { listeners: 3 };
  }

  handlerOptions() {
    return { keepAliveMs: 100 };
  }

  /** @param {Request} request @returns {Promise<Response>} */
  async fetch(request) {
    const what = new URL(request.url).pathname.split("/").at(-1);
    if (what === "evict") this.ctx.abort("thrown out");
    if (what === "slept") return Response.json(this.ctx.storage.sql.exec("SELECT alarm FROM slept").toArray());
    if (what === "alarm") return Response.json({ alarm: await this.ctx.storage.getAlarm(), sleepers: sleepersIn(this.ctx.storage.sql) });
    return super.fetch(request);
  }
}

export default {
  /** @param {Request} request @param {any} env */
  fetch: (request, env) => {
    // A Worker that remembers nothing: one run, one response.
    const run = () => new Agent({ model: scripted([{ text: ["a", "b", "c"] }]) }).prompt("Go");
    if (request.url.endsWith("/run")) return run().toResponse();
    if (request.url.endsWith("/chat")) return run().toUIMessageStreamResponse();
    return route(request, env.CHAT);
  },
};
