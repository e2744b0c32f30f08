// @ts-check
// An agent in a Durable Object that survives its eviction: every event is stored in SQLite before any listener gets it,
// together with its checkpoint. An object that was evicted from memory continues where it was.

import { DurableObject } from "cloudflare:workers";
import { Agent } from "../core.js";
import { complain, kindOf, misuse, toMessages } from "../shared.js";
import { json } from "../server/errors.js";
import { durableObjectEvents } from "../server/eventlog.js";
import { bytesOf } from "../server/letters.js";
import { Room } from "../server/limits.js";
import { agentHandler } from "../server/server.js";
import { objectStore } from "../stores/durable-object.js";
import { Alarms } from "./alarms.js";
import { BackOffs } from "./back-offs.js";
import { within } from "./within.js";

/** @import { AgentEvent, AgentOptions, Input } from "../index.js" */
/** @import { AgentCommand, AgentHandler, AgentHandlerOptions, EventLogEntry } from "../server.js" */
/** @typedef {NonNullable<Required<AgentHandlerOptions["limits"]>>} Limits */

const ID = "agent";
/** During a run, an alarm wakes the object if it is evicted. */
const WATCH_MS = 30_000;
const LIMITS = { bodyBytes: 1_000_000, historyBytes: 1_000_000, listeners: 50, commandsPerMinute: 120, events: 5000 };
/** How long `options` may wait: Cloudflare ends an object that is not ready after 30 s. */
const OPTIONS_MS = 20_000;
/** An agent that cannot be made is tried again after 30 s, then after twice as long each time, up to an hour. */
const MAX_RETRY_MS = 3_600_000;
/** How many inputs may be scheduled at a time. */
const MAX_SCHEDULED = 1000;
const DAY_MS = 86_400_000;
const TEN_YEARS_MS = 3652 * DAY_MS;

/** Extend this class with `options()`, which returns the options of the agent. @template [Env=unknown] @extends {DurableObject<Env>} */
export class DurableAgent extends DurableObject {
  /** @type {Agent | undefined} */ #agent;
  /** @type {AgentHandler | undefined} */ #handler;
  /** The attempt to make the agent that is on, or that went well. @type {Promise<void> | undefined} */ #opening;
  #store;
  #alarms;
  #backOffs;
  /** @type {Room} */ #room = new Room(Infinity, Infinity);
  /** Whether the checkpoint says that the streaming answer has begun; its pieces then need no checkpoint. */
  #isDrafted = false;
  /** When the alarm rings that watches over a run; 0 if there is none. */
  #watchedUntil = 0;
  /** How often `alarm` was called. */
  #rings = 0;

