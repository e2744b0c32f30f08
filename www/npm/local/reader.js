// @ts-check
// Reads an answer of the form `{"say": …}` or `{"calls": […]}` as it is written, however it is cut: text streams, a
// call is known by its name before its arguments are there. It also reads what models write that nobody holds to
// the form: white space, other keys, a single call without a list, a fence around it all, plain text.

/**
 * What an answer is made of, in its order.
 * @typedef {{ kind: "text", text: string } | { kind: "call", name: string } | { kind: "arguments", json: string } | { kind: "call_end", name: string, json: string }} Piece
 */

const BLANK = /\s/;
/** @type {{ [letter: string]: string }} */
const ESCAPES = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
/** What may stand before the form: a fence of Markdown. */
const FENCE = /^```\w*\s*/;

export class Reader {
  /** @param {boolean} isData whether what is said is data: its JSON is the text then */
  constructor(isData) {
    this.isData = isData;
    /** @type {Piece[]} */
    this.pieces = [];
    /** What the next character belongs to. @type {(letter: string) => void} */
    this.state = this.beginning;
    this.isWhole = false;
    this.hasCalls = false;
    this.before = "";
    this.key = "";
    /** The call that is being read. @type {{ name: string | undefined, json: string, told: boolean } | undefined} */
    this.call = undefined;
    this.isInList = false;
  }

  /** Takes what came, and gives what it says. @param {string} text @returns {Piece[]} */
  push(text) {
    for (let at = 0; at < text.length; at++) this.state(text.charAt(at));
    return this.take();
  }

  /** The answer has ended. What is not whole stays so: `isWhole` says it. @returns {Piece[]} */
  end() {
    // Something that only looked like the beginning of the form.
    if (this.state === this.beginning && this.before !== "") this.asText();
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

  // ---- the outermost object

  /** @param {string} letter */
  beginning(letter) {
    this.before += letter;
    const rest = this.before.trimStart().replace(FENCE, "");
    if (rest === "" || (this.before.trimStart().startsWith("`") && rest.startsWith("`") && rest.length < 24 && !rest.includes("\n"))) return;
    if (rest === "{") this.state = this.beforeKey;
    else this.asText();
  }

  /** It is no form: all of it is text. */
  asText() {
    this.say(this.before);
    this.isWhole = true;
    this.state = this.plain;
  }

  /** @param {string} letter */
  plain(letter) {
    this.say(letter);
  }

  /** @param {string} letter */
  beforeKey(letter) {
    if (letter === '"') this.readString((key) => ((this.key = key), (this.state = this.beforeValue)));
    else if (letter === "}") this.closeObject();
  }

  /** @param {string} letter */
  beforeValue(letter) {
    if (BLANK.test(letter) || letter === ":") return;
    const { key, call } = this;
    if (!call && key === "say") return this.isData ? this.readJson(letter, (json) => this.say(json), this.afterValue) : this.readSaid(letter);
    if (!call && key === "calls" && letter === "[") {
      this.isInList = true;
      return void (this.state = this.beforeCall);
    }
    // A single call, without its list.
    if (!call && (key === "name" || key === "arguments")) this.call = { name: undefined, json: "", told: false };
    if (key === "name" && letter === '"') return this.readString((name) => this.named(name));
    if (key === "arguments") return this.readJson(letter, (json) => this.argue(json), this.afterValue);
    this.readJson(letter, () => {}, this.afterValue);
  }

  /** @param {string} letter */
  afterValue(letter) {
    if (letter === ",") this.state = this.beforeKey;
    else if (letter === "}") this.closeObject();
  }

  closeObject() {
    if (this.call) this.closeCall();
    if (this.isInList) this.state = this.beforeCall;
    else this.finish();
  }

  finish() {
    this.isWhole = true;
    this.state = () => {};
  }

  // ---- calls

  /** @param {string} letter */
  beforeCall(letter) {
    if (letter === "{") {
      this.call = { name: undefined, json: "", told: false };
      this.state = this.beforeKey;
    } else if (letter === "]") {
      this.isInList = false;
      this.state = this.afterValue;
    }
  }

  /** @param {string} name */
  named(name) {
    const { call } = this;
    if (!call) return;
    call.name = name;
    this.state = this.afterValue;
    this.tellCall();
  }

  /** @param {string} json */
  argue(json) {
    const { call } = this;
    if (!call) return;
    call.json += json;
    if (call.told) this.pieces.push({ kind: "arguments", json });
  }

  /** Tells of a call once its name is known; what came of its arguments before follows. */
  tellCall() {
    const { call } = this;
    if (call?.name === undefined || call.told) return;
    call.told = this.hasCalls = true;
    this.pieces.push({ kind: "call", name: call.name });
    if (call.json !== "") this.pieces.push({ kind: "arguments", json: call.json });
  }

  closeCall() {
    const { call } = this;
    this.call = undefined;
    if (call?.name === undefined) return;
    this.pieces.push({ kind: "call_end", name: call.name, json: call.json || "{}" });
  }

  // ---- values

  /** @param {string} text */
  say(text) {
    this.pieces.push({ kind: "text", text });
  }

  /** Reads the text that is said, piece by piece. @param {string} first */
  readSaid(first) {
    // Something else than a text is said as it stands.
    if (first !== '"') return this.readJson(first, (json) => this.say(json), this.afterValue);
    this.readLetters((letter) => this.say(letter), () => (this.state = this.afterValue));
  }

  /** Reads a short string as a whole. @param {(value: string) => void} then */
  readString(then) {
    let value = "";
    this.readLetters((letter) => (value += letter), () => then(value));
  }

  /** Reads the letters of a string whose quote is open. @param {(letter: string) => void} take @param {() => void} end */
  readLetters(take, end) {
    let escape = "";
    this.state = (letter) => {
      if (escape !== "") {
        escape += letter;
        if (escape[1] === "u" && escape.length < 6) return;
        take(escape[1] === "u" ? unicode(escape.slice(2)) : (ESCAPES[letter] ?? letter));
        escape = "";
      } else if (letter === "\\") escape = letter;
      else if (letter === '"') end();
      else take(letter);
    };
  }

  /** Passes a value of any kind through as it stands. @param {string} first @param {(json: string) => void} take @param {(letter: string) => void} next */
  readJson(first, take, next) {
    let depth = 0;
    let isString = false;
    let isEscaped = false;
    const isDone = (/** @type {string} */ letter) => !isString && depth === 0 && (letter === "," || letter === "}" || letter === "]");
    const pass = (/** @type {string} */ letter) => {
      if (isDone(letter)) {
        this.state = next;
        return this.state(letter);
      }
      take(letter);
      if (isEscaped) isEscaped = false;
      else if (isString) {
        if (letter === "\\") isEscaped = true;
        else if (letter === '"') isString = false;
      } else if (letter === '"') isString = true;
      else if (letter === "{" || letter === "[") depth++;
      else if (letter === "}" || letter === "]") depth--;
      else return;
      if (!isString && depth === 0 && !isEscaped) this.state = next;
    };
    this.state = pass;
    pass(first);
  }
}

/** @param {string} digits */
const unicode = (digits) => (/^[0-9a-fA-F]{4}$/.test(digits) ? String.fromCharCode(parseInt(digits, 16)) : `\\u${digits}`);
