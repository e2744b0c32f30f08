// @ts-check
// What is on a tape was said by models, tools and people. Shown in a terminal, it stays text.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ready, record } from "../../../pkg/tape.js";
import { Agent, scripted, testTool } from "../kit.mjs";

const CLI = fileURLToPath(new URL("../../../pkg/cli.mjs", import.meta.url));
/** Clears the screen, writes into the clipboard, names the window, turns the line round. */
const EVIL = "\u001b[2J\u001b]52;c;cm0gLXJm\u0007\u009b31m\u009d0;you\u009c\u202egpj.exe\u202c\u0008\u0008\r ok";

await ready();

test("no control character of a tape reaches the terminal", async () => {
  const agent = new Agent({ model: scripted([{ text: EVIL, toolCalls: [{ callId: EVIL, toolName: "look", arguments: { [EVIL]: EVIL } }] }, EVIL]), tools: [testTool("look", () => EVIL)] });
  const recorder = await record(agent);
  recorder.note(EVIL);
  await agent.prompt(EVIL);
  recorder.stop();
  const file = join(mkdtempSync(join(tmpdir(), "turnwheel-tapes-")), "evil.tape");
  writeFileSync(file, recorder.toText());
  for (const more of [[], ["--json"]]) {
    const { stdout, stderr, status } = spawnSync(process.execPath, [CLI, "tape", file, ...more], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
    assert.doesNotMatch(stdout, /[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/, more.join());
    assert.match(stdout, /\\u001b\[2J/, "it can be seen");
    if (more.length > 0) for (const line of stdout.trim().split("\n")) JSON.parse(line);
  }
  writeFileSync(file, `{"tape":2}${EVIL}`);
  assert.doesNotMatch(spawnSync(process.execPath, [CLI, "tape", file], { encoding: "utf8" }).stderr, /\x1b/);
});
