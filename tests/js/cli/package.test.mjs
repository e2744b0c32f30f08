// @ts-check
// What the tarball has for readers: the docs, the skill, their index. How large it is, and what its commands load.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { emptyFolder, ROOT, run } from "./kit.mjs";

const PKG = join(ROOT, "pkg");
const text = (/** @type {string} */ file) => readFileSync(join(PKG, file), "utf8");
const [{ files, unpackedSize }] = JSON.parse(execFileSync("npm", ["pack", PKG, "--dry-run", "--json"], { cwd: emptyFolder(), encoding: "utf8" }));
/** @type {Set<string>} */
const paths = new Set(files.map((/** @type {any} */ { path }) => path));
// The pages of docs/internals are for those who change the package, and in the repository only.
const docs = readdirSync(join(ROOT, "docs")).filter((name) => name !== "internals").map((name) => `docs/${name}`);

test("the tarball has the docs, the skill, their index and the hashes, and has at most 6 MB", () => {
  for (const name of [...docs, "skills/turnwheel/SKILL.md", "llms.txt", "SHA256SUMS", "cli.mjs", "cli/chat.mjs", "cli/inspect-page.mjs"]) assert.ok(paths.has(name), name);
  assert.ok(![...paths].some((path) => path.startsWith("docs/internals/")));
  assert.ok(unpackedSize <= 6_000_000, `${unpackedSize} bytes`);
});

test("no link of the docs in the tarball leads to a file that is not in it", () => {
  let count = 0;
  for (const page of [...paths].filter((path) => /^(docs|skills)\/.*\.md$|^llms\.txt$/.test(path))) {
    const plain = text(page).replace(/^```[^]*?^```$/gm, "").replace(/`[^`\n]*`/g, "");
    for (const [, target = ""] of plain.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:|^#/.test(target)) continue;
      count += 1;
      assert.ok(paths.has(normalize(join(dirname(page), target.split("#")[0] ?? ""))), `${page}: ${target}`);
    }
  }
  assert.ok(count > 100, `${count} links`);
});

test("the index has each page once, a line for each", () => {
  const listed = [...text("llms.txt").matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S.+$/gm)].map(([, path = ""]) => path);
  assert.equal(new Set(listed).size, listed.length);
  assert.deepEqual(listed.filter((path) => path.startsWith("docs/")).toSorted(), docs.filter((path) => path.endsWith(".md") && path !== "docs/README.md").toSorted());
  assert.ok(listed.includes("skills/turnwheel/SKILL.md"));
  assert.match(text("llms.txt"), /^# turnwheel\n\n> \S.+\n\n/);
});

test("the skill is short, says what it is for, and names pages and commands that there are", () => {
  const skill = text("skills/turnwheel/SKILL.md");
  assert.match(skill, /^---\nname: turnwheel\ndescription: .{40,1024}\n---\n/);
  assert.ok(skill.split("\n").length <= 200);
  for (const [, name = ""] of skill.matchAll(/(?:docs\/|\| |, )([a-z-]+\.md)/g)) assert.ok(existsSync(join(ROOT, "docs", name)), name);
});

test("the commands are listed, an unknown one is misuse, and help is none", async () => {
  const { code, stdout } = await run(["--help"]);
  assert.equal(code, 0);
  for (const name of ["chat", "inspect", "smoke", "tape", "tape diff", "verify"]) assert.match(stdout, new RegExp(`^npx turnwheel ${name}$`, "m"));
  const unknown = await run(["chatt"]);
  assert.deepEqual([unknown.code, unknown.stdout], [2, ""]);
  assert.match(unknown.stderr, /^there is no command "chatt"; there are chat, inspect, smoke, tape, verify\n/);
  assert.equal((await run([])).code, 2);
  for (const name of ["chat", "inspect", "smoke", "tape", "verify"]) assert.match((await run([name, "--help"])).stdout, new RegExp(`^Usage: npx turnwheel ${name} `), name);
});

test("what the commands load is no part of an app: nothing of the package imports it", () => {
  for (const name of paths) if (/^[^/]+\.js$|^entry\//.test(name)) assert.doesNotMatch(text(name), /["'/]cli(\/|\.mjs)/, name);
});
