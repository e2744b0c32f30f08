// @ts-check
// One life of an agent, in any host: it is made as its plan says, prompted, disturbed by its drive, and tells the ledger its
// end. What differs between hosts is in `host`.

import { checkTrace } from "../js/grammar.mjs";
import { DRIVES } from "./drives.mjs";
import { sabotaged } from "./sabotage.mjs";
import { planOf } from "./scenarios.mjs";
import { toolsOf } from "./tools.mjs";

/**
 * What a life survives its death with.
 * @typedef {{ checkpoint: any, runs: any[], trace: any[], letters: any[], deaths: number, refused: number }} Saved
 */

/**
 * @typedef {object} Host
 * @property {any} lib the package
 * @property {string} models the address of the server
 * @property {(what: string, report: any) => Promise<any>} tell the control plane
 * @property {number} seed
 * @property {string[]} only
 * @property {number} [deaths] how often this life has died, where its storage cannot tell
 * @property {string | undefined} [sabotage]
 * @property {(id: string) => { load(): Saved | undefined, save(saved: Saved): void }} storage
 * @property {(life: Life) => void} die ends this life at once: nothing that it does afterwards may count
 * @property {(id: string, handler: any) => { url: string, ask: (request: Request) => Promise<Response>, close(): void } | undefined} [serve] makes a handler reachable through a socket
 * @property {(agent: any) => void} forgotten hears of each agent that nobody waits for
 * @property {(line: string) => void} [log]
 */

export class Life {
  /** @param {string} id @param {Host} host */
  constructor(id, host) {
    this.id = id;
    this.host = host;
    this.plan = planOf(id, host.seed, host.only);
    this.dead = false;
    /** @type {string[]} */
    this.faults = [];
    this.events = 0;
    /** @type {any} */
    this.agent = undefined;
    /** @type {any} */
    this.run = undefined;
    /** How its handler is reached, if its user is elsewhere. @type {any} */
    this.served = undefined;
    this.storage = host.storage(id);
    /** @type {Saved} */
    this.saved = this.storage.load() ?? { checkpoint: undefined, runs: [], trace: [], letters: [], deaths: 0, refused: 0 };
    this.saved.deaths = Math.max(this.saved.deaths, host.deaths ?? 0);
    /** @type {import("./drives.mjs").Drive} */
    this.drive = /** @type {any} */ (DRIVES)[this.plan.drive](this);
  }

  /** A model of the plan's wire, at the address of this agent or of a child. @param {string} id */
  model(id) {
    const { wire, limits } = this.plan;
    const { lib, models } = this.host;
    // A dead agent asks nobody; see `options`.
    const alive = (/** @type {any} */ url, /** @type {any} */ init) => (this.dead ? Promise.reject(new TypeError("the process is gone")) : fetch(url, init));
    const options = sabotaged(this, { baseUrl: `${models}/${id}`, apiKey: `key-of-${this.id}`, limits, ...(this.plan.stored && { fetch: alive }) });
    if (wire === "chat") return lib.openaiCompatible("m", options);
    if (wire === "responses") return lib.openaiResponses("m", options);
    if (wire === "anthropic") return lib.anthropic("claude-m", options);
    return lib.gemini("m", options);
  }

  options() {
    // What a dead agent still does is nobody's: in its place a process would be gone.
    const tell = (/** @type {string} */ what, /** @type {any} */ report) => (this.dead ? new Promise(() => {}) : this.host.tell(what, report));
    const child = (/** @type {string} */ id) => new this.host.lib.Agent({ model: this.model(id), tools, ...this.plan.options });
    const tools = toolsOf(tell, child, this.host.lib);
    return sabotaged(this, { model: this.model(this.id), tools, systemPrompt: "Be brief.", ...this.plan.options });
  }

