// @ts-check
// What people write by mistake, and what the error must name: the thing, and the way out. The table is in tests/data.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as turnwheel from "./kit.mjs";

/** @type {{ code: string, says: string[] }[]} */
const rows = JSON.parse(readFileSync(new URL("../data/wrong-usages.json", import.meta.url), "utf8"));
const names = ["Agent", "agentLoop", "agentLoopContinue", "custom", "keepLast", "openai", "openaiCompatible", "reduce", "scripted", "slidingWindow", "subagent", "tool"];

test(`${rows.length} wrong usages are refused with the thing and the way out`, () => {
  assert.ok(rows.length >= 200);
  for (const { code, says } of rows) {
    const given = /** @type {Record<string, any>} */ (turnwheel);
    const model = given["scripted"](["hi"]);
    const t = { name: "t", description: "", parameters: { type: "object" }, execute: () => "x" };
    const agent = new given["Agent"]({ model });
    const run = new Function("model", "t", "agent", ...names, `return ${code}`);
    assert.throws(() => run(model, t, agent, ...names.map((name) => given[name])), (/** @type {any} */ error) => {
      assert.equal(error.code, "misuse", `${code}: ${error.message}`);
      for (const word of says) assert.ok(error.message.includes(word), `${code} says ${JSON.stringify(word)}: ${error.message}`);
      return true;
    }, code);
  }
});
