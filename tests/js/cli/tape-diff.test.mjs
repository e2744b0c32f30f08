// @ts-check
// `npx turnwheel tape diff A B`: the first thing in which two tapes differ.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { record } from "../../../pkg/tape.js";
import { Agent, scripted, testTool } from "../kit.mjs";
import { emptyFolder, run } from "./kit.mjs";

const folder = emptyFolder();
const look = { toolCalls: [{ callId: "c", toolName: "look", arguments: { at: 1 } }] };

/** Records a run of one tool. @param {string} name @param {{ prompt?: string, script?: any[], result?: string, note?: string, arguments?: any }} [world] */
async function recorded(name, { prompt = "What is there?", script, result = "a tree", note, arguments: args = { at: 1 } } = {}) {
  const first = { toolCalls: [{ callId: `call_${name}`, toolName: "look", arguments: args }] };
  const agent = new Agent({ model: scripted(script ?? [first, { text: ["I see ", "a tree."] }]), tools: [testTool("look", () => result)] });
  const recorder = await record(agent);
  await agent.prompt(prompt);
  if (note) recorder.note(note);
  recorder.stop();
  writeFileSync(join(folder, name), recorder.toText());
}

await recorded("a.tape");
const diff = (/** @type {string[]} */ ...words) => run(["tape", "diff", ...words], { cwd: folder });

test("two recordings of the same are the same, though their times, ids, notes and pieces are others", async () => {
  await recorded("same.tape", { note: "by hand", script: [{ ...look, toolCalls: [{ ...look.toolCalls[0], callId: "another" }] }, { text: ["I ", "see a ", "tree."] }] });
  const { code, stdout, stderr } = await diff("a.tape", "same.tape");
  assert.deepEqual([code, stderr], [0, ""], stdout);
  assert.match(stdout, /^a\.tape and same\.tape are the same: \d+ entries\n$/);
  assert.deepEqual(await diff("a.tape", "a.tape", "--exact").then(({ code }) => code), 0);
  assert.equal((await diff("a.tape", "same.tape", "--exact")).code, 1);
});

test("the first input that differs is named, with its number and both values", async () => {
  await recorded("prompt.tape", { prompt: "What is here?" });
  const { code, stdout } = await diff("a.tape", "prompt.tape");
  assert.equal(code, 1);
  assert.equal(stdout, `a.tape and prompt.tape differ at entry 2, after 0 events: input begin, input.messages[0].content[0].text
  a.tape       "What is there?"
  prompt.tape  "What is here?"
`);
});

test("a result of a tool that differs is named by its effect, and only what comes first", async () => {
  await recorded("result.tape", { result: "a fox", script: [look, "I see a fox."] });
  const { code, stdout } = await diff("a.tape", "result.tape");
  assert.equal(code, 1);
  assert.match(stdout, /differ at entry \d+, after 7 events: reply to t0\/tool\/0-look, reply\.result\.content\[0\]\.text\n  a\.tape       "a tree"\n  result\.tape  "a fox"\n$/);
});

test("an answer that differs is named by the model's effect, a long one from a little before the difference", async () => {
  const long = "word ".repeat(100);
  await recorded("long.tape", { script: [look, `${long}yes`] });
  await recorded("other.tape", { script: [look, `${long}no`] });
  const { code, stdout } = await diff("long.tape", "other.tape");
  assert.equal(code, 1);
  assert.match(stdout, /reply to t1\/model, reply\.delta\n  long\.tape   "?…[word ]+yes"\n  other\.tape  …[word ]+no"\n$/);
  for (const line of stdout.split("\n").slice(1)) assert.ok(line.length < 130, line);
});

test("a time in the arguments of a call is a value like any other", async () => {
  await recorded("at.tape", { arguments: { at: 2 } });
  const { code, stdout } = await diff("a.tape", "at.tape");
  assert.equal(code, 1);
  assert.match(stdout, /reply to t0\/model, reply\.delta\n  a\.tape   "\{\\"at\\":1\}"\n/);
});

test("where something else happens, both are named, and so is an end", async () => {
  await recorded("short.tape", { script: ["I see nothing."] });
  const { code, stdout } = await diff("a.tape", "short.tape");
  assert.equal(code, 1);
  assert.match(stdout, /differ at entry 10, after 3 events: reply to t0\/model, reply\.type\n  a\.tape      "tool_call_start"\n  short\.tape  "text_start"\n$/);
  const agent = new Agent({ model: scripted([look, { text: ["I see ", "a tree."] }, "Yes."]), tools: [testTool("look", () => "a tree")] });
  const recorder = await record(agent);
  await agent.prompt("What is there?");
  await agent.prompt("Sure?");
  recorder.stop();
  writeFileSync(join(folder, "more.tape"), recorder.toText());
  assert.match((await diff("a.tape", "more.tape")).stdout, /\n  a\.tape     ends here\n  more\.tape  /);
});

test("one tape, three tapes, no tape and no file are misuse", async () => {
  for (const [words, why] of /** @type {[string[], RegExp][]} */ ([
    [["a.tape"], /^tape diff takes two tapes: npx turnwheel tape diff A B$/m],
    [["a.tape", "a.tape", "a.tape"], /^tape diff takes two tapes/],
    [["a.tape", "nowhere.tape"], /^nowhere\.tape cannot be compared: ENOENT/],
    [["a.tape", "--exactly"], /^Unknown option '--exactly'$/m],
  ])) {
    const { code, stdout, stderr } = await diff(...words);
    assert.deepEqual([code, stdout], [2, ""], words.join());
    assert.match(stderr, why);
  }
  writeFileSync(join(folder, "no.tape"), "Dear diary");
  const { code, stderr } = await diff("no.tape", "a.tape");
  assert.equal(code, 2);
  assert.match(stderr, /^no\.tape cannot be compared: the text is no tape/);
});
