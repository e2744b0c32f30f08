// @ts-check
// A follower tab answers the calls of tools without `execute`, and takes the history back, in whichever tab the agent is and when it changes tabs.

import assert from "node:assert/strict";
import { test } from "node:test";
import "../docs/tabs-page.mjs";
import { openAgent, shared } from "../../../pkg/tabs.js";
import { call, deferred, misused, scripted, settle } from "../kit.mjs";

const DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
/** @param {...any} agents */
const leave = async (...agents) => void (await Promise.all(agents.map((agent) => agent[DISPOSE]())));
/** Waits for something, as long as it takes. @param {() => unknown} holds */
async function until(holds) {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 2000, `waited in vain for ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
const where = { name: "where", description: "Where the user is", parameters: { type: "object" } };
const textOf = (/** @type {any} */ message) => [message.content].flat().map((/** @type {any} */ block) => block.text ?? block).join();
/** Calls `where` for a first message "Go", says otherwise what it was shown. @param {any} request */
const answer = ({ messages }) => {
  const last = messages.at(-1);
  if (last.role === "tool_result") return `You are ${textOf(last)}`;
  return textOf(last) === "Go" ? call("where") : messages.flatMap((/** @type {any} */ message) => (message.role === "user" ? [textOf(message)] : [])).join(" ");
};
let ids = 0;
/** Two tabs with one agent. @param {any} [model] */
async function twoTabs(model = () => scripted(Array.from({ length: 20 }, () => answer))) {
  const id = `asks-${++ids}`;
  const make = (/** @type {any} */ lease) => openAgent(lease, { model: model(), tools: [where] });
  const [owner, follower] = [await shared(id, make), await shared(id, make)];
  // A tab that nobody listens to does not follow.
  for (const tab of [owner, follower]) tab.subscribe(() => {}, { keep: true });
  await Promise.all([owner.ready(), follower.ready()]);
  assert.deepEqual([owner.role, follower.role], ["owner", "follower"]);
  return { owner, follower };
}
/** @param {...any} tabs */
const asked = async (...tabs) => {
  await until(() => tabs.every(({ pendingQuestions }) => pendingQuestions.length === 1));
  for (const { pendingQuestions } of tabs) assert.deepEqual(pendingQuestions, tabs[0].pendingQuestions);
  return tabs[0].pendingQuestions[0];
};

test("a follower gives the result of a call, or refuses it; what is no result is named", async () => {
  /** @type {[any, string][]} */
  const cases = [[{ output: "in Oslo" }, "You are in Oslo"], [{ error: "lost" }, "You are lost"], [{ action: "reject", reason: "private" }, "You are tool call `where` was rejected: private"]];
  for (const [given, text] of cases) {
    const { owner, follower } = await twoTabs();
    const run = owner.prompt("Go");
    const { id, kind, toolName } = await asked(owner, follower);
    assert.deepEqual([kind, toolName], ["tool_call", "where"]);
    misused(() => follower.resolve(id, /** @type {any} */ ("approve")), /for the result of a call/);
    await follower.resolve(id, given);
    assert.equal((await run).text, text);
    await until(() => follower.messages.length === 4 && follower.pendingQuestions.length === 0);
    assert.deepEqual(follower.messages, owner.messages);
    await leave(owner, follower);
  }
});

test("of two tabs that answer at once one counts, and the other gets an error", async () => {
  const { owner, follower } = await twoTabs();
  const run = follower.prompt("Go");
  const { id } = await asked(owner, follower);
  const answers = await Promise.allSettled([owner.resolve(id, { output: "in Oslo" }), follower.resolve(id, { output: "in Bergen" })]);
  const told = answers.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  assert.equal(told.length, 1);
  assert.match(told[0].message, /no open question has this id|already/);
  assert.equal((await run).text, answers[0]?.status === "fulfilled" ? "You are in Oslo" : "You are in Bergen");
  await leave(owner, follower);
});

test("the tab that has the agent goes between question and answer: the question is the same in the next one", async () => {
  for (const isHandedOver of [true, false]) {
    const { owner, follower } = await twoTabs();
    const run = follower.prompt("Go");
    const { id, callId } = await asked(owner, follower);
    if (isHandedOver) await owner.handOver();
    else await leave(owner);
    await until(() => follower.role === "owner" && follower.pendingQuestions.length === 1);
    const [again] = follower.pendingQuestions;
    assert.deepEqual([again?.id, again?.kind, again?.callId], [id, "tool_call", callId]);
    await follower.resolve(id, { output: "in Oslo" });
    assert.equal((await run).text, "You are in Oslo");
    await leave(owner, follower);
  }
});

test("an answer that is on its way when the agent changes hands arrives once", async () => {
  const { owner, follower } = await twoTabs();
  const run = follower.prompt("Go");
  const { id } = await asked(owner, follower);
  const [given] = await Promise.allSettled([follower.resolve(id, { output: "in Oslo" }), owner.handOver()]);
  if (given.status === "rejected") {
    assert.match(given.reason.message, /no open question has this id|already|another tab/);
    const [question] = follower.pendingQuestions;
    if (question) await follower.resolve(question.id, { output: "in Oslo" });
  }
  assert.equal((await run).text, "You are in Oslo");
  assert.equal(follower.messages.filter(({ role }) => role === "tool_result").length, 1);
  await leave(owner, follower);
});

test("a follower takes the history back and goes back to what it has cut; also after a hand-over", async () => {
  const { owner, follower } = await twoTabs();
  await owner.prompt("one");
  await owner.prompt("two");
  await until(() => follower.messages.length === 4);
  const cut = await follower.rewind(2);
  await until(() => owner.messages.length === 2 && follower.messages.length === 2);
  assert.equal(textOf(cut[0]), "two");
  assert.equal((await follower.prompt("three")).text, "one three");
  await follower.rewind(2, cut);
  await until(() => owner.messages.length === 4);
  assert.equal((await owner.prompt("four")).text, "one two four");
  await until(() => follower.messages.length === 6);

  await owner.handOver();
  await until(() => follower.role === "owner" && owner.role === "follower");
  await owner.rewind(0);
  await until(() => follower.messages.length === 0 && owner.messages.length === 0);
  assert.equal((await owner.prompt("five")).text, "five");
  await leave(owner, follower);
});

test("a run in progress refuses it, in every tab, also while a question is open; after the abort it works", async () => {
  const gate = deferred();
  const { owner, follower } = await twoTabs(() => scripted([async () => (await gate.promise, "late"), ...Array.from({ length: 9 }, () => answer)]));
  const slow = owner.prompt("one");
  await until(() => follower.isRunning);
  for (const tab of [owner, follower]) await assert.rejects(async () => tab.rewind(0), /a run is in progress/);
  gate.resolve();
  await slow;
  await until(() => !follower.isRunning);
  const run = follower.prompt("Go");
  await asked(owner, follower);
  for (const tab of [owner, follower]) await assert.rejects(async () => tab.rewind(0), /a run is in progress/);
  await follower.abort();
  assert.equal((await run).stopReason, "aborted");
  await until(() => !owner.isRunning && !follower.isRunning && owner.pendingQuestions.length === 0);
  await follower.rewind(2);
  await until(() => owner.messages.length === 2 && follower.messages.length === 2);
  assert.equal((await follower.prompt("three")).text, "one three");
  await settle();
  await leave(owner, follower);
});
