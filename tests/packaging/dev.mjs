// @ts-check
// `cargo xtask build --dev`: the quick package works, and one that goes elsewhere leaves pkg/ alone.
// node --test tests/packaging/dev.mjs

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const OUT = join(ROOT, "target/xtask/dev-package");

const build = (/** @type {string[]} */ ...words) => spawnSync("cargo", ["xtask", "build", ...words], { cwd: ROOT, encoding: "utf8" });

/** What is in a folder. @param {string} folder */
function digest(folder) {
  const hash = createHash("sha256");
  const files = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
  for (const path of files.filter((file) => file.isFile()).map((file) => join(file.parentPath ?? file.path, file.name)).sort()) hash.update(path).update(readFileSync(path));
  return hash.digest("hex");
}

const before = digest(join(ROOT, "pkg"));

test("an unoptimised package is built into a folder of its own", { timeout: 600_000 }, () => {
  const { status, stdout, stderr } = build("--dev", "--out", OUT);
  assert.equal(status, 0, stderr.slice(-4000));
  assert.match(stdout, /dev-package is there, not optimised/);
  assert.equal(digest(join(ROOT, "pkg")), before, "pkg/ is what it was");
});

test("it runs the loop, with a tool", async () => {
  const { Agent, scripted, tool } = await import(pathToFileURL(join(OUT, "entry/node.js")).href);
  const add = tool({
    name: "add", description: "Adds two numbers.",
    parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
    execute: (/** @type {{ a: number, b: number }} */ { a, b }) => String(a + b),
  });
  const model = scripted([{ toolCalls: [{ toolName: "add", arguments: { a: 17, b: 25 } }] }, "That makes 42."]);
  const run = new Agent({ model, tools: [add] }).prompt("What is 17 + 25?");
  const events = [];
  for await (const event of run) events.push(event.type);
  assert.equal((await run.result).text, "That makes 42.");
  assert.ok(events.includes("tool_execution_end"), events.join(", "));
});

test("a folder with files of somebody else is not built into", () => {
  const folder = mkdtempSync(join(tmpdir(), "dev-package-"));
  try {
    writeFileSync(join(folder, "thesis.txt"), "all of it");
    const { status, stderr } = build("--dev", "--out", folder);
    assert.equal(status, 1);
    assert.match(stderr, /is neither empty nor a package that was built here; its files would be deleted/);
    assert.deepEqual(readdirSync(folder), ["thesis.txt"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
