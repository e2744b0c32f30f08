// @ts-check
// The ledger: what the server sent and was asked, which tools ran, and what each agent says at its end. From these it
// judges. It only knows; whether a fault ends the soak is for run.mjs to say.

import { planOf } from "./scenarios.mjs";
import { judge } from "./judge.mjs";

/** How long the ledger of a life is kept after its end, for what a tool or a socket still does. In milliseconds. */
const KEPT = 20_000;

/**
 * An attempt of the server to answer.
 * @typedef {{ text: string, tools: import("./scenarios.mjs").Call[], whole: boolean, forbids: number[] }} Attempt
 */

/**
 * What is known of an agent or a child.
 * @typedef {object} Page
 * @property {string} id
 * @property {Map<string, Attempt>} attempts by `turn.attempt`
 * @property {string[][]} requests the marks in each request
 * @property {Map<string, number>} effects how often a tool began, by its token
 * @property {number} open exchanges
 * @property {number} begun
 * @property {number} [ended]
 * @property {any} [outcome]
 */

/** @typedef {{ kind: string, id: string, text: string }} Fault */

/** The marks of an agent in a text, in order, without those of others. @param {string} id @param {string} text */
export const marksIn = (id, text) => Array.from(text.matchAll(new RegExp(`@(${id}\\.[^@]*)@`, "g")), ([, mark = ""]) => mark);

/** The life that a child belongs to. @param {string} id */
const rootOf = (id) => id.replace(/x.*/, "");

export class Ledger {
  /** @param {number} seed @param {string[]} [only] */
  constructor(seed, only = []) {
    this.seed = seed;
    this.only = only;
    /** @type {Map<string, Page>} */
    this.pages = new Map();
    /** @type {Fault[]} */
    this.faults = [];
    /** @type {Map<string, { lives: number, ends: Map<string, number> }>} by scenario */
    this.scenarios = new Map();
    this.counts = { lives: 0, requests: 0, faults: 0, effects: 0, messages: 0, letters: 0, deaths: 0, dropped: 0, refused: 0, events: 0, kills: 0 };
  }

  /** @param {string} kind @param {string} id @param {string} text */
  fault(kind, id, text) {
    this.faults.push({ kind, id, text });
  }

  /** @param {string} id */
  planOf(id) {
    return planOf(rootOf(id), this.seed, this.only);
  }

  /** @param {string} id @returns {Page} */
  page(id) {
    const known = this.pages.get(id);
    if (known) return known;
    const page = { id, attempts: new Map(), requests: [], effects: new Map(), open: 0, begun: Date.now() };
    this.pages.set(id, page);
    return page;
  }

  // ---------------------------------------------------------------- what the server tells

  /** A request came. Returns the number of the attempt. @param {string} id @param {number} turn @param {string} body @param {string} key */
  asked(id, turn, body, key) {
    const page = this.page(id);
    this.counts.requests += 1;
    if (key !== `key-of-${rootOf(id)}`) this.fault("wrong key", id, `the request has the key ${JSON.stringify(key)}`);
    const ended = this.pages.get(rootOf(id))?.ended;
    if (ended !== undefined && Date.now() - ended > 1000) this.fault("a dead agent asks", id, `turn ${turn} was requested after its end was told`);
    page.requests.push(marksIn(id, body));
    let attempt = 0;
    while (page.attempts.has(`${turn}.${attempt}`)) attempt++;
    return attempt;
  }

  /** What it is answered. @param {string} id @param {number} turn @param {number} attempt @param {Attempt} said */
  answered(id, turn, attempt, said) {
    this.page(id).attempts.set(`${turn}.${attempt}`, said);
    if (!said.whole) this.counts.faults += 1;
  }

  /** An exchange begins; returns what to call at its end. @param {string} id */
  opened(id) {
    const page = this.page(id);
    page.open += 1;
    return () => void (page.open -= 1);
  }

  // ---------------------------------------------------------------- what agents and tools tell

  /** A report on the control plane. @param {string} what @param {any} report */
  told(what, report) {
    if (what === "begin") this.begin(report.id);
    else if (what === "effect") this.effect(report);
    else if (what === "outcome") this.outcome(report);
    else if (what === "fault") this.fault(report.kind, report.id ?? "", report.text);
    else if (what === "log") console.error(report);
    else if (what === "death") this.counts.deaths += 1;
    return undefined;
  }

