// @ts-check
// Reads an answer of the form `{"say": …}` or `{"calls": […]}` as it is written, however it is cut: text streams, a
// call is known by its name before its arguments are there. It also reads what models write that nobody holds to
// the form: white space, other keys, a single call without a list, a fence around it all, plain text.

import { PartialJson } from "../shared.js";

/**
 * What an answer is made of, in its order.
 * @typedef {{ kind: "text", text: string } | { kind: "call", name: string } | { kind: "arguments", json: string } | { kind: "call_end", name: string, json: string }} Piece
 */
/** A value that is being read: how deep it lies, what its letters are for, what follows from its end. @typedef {{ depth: number, take(letter: string): void, end?(): void }} Value */

/** What may stand before the form: a fence of Markdown. */
const FENCE = /^```\w*\s*/;
const LONGEST_FENCE = 40;
/** What is nested deeper is no answer any more: some models open brackets for ever. */
const DEEPEST = 100;

export class Reader {
  /** @param {boolean} isData whether what is said is data: its JSON is the text then */
  constructor(isData) {
    this.isData = isData;
    this.json = new PartialJson();
    /** @type {Piece[]} */
    this.pieces = [];
    /** What came before anything was told: it may be no form but text. */
    this.before = "";
    this.hasTold = false;
    this.isText = false;
    this.isWhole = false;
    this.hasCalls = false;
    /** @type {Value | undefined} */
    this.value = undefined;
    /** The call that is being read. @type {{ depth: number, name: string | undefined, json: string } | undefined} */
    this.call = undefined;
  }

  /** Takes what came, and gives what it says. @param {string} text @returns {Piece[]} */
  push(text) {
    for (const letter of text) this.read(letter);
    return this.take();
  }

  /** The answer has ended. What is not whole stays so: `isWhole` says it. @returns {Piece[]} */
  end() {
    // Something that only looked like the beginning of the form.
    if (this.json.stack.length === 0 && !this.isWhole && this.before !== "") this.asText();
    if (this.json.broken) this.closeCall();
    return this.take();
  }

  take() {
    const { pieces } = this;
    this.pieces = [];
    /** @type {Piece[]} */
    const joined = [];
    for (const piece of pieces) {
      const last = joined.at(-1);
      if (piece.kind === "text" && last?.kind === "text") last.text += piece.text;
      else if (piece.kind === "arguments" && last?.kind === "arguments") last.json += piece.json;
      else joined.push(piece);
    }
    return joined;
  }

  /** @param {string} letter */
  read(letter) {
    if (this.isText) this.say(letter);
    else if (this.json.broken) this.argue(letter);
    else if (this.json.stack.length > 0) this.readForm(letter);
    else if (!this.isWhole) this.readBefore(letter);
  }

  /** What comes before the form. @param {string} letter */
  readBefore(letter) {
    this.before = (this.before + letter).trimStart();
    const rest = this.before.replace(FENCE, "");
    if (rest === "{") this.json.feed(letter);
    else if ((rest !== "" && !"```".startsWith(this.before)) || this.before.length > LONGEST_FENCE) this.asText();
  }

  /** It is no form: all of it is text. */
  asText() {
    this.say(this.before);
    this.isWhole = this.isText = true;
  }

  /** @param {string} letter */
  readForm(letter) {
    const { json } = this;
    const [depth, mode] = [json.stack.length, json.mode];
    if (!this.hasTold) this.before += letter;
    json.feed(letter);
    if (json.stack.length > DEEPEST) json.broken = true;
    if (json.broken) return this.giveUp(letter);
    if (!this.value && (json.stack.length > depth || (mode === "" && json.mode !== "" && json.mode !== "key"))) this.value = this.valueAt(depth, letter);
    const { value } = this;
    // What ends a number is no part of it.
    const isAfter = mode === "literal" && json.mode === "" && depth === value?.depth;
    if (value && !isAfter) value.take(letter);
    if (value && json.mode === "" && json.stack.length <= value.depth) {
      value.end?.();
      this.value = undefined;
    }
    if (this.call && json.stack.length < this.call.depth) this.closeCall();
    if (json.stack.length === 0) this.isWhole = true;
  }

  /** What to do with a value that begins; nothing with one whose parts are looked at. @param {number} depth @param {string} first @returns {Value | undefined} */
  valueAt(depth, first) {
    const { json } = this;
    const [root, list] = json.stack;
    const { key, wantKey } = json.stack[depth - 1] ?? {};
    // Where a name belongs.
    if (wantKey) return { depth, take() {} };
    if (depth === 1 && key === "say") {
      if (this.isData || first !== '"') return { depth, take: (letter) => this.say(letter) };
      return { depth, take: () => this.saySoFar() };
    }
    if (depth === 1 && key === "calls" && first === "[") return;
    if (depth === 2 && root?.key === "calls" && Array.isArray(list?.node) && first === "{") return void (this.call = { depth: 3, name: undefined, json: "" });
    // A single call, without its list.
    if (depth === 1 && (key === "name" || key === "arguments")) this.call ??= { depth, name: undefined, json: "" };
    if (depth === this.call?.depth && key === "arguments") return { depth, take: (letter) => this.argue(letter) };
    if (depth === this.call?.depth && key === "name" && first === '"') return { depth, take() {}, end: () => this.named(json.stack[depth - 1]?.node.name) };
    return { depth, take() {} };
  }

  /** It is no JSON from here on. What was said stays; the rest goes to the call that was begun, for the loop to refuse. @param {string} letter */
  giveUp(letter) {
    if (!this.hasTold) return this.asText();
    this.isWhole = true;
    this.argue(letter);
  }

  /** Says what has come of the text, which is not kept. */
  saySoFar() {
    const { json } = this;
    this.say(json.token);
    json.token = "";
  }

  /** @param {string} text */
  say(text) {
    if (text !== "") this.tell({ kind: "text", text });
  }

  /** @param {Piece} piece */
  tell(piece) {
    this.hasTold = true;
    this.pieces.push(piece);
  }

  /** @param {string} name */
  named(name) {
    const { call } = this;
    if (!call || call.name !== undefined) return;
    call.name = name;
    this.hasCalls = true;
    this.tell({ kind: "call", name });
    // What came of its arguments before it was known whose they are.
    if (call.json !== "") this.tell({ kind: "arguments", json: call.json });
  }

  /** @param {string} json */
  argue(json) {
    const { call } = this;
    if (!call) return;
    call.json += json;
    if (call.name !== undefined) this.tell({ kind: "arguments", json });
  }

  closeCall() {
    const { call } = this;
    this.call = undefined;
    if (call?.name !== undefined) this.tell({ kind: "call_end", name: call.name, json: call.json || "{}" });
  }
}
