// @ts-check
// Follows the first screen of the README in an empty folder.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { clean, nothing, run } from "./kit.mjs";

after(clean);

test("install, write, run: what the README says comes out", { timeout: 120_000 }, async () => {
  const { folder, packed } = await nothing();
  // From the packed file instead of a registry: a registry would deliver the same file.
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", packed], { cwd: folder });
  const readme = await readFile(join(folder, "node_modules/turnwheel/README.md"), "utf8");
  const [, file, start, code] = /^```sh\nnpm install turnwheel\n```\n\nInto a file `([\w.]+)`, then `(node [\w.]+)`:\n\n```js\n([^]*?)^```/m.exec(readme) ?? [];
  assert.ok(file && start && code, "the README says what to install, what to write and what to run");
  assert.ok(code.split("\n").filter((line) => line.trim()).length <= 12, "it has no more than 12 lines");
  await writeFile(join(folder, file), code);
  const { stdout, stderr } = await run(process.execPath, start.split(" ").slice(1), { cwd: folder, timeout: 60_000 });
  const turn = ["turn_start", "message_start", "message_update", "message_end"];
  const events = ["agent_start", ...turn, "tool_calls_proposed", "tool_execution_start", "tool_execution_end", "turn_end", ...turn, "turn_end", "agent_end"];
  assert.deepEqual([stderr, stdout.trim().split("\n")], ["", [...events, "That makes 42."]]);
});
