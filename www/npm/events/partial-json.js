// @ts-check
// A JSON value that grows while its text arrives. Each character is read once; the value is one live object.

/**
 * Builds a JSON value from pieces of its text. At the first character that is not JSON it stops; what was
 * built stays.
 */
export class PartialJson {
  constructor() {
    /** @type {any} */
    this.value = undefined;
    /** Open containers, innermost last. @type {{ node: any, key: string | number, wantKey: boolean }[]} */
    this.stack = [];
    /** What is being read: nothing, a string, a key, or a literal. */
    this.mode = "";
    this.token = "";
    this.escape = "";
    this.broken = false;
  }

  /** @param {string} text */
  feed(text) {
    let i = 0;
    while (i < text.length && !this.broken) i = this.mode === "string" || this.mode === "key" ? this.#string(text, i) : this.#plain(text, i);
    if (this.mode === "string") this.#put(this.token);
  }

  /** @param {string} text @param {number} i */
  #string(text, i) {
    if (this.escape) return this.#escaped(text, i);
    let end = i;
    while (end < text.length && text[end] !== '"' && text[end] !== "\\") end++;
    this.token += text.slice(i, end);
    if (end === text.length) return end;
    if (text[end] === "\\") this.escape = "\\";
    else this.#closeString();
    return end + 1;
  }

  /** @param {string} text @param {number} i */
  #escaped(text, i) {
    this.escape += text[i];
    const kind = this.escape[1];
    if (kind === "u" && this.escape.length < 6) return i + 1;
    this.token += kind === "u" ? String.fromCharCode(parseInt(this.escape.slice(2), 16)) : (ESCAPES[kind] ?? kind);
    this.escape = "";
    return i + 1;
  }

  #closeString() {
    const top = this.stack.at(-1);
    if (this.mode === "key" && top) {
      top.key = this.token;
      top.wantKey = false;
    } else this.#put(this.token);
    this.mode = "";
    this.token = "";
  }

  /** @param {string} text @param {number} i */
  #plain(text, i) {
    const character = text[i];
    if (this.mode === "literal") {
      if (!/[\s,\]}]/.test(character)) {
        this.token += character;
        return i + 1;
      }
      this.#closeLiteral();
      return i;
    }
    const top = this.stack.at(-1);
    if (character === "{" || character === "[") this.#open(character === "{" ? {} : []);
    else if (character === "}" || character === "]") this.stack.pop();
    else if (character === '"') this.mode = top?.wantKey ? "key" : "string";
    else if (character === ",") {
      if (!top) this.broken = true;
      else if (Array.isArray(top.node)) top.key = Number(top.key) + 1;
      else top.wantKey = true;
    } else if (!/[\s:]/.test(character)) {
      this.mode = "literal";
      this.token = character;
    }
    return i + 1;
  }

  #closeLiteral() {
    this.mode = "";
    const token = this.token;
    this.token = "";
    try {
      this.#put(JSON.parse(token));
    } catch {
      this.broken = true;
    }
  }

  /** @param {any} node */
  #open(node) {
    this.#put(node);
    this.stack.push({ node, key: 0, wantKey: !Array.isArray(node) });
  }

  /** @param {any} value */
  #put(value) {
    const top = this.stack.at(-1);
    if (!top) this.value = value;
    // The call runs without it.
    else if (top.key !== "__proto__") top.node[top.key] = value;
  }
}

/** @type {Record<string, string>} */
const ESCAPES = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f" };

/**
 * Returns an immutable snapshot of the value: open containers are copied, complete ones shared.
 * @param {PartialJson} json @returns {any}
 */
export function snapshotOf({ stack, value }) {
  /** @type {any} */
  let copy;
  for (const { node, key } of stack.toReversed()) {
    const next = Array.isArray(node) ? [...node] : { ...node };
    if (copy !== undefined && key !== "__proto__") next[key] = copy;
    copy = next;
  }
  return copy ?? value;
}
