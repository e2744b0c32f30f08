// @ts-check
// The ledger itself: a life in which all is well passes, and each way to do wrong is named.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ledger } from "./ledger.mjs";
import { flatness } from "./memory.mjs";
import { CLAIMS } from "./report.mjs";
import { planOf, SCENARIOS } from "./scenarios.mjs";
import { answerOf, turnOf } from "./server.mjs";

/** The first life whose plan fits. @param {string} scenario @param {(plan: import("./scenarios.mjs").Plan) => boolean} fits */
function lifeOf(scenario, fits = () => true) {
  for (let n = 0; ; n++) if (fits(planOf(`n${n}`, 1, [scenario]))) return `n${n}`;
}

const text = (/** @type {string} */ text) => [{ type: "text", text }];

/**
 * A life as it should be: what the server said is in the history, and the tools ran.
 * @param {string} id @param {string} scenario @param {{ runTools?: boolean }} [how]
 */
function wellLived(id, scenario, { runTools = true } = {}) {
  const ledger = new Ledger(1, [scenario]);
  const plan = planOf(id, 1, [scenario]);
  /** @type {any[]} */
  const messages = [];
  let prompts = 0;
  const prompt = () => messages.push({ role: "user", content: text(`@${id}.p${prompts++}@ go`) });
  prompt();
  for (const [turn, planned] of plan.turns.entries()) {
    const attempt = ledger.asked(id, turn, JSON.stringify(messages), `key-of-${id}`);
    const said = answerOf(id, turn, attempt, planned);
    ledger.answered(id, turn, attempt, { text: said.text.join(""), tools: planned.calls, whole: true, forbids: [] });
    const blocks = said.calls.map(({ name }, i) => ({ type: "tool_call", callId: `${turn}-${i}`, toolName: name, arguments: { token: `${id}.t${turn}.a${attempt}.c${i}` } }));
    messages.push({ role: "assistant", stopReason: "stop", content: [...text(said.text.join("")), ...blocks] });
    for (const { callId, arguments: { token } } of blocks) {
      if (runTools) ledger.effect({ token, once: true });
      messages.push({ role: "tool_result", callId, content: text(`@${token}=ok@`), isError: false });
    }
    if (planned.calls.length === 0 && prompts < plan.prompts) prompt();
  }
  const outcome = { id, runs: plan.expect.map((end) => ({ ...end })), letters: /** @type {any[]} */ ([]), messages, faults: /** @type {string[]} */ ([]) };
  return { ledger, plan, outcome, judged: () => (ledger.outcome(outcome), ledger.faults.map(({ kind }) => kind)) };
}

const ID = lifeOf("talk", ({ turns, prompts }) => prompts === 2 && turns.length > 4 && turns[0]?.calls[0]?.tool === "note" && turns.every(({ ids }) => ids !== "same" && ids !== "none"));
const lived = () => wellLived(ID, "talk");

test("a life in which all is well passes", () => {
  assert.deepEqual(lived().judged(), []);
});

/** What goes wrong, and what it is called. @type {[string, (life: ReturnType<typeof lived>) => void, string][]} */
const WRONGS = [
  ["an answer is gone", ({ outcome }) => void outcome.messages.splice(outcome.messages.findLastIndex(({ role }) => role === "assistant"), 1), "a lost message"],
  ["a prompt is gone", ({ outcome }) => void outcome.messages.shift(), "a lost message"],
  ["a prompt is there twice", ({ outcome }) => void outcome.messages.push(outcome.messages[0]), "a lost message"],
  ["a result is gone", ({ outcome }) => void outcome.messages.splice(2, 1), "a lost message"],
  ["a letter that was delivered is nowhere", ({ outcome }) => void outcome.letters.push({ mark: "s0", delivered: true }), "a lost message"],
  ["words were changed", ({ outcome }) => void (outcome.messages[1].content[0].text += "!"), "a changed message"],
  ["a result was changed", ({ outcome }) => void (outcome.messages[2].content = text("something else")), "a changed message"],
  ["a request showed less than there was", ({ ledger }) => void ledger.page(ID).requests.push([`${ID}.p0`, `${ID}.t1.a0`]), "a lost message"],
  ["a call ran again", ({ ledger }) => ledger.effect({ token: `${ID}.t0.a0.c0`, once: true }), "a call ran twice"],
  ["a call ran that nobody made", ({ ledger }) => ledger.effect({ token: `${ID}.t0.a7.c0`, once: true }), "an unknown call ran"],
  ["a call of a cut answer ran", ({ ledger }) => {
    ledger.answered(ID, 9, 0, { text: "", tools: [{ tool: "note" }], whole: false, forbids: [] });
    ledger.effect({ token: `${ID}.t9.a0.c0`, once: true });
  }, "a cut call ran"],
  ["a filtered call ran", ({ ledger }) => {
    ledger.answered(ID, 9, 0, { text: "", tools: [{ tool: "note" }], whole: true, forbids: [0] });
    ledger.effect({ token: `${ID}.t9.a0.c0`, once: true });
  }, "a cut call ran"],
  ["it ended in another way", ({ outcome }) => void (outcome.runs[0] = { stop: "error", code: "internal" }), "a wrong end"],
  ["it has fewer runs", ({ outcome }) => void outcome.runs.pop(), "a wrong end"],
  ["its key is in an error", ({ outcome }) => void (/** @type {any} */ (outcome.runs[0]).message = `no key-of-${ID} here`), "leak of a key"],
  ["a request had another key", ({ ledger }) => void ledger.asked(ID, 20, "", "key-of-n1000"), "wrong key"],
  ["the agent complains", ({ outcome }) => void outcome.faults.push("two mirrors differ"), "an agent complains"],
];

