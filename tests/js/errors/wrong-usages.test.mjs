// @ts-check
// What people write by mistake, and what the error must name: the thing, and the way out. The table is in tests/data.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as turnwheel from "../kit.mjs";
import { ready, recordNow } from "../../../pkg/tape.js";

/** `entry` is that of the package, if it is not the main one. @type {{ entry?: string, code: string, says: string[] }[]} */
const rows = JSON.parse(readFileSync(new URL("../../data/wrong-usages.json", import.meta.url), "utf8"));
const names = ["Agent", "agentLoop", "agentLoopContinue", "custom", "keepLast", "openai", "openaiCompatible", "reduce", "scripted", "slidingWindow", "subagent", "tool"];
const given = /** @type {Record<string, any>} */ (turnwheel);

/** What is at hand in every row. */
async function things() {
  await ready();
  const recorded = new given["Agent"]({ model: given["scripted"](["hi"]) });
  const recorder = recordNow(recorded);
  await recorded.prompt("x");
  recorder.stop();
  const model = given["scripted"](["hi"]);
  const t = { name: "t", description: "", parameters: { type: "object" }, execute: () => "x" };
  return { model, t, agent: new given["Agent"]({ model }), tape: recorder.toTape() };
}

test(`${rows.length} wrong usages are refused with the thing and the way out`, async () => {
  assert.ok(rows.length >= 370);
  for (const { entry, code, says } of rows) {
    /** @type {Record<string, any>} */
    const exported = entry ? await import(`../../../pkg/${entry}.js`) : Object.fromEntries(names.map((name) => [name, given[name]]));
    const at = { ...(await things()), ...exported };
    const run = new Function(...Object.keys(at), `return ${code}`);
    // Some entries answer with a promise.
    await assert.rejects(async () => run(...Object.values(at)), (/** @type {any} */ error) => {
      assert.equal(error.code, "misuse", `${code}: ${error.message}`);
      for (const word of says) assert.ok(error.message.includes(word), `${code} says ${JSON.stringify(word)}: ${error.message}`);
      return true;
    }, code);
  }
});
