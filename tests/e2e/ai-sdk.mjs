// @ts-check
// What the everyday tests of `turnwheel/ai-sdk` do not see: newer versions of Node, and the lowest versions of the AI SDK that the
// package's peers allow.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packagesOf } from "./npm.mjs";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const tests = ["chat", "messages", "model"].map((name) => `tests/js/ai-sdk/${name}.test.mjs`);

for (const major of [22, 24]) {
  // The package `node` fetches this one in a script.
  const program = `node-${process.platform}-${process.arch}`;
  const { folder, missing } = packagesOf(`node-${major}`, [`${program}@${major}`]);
  test(`turnwheel/ai-sdk in Node ${major}`, { skip: missing, timeout: 300_000 }, async () => {
    const node = join(String(folder), "node_modules", program, "bin/node");
    assert.match((await run(node, ["--version"])).stdout, new RegExp(`^v${major}\\.`));
    await run(node, ["--test", ...tests], { cwd: ROOT });
    const { stdout } = await run(node, ["tests/js/ai-sdk/fixtures.mjs", "tests/data/fixtures"], { cwd: ROOT });
    assert.match(stdout, / 0 failed\n$/);
  });
}

const LOWEST = ["ai@6.0.0", "@ai-sdk/react@3.0.0", "react@19.3.1", "openai-3@npm:@ai-sdk/openai@3.0.0", "openai-4@npm:@ai-sdk/openai@4.0.0", "anthropic-3@npm:@ai-sdk/anthropic@3.0.0", "anthropic-4@npm:@ai-sdk/anthropic@4.0.0"];
const { folder, missing } = packagesOf("ai-sdk-lowest", LOWEST);
test("the lowest versions that the peers allow", { skip: missing, timeout: 120_000 }, async () => {
  const script = join(String(folder), "lowest.mjs");
  cpSync(new URL("ai-sdk-lowest.mjs", import.meta.url), script);
  const { stdout } = await run(process.execPath, [script, ROOT], { cwd: String(folder) });
  assert.match(stdout, /all as expected\n$/);
});
