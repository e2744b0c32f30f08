// @ts-check
// The judgment about one life: its history against what the server said, what the tools did and what its user wrote.

/** @typedef {{ kind: string, text: string }} Verdict */

/** What a call has to come to, by its tool: the cause of its result, and how often the tool ran. @type {Record<string, { cause?: string, ran: number }>} */
const RESULTS = {
  note: { ran: 1 }, look: { ran: 1 }, slow: { ran: 1 }, huge: { ran: 1 }, patient: { ran: 1 }, child: { ran: 1 },
  fail: { cause: "threw", ran: 1 }, hang: { cause: "timeout", ran: 1 }, deaf: { cause: "aborted", ran: 1 },
  nothing: { cause: "unknown_tool", ran: 0 }, wrong: { cause: "invalid_arguments", ran: 0 },
  "pay reject": { cause: "rejected", ran: 0 }, "pay result": { ran: 0 }, "pay never": { ran: 0 }, pay: { ran: 1 },
};

/** @param {import("./scenarios.mjs").Call} call */
const wanted = ({ tool, answer }) => /** @type {{ cause?: string, ran: number }} */ (RESULTS[`${tool} ${answer}`] ?? RESULTS[tool]);

const textOf = (/** @type {any} */ message) => message.content.filter((/** @type {any} */ block) => block.type === "text").map((/** @type {any} */ block) => block.text).join("");
const short = (/** @type {string} */ text) => (text.length > 120 ? `${text.slice(0, 80)} … ${text.slice(-30)}` : text);

class Judgment {
  /** @param {import("./scenarios.mjs").Plan} plan @param {import("./ledger.mjs").Page} page @param {any} outcome */
  constructor(plan, page, outcome) {
    this.plan = plan;
    this.page = page;
    this.outcome = outcome;
    /** @type {Verdict[]} */
    this.verdicts = [];
  }

  /** @param {boolean} holds @param {string} kind @param {() => string} text */
  must(holds, kind, text) {
    if (!holds) this.verdicts.push({ kind, text: `${this.plan.scenario}: ${text()}` });
  }

  all() {
    const { outcome } = this;
    for (const text of outcome.faults ?? []) this.must(false, "an agent complains", () => text);
    if (outcome.dropped) return this.verdicts;
    this.ends();
    this.keys();
    this.answers();
    this.users();
    this.requests();
    return this.verdicts;
  }

  /** All runs ended, as the plan says. */
  ends() {
    const say = (/** @type {any[]} */ ends) => ends.map(({ stop, code }) => (code ? `${stop} (${code})` : stop)).join(", ");
    const { runs } = this.outcome;
    const isAsPlanned = runs.length === this.plan.expect.length && this.plan.expect.every(({ stop, code }, i) => runs[i].stop === stop && (runs[i].code ?? undefined) === code);
    this.must(isAsPlanned, "a wrong end", () => `expected ${say(this.plan.expect)}; got ${say(runs)}: ${runs.map((/** @type {any} */ run) => run.message ?? "").join("; ")}`);
  }

  keys() {
    const text = JSON.stringify([this.outcome.messages, this.outcome.runs, this.outcome.letters]);
    this.must(!text.includes(`key-of-${this.page.id}`), "leak of a key", () => "its key is in its history or its errors");
  }

  /** Each turn once, in order, as the server said it; each call with one result, as the tool or the plan has it. */
  answers() {
    const { messages } = this.outcome;
    let turns = 0;
    for (const [at, message] of messages.entries()) {
      if (message.role !== "assistant" || message.stopReason === "error") continue;
      turns = this.answer(message, turns);
      this.calls(message, this.resultsAfter(at), turns - 1);
    }
    const results = messages.filter((/** @type {any} */ { role }) => role === "tool_result").length;
    const blocks = messages.flatMap((/** @type {any} */ { role, content }) => (role === "assistant" ? content : [])).filter((/** @type {any} */ { type }) => type === "tool_call").length;
    this.must(results === blocks, "a lost message", () => `${blocks} calls have ${results} results`);
    this.finished(turns);
  }

  /** If the last run completed, the last turn is one that ends a run. @param {number} turns */
  finished(turns) {
    if (this.plan.expect.at(-1)?.stop !== "completed") return;
    const last = this.plan.turns[turns - 1];
    this.must(turns > 0 && (last === undefined || last.calls.length === 0), "a lost message", () => `the last run completed after turn ${turns - 1}, which calls tools`);
    const isMoved = this.plan.drive === "aborts" || this.plan.drive === "posts" || this.plan.with?.letters > 0 || this.plan.scenario === "filtered";
    const planned = this.plan.turns.length;
    this.must(isMoved || turns === planned, "a lost message", () => `${turns} of ${planned} turns are in the history`);
  }

  /** One answer. Returns the number of turns so far. @param {any} message @param {number} turns */
  answer(message, turns) {
    const text = textOf(message);
    const [, turn, attempt] = /^@\w+\.t(\d+)\.a(\d+)@/.exec(text) ?? [];
    if (turn === undefined) {
      this.must(message.stopReason === "aborted", "a lost message", () => `an answer without its beginning: ${short(text)}`);
      return turns;
    }
    this.must(Number(turn) === turns, "a lost message", () => `turn ${turn} stands where turn ${turns} should`);
    const said = this.page.attempts.get(`${turn}.${attempt}`);
    const isWhole = message.stopReason !== "aborted";
    this.must(said !== undefined && (isWhole ? said.text === text : said.text.startsWith(text)), "a changed message", () => `turn ${turn}: the server said ${short(said?.text ?? "nothing")}, the history ${short(text)}`);
    this.must(!isWhole || said?.whole === true, "a cut answer counts", () => `turn ${turn}: attempt ${attempt} had no end`);
    const blocks = message.content.filter((/** @type {any} */ { type }) => type === "tool_call").length;
    this.must(!isWhole || blocks === said?.tools.length, "a lost message", () => `turn ${turn} has ${blocks} calls instead of ${said?.tools.length}`);
    return Number(turn) + 1;
  }

