// @ts-check
// The text of a tape. Its lines are read by the module; here only the first and the last one are.

import { kindOf, misuse, textOf } from "../shared.js";
import { isReady } from "../boundary/server.js";
import { calls } from "./module.js";

/** @import { TapeHeader } from "../tape.js" */

/** The version of the format that is written, and the highest that is read; the crate has the same. */
export const VERSION = 3;

/** What stands before the line of an agent inside a call. */
const BEFORE = '],"line":';

const MARK = Symbol("a tape of these lines");

/** Outside the class: a class that refers to itself by name gets renamed by the bundler. @param {string[]} lines */
const make = (lines) => new Tape(MARK, lines);

/** A recorded tape. */
export class Tape {
  /** @type {readonly string[]} */ #lines;
  /** @type {number | undefined} */ #events;

  /** @param {symbol} mark @param {readonly string[]} lines */
  constructor(mark, lines) {
    if (mark !== MARK) throw misuse("a tape is made by Tape.parse, Tape.read or a recorder");
    const header = read(lines[0] ?? "");
    if (typeof header?.tape !== "number") throw misuse("the text is no tape: its first line must have a number `tape`");
    if (!Number.isInteger(header.tape) || header.tape < 1 || header.tape > VERSION) throw misuse(`the tape is of version ${header.tape}; this version of turnwheel reads up to ${VERSION}`);
    // A crash may have cut the last line.
    this.#lines = read(lines.at(-1) ?? "") ? lines : lines.slice(0, -1);
    /** @type {TapeHeader} */
    this.header = header;
    const end = read(this.#lines.at(-1) ?? "")?.end;
    // Somebody may have changed it by hand: what is no number of events is counted.
    this.#events = Number.isSafeInteger(end?.events) && end.events >= 0 ? end.events : undefined;
    /** Whether the recording was stopped in order. */
    this.complete = end !== undefined;
  }

  /** @param {string | Iterable<string>} text */
  static parse(text) {
    if (typeof text !== "string" && typeof text?.[Symbol.iterator] !== "function") throw misuse(`a tape is a text or a list of lines, got ${kindOf(text)}`);
    const lines = typeof text === "string" ? text.split("\n") : [...text].flatMap(linesOf);
    return make(lines.map((line) => line.trim()).filter((line) => line !== ""));
  }

  /** @param {ReadableStream<Uint8Array | string>} stream */
  static async read(stream) {
    if (typeof stream?.getReader !== "function") throw misuse(`Tape.read takes a stream, such as the \`body\` of a Response, got ${kindOf(stream)}; Tape.parse takes a text`);
    const decoder = new TextDecoder();
    let text = "";
    const reader = stream.getReader();
    for (let next; !(next = await reader.read()).done; ) text += typeof next.value === "string" ? next.value : decoder.decode(next.value, { stream: true });
    return this.parse(text + decoder.decode());
  }

  get length() {
    return this.#lines.length;
  }

  /** The number of events. */
  get events() {
    return (this.#events ??= isReady() ? countOf(this.toText()) : 0);
  }

  toText() {
    return `${this.#lines.join("\n")}\n`;
  }

  /** The tapes of the agents inside calls, in the order in which they ended. */
  get children() {
    /** @type {{ path: string[], lines: string[] }[]} */
    const all = [];
    for (const line of this.#lines) {
      if (!line.startsWith('{"child":')) continue;
      const { child: path, line: own } = read(line) ?? {};
      if (!Array.isArray(path) || typeof own !== "object") throw misuse(`a line of the tape is none of an agent inside a call: ${line.slice(0, 80)}`);
      if (own?.tape) all.push({ path, lines: [] });
      const found = all.findLast((one) => JSON.stringify(one.path) === JSON.stringify(path));
      // As it is written: numbers would change when they are read.
      found?.lines.push(line.slice(line.indexOf(BEFORE) + BEFORE.length, -1));
    }
    return all.map(({ path, lines }) => ({ path, tape: make(lines) }));
  }

  /** The tape of the agent inside a call. @param {readonly string[]} path */
  child(path) {
    const wanted = JSON.stringify(typeof path === "string" ? [path] : path);
    const all = this.children;
    const found = all.find((one) => JSON.stringify(one.path) === wanted);
    if (!found) throw misuse(`the tape has no agent inside the call ${wanted}; ${all.length === 0 ? "it has none (record with `children: true`)" : `it has: ${all.map((one) => JSON.stringify(one.path)).join(", ")}`}`);
    return found.tape;
  }
}

/** @param {any} text @param {number} at */
function linesOf(text, at) {
  if (typeof text !== "string") throw misuse(`line ${at} of the tape must be a text, got ${kindOf(text)}`);
  return text.split("\n");
}

/** @param {string} line @returns {any} */
function read(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Lives a tape that was cut, to count its events. @param {string} text @returns {number} */
function countOf(text) {
  return JSON.parse(calls().tape_seal(text)).end.events;
}

/**
 * The models and the tools of a tape, those of what a cassette has added too.
 * @param {{ toText(): string } | undefined} tape @returns {{ models: any[], tools: any[] }}
 */
export function rulesOf(tape) {
  /** @type {any} */
  const values = { models: [], tools: [] };
  /** @type {Map<string, any>} */
  const tools = new Map();
  for (const line of tape?.toText().split("\n") ?? []) understood(line, () => {
    if (line.startsWith('{"rules":')) {
      const { models = values.models, tools: named = values.tools } = JSON.parse(line).rules;
      Object.assign(values, { models: models.filter(isNamed("id")), tools: named.filter(isNamed("name")) });
      for (const tool of values.tools) tools.set(tool.name, tool);
    }
    if (!line.startsWith('{"added":{"model":')) return;
    const { provider, request } = JSON.parse(line).added.model;
    if (values.models.length === 0) values.models = [{ provider, id: request.model }];
    for (const tool of request.tools) if (!tools.has(tool.name)) tools.set(tool.name, tool);
  });
  return { models: values.models, tools: [...tools.values()] };
}

/** Reads a line, which somebody may have changed by hand. @param {string} line @param {() => void} work */
export function understood(line, work) {
  try {
    work();
  } catch (error) {
    throw misuse(`a line of the tape cannot be understood (${textOf(error)}): ${line.slice(0, 80)}`, error);
  }
}

/** @param {string} key @returns {(value: any) => boolean} */
const isNamed = (key) => (value) => {
  if (typeof value?.[key] !== "string") throw new Error(`\`${key}\` must be a text, got ${kindOf(value?.[key])}`);
  return true;
};

/** What to say of a tool that no tape has. @param {string} name @param {{ name: string }[]} tools */
export const noTool = (name, tools) => `the tape has no tool \`${name}\`; it has: ${tools.map((tool) => `\`${tool.name}\``).join(", ") || "none"}`;
