// @ts-check
// The pages for those who change turnwheel are true to the code: every path and every name in them is there, and their counts are
// those of the enums. README and these pages keep to their lengths and to plain words; prose.txt has the words that are not used.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "esbuild";
import { INTERNALS, ROOT, blocksOf, textOfPage } from "./blocks.mjs";

const OURS = [...INTERNALS, "CONTRIBUTING.md"];
const read = (/** @type {string} */ path) => readFileSync(join(ROOT, path), "utf8");
const linesOf = (/** @type {string} */ page) => textOfPage(page).trimEnd().split("\n").length;
/** A page without its blocks of code. @param {string} page */
const prose = (page) => textOfPage(page).replace(/^```[^]*?^```$/gm, "");
/** What stands in backticks. @param {string} page */
const names = (page) => [...prose(page).matchAll(/`([^`\n]+)`/g)].map(([, name = ""]) => name);

test("there are eight pages, each begins with a drawing, and all keep to their length", () => {
  assert.deepEqual(INTERNALS.map((page) => page.replace(/.*\/|\.md/g, "")), ["boundary", "build", "checkpoints-and-journal", "decisions", "loading", "loop", "stores-and-leases", "wires"]);
  for (const page of INTERNALS) {
    assert.ok(linesOf(page) <= 150, `${page} has ${linesOf(page)} lines, at most 150`);
    assert.match(textOfPage(page), /^# .+\n\n[A-Z].+\n\n```text\n/, `${page} begins with a heading, a sentence and a drawing`);
  }
  assert.ok(linesOf("README.md") <= 200, `README.md has ${linesOf("README.md")} lines, at most 200`);
});