  /** @param {any} ctx @param {any} env */
  constructor(ctx, env) {
    super(checkedContext(ctx, new.target.name), env);
    /** A back-off of this many milliseconds or more is an alarm, so that the object need not stay in memory. */
    this.alarmAfterMs = 10_000;
    this.#store = objectStore(ctx.storage);
    this.#alarms = new Alarms(ctx.storage);
    this.#backOffs = new BackOffs(this.#alarms);
    this.#guardAlarm();
    // An error here would be the end of the object, whose next request might go well.
    ctx.blockConcurrencyWhile(() => this.#ready().catch(() => {}));
  }

  /** The options of the agent: model, tools, prompts. @param {{ name?: string }} _id @returns {AgentOptions | Promise<AgentOptions>} */
  options(_id) {
    throw misuse(`${this.constructor.name} extends DurableAgent, and must say by options() which agent it is`);
  }

  get agent() {
    if (!this.#agent) throw misuse("the agent is not there: `options` failed, as the log says, or still waits");
    return this.#agent;
  }

  /** @override @param {Request} request @returns {Promise<Response>} */
  async fetch(request) {
    try {
      await this.#ready();
    } catch {
      return json({ error: { code: "server", message: "the agent could not be made; the server's log says why" } }, 503, { "retry-after": "5" });
    }
    return /** @type {AgentHandler} */ (this.#handler)(request);
  }

  /** Starts a run, from code of the same Worker. @param {Input | Input[]} input @returns {Promise<{ runId: string }>} */
  async prompt(input) {
    this.#checkSize(toMessages(input));
    await this.#ready();
    this.#room.check(this.agent.messages, 0);
    const { runId } = this.agent.prompt(input);
    this.#saveNow();
    this.#keepWatch();
    return { runId };
  }

  /** Prompts the agent at a time. @param {number} at @param {Input} input @returns {Promise<string>} */
  async schedule(at, input) {
    const now = Date.now();
    if (typeof at !== "number" || !(at > now - DAY_MS && at < now + TEN_YEARS_MS)) throw misuse(`\`at\` must be a time in milliseconds since 1970, as Date.now() gives it, and at most ten years ahead; got ${typeof at === "number" ? at : kindOf(at)}`);
    this.#checkSize(toMessages(input));
    if (this.#alarms.count("prompt") >= MAX_SCHEDULED) throw misuse(`${MAX_SCHEDULED} inputs are scheduled already, and there may be no more`);
    const id = crypto.randomUUID();
    this.#alarms.set(id, "prompt", at, JSON.stringify(input));
    return id;
  }

  /** Returns whether it was still to come. @param {string} id @returns {Promise<boolean>} */
  async unschedule(id) {
    return this.#alarms.find(String(id))?.kind === "prompt" && this.#alarms.delete(id);
  }

  /** Does what is due. A run continues already: it was resumed when the object woke. @override */
  async alarm() {
    const alarms = this.#alarms;
    this.#rings += 1;
    alarms.rang();
    try {
      await this.#ready();
    } catch {
      return this.#retryLater();
    }
    for (const { id, kind, data } of alarms.due(Date.now())) {
      if (kind === "sleep") this.#backOffs.wake(id);
      else if (kind === "prompt") this.#promptBySchedule(id, data);
      else if (kind === "watch") this.#watchAgain();
      else alarms.delete(id);
    }
    alarms.arm();
  }

  /** A subclass whose own `alarm` does not call this one's would leave runs asleep for ever. It is told so, and helped. */
  #guardAlarm() {
    const { alarm, constructor: { name } } = this;
    const guarded = async (/** @type {any[]} */ ...given) => {
      const before = this.#rings;
      await alarm.apply(this, /** @type {any} */ (given));
      if (this.#rings !== before) return;
      console.error(`turnwheel: \`alarm\` of ${name} must call \`await super.alarm()\`: runs, back-offs and what is scheduled wait for it. It is called now.`);
      await alarmOfBase.call(this);
    };
    Object.defineProperty(this, "alarm", { value: guarded, configurable: true, writable: true });
  }

  // ---- making the agent

  #ready() {
    return (this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      complain("turnwheel: the agent of a Durable Object could not be made; the next request tries again", error);
      throw error;
    }));
  }

  async #open() {
    // Before anything else, for it waits: the fields of a subclass are set only after this constructor.
    await this.#alarms.open();
    const saved = await this.#store.load(ID);
    const { name } = this.ctx.id;
    const options = await within(async () => this.options(name === undefined ? {} : { name }), OPTIONS_MS, "`options`");
    if (typeof options !== "object" || options === null) throw misuse(`\`options\` must give the options of the agent, got ${kindOf(options)}`);
    const own = { ...options, host: { ...options.host, sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal, name = "") => this.#backOffs.sleep(ms, signal, name, this.alarmAfterMs) } };
    const { messages, ...others } = own;
    const agent = /** @type {Agent} */ (/** @type {unknown} */ (saved ? await Agent.restore(saved, others) : new Agent(own)));
    this.#handler = this.#serve(agent);
    this.#agent = agent;
    agent.subscribe((event) => this.#hear(event), { keep: true });
    this.#alarms.delete("retry");
    this.#resume(saved);
  }

  /** @param {Agent} agent */
  #serve(agent) {
    const self = /** @type {Pick<import("../cloudflare.js").DurableAgent, never> & { authorize?(request: Request, command: AgentCommand): any, limits?(): Partial<Limits>, handlerOptions?(): AgentHandlerOptions }} */ (/** @type {unknown} */ (this));
    const limits = { ...LIMITS, ...self.limits?.() };
    this.#room = new Room(limits.historyBytes, Infinity);
    return agentHandler(/** @type {any} */ (agent), {
      // Only this Worker can reach the object, and it knows its own names.
      allowedHosts: true,
      ...self.handlerOptions?.(),
      limits,
      events: durableObjectEvents(this.ctx.storage, { also: (entry) => this.#save(entry) }),
      commit: () => this.#saveNow(),
      ...(self.authorize && { authorize: (request, command) => self.authorize?.(request, command) }),
    });
  }

  /** Goes on with the run of an earlier life. @param {import("../index.js").Checkpoint | undefined} saved */
  #resume(saved) {
    /** @type {any} */
    const state = saved?.metadata["turnwheel"];
    const isRunning = state?.run || state?.prompts !== undefined;
    if (isRunning) this.#keepWatch();
    this.#backOffs.forget();
    if (isRunning) this.agent.continue();
  }

  // ---- what is stored, and when the object must wake

  /** Called inside the transaction that stores an event: both are stored, or neither. @param {EventLogEntry} entry */
  #save({ data }) {
    // An interrupted answer is requested again, so its pieces are stored in the log only; the checkpoint says that it has begun.
    const isPiece = data.startsWith('{"type":"message_update"');
    if (isPiece && this.#isDrafted) return;
    this.#isDrafted = isPiece;
    this.#saveNow();
  }

  #saveNow() {
    this.#store.saveNow(ID, this.agent.checkpoint());
  }

  /** @param {AgentEvent} event */
  #hear(event) {
    const { type } = event;
    // A question may wait for days, and the run cannot end before it is answered; the answer wakes the object.
    if (type === "agent_end" || type === "history_rewound" || type === "tool_approval_requested" || type === "question_asked") this.#endWatch();
    else this.#keepWatch();
    return /** @type {{ onEvent?(event: AgentEvent): void }} */ (/** @type {unknown} */ (this)).onEvent?.(event);
  }

