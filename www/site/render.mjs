// @ts-check
// A page of Markdown as HTML, with its parts for the search.

import { highlightText } from "@speed-highlight/core";
import { Marked } from "marked";
import { blocksOf } from "../../tests/js/docs/blocks.mjs";
import { addressOf, isPicture, ledTo } from "./pages.mjs";

/** The highlighter's names for the languages of the pages. Any other language is shown plain. @type {Record<string, any>} */
const LANGUAGES = { js: "js", ts: "ts", jsx: "js", rust: "rs", sh: "bash", html: "html", toml: "toml", json: "json", jsonc: "json" };

/** @param {string} text */
export const escaped = (text) => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** The anchor that GitHub gives a heading. @param {string} heading */
const anchorOf = (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");

/** The words of Markdown, without its marks. @param {string} text */
const wordsOf = (text) => text.replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*|]|^#+ |^ *[|:-]+ *$|^- |-{3,}|<!--[^]*?-->/gm, " ").replace(/\s+/g, " ").trim();

/**
 * @typedef {object} Section a heading with what stands under it
 * @property {string} anchor
 * @property {string} heading
 * @property {string} text
 * @property {number} depth
 */

/**
 * @param {string} page its path in the repository
 * @param {string} text
 * @param {Map<number, import("./programs.mjs").Program>} programs by the lines of their blocks
 * @param {(name: string) => void} missing is called for a link that leads to no page
 */
export async function rendered(page, text, programs, missing) {
  const blocks = blocksOf(page, text);
  const marked = new Marked();
  const tokens = marked.lexer(text.replace(/^---\n[^]*?\n---\n/, ""));
  /** @type {string[]} */
  const codes = [];
  for (const token of tokens) {
    if (token.type !== "code" || !token.lang) continue;
    const block = blocks[codes.length];
    if (block?.language !== token.lang) throw new Error(`${page}: a block of ${token.lang} is not where tests/js/docs/blocks.mjs finds it`);
    const name = LANGUAGES[token.lang];
    codes.push(codeBlock(name ? await highlightText(token.text, name, false) : escaped(token.text), token.lang, programs.get(block.line)));
  }
  if (codes.length !== blocks.length) throw new Error(`${page}: ${blocks.length} blocks, ${codes.length} of them at the begin of a line`);
  /** @type {Section[]} */
  const sections = [];
  /** @type {Map<string, number>} */
  const seen = new Map();
  for (const token of tokens) {
    if (token.type !== "heading") {
      const last = sections.at(-1);
      if (last && token.type !== "code") last.text += ` ${wordsOf(token.raw)}`;
      continue;
    }
    const anchor = anchorOf(wordsOf(token.text));
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    sections.push({ anchor: count ? `${anchor}-${count}` : anchor, heading: wordsOf(token.text), text: "", depth: token.depth });
  }
  let at = 0;
  let code = 0;
  marked.use({ renderer: {
    heading(token) {
      const section = sections[at++];
      return `<h${token.depth} id="${section?.anchor}">${this.parser.parseInline(token.tokens)} <a class="anchor" href="#${section?.anchor}" aria-label="Link to “${escaped(section?.heading ?? "")}”">#</a></h${token.depth}>\n`;
    },
    code: (token) => (token.lang ? codes[code++] ?? "" : `<pre tabindex="0"><code>${escaped(token.text)}</code></pre>`),
    table(token) {
      const row = (/** @type {string} */ tag, /** @type {any[]} */ cells) => `<tr>${cells.map((cell) => `<${tag}${cell.align ? ` class="${cell.align}"` : ""}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("")}</tr>`;
      const head = token.header.some((cell) => cell.text) ? `<thead>${row("th", token.header)}</thead>` : "";
      return `<div class="table" tabindex="0" role="group" aria-label="Table"><table>${head}<tbody>${token.rows.map((cells) => row("td", cells)).join("")}</tbody></table></div>`;
    },
    link(token) {
      const inner = this.parser.parseInline(token.tokens);
      const address = ledTo(page, token.href);
      if (address !== undefined) return `<a href="${escaped(address)}">${inner}</a>`;
      missing(token.href);
      return inner;
    },
    image: (token) => `<img src="${escaped(ledTo(page, token.href) ?? token.href)}" alt="${escaped(token.text)}" loading="lazy">`,
    // The pages have comments, and no other HTML.
    html: () => "",
  } });
  const pictures = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target).filter((target) => isPicture(target) && !/^\w+:/.test(target));
  return { html: marked.parser(tokens), sections, pictures, title: sections[0]?.heading ?? addressOf(page) };
}

/** @param {string} code @param {string} language @param {import("./programs.mjs").Program} [program] */
function codeBlock(code, language, program) {
  const block = `<pre tabindex="0" class="${language}"><code>${code}</code></pre>`;
  if (!program || program.missing) return block;
  return `<div class="block">${block}<button type="button" class="run" data-program="${program.name}">Run</button><output hidden></output></div>`;
}
