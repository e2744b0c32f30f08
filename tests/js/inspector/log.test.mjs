// @ts-check
// What an inspector shows, without a page: the log of events, its moments, its lanes. The element
// itself is in browser/inspector.test.mjs.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { build as esbuild } from "esbuild";
import { build as vite } from "vite";
import { InspectorLog, TurnwheelInspector } from "../../../pkg/inspector.js";
import { Axis } from "../../../www/npm/inspector/model/axis.js";
import { maskedJson } from "../../../www/npm/inspector/model/mask.js";
import { longRun } from "../browser/inspector/events.mjs";
import { Agent, call, deferred, scripted, settle, subagent, testTool } from "../kit.mjs";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const clone = (/** @type {any} */ value) => JSON.parse(JSON.stringify(value));

/** A log of a long run. @param {number} count @param {any} [options] */
function longLog(count, options) {
  const log = new InspectorLog(options);
  longRun((event, known) => log.push(event, known), { count });
  return log;
}

/**
 * What a checkpoint says of the moment it was taken at, by the words of the run that is restored from it.
 * @param {any} checkpoint @param {any} tools
 */
async function saidBy(checkpoint, tools) {
  const agent = await Agent.restore(checkpoint, { model: scripted([() => new Promise(() => {})]), tools });
  const { messages, pendingQuestions } = agent;
  const known = { messages: clone(messages), questions: pendingQuestions.map(({ id }) => id), resumed: /** @type {any} */ (undefined) };
  if (!agent.canContinue || !JSON.stringify(checkpoint.metadata.turnwheel).includes('"run"')) return known;
  for await (const event of agent.continue()) {
    known.resumed = event.type === "run_resumed" ? clone(event) : undefined;
    break;
  }
  return known;
}

/** Runs an agent, and compares the log at every event with the checkpoint taken there. @param {any} agent @param {(event: any, agent: any) => void} [onEvent] */
async function compare(agent, onEvent) {
  const log = new InspectorLog();
  log.follow(agent);
  /** @type {{ n: number, checkpoint: any, type: string }[]} */
  const taken = [];
  agent.subscribe((/** @type {any} */ event) => {
    taken.push({ n: log.end, checkpoint: agent.checkpoint(), type: event.type });
    onEvent?.(event, agent);
  });
  await agent.prompt("Go");
  assert.equal(taken.at(-1)?.n, log.end);
  let resumed = 0;
  // Backwards, so that nothing is only right because the moment before it was looked at.
  for (const { n, checkpoint, type } of taken.reverse()) {
    const frame = log.frame(n);
    const known = await saidBy(checkpoint, agent.tools);
    assert.equal(frame.event?.type, type);
    // The engine may be ahead of its events; then the checkpoint has what they will say, and they are among what is untold.
    if (checkpoint.metadata.turnwheel.untold?.length > 0) {
      assert.deepEqual(clone(frame.messages), known.messages.slice(0, frame.messageCount), `the history at ${n}, ${type}`);
      continue;
    }
    assert.deepEqual(clone(frame.messages), known.messages, `the history at ${n}, ${type}`);
    assert.deepEqual(frame.pendingQuestions.map(({ id }) => id), known.questions, `the questions at ${n}, ${type}`);
    if (!known.resumed) continue;
    resumed++;
    assert.equal(frame.isRunning, true);
    // Between two turns it goes on with the next one.
    assert.equal(frame.turnIndex + (frame.phase === "between turns" ? 1 : 0), known.resumed.turnIndex, `the turn at ${n}, ${type}`);
    const running = frame.calls.filter(({ state }) => state === "running").map(({ callId }) => callId);
    assert.deepEqual(running, known.resumed.runningTools.map((/** @type {any} */ one) => one.callId), `the running tools at ${n}, ${type}`);
    // A call whose arguments may not be whole is left out of a checkpoint.
    const whole = known.resumed.partialMessage?.content;
    const streaming = clone(frame.streaming ?? []);
    if (whole) assert.deepEqual(streaming.filter((/** @type {any} */ block, /** @type {number} */ i) => i < whole.length || block.type !== "tool_call"), whole, `the answer at ${n}, ${type}`);
  }
  return { log, resumed };
}

