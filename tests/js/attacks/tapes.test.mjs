// @ts-check
// Tapes that somebody has cut, mixed, blown up or written with malice: each is lived as far as it goes, or refused with an error
// that says why, soon; and the next tape is lived as if nothing had been.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, AgentError, call, scripted, subagent, testTool } from "../kit.mjs";
import { isPlayed, shareOf } from "../share.mjs";
import { cassette, fork, ready, record, replay, Tape, TapeDivergence } from "../../../pkg/tape.js";

await ready();

/** A tape with everything on it. */
async function whole() {
  const inner = subagent({ name: "inner", description: "Looks", agent: () => new Agent({ model: scripted(["in there"]) }) });
  const agent = new Agent({
    model: scripted([{ thinking: "hm", text: ["Grü", "ße"], toolCalls: [{ callId: "a", toolName: "inner", arguments: { prompt: "look" } }] }, call("look"), "Done.", "Again."]),
    tools: [inner, testTool("look", () => "a tree")], policies: { preTurn: [() => "continue"] }, sessionState: { a: 1 },
  });
  const recorder = await record(agent);
  recorder.note("one");
  await agent.prompt("Go");
  await agent.prompt("And?");
  recorder.stop();
  return recorder.toText();
}

/** What becomes of a text: lived, or refused in order. @param {string} text */
function fateOf(text) {
  try {
    const tape = Tape.parse(text);
    const again = replay(tape);
    again.entries();
    void again.seek(0).messages;
    void tape.children;
    return { fate: "lived", events: tape.events };
  } catch (error) {
    assert.ok(error instanceof TapeDivergence || AgentError.isInstance(error), `${text.slice(0, 100)}: ${/** @type {any} */ (error)?.stack}`);
    assert.ok(error.message.length > 10 && error.message.length < 2_000, error.message);
    return { fate: "refused", events: 0 };
  }
}

test("a tape that is cut at any byte is lived up to there, or refused", async () => {
  const text = await whole();
  const bytes = Buffer.from(text);
  const fates = { lived: 0, refused: 0 };
  const first = bytes.indexOf(10);
  for (let at = 0; at < bytes.length; at++) {
    if (!isPlayed(at, 6)) continue;
    const { fate } = fateOf(bytes.subarray(0, at).toString());
    fates[/** @type {"lived"} */ (fate)]++;
    // A line that is cut is left out, so there is nothing to refuse but a tape that has no first line.
    assert.equal(fate, at < first ? "refused" : "lived", `cut at ${at} of ${bytes.length}: ${bytes.subarray(Math.max(0, at - 60), at)}`);
  }
  assert.ok(fates.lived > shareOf(1_000, 6));
  assert.equal(fateOf(text).fate, "lived");
});

test("lines that are swapped, doubled or gone are noticed", async () => {
  const lines = (await whole()).trimEnd().split("\n");
  let refused = 0, tried = 0;
  const isInput = (/** @type {string} */ line) => line.includes('"in":');
  for (let i = 1; i < lines.length - 2; i++) {
    const swapped = [...lines];
    [swapped[i], swapped[i + 1]] = [/** @type {string} */ (lines[i + 1]), /** @type {string} */ (lines[i])];
    const without = lines.filter((_, n) => n !== i);
    const doubled = [...lines.slice(0, i), /** @type {string} */ (lines[i]), ...lines.slice(i)];
    for (const changed of [swapped, without, doubled]) {
      const { fate } = fateOf(changed.join("\n"));
      if (!isInput(/** @type {string} */ (lines[i])) || changed === swapped) continue;
      tried++;
      if (fate === "refused") refused++;
    }
  }
  assert.ok(tried > 20 && refused > tried * 0.8, `${refused} of ${tried} were noticed`);
});