  #keepWatch() {
    const now = Date.now();
    if (this.#watchedUntil > now + WATCH_MS / 3 || this.agent.pendingQuestions.length > 0) return;
    this.#watchedUntil = now + WATCH_MS;
    this.#alarms.set("watch", "watch", this.#watchedUntil);
  }

  #endWatch() {
    this.#watchedUntil = 0;
    this.#alarms.delete("watch");
  }

  #watchAgain() {
    this.#endWatch();
    if (this.agent.isRunning) this.#keepWatch();
  }

  /** @param {string} id @param {string} data */
  #promptBySchedule(id, data) {
    // In one transaction with the checkpoint that has the input: it is said once, however often the object dies.
    this.ctx.storage.transactionSync(() => {
      this.#alarms.delete(id);
      try {
        const input = JSON.parse(data);
        this.#room.check(this.agent.messages, 0);
        if (this.agent.isRunning) this.agent.followUp(input);
        else this.agent.prompt(input);
      } catch (error) {
        return complain(`turnwheel: what was scheduled as ${id} cannot be said`, error);
      }
      this.#saveNow();
    });
    this.#keepWatch();
  }

  #retryLater() {
    const tries = Number(this.#alarms.find("retry")?.data ?? 0);
    // Rows that were due stay, and are seen to when the agent is there.
    this.#alarms.set("retry", "retry", Date.now() + Math.min(WATCH_MS * 2 ** tries, MAX_RETRY_MS), String(tries + 1));
  }

  /** @param {unknown} input */
  #checkSize(input) {
    const bytes = bytesOf(JSON.stringify(input));
    if (bytes > LIMITS.bodyBytes) throw misuse(`the input has ${bytes} bytes of at most ${LIMITS.bodyBytes}; say less, or give it to a tool`);
  }
}

// Outside the class: one that refers to itself by name gets renamed by the bundler.
const alarmOfBase = DurableAgent.prototype.alarm;

/** @param {any} ctx @param {string} name of the class */
function checkedContext(ctx, name) {
  if (typeof ctx?.blockConcurrencyWhile !== "function") throw misuse(`${name} is a Durable Object, which Cloudflare makes: bind it in wrangler.jsonc (durable_objects.bindings), and ask for env.NAME.get(id)`);
  return ctx;
}