test("what is shown at an event is what the checkpoint taken there says: answers, tools, steering", async () => {
  const gate = deferred();
  const agent = new Agent({
    model: scripted([{ thinking: "hm", text: ["one ", "two "], ...call("a", "slow") }, { text: ["three ", "four"] }]),
    tools: [testTool("a", () => "A"), testTool("slow", () => gate.promise)],
  });
  const { resumed } = await compare(agent, (event) => {
    if (event.type === "tool_execution_end" && event.toolName === "a") agent.steer("Hurry.");
    if (event.type === "tool_execution_start" && event.toolName === "slow") gate.resolve("late");
  });
  assert.ok(resumed > 10, `${resumed} moments in the middle of a run`);
});

test("what is shown at an event is what the checkpoint taken there says: questions, failures, retries", async () => {
  const agent = new Agent({
    model: scripted([{ error: { code: "network", message: "gone" } }, { text: "May I?", ...call("pay", "look") }, "Done."]),
    tools: [testTool("pay", () => { throw new Error("no money"); }, { requiresApproval: true }), testTool("look", () => "seen")],
    gate: "prefix", host: { sleep: async () => {} },
  });
  const { log } = await compare(agent, (event) => {
    if (event.type === "tool_approval_requested") void settle().then(() => agent.resolve(event.id, "approve"));
  });
  assert.deepEqual(log.lanes.lanes.map(({ name }) => name), ["model", "retries", "approvals", "pay", "look"]);
  assert.deepEqual(log.lanes.lanes.map(({ rows }) => rows.flat().at(-1)?.kind), ["text", "retry", "approved", "failed", "done"]);
});

test("an agent inside a call has lanes of its own, below its tool, and stands in the moments", async () => {
  let clock = 1_000;
  const host = { now: () => clock++ };
  const inner = () => new Agent({ host, model: scripted([{ text: "I look.", ...call("look") }, "It is there."]), tools: [testTool("look", () => "seen")] });
  const agent = new Agent({ host, model: scripted([call(["research", { prompt: "a" }], ["research", { prompt: "b" }]), "Both are there."]), tools: [subagent({ name: "research", description: "looks", agent: inner })] });
  const { log } = await compare(agent);
  assert.deepEqual(log.lanes.lanes.map(({ name, depth, rows }) => [name, depth, rows.length]), [["model", 0, 1], ["research", 0, 2], ["model", 1, 2], ["look", 1, 2]]);
  const n = Array.from({ length: log.end }, (_, i) => i + 1).find((at) => log.frame(at).inside.length === 2);
  assert.ok(n, "both stand in one moment");
  assert.equal(log.frame(log.end).inside.length, 0);
});

test("the request is the one that was sent, whichever moment is asked for first", async () => {
  /** @type {any[]} */
  const sent = [];
  const log = new InspectorLog();
  const steps = Array.from({ length: 150 }, (_, i) => call(["a", { i }]));
  const agent = new Agent({ model: scripted([...steps, "end"].map((item) => (/** @type {any} */ request) => (sent.push(clone({ systemPrompt: request.systemPrompt, messages: request.messages })), item))), tools: [testTool("a", () => "A")], includeRequests: true, maxTurns: 200, systemPrompt: "Be brief." });
  log.follow(agent);
  await agent.prompt("Go");
  const at = Array.from({ length: log.end }, (_, i) => i + 1).filter((n) => log.event(n)?.type === "before_llm_call");
  assert.equal(at.length, sent.length);
  for (const index of [150, 3, 64, 63, 65, 128, 0]) {
    const { systemPrompt, messages } = clone(log.frame((at[index] ?? 0) + 1).request);
    assert.deepEqual({ systemPrompt, messages }, sent[index], `request ${index}`);
  }
  assert.equal(log.frame(1).request, undefined);
  // What they share is kept once: without that, these would be 150 × 150 messages.
  assert.ok(log.requests.kept.reduce((sum, { rest }) => sum + rest.length, 0) < 151 * 5 + 3 * 310);
});

