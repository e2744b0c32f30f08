// @ts-check
// Twenty seconds of the soak in all its hosts; and doubles that do wrong on purpose, each of which its ledger has to see.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const RUN = fileURLToPath(new URL("run.mjs", import.meta.url));

/** @param {string[]} args @returns {Promise<{ code: number, text: string }>} */
const soak = (...args) => new Promise((resolve) => {
  execFile(process.execPath, [RUN, ...args], { maxBuffer: 1e8 }, (error, out, errors) => resolve({ code: /** @type {any} */ (error)?.code ?? 0, text: out + errors }));
});

/** Who does what, in which scenario, and the promise that it breaks. @type {[string, string, string, string[]?][]} */
const DOUBLES = [
  ["lose-message", "talk", "no message was lost, doubled or changed"],
  ["double-run", "talk", "no call ran twice"],
  ["rerun", "stored", "no call ran twice"],
  ["cut-call", "failures", "no call of a cut answer ran"],
  ["wrong-end", "talk", "all runs ended as the server's script has it"],
  ["hang", "talk", "all runs ended as the server's script has it", ["--patience", "3"]],
  ["rejection", "talk", "no rejection was unhandled"],
  ["timer", "talk", "nothing was left open", ["--patience", "3"]],
  ["leak", "talk", "memory was flat", ["--seconds", "12", "--lives", "100000"]],
];

test("twenty seconds, and all of it holds", { timeout: 300_000 }, async () => {
  const { code, text } = await soak("--seconds", "20");
  assert.equal(code, 0, text);
});

for (const [name, scenario, claim, more = []] of DOUBLES) {
  test(`the ledger sees it: ${name}`, { timeout: 200_000 }, async () => {
    const { code, text } = await soak("--seconds", "30", "--hosts", "n", "--lives", "40", "--at-once", "20", "--only", scenario, "--sabotage", name, ...more);
    assert.equal(code, 1, text);
    assert.ok(text.includes(`FAILED ${claim}`), text);
    // Whoever is to blame is named, with how to see it alone.
    if (!["rejection", "timer", "leak"].includes(name)) assert.match(text, new RegExp(`alone: cargo xtask soak --seed 1 --life n\\d+ --only ${scenario} --sabotage ${name}`));
  });
}

test("one life alone is what it was among the others, and a wrong word is refused", { timeout: 60_000 }, async () => {
  const { code, text } = await soak("--life", "n3", "--only", "asked", "--seconds", "10", "--verbose");
  assert.equal(code, 0, text);
  assert.match(text, /^n3: \{\n "scenario": "asked"/);
  assert.match(text, /n3 \{"type":"agent_end"/);
  const { code: refused, text: why } = await soak("--only", "talc");
  assert.deepEqual([refused, why.startsWith("error: --only: there is no `talc`")], [2, true]);
});
