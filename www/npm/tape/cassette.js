// @ts-check
// A model and tools that answer from a tape, for tests of the host's own code.

import { custom } from "../core.js";
import { checkNames, kindOf, misuse, textOf } from "../shared.js";
import { answersOf } from "./ask.js";
import { ready } from "./module.js";
import { entriesOf, isTape } from "./replay.js";
import { differenceOf, nearest, shown, stable } from "./requests.js";
import { noTool, rulesOf, Tape, understood, VERSION } from "./text.js";

/** @import { AssistantMessageEvent, JsonValue, Model, ModelRequest, RunInfo, ToolDefinition } from "../index.js" */
/** @import { CassetteOptions } from "../tape.js" */
/** @typedef {{ name: string, request: any, events: AssistantMessageEvent[], used: boolean }} Answer */
/** @typedef {{ name: string, toolName: string, args: JsonValue, reply: any, used: boolean }} Result */

/** @param {Tape | undefined} tape @param {CassetteOptions} [options] */
export function cassette(tape, options = {}) {
  checkNames("unknown option of cassette", options, ["match", "record", "model", "tools", "redact"]);
  const { match = "order", record = "never", model, tools = [], redact } = options;
  if (match !== "order" && match !== "request") throw misuse(`\`match\` must be "order" or "request", got ${textOf(match)}`);
  if (record !== "never" && record !== "missing") throw misuse(`\`record\` must be "never" or "missing", got ${textOf(record)}`);
  if (!isTape(tape) && !(tape === undefined && record === "missing")) throw misuse(`cassette needs a tape, got ${kindOf(tape)}${tape === undefined ? "; to begin one, `record: \"missing\"`" : "; Tape.parse(text) makes one of a text"}`);
  if (record === "missing" && typeof model?.id !== "string") throw misuse(`\`record: "missing"\` needs the \`model\` that is asked for what the tape does not have, got ${kindOf(model)}`);
  if (record === "never" && (model || options.tools)) throw misuse("`model` and `tools` are asked only with `record: \"missing\"`");
  if (!Array.isArray(tools)) throw misuse(`\`tools\` of a cassette must be an array of tools, got ${kindOf(tools)}`);
  if (redact !== undefined && typeof redact !== "function") throw misuse(`\`redact\` must be a function, got ${kindOf(redact)}`);
  return new Cassette(tape, { match, model: record === "missing" ? model : undefined, tools, redact });
}

class Cassette {
  /** @type {Tape | undefined} */ #tape;
  /** @type {"order" | "request"} */ #match;
  /** Who is asked for what the tape does not have. @type {Model | undefined} */ #real;
  /** @type {readonly ToolDefinition[]} */ #realTools;
  /** @type {CassetteOptions["redact"]} */ #redact;
  /** @type {Answer[]} */ #answers = [];
  /** @type {Result[]} */ #results = [];
  /** The lines that were added. @type {string[]} */ #added = [];
  #createdAt = Date.now();
  #read = false;

