// @ts-check
// An agent in a Durable Object with the world of the checkpoint tests in it. In each of its lives it dies after a
// number of steps: in the middle of storing an event, between two events, while a tool runs, or after one.

import { DurableAgent, route } from "turnwheel/cloudflare";
import { options, world } from "../checkpoint/world.mjs";
import { dice } from "../dice.mjs";
import { stepping } from "./stepping.mjs";

/** After this many lives it stays alive. */
const LIVES = 6;

export class Chat extends DurableAgent {
  life = 0;
  seed = 0;
  left = Infinity;

  /** @param {any} ctx @param {any} env */
  constructor(ctx, env) {
    super(stepping(ctx, () => this.step()), env);
  }

  /** @param {{ name?: string }} id @returns {Promise<any>} */
  async options({ name = "" }) {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE IF NOT EXISTS lives (n INTEGER)");
    sql.exec("INSERT INTO lives VALUES (1)");
    // A life counts, however short it is.
    await this.ctx.storage.sync();
    this.life = Number(sql.exec("SELECT count(*) AS n FROM lives").one().n);
    this.seed = Number(/seed-(\d+)/.exec(name)?.[1] ?? 0);
    const roll = dice(this.seed * 31 + this.life);
    this.left = this.seed > 0 && this.life <= LIVES ? 1 + roll(120) : Infinity;
    const own = world(() => roll(6));
    const isFailed = () => sql.exec("SELECT name FROM sqlite_master WHERE name = 'failed'").toArray().length > 0;
    Object.defineProperty(own, "failed", { get: isFailed, set: () => sql.exec("CREATE TABLE IF NOT EXISTS failed (n INTEGER)") });
    const made = options(own);
    const tools = made.tools.map((/** @type {any} */ definition) => ({
      ...definition,
      execute: async (/** @type {any} */ args, /** @type {any} */ context) => {
        this.step();
        await this.env.LEDGER.fetch(`http://ledger/${this.seed}/${context.callId}`);
        this.step();
        return definition.execute(args, context);
      },
    }));
    return { ...made, tools };
  }

  limits() {
    return { commandsPerMinute: 100_000, events: this.seed % 5 === 4 ? 30_000 : 5000 };
  }

  /** One step closer to the end of this life. */
  step() {
    if (--this.left === 0) this.ctx.abort("thrown out");
  }

  onEvent() {
    this.step();
  }

  /** @param {Request} request @returns {Promise<Response>} */
  async fetch(request) {
    if (new URL(request.url).pathname.endsWith("/lives")) return Response.json({ lives: this.life, alarmAt: await this.ctx.storage.getAlarm(), size: this.ctx.storage.sql.databaseSize });
    return super.fetch(request);
  }
}

export default {
  /** @param {Request} request @param {any} env */
  fetch: (request, env) => route(request, env.CHAT),
};
