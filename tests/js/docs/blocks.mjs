// @ts-check
// The code of the pages. A block of js or ts may have a comment in HTML right above it, which readers do not see:
//
//   <!-- given: CODE -->         what the block takes for granted; runs before it
//   <!-- continues -->           the block goes on where the one above ends; `<!-- continues: CODE -->` with something between
//   <!-- in e2e -->              it needs packages that only `cargo xtask e2e` fetches; `<!-- in e2e, given: CODE -->`
//   <!-- not run: REASON -->     the last resort; blocks of jsx are compiled only
//
// and one right below it: <!-- then: CODE -->, which runs after it. What `// → text` says is printed: all of it, in
// order; `…` stands for anything.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** The pages that people read, as paths in the repository. */
export const PAGES = [
  "README.md", "SECURITY.md", "skills/turnwheel/SKILL.md",
  ...readdirSync(`${ROOT}docs`).filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`),
  ...readdirSync(`${ROOT}www/examples`).map((name) => `www/examples/${name}/README.md`).filter((page) => existsSync(`${ROOT}${page}`)),
];

/** The pages for those who change turnwheel. */
export const INTERNALS = readdirSync(`${ROOT}docs/internals`).toSorted().map((name) => `docs/internals/${name}`);

/** @param {string} page */
export const textOfPage = (page) => readFileSync(`${ROOT}${page}`, "utf8");

/**
 * @typedef {object} Block
 * @property {string} page
 * @property {number} line where its code begins
 * @property {string} language
 * @property {string} code
 * @property {string} given
 * @property {string} then
 * @property {boolean} continues
 * @property {boolean} inE2e
 * @property {string | undefined} notRun
 */

/** @param {string} page @param {string} [text] @returns {Block[]} */
export function blocksOf(page, text = textOfPage(page)) {
  return [...text.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map((match) => {
    const before = text.slice(0, match.index);
    // The last comment before it, with nothing between but an empty line.
    const start = before.lastIndexOf("<!--");
    const above = /^<!--([^]*?)-->\s*$/.exec(start < 0 ? "" : before.slice(start))?.[1]?.trim() ?? "";
    const below = /^\s*<!-- then:([^]*?)-->/.exec(text.slice(match.index + match[0].length))?.[1] ?? "";
    return {
      page, line: before.split("\n").length + 1, language: match[1] ?? "", code: match[2] ?? "",
      given: /^(?:in e2e, )?(?:given|continues):([^]*)$/.exec(above)?.[1] ?? "",
      then: below, continues: above.startsWith("continues"), inE2e: above.startsWith("in e2e"),
      notRun: /^not run: *(.*)/.exec(above)?.[1],
    };
  });
}

/**
 * Joins blocks that continue each other into one program.
 * @param {Block[]} blocks of one page and one language
 */
export function programsOf(blocks) {
  /** @type {{ name: string, page: string, line: number, inE2e: boolean, source: string, prints: string[] }[]} */
  const programs = [];
  for (const { page, line, code, given, then, continues, inE2e, notRun } of blocks) {
    if (notRun !== undefined) continue;
    const source = `${given}\n${code}${then}\n`;
    const prints = [...code.matchAll(/\/\/ → (.*)$/gm)].map((match) => match[1] ?? "");
    const last = programs.at(-1);
    if (continues && last) {
      last.source += source;
      last.prints.push(...prints);
    } else programs.push({ name: `${page}:${line}`, page, line, inE2e, source, prints });
  }
  return programs;
}