  /** Lives until the last run has ended, or it dies. */
  async live() {
    await this.host.tell("begin", { id: this.id });
    const { Agent } = this.host.lib;
    const { checkpoint } = this.saved;
    this.agent = checkpoint ? await Agent.restore(checkpoint, this.options()) : new Agent(this.options());
    this.agent.subscribe((/** @type {any} */ event) => this.watch(event));
    if (checkpoint) for (const call of this.agent.pendingApprovals) this.drive.event?.({ ...call, type: "tool_approval_requested" });
    const user = (await this.drive.user?.()) ?? this.agent;
    if (this.plan.dropped) return this.drop();
    while (this.saved.runs.length < this.plan.prompts && !this.dead) await this.one(user);
    if (this.dead) return;
    await this.drive.finish?.();
    await this.tellEnd();
    this.agent[Symbol.dispose]();
  }

  /** One run. @param {any} user the agent, or one that stands for it elsewhere */
  async one(user) {
    const n = this.saved.runs.length;
    this.run = user === this.agent && this.agent.canContinue && this.saved.checkpoint ? this.agent.continue() : this.drive.prompt?.(user, n) ?? user.prompt(`@${this.id}.p${n}@ go`);
    const { stopReason, error } = await (this.drive.read?.(this.run) ?? this.run.result);
    if (this.dead) return;
    if (user !== this.agent) await this.agent.waitForIdle();
    const told = this.saved.runs[n];
    if (!told) this.complain(`run ${n} settled as ${stopReason} and its end was not told`);
    else if (told.stop !== stopReason || (told.code ?? undefined) !== error?.code) this.complain(`run ${n} settled as ${stopReason} ${error?.code}, and told ${told.stop} ${told.code}: ${error?.message}`);
    if (!told) this.saved.runs.push({ stop: stopReason, code: error?.code });
  }

  /** @param {any} event */
  watch(event) {
    if (this.dead) return;
    this.events += 1;
    this.host.log?.(`${this.id} ${JSON.stringify(event).slice(0, 300)}`);
    this.saved.trace.push(event);
    if (event.type === "command_refused") this.saved.refused += 1;
    if (event.type === "agent_end") this.end(event);
    this.drive.event?.(event);
    if (!this.plan.stored || this.dead) return;
    this.saved.checkpoint = this.agent.checkpoint();
    this.storage.save(this.saved);
    this.drive.saved?.(event);
  }

  /** @param {any} event */
  end(event) {
    this.saved.runs.push({ stop: event.stopReason, code: event.error?.code, message: event.error?.message });
    try {
      checkTrace(this.saved.trace.filter(({ type }, at) => type !== "run_resumed" || at === 0));
    } catch (error) {
      this.complain(`its events are not those of a run: ${error instanceof Error ? error.message : error}`);
    }
    this.saved.trace = [];
  }

  /** A letter was posted; the receipt is noted when it comes. @param {string} mark @param {Promise<any>} receipt */
  posted(mark, receipt) {
    /** @type {any} */
    const letter = { mark };
    this.saved.letters.push(letter);
    void Promise.resolve(receipt).then(({ delivered }) => { if (!this.dead) letter.delivered = delivered; }, (error) => this.complain(`a receipt rejected: ${error}`));
  }

  /** @param {string} text */
  complain(text) {
    this.faults.push(text);
  }

  /** Starts what will wait for a person for ever, and lets go of it. */
  async drop() {
    const { agent, id } = this;
    const asked = new Promise((resolve) => agent.subscribe((/** @type {any} */ { type }) => { if (type === "tool_approval_requested" || type === "agent_end") resolve(type); }));
    agent.prompt(`@${id}.p0@ go`);
    if ((await asked) !== "tool_approval_requested") this.complain("it ended before it asked");
    this.host.forgotten(agent);
    await this.host.tell("outcome", { id, dropped: true, faults: this.faults, events: this.events });
    this.agent = undefined;
  }

  async tellEnd() {
    // Receipts are settled by promises that the end of the run resolves.
    await new Promise((resolve) => setTimeout(resolve, 0));
    const { runs, letters, refused } = this.saved;
    const messages = this.agent.messages;
    await this.host.tell("outcome", { id: this.id, runs, letters, messages, faults: this.faults, events: this.events, refused });
  }
}

/** Lives one life to its end, as often as it takes. @param {string} id @param {Host} host */
export async function live(id, host) {
  for (;;) {
    const life = new Life(id, host);
    await life.live();
    if (!life.dead) return;
  }
}
