// @ts-check
// The tests of the stores and of the fleet in a Node that has SQLite: Node 20, in which the everyday tests run, has none. They run
// on PostgreSQL too where it is installed.   node --test tests/e2e/stores.mjs

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { hasPostgres } from "../js/fleet/stores.mjs";
import { packagesOf } from "./npm.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
// The package `node` fetches this one in a script.
const program = `node-${process.platform}-${process.arch}`;
const { folder, missing } = packagesOf("node-22", [`${program}@22`]);

test("the stores and the fleet in Node 22, with SQLite", { skip: missing, timeout: 300_000 }, async (t) => {
  const node = join(String(folder), "node_modules", program, "bin/node");
  const files = ["fleet", "stores"].flatMap((room) => readdirSync(join(ROOT, "tests/js", room)).filter((name) => name.endsWith(".test.mjs")).map((name) => join("tests/js", room, name)));
  const { stdout } = await promisify(execFile)(node, ["--test", "--test-reporter=tap", ...files], { cwd: ROOT, env: { ...process.env, NODE_TEST_CONTEXT: undefined }, maxBuffer: 2 ** 26 }).catch((error) => assert.fail(String(error.stdout).split("\n").filter((line) => /^\s*not ok|error:/.test(line)).join("\n") || error.message));
  assert.match(stdout, /# fail 0\n/);
  assert.doesNotMatch(stdout, /# SKIP there is no sqlite/i);
  t.diagnostic(`${/# pass \d+/.exec(stdout)?.[0]}; PostgreSQL: ${hasPostgres ? "yes" : "not installed"}`);
});
