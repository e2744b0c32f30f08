// @ts-check
// The example's agent, put to sleep by hand. From 100 ms on, a back-off counts as long.

import { Agent, custom, scripted, tool } from "../../../pkg/entry/workerd.js";
import { DurableAgent } from "../../../www/examples/durable-object/durable-agent.js";

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

export class Chat extends DurableAgent {
  /** @returns {any} */
  options() {
    this.longMs = 100;
    this.keepAliveMs = 100;
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE IF NOT EXISTS asked (n INTEGER)");
    sql.exec("CREATE TABLE IF NOT EXISTS slept (alarm INTEGER)");
    const asked = () => Number(sql.exec("SELECT count(*) AS n FROM asked").one().n);
    const model = custom("sleeper", /** @type {any} */ (function* (/** @type {any} */ { messages }) {
      const last = messages.at(-1);
      const text = last.content[0].text;
      if (text === "busy" && asked() === 0) {
        sql.exec("INSERT INTO asked VALUES (1)");
        yield { type: "error", error: { code: "throttled", message: "later", retryable: true, retryAfterMs: 600 } };
      } else if (last.role === "tool_result") yield* answer(`It said: ${text}`);
      else if (text === "busy" || text === "ask") yield* answer("So.", text === "ask" ? "pay" : "note");
      else yield* answer(`You said ${text}`);
    }));
    const execute = async (/** @type {any} */ _, /** @type {any} */ { callId }) => (await this.env.LEDGER.fetch(`http://ledger/${callId}`), "done");
    const parameters = { type: "object" };
    // Killed while the engine is working, which other objects of the isolate share.
    const suicide = () => { if (this.ctx.id.name === "suicide") this.ctx.abort("thrown out"); };
    return { model, policies: { preTurn: [suicide] }, tools: [tool({ name: "note", description: "", parameters, execute }), tool({ name: "pay", description: "", parameters, requiresApproval: true, execute })] };
  }

  /**
   * Records in the store until which alarm it sleeps, in the same task that sets the alarm.
   * @param {number} ms @param {AbortSignal} signal
   */
  sleep(ms, signal) {
    const before = this.sleepers.length;
    const slept = super.sleep(ms, signal);
    if (this.sleepers.length > before) this.ctx.storage.sql.exec("INSERT INTO slept VALUES (?)", this.alarmAt);
    return slept;
  }

  limits() {
    return { ...super.limits(), listeners: 3 };
  }

  /** @param {Request} request @returns {Promise<Response>} */
  async fetch(request) {
    const what = new URL(request.url).pathname.split("/").at(-1);
    if (what === "evict") this.ctx.abort("thrown out");
    if (what === "slept") return Response.json(this.ctx.storage.sql.exec("SELECT alarm FROM slept").toArray());
    if (what === "alarm") return Response.json({ alarm: await this.ctx.storage.getAlarm(), sleepers: this.sleepers.length });
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
    return env.CHAT.get(env.CHAT.idFromName(new URL(request.url).pathname.split("/")[2])).fetch(request);
  },
};
