// @ts-check
// `cargo xtask differ` finds what differs between two packages, and nothing between two copies of one.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { firstDifference } from "../../differ/compare.mjs";
import { planOf } from "../../differ/plan.mjs";
import { shrink } from "../../differ/shrink.mjs";

const RUN = fileURLToPath(new URL("../../differ/run.mjs", import.meta.url));
const PKG = fileURLToPath(new URL("../../../pkg", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "turnwheel-differ-"));
after(() => rmSync(folder, { recursive: true }));

/** A copy of the package in which something is otherwise. @param {string} name @param {string} change a script, which knows `Agent` */
function changed(name, change) {
  const copy = join(folder, name);
  cpSync(PKG, copy, { recursive: true });
  renameSync(join(copy, "entry/node.js"), join(copy, "entry/own.js"));
  writeFileSync(join(copy, "entry/node.js"), `import { Agent } from "./own.js";\nexport * from "./own.js";\n${change}\n`);
  return copy;
}

/** @param {string} old @param {string} current @param {number} sequences @returns {Promise<{ code: number, text: string }>} */
function differ(old, current, sequences) {
  return new Promise((resolve) => {
    execFile(process.execPath, [RUN, old, current, `--sequences=${sequences}`, "--seed=4000", "--told=1"], (error, text, trouble) => resolve({ code: Number(error?.code ?? 0), text: text + trouble }));
  });
}

test("two copies of one package show no difference", async () => {
  const { code, text } = await differ(PKG, changed("same", ""), 40);
  assert.match(text, /40 sequences and \d+ restored checkpoints, \d+ lines alike: no difference/);
  assert.equal(code, 0);
});

/** What is otherwise, the script that makes it so, and what is told of it. @type {[string, string, RegExp[]][]} */
const CHANGES = [
  ["a member of an event", `const { subscribe } = Agent.prototype;
    Agent.prototype.subscribe = function (listener, options) {
      return subscribe.call(this, (event, info) => listener(event.type === "turn_end" ? { ...event, reason: event.reason + "!" } : event, info), options);
    };`, [/- \d+ event .*"reason":"\w+"/, /\+ \d+ event \{"type":"turn_end".*"reason":"\w+!"/]],
  ["the text of an error", `const { prompt } = Agent.prototype;
    Agent.prototype.prompt = function (...given) {
      try {
        return prompt.apply(this, given);
      } catch (error) {
        throw Object.assign(error, { message: error.message + "!" });
      }
    };`, [/the sequence itself/, /\+ \d+ \w+ threw .*!"/]],
  ["a member of a checkpoint", `const { checkpoint } = Agent.prototype;
    Agent.prototype.checkpoint = function () {
      const { metadata, ...rest } = checkpoint.call(this);
      return { ...rest, metadata: { ...metadata, turnwheel: { ...metadata.turnwheel, odd: true } } };
    };`, [/the sequence itself/, /\+ \d+ saved .*"odd":true/]],
  ["what is read of a checkpoint", `const { restore } = Agent;
    Agent.restore = (given, options) => {
      const it = JSON.parse(typeof given === "string" ? given : JSON.stringify(given));
      if (it.metadata?.turnwheel?.run) it.metadata.turnwheel.run.turnIndex++;
      return restore(it, options);
    };`, [/a checkpoint that the old package made, gone on with in both/, /restored: \{"do":"continue"/]],
];

for (const [what, change, told] of CHANGES) {
  test(`${what} that differs is told, with its seed and a short sequence`, async () => {
    const { code, text } = await differ(PKG, changed(what.replaceAll(" ", "-"), change), 40);
    assert.equal(code, 1, text);
    assert.match(text, /seed 40\d\d: /);
    assert.match(text, /the shortest sequence: \{"model":/);
    for (const line of told) assert.match(text, line);
    assert.doesNotMatch(text, /not reproducible/);
  });
}

test("what is allowed is made alike, or excused by its first line", () => {
  const allowed = [{ name: "ids", why: "ids are longer", lines: (/** @type {string} */ line) => line.replace(/id-\d+/, "ID") }, { name: "stricter", why: "it throws now", excuses: (/** @type {string} */ _, /** @type {string} */ current) => current.startsWith("threw") }];
  assert.equal(firstDifference("it", "a id-1\nb", "a id-22\nb", allowed).difference, undefined);
  assert.equal(firstDifference("it", "a\nb\nc", "a\nthrew\nd", allowed).difference?.excuse, "stricter");
  const { difference } = firstDifference("it", "a\nb", "a", allowed);
  assert.deepEqual([difference?.line, difference?.old, difference?.current, difference?.excuse], [1, "b", "(nothing)", undefined]);
  assert.equal(firstDifference("it", "a", "a\nb", allowed).difference?.current, "b");
});

test("a seed is always the same sequence, and a shorter one keeps what it was kept for", async () => {
  assert.deepEqual(planOf(17), planOf(17));
  assert.notDeepEqual(planOf(17), planOf(18));
  const plan = { ...planOf(17), steps: [..."abcdefgh"].map((name) => ({ do: name, ms: 1 })) };
  const short = await shrink(plan, async ({ steps }) => ["c", "g"].every((name) => steps.some((step) => step.do === name)));
  assert.deepEqual([short.steps, short.after, short.options, short.tools], [[{ do: "c" }, { do: "g" }], [], {}, []]);
});

test("arguments that make no sense are named", async () => {
  assert.match((await differ("nowhere", PKG, 1)).text, /nowhere is no package: it has no entry\/node\.js/);
  assert.match((await differ(PKG, PKG, -1)).text, /`--sequences` wants a whole number, not -1/);
});
