// @ts-check
// The package's own tests, run by Bun: those that need nothing of Node's test runner but its first words.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { packagesOf } from "./npm.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { folder, missing } = packagesOf("bun", ["@oven/bun-linux-x64@1.4.5"]);

/**
 * Left out are files that ask for what only Node's runner or V8 has (virtual timers, `--expose-gc`, its own command line, the
 * words of its errors), and those of React and of other libraries.
 */
const FILES = [
  "ag-ui/clients", "agent/questions", "agent/questions-elsewhere", "agent/receipts", "agent/steering", "ai-sdk/messages",
  "boundary/again", "boundary/hostile", "build/facade", "checkpoint/kill", "checkpoint/sleep", "context/reducers",
  "context/summarize", "effects/http", "effects/reads", "events/partial-output",
  "fleet/log", "host/clocks", "local/answers", "local/engines", "mcp/http", "mcp/tools", "messages/links", "models/bridges",
  "models/estimates", "models/requests", "models/wires", "options/budget", "options/each", "options/turn", "response/ui-messages",
  "run/abort", "run/children", "run/children-sleep", "run/loop", "run/moments", "stores/failing", "stores/lease", "tabs/shared",
  "tape/bytes", "tape/cassette", "tape/children", "tape/forks", "tape/replay", "tools/definitions", "tools/subagent",
];

for (const name of FILES) {
  test(`${name}, in Bun`, { skip: missing, timeout: 240_000 }, () => {
    const bun = join(String(folder), "node_modules/@oven/bun-linux-x64/bin/bun");
    const { stderr, status, error } = spawnSync(bun, ["test", "--timeout", "120000", `./tests/js/${name}.test.mjs`], { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 27, env: { ...process.env, NO_COLOR: "1" } });
    assert.equal(error, undefined);
    const [, passed] = /^ *(\d+) pass$/m.exec(stderr) ?? [];
    assert.ok(status === 0 && Number(passed) > 0, `${stderr.split("\n").filter((line) => /^\(fail\)|rror:/.test(line)).join("\n")}\n${stderr.slice(-2000)}`);
  });
}
