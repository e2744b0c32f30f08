#!/usr/bin/env node
// @ts-check
// Makes the site: the pages of the repository as static files that any web host serves, at any path. `cargo xtask site` runs it.
//   node www/site/build.mjs OUT PACKAGE [--sizes FILE]

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, posix, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import MiniSearch from "minisearch";
import { textOfPage } from "../../tests/js/docs/blocks.mjs";
import { PAGES, ROOT, SIZES, addressOf } from "./pages.mjs";
import { programsAt, scriptsOf } from "./programs.mjs";
import { rendered } from "./render.mjs";
import { SEARCH } from "./search.js";
import { DEMO, VIEWER, contents, whole } from "./template.mjs";

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));
/** How the service worker of an earlier site begins; by it the folder is known. */
const MARK = "const SITE = ";

class Misuse extends Error {}

/** @param {string} out @param {string} pkg @param {string | undefined} sizes */
async function makeSite(out, pkg, sizes) {
  await clear(out);
  /** The contents of the site by address. @type {Map<string, Buffer>} */
  const files = new Map();
  const pages = await readPages(sizes);
  const titles = new Map(pages.map(({ page, title }) => [page, title]));
  for (const { page, html, sections, title, about, pictures } of pages) {
    const main = page === "README.md" ? DEMO + html : html;
    files.set(addressOf(page), Buffer.from(whole({ address: addressOf(page), title, about, main, script: "page", aside: contents(sections) }, titles)));
    files.set(page, Buffer.from(textOf(page, sizes)));
    for (const picture of pictures) files.set(picture, await readFile(join(ROOT, picture)));
  }
  const viewer = { address: "tape/index.html", title: "Look at a tape", main: VIEWER, script: "tape", connect: "'self' https: http:", about: "Shows a tape of turnwheel in the page, and sends nothing." };
  files.set(viewer.address, Buffer.from(whole(viewer, titles)));
  const programs = pages.flatMap((page) => [...page.programs.values()]);
  const runs = programs.filter(({ missing }) => missing === undefined);
  for (const [name, content] of await scriptsOf(pkg, runs)) files.set(`code/${name}`, content);
  files.set("search.json", Buffer.from(indexOf(pages)));
  files.set("style.css", await readFile(here("style.css")));
  files.set("icon.svg", await readFile(here("../demo/icon.svg")));
  files.set("llms.txt", await readFile(join(pkg, "llms.txt")));
  const kept = [...files.keys()].filter((name) => !name.endsWith(".md"));
  const site = { version: versionOf(files), files: kept, others: [...files.keys()].filter((name) => name.endsWith(".md")) };
  files.set("sw.js", Buffer.from(`${MARK}${JSON.stringify(site)};\n${await readFile(here("sw.js"))}`));
  for (const [name, content] of files) {
    await mkdir(dirname(join(out, name)), { recursive: true });
    await writeFile(join(out, name), content);
  }
  addDemo(join(out, "demo"), pkg);
  return { pages, programs, runs, files };
}

/** The demo as `cargo xtask demo --out` writes it. @param {string} out @param {string} pkg */
function addDemo(out, pkg) {
  const { status, stderr } = spawnSync(process.execPath, [here("../demo/folder.mjs"), out, pkg], { encoding: "utf8" });
  if (status !== 0) throw new Error(`the demo was not written: ${stderr}`);
}

/** @param {string | undefined} sizes */
async function readPages(sizes) {
  const pages = [];
  for (const page of PAGES) {
    const text = textOf(page, sizes);
    const programs = programsAt(page, text);
    const made = await rendered(page, text, programs, (target) => void unlinked.push(`${page}: ${target}`));
    const about = made.sections[0]?.text.trim().split(/(?<=[.:]) /)[0] ?? "";
    pages.push({ page, programs, about, ...made, pictures: made.pictures.map((name) => posix.join(posix.dirname(page), name)) });
  }
  return pages;
}

/** Links to files that the site does not have: without an address of the repository they are plain text. @type {string[]} */
const unlinked = [];

/** @param {string} page @param {string | undefined} sizes */
function textOf(page, sizes) {
  if (page !== SIZES) return textOfPage(page);
  const table = sizes === undefined ? "`cargo xtask site` measures them; this site was made without it." : `\`\`\`text\n${sizes.trimEnd()}\n\`\`\``;
  return `# Sizes\n\nThe bytes of each file of the package, and of what a page loads, raw and compressed. [Loading](docs/internals/loading.md) says
what is loaded when; [the benches](benches/RESULTS.md) say how fast it is.\n\n${table}\n`;
}

/** The index for the search, a document for each heading. @param {Awaited<ReturnType<typeof readPages>>} pages */
function indexOf(pages) {
  const search = new MiniSearch(SEARCH);
  for (const { page, title, sections } of pages) {
    search.addAll(sections.map(({ anchor, heading, text, depth }) => {
      const address = addressOf(page) + (depth === 1 ? "" : `#${anchor}`);
      return { id: `${page}#${anchor}`, address, title, heading, text, begin: text.trim().slice(0, 120) };
    }));
  }
  return JSON.stringify(search);
}

/** Takes away what an earlier run has written; anything else in the folder is not ours to touch. @param {string} out */
async function clear(out) {
  if (!existsSync(out) || (await readdir(out)).every((name) => name === ".git")) return void (await mkdir(out, { recursive: true }));
  const first = existsSync(join(out, "sw.js")) ? (String(await readFile(join(out, "sw.js"))).split("\n", 1)[0] ?? "") : "";
  if (!first.startsWith(MARK)) throw new Misuse(`${out} has other files in it; give an empty folder, or one that this command has written`);
  const { files, others } = JSON.parse(first.slice(MARK.length).replace(/;$/, ""));
  for (const name of [...files, ...others]) await rm(join(out, name), { force: true });
}

/** @param {Map<string, Buffer>} files */
function versionOf(files) {
  const hash = createHash("sha256");
  for (const [name, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) hash.update(`${name} ${content.length}\n`).update(content);
  return hash.digest("hex").slice(0, 16);
}

/** @param {Awaited<ReturnType<typeof makeSite>>} site @returns {string} */
function report({ pages, programs, runs, files }) {
  const bytes = [...files.values()].reduce((sum, { length }) => sum + length, 0);
  /** @type {Map<string, number>} */
  const reasons = new Map();
  for (const { missing } of programs) if (missing) reasons.set(missing, (reasons.get(missing) ?? 0) + 1);
  const why = [...reasons].map(([reason, count]) => `${count} for ${reason}`);
  return [
    `${pages.length} pages, ${files.size} files, ${Math.round(bytes / 1024)} KB before compression, and the demo`,
    `${programs.length} blocks of JavaScript: ${runs.length} with Run, ${programs.length - runs.length} without (${why.join(", ")})`,
    `${unlinked.length} links to files that are no page stand as text`,
  ].join("\n");
}

const { positionals: [out, pkg], values: { sizes } } = parseArgs({ allowPositionals: true, options: { sizes: { type: "string" } } });
if (out === undefined || pkg === undefined) {
  console.error("Usage: node build.mjs OUT PACKAGE [--sizes FILE]");
  process.exitCode = 2;
} else {
  try {
    console.log(`${resolve(out)}\n${report(await makeSite(resolve(out), resolve(pkg), sizes && String(await readFile(sizes))))}`);
  } catch (error) {
    if (!(error instanceof Misuse)) throw error;
    console.error(`error: ${error.message}`);
    process.exitCode = 1;
  }
}