test("20,000 events: a moment costs no more than the events of its turn, an event no more than the first ones", () => {
  const log = longLog(20_000);
  const { AgentState } = { AgentState: /** @type {any} */ (log.state).constructor };
  let taken = 0;
  const take = AgentState.prototype.take;
  AgentState.prototype.take = function (/** @type {any} */ event) {
    taken++;
    return take.call(this, event);
  };
  let most = 0;
  for (let i = 0; i < 200; i++) {
    taken = 0;
    log.frame((i * 7919) % log.end);
    most = Math.max(most, taken);
  }
  AgentState.prototype.take = take;
  assert.ok(most > 100 && most < 2 * 256, `${most} events for one moment`);
});

test("a moment is the same however one gets there", () => {
  const log = longLog(1_200);
  const plain = (/** @type {number} */ n) => clone({ ...log.frame(n), messages: log.frame(n).messages, request: log.frame(n).request });
  const forwards = Array.from({ length: log.end + 1 }, (_, n) => plain(n));
  for (let n = log.end; n >= 0; n -= 37) assert.deepEqual(plain(n), forwards[n]);
  assert.equal(log.frame(-5).n, 0);
  assert.equal(log.frame(1e9).n, log.end);
});

test("beyond its limit a log forgets the oldest events, and what is left is as it was", () => {
  const [whole, short] = [longLog(6_000), longLog(6_000, { limit: 1_000 })];
  assert.equal(short.end, whole.end);
  assert.ok(short.end - short.first >= 1_000 && short.end - short.first <= 1_512, `${short.end - short.first} events are left`);
  for (let n = short.first; n <= short.end; n += 13) {
    const [a, b] = [short.frame(n), whole.frame(n)];
    assert.deepEqual(clone({ ...a, messages: a.messages }), clone({ ...b, messages: b.messages, event: n === short.first ? undefined : b.event, at: n === short.first ? a.at : b.at }));
  }
  assert.ok(short.lanes.rows.length < whole.lanes.rows.length / 3);
  assert.throws(() => new InspectorLog(/** @type {any} */ ({ limits: 3 })), /`limits`|limit/);
});

test("idle time between runs is cut out, all but a moment; within runs every time has its place", () => {
  const axis = new Axis([{ start: 0, end: 1000 }, { start: 3_601_000, end: 3_602_000 }, { start: 3_602_100, end: 3_603_000 }]);
  assert.equal(axis.toLine(500), 500);
  assert.equal(axis.toLine(3_601_000), 1300);
  assert.equal(axis.toLine(3_602_500), 2800);
  for (const time of [0, 1000, 1_800_000, 3_601_000, 3_602_050, 3_603_000]) assert.ok(Math.abs(axis.toTime(axis.toLine(time)) - time) < 1e-3, String(time));
});

test("a run that was interrupted and goes on is one run, without the time in which it lay", () => {
  const log = new InspectorLog();
  const push = (/** @type {any} */ event, /** @type {number} */ at) => log.push({ runId: "r", ...event }, { at });
  push({ type: "agent_start" }, 1_000);
  push({ type: "turn_start", turnIndex: 0 }, 1_001);
  push({ type: "message_start" }, 1_500);
  push({ type: "run_resumed", turnIndex: 0, pendingApprovals: [], runningTools: [] }, 901_000);
  push({ type: "message_start" }, 901_200);
  push({ type: "agent_end", messages: [], stopReason: "completed", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }, turns: 1 }, 902_000);
  push({ type: "agent_start" }, 990_000);
  assert.deepEqual(log.lanes.runs.map(({ start, end, n }) => [start, end, n]), [[1_000, 902_000, 1], [990_000, Infinity, 7]]);
  assert.deepEqual(log.lanes.parts.map(({ start, end }) => [start, end]), [[1_000, 1_500], [901_000, 902_000], [990_000, Infinity]]);
  assert.equal(new Axis(log.lanes.parts).toLine(902_000) - 1_000, 500 + 300 + 1_000);
});

