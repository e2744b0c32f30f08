// @ts-check
// A model and tools that answer from a tape, for tests of the host's own code.

import { custom } from "../core.js";
import { checkNames, misuse } from "../shared.js";
import { entriesOf } from "./replay.js";
import { ready } from "./module.js";

/** @import { AssistantMessageEvent, JsonValue, ModelRequest, ToolDefinition } from "../index.js" */
/** @import { CassetteOptions, Tape } from "../tape.js" */
/** @typedef {{ name: string, request: any, events: AssistantMessageEvent[], used: boolean }} Answer */
/** @typedef {{ name: string, toolName: string, args: JsonValue, reply: any, used: boolean }} Result */

/** @param {Tape} tape @param {CassetteOptions} [options] */
export function cassette(tape, options = {}) {
  checkNames("unknown option of cassette", options, ["match"]);
  const { match = "order" } = options;
  if (match !== "order" && match !== "request") throw misuse(`\`match\` must be "order" or "request", got ${String(match)}`);
  return new Cassette(tape, match);
}

class Cassette {
  /** @type {Tape} */ #tape;
  /** @type {"order" | "request"} */ #match;
  /** @type {Answer[]} */ #answers = [];
  /** @type {Result[]} */ #results = [];
  #read = false;

  /** @param {Tape} tape @param {"order" | "request"} match */
  constructor(tape, match) {
    this.#tape = tape;
    this.#match = match;
    const { provider, id } = rulesOf(tape).models?.[0] ?? { provider: "tape", id: "tape" };
    const answer = (/** @type {ModelRequest} */ request) => this.#answer(request);
    this.model = custom(id, async function* (request) {
      yield* await answer(request);
    }, { provider });
  }

  /** The tools of these names, or all. Hosts take it out of its object. */
  tools = (/** @type {readonly string[] | undefined} */ names) => this.#tools(names);

  /** @param {readonly string[]} [names] @returns {ToolDefinition[]} */
  #tools(names) {
    /** @type {any[]} */
    const known = rulesOf(this.#tape).tools ?? [];
    for (const name of names ?? []) {
      if (!known.some((tool) => tool.name === name)) throw misuse(`the tape has no tool \`${name}\`; it has: ${known.map((tool) => `\`${tool.name}\``).join(", ") || "none"}`);
    }
    const wanted = known.filter(({ name }) => names === undefined || names.includes(name));
    return wanted.map(({ name, description, parameters }) => ({ name, description, parameters, execute: (/** @type {any} */ args) => this.#execute(name, args) }));
  }

  /** What nobody asked for. */
  get unused() {
    this.#load();
    return [...this.#answers, ...this.#results].filter(({ used }) => !used).map(({ name }) => name);
  }

  #load() {
    if (this.#read) return;
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
    this.#read = true;
  }

  /** @param {ModelRequest} request @returns {Promise<AssistantMessageEvent[]>} */
  async #answer(request) {
    await ready();
    this.#load();
    const left = this.#answers.filter(({ used }) => !used);
    const found = this.#match === "order" ? left[0] : left.find((answer) => shown(answer.request) === shown(request));
    if (!found) throw misuse(left.length === 0 ? `the tape has ${this.#answers.length} answers of a model, and all were given` : `the tape has no answer to this request: ${differenceOf(left[0].request, request)}`);
    found.used = true;
    return found.events;
  }

  /** @param {string} toolName @param {JsonValue} args */
  async #execute(toolName, args) {
    await ready();
    this.#load();
    const left = this.#results.filter((result) => !result.used && result.toolName === toolName);
    const found = left.find((result) => JSON.stringify(result.args) === JSON.stringify(args)) ?? (this.#match === "order" ? left[0] : undefined);
    if (!found) throw misuse(`the tape has no result of \`${toolName}\` ${left.length === 0 ? "that was not given yet" : `for ${JSON.stringify(args)}; it has one for ${JSON.stringify(left[0].args)}`}`);
    found.used = true;
    const { result, failed, invalid } = found.reply ?? {};
    if (result === undefined) throw new Error(failed ?? invalid ?? "the call was cancelled");
    return result;
  }
}

/** The values of the rules on a tape: models and tools. @param {Tape} tape @returns {any} */
function rulesOf(tape) {
  const values = {};
  for (const line of tape.toText().split("\n")) {
    if (line.startsWith('{"rules":')) Object.assign(values, JSON.parse(line).rules);
  }
  return values;
}

/** What counts of a request: times and ids differ from run to run. @param {any} request */
function shown(request) {
  const { model, systemPrompt, messages, tools, options, output } = request;
  const { headers, body, ...known } = options ?? {};
  return stable({ model, systemPrompt, messages: messages.map(withoutTime), tools, options: known, output });
}

/** @param {any} message */
function withoutTime({ timestamp, usage, ...message }) {
  return message;
}

/** JSON with sorted keys. @param {any} value @returns {string} */
function stable(value) {
  if (Array.isArray(value)) return `[${value.map(stable).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const keys = Object.keys(value).filter((key) => value[key] !== undefined).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${stable(value[key])}`).join(",")}}`;
}

/** Names the first place in which two requests differ. @param {any} taped @param {any} asked */
function differenceOf(taped, asked) {
  for (const key of ["model", "systemPrompt", "tools", "options", "output"]) {
    if (stable(taped[key]) !== stable(asked[key])) return `\`${key}\` is ${stable(asked[key]).slice(0, 200)}, on the tape it is ${stable(taped[key]).slice(0, 200)}`;
  }
  const at = asked.messages.findIndex((/** @type {any} */ message, /** @type {number} */ i) => stable(withoutTime(message)) !== stable(withoutTime(taped.messages[i] ?? {})));
  if (at === -1) return `it has ${asked.messages.length} messages, on the tape there are ${taped.messages.length}`;
  return `message ${at} is ${stable(withoutTime(asked.messages[at])).slice(0, 200)}, on the tape it is ${stable(withoutTime(taped.messages[at] ?? {})).slice(0, 200)}`;
}
