// @ts-check
// The pages of the site: which files of the repository they are made of, where they stand in the menu, and their addresses.

import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { INTERNALS, PAGES as GUIDE, ROOT } from "../../tests/js/docs/blocks.mjs";

export { ROOT };

const MORE = [
  "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "benches/RESULTS.md", "benches/PAGE.md", "benches/README.md", "benches/SOURCES.md",
  "benches/baseline.md", "tests/README.md", "web/README.md",
];

/** The page that is made of the build's table of sizes. */
export const SIZES = "sizes.md";

/** All pages, as paths of Markdown in the repository. */
export const PAGES = [...GUIDE, ...INTERNALS, ...MORE.filter((page) => existsSync(join(ROOT, page))), SIZES];

/** The menu: a heading, and the pages under it. A page of docs/ that no group names comes under the last of the guide. */
const GROUPS = /** @type {[string, string][]} */ ([
  ["Begin", "README docs/README docs/concepts docs/comparison docs/events docs/tools docs/errors docs/testing docs/cli"],
  ["Steer and limit", "docs/approval docs/steering docs/budgets docs/context docs/hooks docs/structured-output docs/sub-agents"],
  ["Keep and replay", "docs/checkpoints docs/tape docs/inspector docs/durable docs/fleet"],
  ["Models and hosts", "docs/providers docs/local docs/keys docs/hosts docs/cloudflare docs/executors"],
  ["Pages and servers", "docs/chat docs/react docs/remote docs/tabs docs/security"],
  ["With others", "docs/mcp docs/webmcp docs/ai-sdk docs/ag-ui docs/otel docs/migrate-from-ai-sdk docs/migrate-from-pi"],
]);

/** The menu, as headings and pages of Markdown. @returns {{ heading: string, pages: string[] }[]} */
export function menu() {
  const listed = GROUPS.map(([heading, names]) => ({ heading, pages: names.split(" ").map((name) => `${name}.md`).filter((page) => PAGES.includes(page)) }));
  const named = new Set(listed.flatMap(({ pages }) => pages));
  const starting = (/** @type {string} */ begin) => PAGES.filter((page) => page.startsWith(begin) && !named.has(page));
  const others = starting("docs/").filter((page) => !page.startsWith("docs/internals/"));
  return [
    ...listed,
    { heading: "Measured", pages: [SIZES, ...PAGES.filter((page) => page.startsWith("benches/"))] },
    { heading: "Examples", pages: starting("www/examples/") },
    { heading: "About it", pages: [...others, ...PAGES.filter((page) => /^[A-Z]+(?:_[A-Z]+)*\.md$/.test(page) && page !== "README.md"), "skills/turnwheel/SKILL.md"] },
    { heading: "Inside", pages: [...starting("docs/internals/"), ...PAGES.filter((page) => /^(?:tests|web)\//.test(page))] },
  ];
}

/** Where a page stands on the site: README.md of a folder is its index. @param {string} page */
export const addressOf = (page) => page.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");

/** How one address is reached from another, by a relative link. @param {string} from @param {string} to */
export const linkTo = (from, to) => posix.relative(posix.dirname(from), to) || posix.basename(to);

/**
 * The address that a link of a page leads to; `undefined` for a file that the site does not have.
 * @param {string} page @param {string} target @returns {string | undefined}
 */
export function ledTo(page, target) {
  if (/^[a-z]+:(?!:)/i.test(target)) return target;
  const [path = "", heading] = target.split("#");
  const hash = heading === undefined ? "" : `#${heading}`;
  if (path === "") return hash;
  const file = posix.join(posix.dirname(page), path).replace(/\/$/, "");
  const found = [file, `${file}/README.md`].find((name) => PAGES.includes(name));
  if (found) return linkTo(addressOf(page), addressOf(found)) + hash;
  return isPicture(file) ? linkTo(addressOf(page), file) : undefined;
}

/** @param {string} file */
export const isPicture = (file) => /\.(?:png|svg)$/.test(file);
