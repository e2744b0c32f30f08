// @ts-check
// The site as files: pages, links, the index of the search, the viewer of tapes. `cargo xtask e2e site` runs its blocks in browsers.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { after, before, test } from "node:test";
import MiniSearch from "minisearch";
import { SEARCH } from "../../../www/site/search.js";
import { makeSite } from "./site.mjs";

/** @type {string} */
let folder;
let said = "";
before(() => {
  folder = mkdtempSync(join(tmpdir(), "turnwheel-site-"));
  const { status, said: printed } = makeSite(folder);
  assert.equal(status, 0, printed);
  said = printed;
});
after(() => rmSync(folder, { recursive: true, force: true }));

const pages = () => readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html") && !name.startsWith("demo/"));
/** @param {string} name */
const read = (name) => readFileSync(join(folder, name), "utf8");

test("each page has a title, a policy and relative links that lead to a file of the site", () => {
  const broken = [];
  for (const page of pages()) {
    const html = read(page);
    assert.match(html, /<title>[^<]+<\/title>/, page);
    assert.match(html, /http-equiv="Content-Security-Policy"/, page);
    for (const [, link = ""] of html.matchAll(/ (?:href|src)="([^"]+)"/g)) {
      if (/^(?:https?:|mailto:|data:|#)/.test(link)) continue;
      const path = resolve(folder, dirname(page), decodeURIComponent(link.replace(/[?#].*$/, "")) || ".");
      const isInside = !relative(folder, path).startsWith("..");
      if (!isInside || !(existsSync(path) && (link.replace(/[?#].*$/, "").endsWith("/") ? existsSync(join(path, "index.html")) : true))) broken.push(`${page}: ${link}`);
    }
  }
  assert.deepEqual(broken, []);
});

test("no page loads a script, a style or a picture from elsewhere", () => {
  for (const page of pages()) assert.deepEqual([...read(page).matchAll(/<(?:script|link|img|iframe)[^>]* (?:src|href)="https?:[^"]*"/g)].map(([tag]) => tag), [], page);
});

test("the search finds pages by the words that people use", () => {
  const index = MiniSearch.loadJSON(read("search.json"), /** @type {any} */ (SEARCH));
  for (const [words, page] of [["approve tool", "docs/approval.html"], ["checkpoint", "docs/checkpoints.html"], ["cloudflare durable object", "docs/cloudflare.html"], ["budget", "docs/budgets.html"]]) {
    const found = index.search(words).slice(0, 8).map(({ address }) => address.replace(/#.*$/, ""));
    assert.ok(found.includes(page), `${words}: ${found.join(", ")}`);
  }
});

test("most blocks have Run, and the build says why the others have none", () => {
  const [, blocks, runs] = /(\d+) blocks of JavaScript: (\d+) with Run/.exec(said) ?? [];
  assert.ok(Number(runs) > 100 && Number(blocks) - Number(runs) < 25, said);
});

test("the viewer of tapes and the demo are there", () => {
  for (const file of ["tape/index.html", "demo/index.html", "sw.js", "llms.txt"]) assert.ok(existsSync(join(folder, file)), file);
});