test("every block has a language", () => {
  for (const page of OURS) assert.equal(textOfPage(page).match(/^\s*```/gm)?.length ?? 0, blocksOf(page).length * 2, page);
});

/** The files in a folder, without those that are made: other tests write there at the same time. @param {string} folder @returns {string[]} */
function filesIn(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (!entry.isDirectory()) return [path];
    return /^(?:target|node_modules|out)$/.test(entry.name) ? [] : filesIn(path);
  });
}

/** The sources, with their paths. */
const sources = ["src", "web/src", "www/npm", "xtask", "tests"]
  .flatMap((folder) => filesIn(folder))
  .filter((path) => /\.(?:rs|js|mjs|ts)$/.test(path) && !path.startsWith("tests/js/docs"))
  .map((path) => ({ path, text: read(path) }));
const rust = sources.filter(({ path }) => path.endsWith(".rs"));

/** Whether Rust declares it: `A::b` is a member of an enum, a struct, a trait or a module, or a function of it. @param {string} name */
function isDeclared(name) {
  const [owner = "", member = ""] = name.replace(/\(.*/, "").split("::").slice(-2);
  const declares = new RegExp(`\\b(?:enum|struct|trait|type|mod) ${owner}\\b|\\bimpl\\b[^{;]*\\b${owner}\\b`);
  const has = new RegExp(`\\b${member}\\b`);
  return rust.some(({ path, text }) => (declares.test(text) || path.endsWith(`/${owner}.rs`) || path.endsWith(`/${owner}/mod.rs`)) && has.test(text));
}

const TOP = /^(?:src|web|www|tests|xtask|benches|docs|examples|skills|\.ci|\.github)(?:\/|$)/;
const isPath = (/** @type {string} */ name) => TOP.test(name) && !/\s/.test(name);

test("every path and every name of code in the pages is there", () => {
  /** The words in the sources that can only be names: they have an underscore, or a capital letter inside. */
  const words = new Set(sources.flatMap(({ text }) => text.match(/\b[a-z]+(?:_[a-z]+)+\b|\b[A-Za-z]?[a-z]+[A-Z]\w*\b/g) ?? []));
  let count = 0;
  for (const page of [...OURS, "README.md"]) {
    for (const name of names(page)) {
      if (isPath(name)) assert.ok(existsSync(join(ROOT, name)), `${page}: there is no ${name}`);
      else if (/^\w+(?:::\w+)+/.test(name)) assert.ok(isDeclared(name), `${page}: ${name} is declared nowhere`);
      else if (OURS.includes(page) && /^(?:[a-z]+(?:_[a-z]+)+|[A-Za-z]?[a-z]+[A-Z]\w*)(?:\(\))?$/.test(name)) assert.ok(words.has(name.replace("()", "")), `${page}: nothing is called ${name}`);
      else continue;
      count += 1;
    }
  }
  assert.ok(count > 100, `${count} names`);
  assert.ok(isDeclared("LoopState::step") && !isDeclared("LoopState::leap") && !isDeclared("LopeState::step"));
  assert.ok(words.has("poll_output") && !words.has("poll_input"));
});

test("the commands in the pages are those of xtask, and their parts of a test run those of its table", () => {
  const commands = new Set(["help", ...[...read("xtask/src/main.rs").matchAll(/name: "([\w-]+)"/g)].map(([, name]) => name)]);
  const parts = new Set(["help", ...read("xtask/src/test/parts.rs").matchAll(/name: "([\w-]+)"/g)].map(([, name]) => name));
  for (const page of [...OURS, "README.md"]) {
    for (const [, command = "", rest = ""] of textOfPage(page).matchAll(/cargo xtask ([a-z][\w-]*)((?: [a-z][\w-]*)*)/g)) {
      assert.ok(commands.has(command), `${page}: there is no cargo xtask ${command}`);
      if (command === "test" && names(page).includes(`cargo xtask test${rest}`)) for (const part of rest.trim().split(" ").filter(Boolean)) assert.ok(parts.has(part), `${page}: there is no part ${part}`);
    }
  }
});

/** The members of an enum. @param {string} path @param {string} name */
function membersOf(path, name) {
  const body = new RegExp(`enum ${name} \\{\\n([^]*?)^\\}`, "m").exec(read(path))?.[1] ?? "";
  return [...body.matchAll(/^ {4}(\w+)(?: \{|\(|,)/gm)].map(([, member = ""]) => member);
}

const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"];
const TENS = [...NUMBERS, ...["twenty", "thirty", "forty"].flatMap((ten) => [ten, ...NUMBERS.slice(1, 10).map((one) => `${ten}-${one}`)])];
/** The number that a word means. @param {string} word */
const numberOf = (word) => {
  const at = TENS.indexOf(word);
  return at < NUMBERS.length ? at : 20 + at - NUMBERS.length;
};

test("the counts of phases, effects and kinds of events are those of the enums", () => {
  const phases = membersOf("src/machine/phase.rs", "Phase");
  const effects = membersOf("src/machine/output.rs", "Effect");
  const events = membersOf("src/words/event/mod.rs", "AgentEvent");
  const counts = { "phases": phases, "effects": effects, "kinds of events": events };
  assert.deepEqual([numberOf("nine"), numberOf("thirty"), numberOf("thirty-one"), numberOf("few")], [9, 30, 31, -1]);
  const found = new Set();
  for (const page of [...OURS, "README.md", "docs/specification.md", "src/machine/mod.rs"]) {
    for (const [, word = "", kind = ""] of read(page).matchAll(/(?<!\| )\b([a-z]+(?:-[a-z]+)?) (phases|effects|kinds of events)\b/g)) {
      const number = numberOf(word);
      if (number < 0 || (page === "docs/specification.md" && word === "eleven")) continue;
      assert.equal(number, counts[/** @type {keyof typeof counts} */ (kind)].length, `${page}: ${word} ${kind}`);
      found.add(`${page}: ${kind}`);
    }
  }
  for (const kind of Object.keys(counts)) assert.ok(found.has(`docs/internals/loop.md: ${kind}`), `docs/internals/loop.md does not count the ${kind}`);
  // The further kinds of events: those that the documents do not have.
  const further = /The further ([a-z-]+): (.*?) \|/.exec(read("docs/specification.md"));
  assert.deepEqual([numberOf(further?.[1] ?? ""), further?.[2]?.split(",").length], [events.length - 11, events.length - 11]);

  const loop = textOfPage("docs/internals/loop.md");
  assert.deepEqual([...loop.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name).toSorted(), phases.toSorted());
  const listed = names("docs/internals/loop.md").filter((name) => effects.includes(name));
  assert.deepEqual([...new Set(listed)].toSorted(), effects.toSorted());
  // The layers stand in the order that tests/layers.rs keeps.
  const layers = [...read("tests/layers.rs").matchAll(/Layer \{ name: "(\w+)"/g)].map(([, name]) => name);
  assert.deepEqual(/Each may use those before it: ([^.]*)\./.exec(textOfPage("docs/internals/build.md"))?.[1]?.match(/\w+/g), layers);
});

test("the sizes are within the budgets, and not far below them", () => {
  const budget = (/** @type {string} */ name) => Number(new RegExp(`^${name} = (\\d+)`, "m").exec(read("wasm-pack.toml"))?.[1]) / 1000;
  const told = (/** @type {string} */ page, /** @type {RegExp} */ at) => Number(at.exec(textOfPage(page))?.[1]);
  for (const [name, number] of Object.entries({ first: told("docs/internals/loading.md", /\*\*first\*\*.*\| ([\d.]+) KB \|/), everything: told("docs/internals/loading.md", /\*\*everything\*\*.*\| ([\d.]+) KB \|/) })) {
    assert.ok(number <= budget(name) && number > budget(name) * 0.98, `${name}: ${number} KB, the budget is ${budget(name)}`);
  }
  for (const [name, number] of Object.entries({ first: told("README.md", /(\d+) KB before its first request/), everything: told("README.md", /(\d+) KB in all/) })) {
    assert.ok(Math.abs(number - budget(name)) <= 2, `README says ${number} KB, the budget is ${budget(name)}`);
  }
});

test("turnwheel/remote alone is as large as README says", async () => {
  const { outputFiles } = await build({ stdin: { contents: 'export * from "./remote.js";', resolveDir: join(ROOT, "pkg") }, bundle: true, minify: true, splitting: true, format: "esm", outdir: "out", write: false });
  const bytes = outputFiles.reduce((sum, { contents }) => sum + brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length, 0);
  const told = Number(/needs only `turnwheel\/remote`: (\d+) KB/.exec(textOfPage("README.md"))?.[1]);
  assert.ok(Math.abs(told - bytes / 1000) <= 1, `README says ${told} KB, it has ${bytes} bytes`);
  assert.ok(outputFiles.every(({ path }) => !path.endsWith(".wasm")));
});

test("the fractions of CPU time in README are those of the table", () => {
  const [head = [], ...rows] = [...read("benches/RESULTS.md").split("## On Node 24")[0]?.matchAll(/^\|.*\|$/gm) ?? []].map(([row]) => row.split("|").slice(1, -1).map((cell) => cell.trim()));
  /** What an engine took in a cell. @param {string} cell @param {string} engine */
  const taken = (cell, engine) => Number(/[\d.]+/.exec(rows.find(([name = ""]) => name.startsWith(`${cell}:`))?.[head.indexOf(engine)] ?? "")?.[0]);
  const FRACTIONS = { "a quarter": 4, "a sixth": 6, "an eighth": 8, "a tenth": 10, "a sixteenth": 16 };
  const text = textOfPage("README.md").replace(/\s+/g, " ");
  const [, ...event] = /per streamed event turnwheel takes (an? \w+) of what pi takes, (an? \w+) of TanStack AI and (an? \w+) of the AI SDK/.exec(text) ?? [];
  const [, ...turn] = /Per tool turn it takes (an? \w+), (an? \w+) and (an? \w+)\./.exec(text) ?? [];
  for (const [cell, words] of /** @type {[string, string[]][]} */ ([["W1-event", event], ["W2-50", turn]])) {
    assert.equal(words.length, 3, cell);
    for (const [at, engine] of ["pi", "tanstack", "ai-sdk"].entries()) {
      const ratio = taken(cell, "turnwheel") / taken(cell, engine);
      const told = 1 / FRACTIONS[/** @type {keyof typeof FRACTIONS} */ (words[at])];
      assert.ok(Math.abs(told / ratio - 1) < 0.15, `${cell}: ${words[at]} of ${engine}, measured ${ratio}`);
    }
  }
  // And where another one is faster, README says so.
  const peers = head.slice(5).map((name) => taken("W3-100", name)).filter((time) => time > 0);
  assert.match(text, /With 100 tool calls at once, the fastest peer is a tenth faster/);
  assert.ok(Math.abs(1 - Math.min(...peers) / taken("W3-100", "turnwheel") - 0.1) < 0.03, `${Math.min(...peers)}`);
});

/** The sentences of a page, outside of tables, code and headings. @param {string} page */
function sentencesOf(page) {
  const text = prose(page).replace(/<!--[^]*?-->/g, "").replace(/^(?:\||#|!\[).*$/gm, "\n").replace(/\]\([^)]*\)/g, "]").replace(/`[^`\n]*`/g, "x");
  return text.split(/\n\s*\n|^\s*(?:[-*>]|\d+\.) /m).flatMap((paragraph) => paragraph.replace(/\s+/g, " ").split(/(?<=[.!?:;])[)*"]* /));
}

test("the prose has no sentence over 30 words and none of the words in prose.txt", () => {
  const forbidden = read("tests/js/docs/prose.txt").split("\n").filter((line) => line && !line.startsWith("#")).map((line) => line.split(" → "));
  assert.ok(forbidden.length > 10);
  const faults = [];
  for (const page of [...OURS, "README.md"]) {
    for (const [word = "", better] of forbidden) {
      for (const [line] of prose(page).matchAll(new RegExp(`^.*\\b${word}\\b.*$`, "gmi"))) faults.push(`${page}: say ${better}, not "${word}": ${line}`);
    }
    for (const sentence of sentencesOf(page)) {
      const words = sentence.split(" ").filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
      if (words > 30) faults.push(`${page}: ${words} words: ${sentence}`);
    }
  }
  assert.deepEqual(faults, []);
});