  /** @param {Tape | undefined} tape @param {{ match: "order" | "request", model: Model | undefined, tools: readonly ToolDefinition[], redact: CassetteOptions["redact"] }} options */
  constructor(tape, { match, model, tools, redact }) {
    this.#tape = tape;
    this.#match = match;
    this.#real = model;
    this.#realTools = tools;
    this.#redact = redact;
    const { provider, id } = model ?? rulesOf(this.#tape).models[0] ?? { provider: "tape", id: "tape" };
    const answer = (/** @type {ModelRequest} */ request, /** @type {any} */ context) => this.#answer(request, context);
    this.model = custom(id, async function* (request, context) {
      yield* await answer(request, context);
    }, { provider });
  }

  /** The tools of these names, or all. Hosts take it out of its object. */
  tools = (/** @type {readonly string[] | undefined} */ names) => this.#tools(names);

  /** @param {readonly string[]} [names] @returns {ToolDefinition[]} */
  #tools(names) {
    const real = new Map(this.#realTools.map((tool) => [tool.name, tool]));
    /** What is real says how it is called now. @type {any[]} */
    const known = [...rulesOf(this.#tape).tools.filter(({ name }) => !real.has(name)), ...real.values()];
    for (const name of names ?? []) {
      if (!known.some((tool) => tool.name === name)) throw misuse(noTool(name, known));
    }
    const wanted = known.filter(({ name }) => names === undefined || names.includes(name));
    return wanted.map(({ name, description, parameters }) => ({ name, description, parameters, execute: (/** @type {any} */ args, /** @type {any} */ context) => this.#execute(name, args, context) }));
  }

  /** What nobody asked for. */
  get unused() {
    this.#load();
    return [...this.#answers, ...this.#results].filter(({ used }) => !used).map(({ name }) => name);
  }

  /** How many answers and results were added. */
  get added() {
    return this.#added.length;
  }

  /** The tape, with what was added. @returns {Tape} */
  toTape() {
    const header = JSON.stringify({ tape: VERSION, engine: "cassette", createdAt: this.#createdAt });
    const lines = this.#tape?.toText().trimEnd().split("\n") ?? [header];
    // The last line says what a replay gives, which does not change.
    const at = this.#tape?.complete ? lines.length - 1 : lines.length;
    return Tape.parse([...lines.slice(0, at), ...this.#added, ...lines.slice(at)]);
  }

  toText() {
    return this.toTape().toText();
  }

  #load() {
    if (this.#read) return;
    this.#read = true;
    if (!this.#tape) return;
    /** @type {Map<string, Answer>} */
    const models = new Map();
    /** @type {Map<string, Result>} */
    const tools = new Map();
    const names = new Map();
    for (const entry of entriesOf(this.#tape)) {
      if (entry.kind === "event" && entry.event.type === "tool_execution_start") names.set(entry.event.callId, entry.event.toolName);
      if (entry.kind === "start" && entry.effect.kind === "model") {
        const answer = { name: entry.name, request: entry.effect.request, events: [], used: false };
        models.set(entry.name, answer);
        this.#answers.push(answer);
      }
      if (entry.kind === "start" && entry.effect.kind === "tool") {
        const result = { name: entry.name, toolName: names.get(entry.effect.callId) ?? "", args: entry.effect.arguments, reply: undefined, used: false };
        tools.set(entry.name, result);
        this.#results.push(result);
      }
      if (entry.kind !== "reply") continue;
      const reply = /** @type {any} */ (entry.reply);
      const answer = models.get(entry.name);
      if (answer && (reply.event ?? reply).type) answer.events.push(reply.event ?? reply);
      const result = tools.get(entry.name);
      if (result && entry.last) result.reply = reply;
    }
    for (const line of this.#tape.toText().split("\n")) {
      if (!line.startsWith('{"added":')) continue;
      understood(line, () => {
        const { model, tool } = JSON.parse(line).added;
        // What cannot be compared is noticed here, and not in the middle of a test.
        if (model) this.#answers.push({ name: `added/model.${this.#answers.length + 1}`, request: (shown(model.request), model.request), events: [...model.events], used: false });
        if (tool) this.#results.push({ name: `added/tool.${this.#results.length + 1}-${tool.toolName}`, ...tool, used: false });
      });
    }
  }

  /** @param {"model" | "tool"} kind @param {any} value */
  #add(kind, value) {
    const redact = this.#redact;
    const replacer = redact ? (/** @type {string} */ key, /** @type {any} */ member) => (typeof member === "string" && !STRUCTURE.has(key) ? String(redact(key, member)) : member) : undefined;
    this.#added.push(JSON.stringify({ added: { [kind]: value } }, replacer));
  }

  /** @param {ModelRequest} request @param {RunInfo & { signal: AbortSignal }} context @returns {Promise<AssistantMessageEvent[]>} */
  async #answer(request, context) {
    await ready();
    this.#load();
    const left = this.#answers.filter(({ used }) => !used);
    const found = this.#match === "order" ? left[0] : left.find((answer) => shown(answer.request) === shown(request));
    if (found) {
      found.used = true;
      return found.events;
    }
    if (!this.#real) throw misuse(left.length === 0 ? `the tape has ${this.#answers.length} answers of a model, and all were given` : `the tape has no answer to this request: ${differenceOf(nearest(left.map((answer) => answer.request), request), request)}`);
    const events = await answersOf(this.#real, request, context);
    // What failed is asked again the next time.
    if (!events.some(({ type }) => type === "error")) this.#add("model", { provider: this.model.provider, request: JSON.parse(shown(request)), events });
    return events;
  }

  /** @param {string} toolName @param {any} args @param {any} context */
  async #execute(toolName, args, context) {
    await ready();
    this.#load();
    const left = this.#results.filter((result) => !result.used && result.toolName === toolName);
    const found = left.find((result) => stable(result.args) === stable(args)) ?? (this.#match === "order" ? left[0] : undefined);
    if (found) {
      found.used = true;
      const { result, failed, invalid } = found.reply ?? {};
      if (result === undefined) throw new Error(failed ?? invalid ?? "the call was cancelled");
      return result;
    }
    const real = this.#real && this.#realTools.find(({ name }) => name === toolName);
    if (!real) throw misuse(`the tape has no result of \`${toolName}\` ${left.length === 0 ? "that was not given yet" : `for ${JSON.stringify(args)}; it has one for ${JSON.stringify(left[0].args)}`}`);
    try {
      const result = (await real.execute?.(args, context)) ?? "";
      this.#add("tool", { toolName, args, reply: { result } });
      return result;
    } catch (error) {
      this.#add("tool", { toolName, args, reply: { failed: textOf(error) } });
      throw error;
    }
  }
}

/** Members that say what something is. */
const STRUCTURE = new Set(["type", "role", "stopReason", "callId", "toolName", "cause"]);
