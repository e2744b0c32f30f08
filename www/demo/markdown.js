// @ts-check
// Renders a subset of Markdown: paragraphs, headings, lists, code, bold, italic. Made for growing text: what
// comes before the last blank line is final and is not touched again.

import { h } from "./dom.js";

export class MarkdownView {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.settled = 0;
    /** @type {HTMLElement[]} */
    this.tail = [];
  }

  /**
   * Shows the text, which begins with what the previous `update` has shown.
   *
   * @param {string} text
   * @param {boolean} growing whether the text still grows: then a `**` without its end starts bold text
   */
  update(text, growing) {
    const boundary = this.settled + lastBoundary(text.slice(this.settled));
    for (const node of this.tail) node.remove();
    if (boundary > this.settled) this.root.append(...blocks(text.slice(this.settled, boundary), false));
    this.settled = boundary;
    this.tail = blocks(text.slice(boundary), growing);
    this.root.append(...this.tail);
  }

  clear() {
    this.root.replaceChildren();
    this.settled = 0;
    this.tail = [];
  }
}

/** Returns where the last blank line outside a code fence ends. @param {string} text */
function lastBoundary(text) {
  let fenced = false;
  let boundary = 0;
  let at = 0;
  for (const line of text.split("\n").slice(0, -1)) {
    at += line.length + 1;
    if (/^\s*```/.test(line)) fenced = !fenced;
    else if (!fenced && !line.trim()) boundary = at;
  }
  return boundary;
}

/** @param {string} text @param {boolean} growing @returns {HTMLElement[]} */
function blocks(text, growing) {
  const lines = text.split("\n");
  /** @type {HTMLElement[]} */
  const made = [];
  while (lines.length > 0) {
    const line = lines[0] ?? "";
    if (!line.trim()) lines.shift();
    else if (/^\s*```/.test(line)) made.push(fence(lines));
    else if (/^#{1,6}\s/.test(line)) made.push(h("p", { class: "heading" }, ...inline((lines.shift() ?? "").replace(/^#+\s+/, ""), growing)));
    else if (itemOf(line)) made.push(list(lines, growing));
    else made.push(paragraph(lines, growing));
  }
  return made;
}

/** @param {string[]} lines */
function fence(lines) {
  lines.shift();
  const code = [];
  while (lines.length > 0 && !/^\s*```/.test(lines[0] ?? "")) code.push(lines.shift());
  lines.shift();
  return h("pre", { tabindex: 0, "aria-label": "Code" }, h("code", {}, code.join("\n")));
}

/** @param {string} line */
function itemOf(line) {
  const found = /^\s*(?:[-*•]|(\d{1,4})[.)])\s+(.*)$/.exec(line);
  return found && { number: found[1], text: found[2] ?? "" };
}

/** @param {string[]} lines @param {boolean} growing */
function list(lines, growing) {
  const { number } = itemOf(lines[0] ?? "") ?? {};
  const items = [];
  for (let item = itemOf(lines[0] ?? ""); item && Boolean(item.number) === Boolean(number); item = itemOf(lines[0] ?? "")) {
    lines.shift();
    let text = item.text;
    while (/^\s{2,}\S/.test(lines[0] ?? "") && !itemOf(lines[0] ?? "")) text += `\n${lines.shift()?.trim()}`;
    items.push(h("li", {}, ...inline(text, growing)));
  }
  return number === undefined ? h("ul", {}, ...items) : h("ol", { start: number }, ...items);
}

/** @param {string[]} lines @param {boolean} growing */
function paragraph(lines, growing) {
  const text = [lines.shift()];
  while (lines.length > 0 && (lines[0] ?? "").trim() && !/^\s*```|^#{1,6}\s/.test(lines[0] ?? "") && !itemOf(lines[0] ?? "")) text.push(lines.shift());
  return h("p", {}, ...inline(text.join("\n"), growing));
}

/** @param {string} text @param {boolean} growing @returns {(Node | string)[]} */
function inline(text, growing) {
  const end = growing ? "|$" : "";
  const pattern = new RegExp(`\`([^\`]+)(?:\`${end})|\\*\\*(\\S(?:[^*]|\\*(?!\\*))*?)(?:\\*\\*${end})|(?<![\\w*])\\*(?![*\\s])([^*\\n]+?)\\*(?!\\w)|\\n`, "g");
  /** @type {(Node | string)[]} */
  const made = [];
  let at = 0;
  for (const found of text.matchAll(pattern)) {
    made.push(text.slice(at, found.index));
    at = found.index + found[0].length;
    const [, code, bold, italic] = found;
    if (code !== undefined) made.push(h("code", {}, code));
    else if (bold !== undefined) made.push(h("strong", {}, bold));
    else if (italic !== undefined) made.push(h("em", {}, italic));
    else made.push(h("br"));
  }
  made.push(text.slice(at));
  return made;
}