for (const [name, spoil, kind] of WRONGS) {
  test(`it is seen that ${name}`, () => {
    const life = lived();
    spoil(life);
    assert.ok(life.judged().includes(kind), JSON.stringify(life.ledger.faults));
    assert.ok(CLAIMS.some(([, kinds]) => kinds.includes(kind)), `${kind} belongs to no claim`);
  });
}

test("a call without an effect, an end that comes twice, one that never comes, a connection that nobody closes", () => {
  assert.ok(wellLived(ID, "talk", { runTools: false }).judged().includes("a call that did not run as often as it should"));
  const life = lived();
  const close = life.ledger.opened(ID);
  life.judged();
  assert.ok(life.judged().includes("an agent ended twice"));
  life.ledger.begin("n999999");
  life.ledger.close();
  const kinds = life.ledger.faults.map(({ kind }) => kind);
  assert.ok(kinds.includes("a run did not end") && kinds.includes("an open socket"), kinds.join());
  close();
});

test("the same seed gives the same plans, another one others, and every scenario that does not wait is drawn", () => {
  const plans = (/** @type {number} */ seed) => Array.from({ length: 3000 }, (_, n) => JSON.stringify(planOf(`n${n}`, seed)));
  assert.deepEqual(plans(1), plans(1));
  assert.notDeepEqual(plans(1), plans(2));
  const drawn = new Set(plans(1).map((plan) => JSON.parse(plan).scenario));
  assert.deepEqual([...drawn].sort(), Object.keys(SCENARIOS).filter((name) => SCENARIOS[name]?.waits === undefined).sort());
  assert.ok(plans(1).slice(0, 100).every((_, n) => planOf(`v${n}`, 1).scenario === "stored"));
});

test("a request asks for the turn after the last that it shows, of this agent and not of its child", () => {
  assert.equal(turnOf("n1", '["@n1.p0@"]'), 0);
  assert.equal(turnOf("n1", '["@n1.p0@", "@n1.t0.a2@", "@n1x5y0.t9.a0@", "@n11.t7.a0@"]'), 1);
  assert.equal(turnOf("n1x5y0", '["@n1x5y0.t9.a0@"]'), 10);
});

test("memory that stays is flat, what grows with the lives is not, and one high window does not count", () => {
  const windows = (/** @type {(n: number) => number} */ heap) => Array.from({ length: 20 }, (_, n) => ({ heap: heap(n), wasm: 1_048_576, lives: n * 100 }));
  const isFlat = (/** @type {(n: number) => number} */ heap) => flatness(windows(heap)).map(({ name, flat }) => [name, flat]);
  assert.deepEqual(isFlat(() => 1e7), [["heap", true], ["wasm", true]]);
  assert.deepEqual(isFlat((n) => 1e7 + n * 2e5), [["heap", false], ["wasm", true]]);
  assert.deepEqual(isFlat((n) => (n === 18 ? 9e7 : 1e7)), [["heap", true], ["wasm", true]]);
  assert.deepEqual(flatness(windows(() => 1).slice(0, 4)), []);
});
