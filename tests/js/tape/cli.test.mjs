// @ts-check
// `npx turnwheel tape FILE`: what the last line says.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { record } from "../../../pkg/tape.js";
import { Agent, scripted } from "../kit.mjs";

const CLI = fileURLToPath(new URL("../../../pkg/cli.mjs", import.meta.url));

/** The last line for a tape. @param {string} text */
function lastLine(text) {
  const file = join(mkdtempSync(join(tmpdir(), "turnwheel-tapes-")), "some.tape");
  writeFileSync(file, text);
  const { stdout, stderr, status } = spawnSync(process.execPath, [CLI, "tape", file], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout.trim().split("\n").at(-1) ?? "";
}

test("the tokens of all runs are counted, and those of one that has no end", async () => {
  const usage = { input: 100, output: 10, total: 110 };
  const agent = new Agent({ model: scripted([{ text: "one", usage }, { text: "two", usage }]) });
  const recorder = await record(agent);
  await agent.prompt("a");
  await agent.prompt("b");
  recorder.stop();
  const text = recorder.toText();
  assert.match(lastLine(text), / 4 messages, 200 tokens in, 20 out$/);
  // Cut right before the reply that ends the second run.
  const lines = text.trim().split("\n");
  const cut = lines.slice(0, lines.findLastIndex((line) => line.includes('"usage"') || line.includes('"done"')) + 1);
  assert.match(lastLine(`${cut.slice(0, -1).join("\n")}\n`), / tokens in, \d+ out; the recording was cut here$/);
});
