// @ts-check
// The example's agent with a model that answers at length, and counters.

import { scripted } from "turnwheel";
import { route } from "turnwheel/cloudflare";
import { Chat as Example } from "../../../www/examples/durable-object/worker.ts";

/** A tool call, then 100 pieces of text. */
const pieces = Array.from({ length: 100 }, (_, i) => `piece ${i} of it. `);
const answer = (/** @type {any} */ { messages }) => (messages.at(-1).role === "user" ? { text: "Looking. ", toolCalls: [{ toolName: "clock" }] } : { text: pieces });

export class Chat extends Example {
  /** @param {any} ctx @param {any} env */
  constructor(ctx, env) {
    const counts = { events: 0, checkpoints: 0, checkpointBytes: 0 };
    const { sql } = ctx.storage;
    const exec = sql.exec.bind(sql);
    Object.defineProperty(sql, "exec", { value: (/** @type {string} */ statement, /** @type {any[]} */ ...values) => {
      if (statement.startsWith("INSERT INTO turnwheel_events")) counts.events += 1;
      if (statement.startsWith("INSERT INTO turnwheel_checkpoints")) {
        if (values[1] === 0) counts.checkpoints += 1;
        counts.checkpointBytes += values[2].length;
      }
      return exec(statement, ...values);
    } });
    super(ctx, env);
    this.counts = counts;
  }

  /** @returns {any} */
  options() {
    return { ...super.options(), model: scripted(Array.from({ length: 1000 }, () => answer)) };
  }

  limits() {
    return { commandsPerMinute: 100_000, historyBytes: Infinity };
  }

  /** @param {Request} request @returns {Promise<Response>} */
  async fetch(request) {
    if (new URL(request.url).pathname.endsWith("/counts")) {
      const history = JSON.stringify(this.agent.messages).length;
      return Response.json({ ...this.counts, history, database: this.ctx.storage.sql.databaseSize });
    }
    return super.fetch(request);
  }
}

export default {
  /** @param {Request} request @param {any} env */
  fetch: (request, env) => route(request, env.CHAT),
};