test("what looks like a key is not drawn", () => {
  const shown = maskedJson({ "x-api-key": "abc", text: "use sk-not-a-key-but-as-long-as-one or Bearer abcdefghij.klm", authorization: "Basic x" });
  for (const secret of ["abc\"", "not-a-key", "abcdefghij", "Basic"]) assert.ok(!shown.includes(secret), shown);
  assert.ok(shown.includes("use ••• or Bearer •••"));
});

test("a log follows one agent after the other, and says where it was steered", async () => {
  const log = new InspectorLog();
  const first = new Agent({ model: scripted(["one"]) });
  const stop = log.follow(first);
  await first.prompt("Go");
  stop();
  const second = new Agent({ model: scripted(["two"]), messages: [...first.messages] });
  log.follow(second);
  await second.prompt("Go on");
  log.mark("note", "seen");
  assert.deepEqual(log.frame(log.end).messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
  assert.deepEqual(log.lanes.marks.map(({ kind, text }) => `${kind} ${text}`), ["said Go", "said Go on", "note seen"]);
  assert.equal(log.lanes.runs.length, 2);
  assert.throws(() => log.mark(/** @type {any} */ ("wave"), "x"), /a mark is one of/);
  assert.throws(() => log.push(/** @type {any} */ ({})), /takes events/);
});

test("on a server the module can be imported, and the package names it as a side effect", () => {
  assert.equal(typeof TurnwheelInspector, "function");
  const { sideEffects, exports } = JSON.parse(readFileSync(here("../../../pkg/package.json"), "utf8"));
  assert.ok(sideEffects.includes("./inspector.js"));
  assert.equal(exports["./inspector"].default, "./inspector.js");
});

test("a bundle keeps the element where it is imported, and an app that does not import it has none of it", { timeout: 60_000 }, async () => {
  const folder = here("../../out/inspector/app");
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  if (!existsSync(join(folder, "node_modules/turnwheel"))) symlinkSync(here("../../../pkg"), join(folder, "node_modules/turnwheel"), "dir");
  writeFileSync(join(folder, "with.js"), 'import "turnwheel/inspector";\nimport { RemoteAgent } from "turnwheel/remote";\ndocument.querySelector("turnwheel-inspector").source = new RemoteAgent({ url: "/agent" });\n');
  writeFileSync(join(folder, "without.js"), 'import { Agent } from "turnwheel";\nglobalThis.agent = Agent;\n');
  const bundled = {
    esbuild: async (/** @type {string} */ file) => (await esbuild({ entryPoints: [join(folder, file)], bundle: true, format: "esm", minify: true, write: false, outdir: folder, splitting: true, preserveSymlinks: true, external: ["*.wasm"] })).outputFiles.map(({ text }) => text).join(""),
    vite: async (/** @type {string} */ file) => {
      const built = /** @type {any} */ (await vite({ configFile: false, root: folder, logLevel: "silent", resolve: { preserveSymlinks: true }, build: { write: false, rollupOptions: { input: join(folder, file) } } }));
      return [built].flat().flatMap(({ output }) => output).map((/** @type {any} */ { code }) => code ?? "").join("");
    },
  };
  for (const [name, bundle] of Object.entries(bundled)) {
    const [whole, none] = [await bundle("with.js"), await bundle("without.js")];
    assert.match(whole, /customElements/, `${name} keeps the element`);
    assert.match(whole, /inspector-lanes-height/);
    assert.doesNotMatch(none, /turnwheel-inspector|inspector-lanes-height/, `${name} adds nothing to an app without it`);
  }
});

test("it is at most 30 KB", async () => {
  // What reads tapes is loaded when there is one.
  const { outputFiles } = await esbuild({ entryPoints: [here("../../../pkg/inspector.js")], bundle: true, format: "esm", minify: true, write: false, external: ["./tape.js"] });
  const bytes = outputFiles.reduce((sum, { contents }) => sum + brotliCompressSync(contents, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length, 0);
  console.log(`the inspector, minified, with what it shares with the package: ${bytes} bytes after brotli`);
  assert.ok(bytes < 30_000, `${bytes} bytes`);
});