  /** The results that follow an answer. @param {number} at */
  resultsAfter(at) {
    const rest = this.outcome.messages.slice(at + 1);
    const end = rest.findIndex((/** @type {any} */ { role }) => role !== "tool_result");
    return rest.slice(0, end < 0 ? rest.length : end);
  }

  /** @param {any} message @param {any[]} results @param {number} turn */
  calls(message, results, turn) {
    const blocks = message.content.filter((/** @type {any} */ { type }) => type === "tool_call");
    const order = (/** @type {any[]} */ list) => list.map(({ callId }) => callId).join(" ");
    this.must(order(blocks) === order(results), "a lost message", () => `turn ${turn}: the calls ${order(blocks)} have the results ${order(results)}`);
    this.must(new Set(blocks.map((/** @type {any} */ { callId }) => callId)).size === blocks.length, "a lost message", () => `turn ${turn}: two calls have one id`);
    const planned = this.plan.turns[turn]?.calls ?? [];
    for (const [i, result] of results.entries()) if (planned[i]) this.result(planned[i], result, `t${turn}`, i);
  }

  /** @param {import("./scenarios.mjs").Call} call @param {any} result @param {string} turn @param {number} i */
  result(call, result, turn, i) {
    const { cause, ran } = wanted(call);
    const what = `${turn}.c${i} (${[call.tool, call.answer].filter(Boolean).join(" ")})`;
    const tokens = [...this.page.effects].filter(([token]) => token.startsWith(`${this.page.id}.${turn}.`) && token.endsWith(`.c${i}`));
    const count = tokens.reduce((sum, [, times]) => sum + times, 0);
    if (this.plan.causes.includes(result.cause)) return this.must(count <= 1, "a call ran twice", () => `${what} ran ${count} times`);
    this.must(result.cause === cause, "a wrong result", () => `${what}: expected ${cause ?? "its own result"}, got ${result.cause ?? "a result"}: ${short(textOf(result))}`);
    // A tool that is over time or fails may not have got as far as its effect.
    const least = cause === undefined ? ran : 0;
    this.must(count >= least && (count <= ran || (call.tool === "look" && this.plan.stored === true)), "a call that did not run as often as it should", () => `${what} ran ${count} times`);
    if (cause !== undefined || ran === 0) return;
    const [token = ""] = tokens[0] ?? [];
    this.must(textOf(result).startsWith(call.tool === "child" ? `@${childOf(token)}.` : `@${token}=ok@`), "a changed message", () => `${what}: the tool said ${token}=ok, the history ${short(textOf(result))}`);
  }

  /** What the user wrote: each prompt once and in order, each letter as its receipt says. */
  users() {
    const said = this.outcome.messages.filter((/** @type {any} */ { role }) => role === "user").map(textOf).flatMap((/** @type {string} */ text) => Array.from(text.matchAll(/@\w+\.([psf]\d+)@/g), ([, mark]) => mark));
    const prompts = said.filter((/** @type {string} */ mark) => mark.startsWith("p"));
    const asked = this.outcome.runs.map((/** @type {any} */ _, /** @type {number} */ i) => `p${i}`);
    this.must(prompts.join() === asked.join(), "a lost message", () => `of the prompts ${asked} the history has ${prompts}`);
    for (const { mark, delivered } of this.outcome.letters ?? []) {
      const times = said.filter((/** @type {string} */ other) => other === mark).length;
      const least = delivered === true ? 1 : 0;
      const most = delivered === false ? 0 : 1;
      this.must(times >= least && times <= most, "a lost message", () => `the letter ${mark} (${delivered === undefined ? "no receipt" : delivered ? "delivered" : "not delivered"}) is in the history ${times} times`);
    }
  }

  /** What the model was shown is the beginning of the history, each time. */
  requests() {
    const partial = new Set(Array.from(this.page.attempts).filter(([, { whole }]) => !whole).map(([key]) => `${this.page.id}.t${key.replace(".", ".a")}`));
    const whole = (/** @type {string[]} */ marks) => marks.filter((mark) => !partial.has(mark));
    const shown = this.outcome.messages.filter((/** @type {any} */ { role, stopReason }) => !(role === "assistant" && stopReason === "error"));
    const spine = whole(Array.from(JSON.stringify(shown).matchAll(new RegExp(`@(${this.page.id}\\.[^@]*)@`, "g")), ([, mark = ""]) => mark));
    for (const marks of this.page.requests) {
      const seen = whole(marks);
      const wrong = seen.findIndex((mark, i) => spine[i] !== mark);
      this.must(wrong < 0, "a lost message", () => `a request shows ${seen[wrong]} where the history has ${spine[wrong] ?? "nothing"} (after ${spine[wrong - 1] ?? "nothing"})`);
    }
  }
}

/** The child of a call: `n1x3y0` for `n1.t3.a1.c0`. @param {string} token */
export const childOf = (token) => token.replace(/\.t(\d+)\.a\d+\.c(\d+)$/, "x$1y$2");

/** @param {import("./scenarios.mjs").Plan} plan @param {import("./ledger.mjs").Page} page @param {any} outcome @returns {Verdict[]} */
export const judge = (plan, page, outcome) => new Judgment(plan, page, outcome).all();