test("foreign versions, other formats and what is no tape are refused with what they are", () => {
  const refused = (/** @type {any} */ text, /** @type {RegExp} */ says) => assert.throws(() => replay(Tape.parse(text)).entries(), (/** @type {any} */ error) => says.test(error.message), String(says));
  refused('{"tape":4,"engine":"9.0.0","createdAt":0}', /version 4; this version of turnwheel reads up to 3/);
  refused('{"tape":1e9}', /version 1000000000/);
  refused('{"tape":0}', /version 0/);
  refused('{"tape":-1}', /version -1|no tape/);
  refused('{"tape":1.5}', /version 1\.5|no tape/);
  refused('{"tape":"1"}', /first line must have a number `tape`/);
  refused("[1]", /no tape/);
  refused("null", /no tape/);
  refused("", /no tape/);
  refused("\n\n", /no tape/);
  refused("<!doctype html>", /no tape/);
  refused('{"log":{"version":"1.2","entries":[]}}', /no tape/);
  refused(5, /a text or a list of lines, got a number/);
  refused(new Uint8Array([123]), /line 0 of the tape must be a text, got a number/);
  refused([5], /line 0 of the tape must be a text, got a number/);
});

test("lines that are huge, deep or endless are refused or lived soon, and hold no memory", async () => {
  const header = '{"tape":1,"engine":"0.1.0","createdAt":0}\n';
  const from = performance.now();
  const deep = "[".repeat(2_000_000);
  fateOf(`${header}${deep}\n{"x":1}\n`);
  fateOf(`${header}{"run":${deep}${"]".repeat(2_000_000)}}\n{"x":1}\n`);
  fateOf(`${header}{"note":"${"x".repeat(20_000_000)}","at":0,"to":[0,0]}\n`);
  fateOf(`${header}${'{"note":"x","at":0,"to":[0,0]}\n'.repeat(50_000)}`);
  fateOf(`${header}{"note":"x","at":0,"to":[9007199254740991,0]}\n`);
  fateOf(`${header}{"note":"x","at":1e300,"to":[1e300,-5]}\n`);
  fateOf(`${header}{"run":{"runId":"r","sessionId":"s"},"history":[[0,4294967295]]}\n{"x":1}\n`);
  assert.ok(performance.now() - from < 60_000);
  assert.equal(fateOf(await whole()).fate, "lived", "the next one is lived");
});

test("a number of events that is none is not believed", async () => {
  const text = await whole();
  const { events } = Tape.parse(text);
  for (const claimed of ["-5", "1.5", "1e300", '"many"', "null", "{}"]) {
    const tape = Tape.parse(text.replace(/"end":\{"events":\d+/, `"end":{"events":${claimed}`));
    assert.equal(tape.events, events, claimed);
    assert.equal(replay(tape).seek(1).n, 1, claimed);
  }
});

test("the moments of a tape that is refused say the same", async () => {
  const text = (await whole()).replace("a tree", "a bush");
  const tape = Tape.parse(text);
  const error = await replay(tape).result.then(() => undefined, (error) => error);
  assert.ok(error instanceof TapeDivergence);
  assert.throws(() => replay(tape).seek(tape.events), TapeDivergence);
  await assert.rejects(() => fork(tape, { at: tape.events, model: scripted([]) }), TapeDivergence);
  assert.throws(() => cassette(tape).unused, TapeDivergence);
});

test("a cassette of a tape that somebody has changed by hand says which line it does not understand", async () => {
  const lines = (await whole()).trimEnd().split("\n");
  const at = lines.findIndex((line) => line.startsWith('{"rules":'));
  const { rules } = JSON.parse(/** @type {string} */ (lines[at]));
  for (const changed of [{ ...rules, models: null }, { ...rules, models: [{ id: 5 }] }, { ...rules, tools: "__proto__" }, { ...rules, tools: [null] }, null]) {
    const tape = Tape.parse([...lines.slice(0, at), JSON.stringify({ rules: changed }), ...lines.slice(at + 1)]);
    assert.throws(() => cassette(tape).tools(), /a line of the tape cannot be understood .*: \{"rules":/, JSON.stringify(changed));
  }
  for (const added of ['{"model":5}', '{"model":{"provider":"p"}}', '{"model":{"provider":"p","request":{"model":"m","tools":[],"messages":[null]},"events":[]}}', '{"tool":null,"model":{}}']) {
    const tape = Tape.parse([...lines.slice(0, -1), `{"added":${added}}`, /** @type {string} */ (lines.at(-1))]);
    assert.throws(() => cassette(tape).unused, /a line of the tape cannot be understood/, added);
  }
});
