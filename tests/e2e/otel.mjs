// @ts-check
// turnwheel/otel with the line of the SDK that Node 20 cannot have: api 1.10, SDK 3.1, on Node 22.   node --test tests/e2e/otel.mjs

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packagesOf } from "./npm.mjs";

const run = promisify(execFile);
const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
/** Node itself, as npm has it for this machine. */
const NODE = `node-${process.platform}-${process.arch}`;
const PACKAGES = [`${NODE}@22.23.3`, "@opentelemetry/api@1.10.0", "@opentelemetry/sdk-trace@3.1.1", "@opentelemetry/sdk-metrics@3.1.1", "@opentelemetry/context-async-hooks@3.1.1"];

test("the newest SDK makes the same of every run", { timeout: 300_000 }, async (t) => {
  const { folder, missing } = packagesOf("otel", PACKAGES);
  if (folder === undefined) return t.skip(missing);
  const node = join(folder, "node_modules", NODE, "bin/node");
  const version = await run(node, ["--version"]).catch((error) => error);
  if (!/^v22\./.test(version.stdout)) return t.skip(`npm brought no Node 22: ${version.stderr}`);
  // A copy, so that it finds the packages of that folder and not our own.
  await cp(here("../../pkg"), join(folder, "node_modules/turnwheel"), { recursive: true, force: true });
  for (const name of ["newest", "runs", "set-up"]) await cp(here(`../js/otel/${name}.mjs`), join(folder, `${name}.mjs`));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout } = await run(node, ["--test", "--test-reporter=tap", "newest.mjs"], { cwd: folder, env }).catch((error) => error);
  assert.match(stdout, /^# fail 0$/m, stdout);
  assert.ok(Number(/^# pass (\d+)$/m.exec(stdout)?.[1]) >= 30, stdout);
});
