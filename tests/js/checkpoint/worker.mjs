// @ts-check
// A Worker with a Durable Object that keeps checkpoints, for tests/js/workerd.

// @ts-ignore: workerd's own
import { DurableObject } from "cloudflare:workers";
import { durableObjectStore } from "../../../pkg/stores.js";
import { runLife, plain } from "./lives.mjs";
import { Agent, world } from "./world.mjs";

/** @param {number} size @param {string} [letter] */
const checkpoint = (size, letter = "x") => ({ version: 1, format: "stakai_message_v1", run_id: null, messages: [{ role: "user", content: letter.repeat(size) }], metadata: {} });

/** The error of a promise that fails. @param {() => Promise<any>} work */
const failure = (work) => (async () => work())().then(() => ({ message: "it did not fail" }), (error) => ({ message: error.message, code: error.code, cause: error.cause?.message }));

export class Chat extends DurableObject {
  /** @param {any} ctx @param {any} env */
  constructor(ctx, env) {
    super(ctx, env);
    this.storage = ctx.storage;
    this.store = durableObjectStore(ctx.storage);
    this.instance = crypto.randomUUID();
    this.failed = false;
  }

  /** @param {Request} request */
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const what = /** @type {string} */ (pathname.split("/")[2]);
    const id = searchParams.get("id") ?? "chat";
    if (what === "evict") /** @type {any} */ (this).ctx.abort("thrown out");
    return Response.json((await /** @type {any} */ (this)[what](id, searchParams)) ?? null);
  }

  /** @param {string} id @param {URLSearchParams} more */
  async save(id, more) {
    const letter = more.get("letter")?.split(",").filter(Boolean).map(Number);
    await this.store.save(id, /** @type {any} */ (checkpoint(Number(more.get("size")), letter && String.fromCharCode(...letter))));
  }

  /** @param {string} id */
  async load(id) {
    const found = await this.store.load(id);
    return found && { checkpoint: found, instance: this.instance };
  }

  /** @param {string} _ @param {URLSearchParams} more */
  async list(_, more) {
    return (await this.store.list({ prefix: more.get("prefix") ?? "" })).map(({ id, title }) => [id, title]);
  }

  /** @param {string} id */
  async delete(id) {
    await this.store.delete(id);
  }

  /** @param {string} id */
  async measure(id) {
    const { content } = /** @type {any} */ (await this.store.load(id)).messages[0];
    const [{ parts }] = this.storage.sql.exec("SELECT count(*) AS parts FROM turnwheel_checkpoints WHERE id = ?", id).toArray();
    return { length: content.length, end: String.fromCodePoint(content.codePointAt(content.length - (/[\udc00-\udfff]/.test(content.at(-1)) ? 2 : 1))), parts };
  }

  /** A disk that is full after two parts. @param {string} id @param {URLSearchParams} more */
  async fail(id, more) {
    let parts = 0;
    const { storage } = this;
    const full = {
      transactionSync: (/** @type {any} */ work) => storage.transactionSync(work),
      sql: { exec(/** @type {string} */ statement, /** @type {any[]} */ ...values) {
        if (statement.startsWith("INSERT INTO turnwheel_checkpoints") && ++parts > 2) throw new Error("the disk is full");
        return storage.sql.exec(statement, ...values);
      } },
    };
    return failure(() => durableObjectStore(full).save(id, /** @type {any} */ (checkpoint(Number(more.get("size"))))));
  }

  /** @param {string} id */
  async churn(id) {
    /** @type {string[]} */
    const written = [];
    const { storage } = this;
    const store = durableObjectStore({
      transactionSync: (/** @type {any} */ work) => storage.transactionSync(work),
      sync: () => storage.sync(),
      sql: { exec(/** @type {string} */ statement, /** @type {any[]} */ ...values) {
        if (statement.startsWith("INSERT INTO turnwheel_checkpoints")) written.push(JSON.parse(values[2]).messages[0].content);
        return storage.sql.exec(statement, ...values);
      } },
    });
    await Promise.all(Array.from({ length: 100 }, (_, i) => store.save(id, /** @type {any} */ (checkpoint(1, String(i))))));
    const loaded = /** @type {any} */ (await store.load(id)).messages[0].content;
    return { written, loaded };
  }

  async none() {
    return failure(async () => durableObjectStore(/** @type {any} */ (undefined)).load("x"));
  }

  /** One life of the run of these tests. @param {string} id @param {URLSearchParams} more */
  async live(id, more) {
    const found = /** @type {any} */ (await this.store.load(id));
    const own = { ...world(), failed: (await this.storage.get("failed")) ?? false };
    const slept = new Promise((resolve) => {
      const until = Number(more.get("until")) || Infinity;
      runLife(own, { ...(found && { from: found }), until, onEvent() {}, die: resolve }).then((agent) => resolve(agent));
    });
    const end = /** @type {any} */ (await slept);
    await this.storage.put("failed", own.failed);
    if (end instanceof Agent) return { ran: own.ran, history: plain(end.messages) };
    await this.store.save(id, end);
    return { ran: own.ran };
  }
}

export class Old extends Chat {
  async old() {
    return failure(() => this.store.save("chat", /** @type {any} */ (checkpoint(1))));
  }
}

export default {
  /** @param {Request} request @param {any} env */
  async fetch(request, env) {
    const [, name, what] = new URL(request.url).pathname.split("/");
    const objects = what === "old" ? env.OLD : env.CHAT;
    const answer = objects.get(objects.idFromName(name)).fetch(request);
    return what === "evict" ? answer.catch(() => Response.json(null)) : answer;
  },
};