  /** @param {string} id */
  begin(id) {
    this.page(id);
  }

  /** A tool begins to do what it does. @param {{ token: string, once: boolean }} effect */
  effect({ token, once }) {
    this.counts.effects += 1;
    const [, id = "", turn, attempt, call] = /^(\w+)\.t(\d+)\.a(\d+)\.c(\d+)$/.exec(token) ?? [];
    const page = this.pages.get(id);
    const said = page?.attempts.get(`${turn}.${attempt}`);
    if (!page || !said) return this.fault("an unknown call ran", id, `the tool was given \`${token}\`, which no answer contains`);
    if (!said.whole) this.fault("a cut call ran", id, `${token}: the answer was cut`);
    if (said.forbids.includes(Number(call))) this.fault("a cut call ran", id, `${token}: the answer ended as \`${this.planOf(id).turns[Number(turn)]?.finish}\``);
    page.effects.set(token, (page.effects.get(token) ?? 0) + 1);
    const same = [...page.effects].filter(([other]) => other.startsWith(`${id}.t${turn}.`) && other.endsWith(`.c${call}`));
    const times = same.reduce((sum, [, count]) => sum + count, 0);
    if (once && times > 1) this.fault("a call ran twice", id, `${same.map(([other, count]) => `${other} ${count} times`).join(", ")}`);
  }

  /** The end of a life, as the agent tells it. @param {any} outcome */
  outcome(outcome) {
    const { id } = outcome;
    const page = this.page(id);
    if (page.ended !== undefined) return this.fault("an agent ended twice", id, "");
    page.ended = Date.now();
    page.outcome = outcome;
    const plan = this.planOf(id);
    for (const text of judge(plan, page, outcome)) this.fault(text.kind, id, text.text);
    this.count(plan, outcome);
    this.forget();
  }

  /** @param {import("./scenarios.mjs").Plan} plan @param {any} outcome */
  count(plan, outcome) {
    this.counts.lives += 1;
    this.counts.messages += outcome.messages?.length ?? 0;
    this.counts.letters += outcome.letters?.length ?? 0;
    this.counts.events += outcome.events ?? 0;
    this.counts.refused += outcome.refused ?? 0;
    if (outcome.dropped) this.counts.dropped += 1;
    const row = this.scenarios.get(plan.scenario) ?? { lives: 0, ends: new Map() };
    this.scenarios.set(plan.scenario, row);
    row.lives += 1;
    const ends = (outcome.runs ?? []).map((/** @type {any} */ { stop, code }) => (stop === "error" ? `error ${code}` : stop));
    for (const end of outcome.dropped ? ["dropped"] : ends) row.ends.set(end, (row.ends.get(end) ?? 0) + 1);
  }

  /** Drops pages that nobody will add to any more; a socket that is still open then is a fault. */
  forget() {
    const now = Date.now();
    for (const page of this.pages.values()) {
      const ended = this.pages.get(rootOf(page.id))?.ended;
      if (ended === undefined || now - ended < KEPT) continue;
      this.isClosed(page);
      if (page.id !== rootOf(page.id)) this.pages.delete(page.id);
      else if (!Array.from(this.pages.keys()).some((id) => id.startsWith(`${page.id}x`))) this.pages.delete(page.id);
    }
  }

  /** @param {Page} page */
  isClosed(page) {
    if (page.open > 0) this.fault("an open socket", page.id, `${page.open} of its connections are still read`);
  }

  /** @param {string} id */
  hasEnded(id) {
    return this.pages.get(id)?.ended !== undefined;
  }

  /** The numbers of the lives of a host that are known here. @param {string} letter */
  begun(letter) {
    return Array.from(this.pages.keys()).filter((id) => id.startsWith(letter) && id === rootOf(id)).map((id) => Number(id.slice(1)));
  }

  /** The lives that have not ended. */
  unended() {
    return Array.from(this.pages.values()).filter(({ id, ended }) => id === rootOf(id) && ended === undefined).map(({ id }) => id);
  }

  /** The last look, when all hosts are gone. */
  close() {
    for (const id of this.unended()) this.fault("a run did not end", id, `${this.planOf(id).scenario}: nothing was heard of its end`);
    for (const page of this.pages.values()) this.isClosed(page);
  }
}
