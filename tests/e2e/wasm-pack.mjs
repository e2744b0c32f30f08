// @ts-check
// The crate web/pkg as a package that the tool wasm-pack makes. The same files in Chromium and in workerd, against our own model
// server on loopback: `fetch` streams the answer, two tools run at once, events reach a function, a signal stops a run.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { Miniflare } from "miniflare";
import { chromium } from "playwright-core";
import { ROOT, site } from "../examples/kit.mjs";
import { calls, serve, textAnswer } from "../js/server.mjs";

const VERSION = "0.15.1";
const HOME = join(ROOT, "target/e2e-wasm-pack");
const OUT = join(HOME, "pkg");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];

/** @param {string} command @param {string[]} words @param {any} [env] */
function call(command, words, env = {}) {
  const limits = { timeout: 20 * 60_000, maxBuffer: 1 << 26 };
  return spawnSync(command, words, { cwd: ROOT, encoding: "utf8", ...limits, env: { ...process.env, ...env } });
}

/** Compiles wasm-pack, unless it is there. Returns the reason if that is not possible. */
function tool() {
  const folders = ["--root", HOME, "--target-dir", join(HOME, "target")];
  const install = ["install", "wasm-pack", "--version", VERSION, "--locked", "--debug", ...folders];
  const { status, stderr, error } = call("cargo", install);
  const reason = error?.message ?? stderr.trim().split("\n").at(-1);
  return status === 0 ? false : `cargo cannot install wasm-pack ${VERSION}: ${reason}`;
}

/** Makes the package. wasm-pack installs nothing: wasm-bindgen is the one of Cargo.lock, and the first on its PATH. */
async function build() {
  const compiled = call("cargo", ["build", "--quiet", "--package", "bindgen-cli", "--bin", "bindgen"]);
  assert.equal(compiled.status, 0, compiled.stderr);
  const target = join(ROOT, process.env["CARGO_TARGET_DIR"] ?? "target");
  await copyFile(join(target, "debug/bindgen"), join(HOME, "bin/wasm-bindgen"));
  await rm(OUT, { recursive: true, force: true });
  const how = ["--target", "web", "--mode", "no-install", "--release", "--out-name", "turnwheel", "--out-dir", OUT];
  const PATH = `${join(HOME, "bin")}${delimiter}${process.env["PATH"]}`;
  const made = call(join(HOME, "bin/wasm-pack"), ["build", "web/pkg", ...how, "--", "--locked"], { PATH });
  assert.equal(made.status, 0, made.stderr);
}

/** Runs in the page and in the Worker. Each tool waits for the other: one at a time they would wait for ever. */
const RUN = `
export async function play(Agent, baseUrl) {
  const events = [], begun = {};
  const both = ["north", "south"].map((name) => new Promise((resolve) => (begun[name] = resolve)));
  const tool = (name) => ({
    name, description: "Looks " + name,
    parameters: { type: "object", properties: { at: { type: "number" } } },
    async execute({ at }, { update }) { begun[name](); await Promise.all(both); update(name); return { name, at }; },
  });
  const agent = new Agent({ model: "test", baseUrl, systemPrompt: "Be brief.", tools: [tool("north"), tool("south")] });
  const result = await agent.prompt("Look around", (event) => {
    events.push(event);
    if (events.length === 1) throw new Error("a listener that throws");
  });
  return { events, result, messages: agent.messages };
}

export async function stop(Agent, baseUrl) {
  const controller = new AbortController();
  const onEvent = ({ type, delta }) => { if (type === "message_update" && delta?.type === "text") controller.abort(); };
  return new Agent({ model: "test", baseUrl }).prompt("A story", onEvent, controller.signal);
}

const WRONG = [{}, { model: "m", wire: "opnai" }, { model: "m", tools: {} }, { model: "m", tools: [{ name: "a" }] }];
export const misuse = (Agent) => WRONG.map((options) => {
  try { return void new Agent(options); } catch (error) { return error.message; }
});
`;
const WORKER = `
import init, { Agent } from "./turnwheel.js";
import wasm from "./turnwheel_bg.wasm";
import * as played from "./run.js";
export default { async fetch(request) {
  await init({ module_or_path: wasm });
  const { searchParams } = new URL(request.url);
  return Response.json(await played[searchParams.get("what")](Agent, searchParams.get("at")));
} };
`;

/** @typedef {(what: string, baseUrl?: string) => Promise<any>} Host */

/** @param {any} t @returns {Promise<Host>} */
async function page(t) {
  await writeFile(join(OUT, "index.html"), "<!doctype html>");
  const address = await site(OUT, t);
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.goto(address);
  return (what, at) => page.evaluate(`(async () => {
    const [{ default: init, Agent }, played] = await Promise.all([import("/turnwheel.js"), import("/run.js")]);
    await init();
    return played.${what}(Agent, ${JSON.stringify(at)});
  })()`);
}

/** @param {any} t @returns {Promise<Host>} */
async function worker(t) {
  const text = (/** @type {string} */ name) => readFile(join(OUT, name), "utf8");
  const module = /** @type {const} */ ("ESModule");
  const host = new Miniflare({
    cf: false, compatibilityDate: "2026-07-01",
    modules: [
      { type: module, path: "worker.js", contents: WORKER },
      { type: module, path: "run.js", contents: RUN },
      { type: module, path: "turnwheel.js", contents: await text("turnwheel.js") },
      { type: "CompiledWasm", path: "turnwheel_bg.wasm", contents: await readFile(join(OUT, "turnwheel_bg.wasm")) },
    ],
  });
  t.after(() => host.dispose());
  return async (what, at = "") => {
    const answer = await host.dispatchFetch(`http://worker.example/?${new URLSearchParams({ what, at })}`);
    return answer.json();
  };
}

const missing = tool();

test("wasm-pack makes a package of the crate, with types", { skip: missing, timeout: 40 * 60_000 }, async () => {
  await mkdir(join(HOME, "bin"), { recursive: true });
  await build();
  await writeFile(join(OUT, "run.js"), RUN);
  const { name, type, main, types } = JSON.parse(await readFile(join(OUT, "package.json"), "utf8"));
  assert.deepEqual([name, type, main, types], ["turnwheel-web-pkg", "module", "turnwheel.js", "turnwheel.d.ts"]);
  const declared = await readFile(join(OUT, "turnwheel.d.ts"), "utf8");
  assert.match(declared, /constructor\(options: Options\)/);
  const prompt = "prompt(text: string, onEvent: (event: Event) => void, signal?: AbortSignal | null): Promise<Result>";
  assert.ok(declared.includes(prompt), declared);
});

for (const [name, start] of /** @type {const} */ ([["Chromium", page], ["workerd", worker]])) {
  test(`it runs in ${name}`, { skip: missing, timeout: 120_000 }, async (t) => {
    const host = await start(t);
    const half = textAnswer(["Once upon", "never"]);
    const model = await serve(t, [
      calls(["north", '{"at":1}', "a"], ["south", '{"at":2}', "b"]),
      { body: textAnswer(["It is ", "flat."]), cut: 5 },
      { body: half, silent: half.indexOf("\n\n") + 2 },
    ], { cors: true });

    const { events, result, messages } = await host("play", model.baseUrl);
    const types = events.map((/** @type {any} */ event) => event.type);
    assert.deepEqual([types[0], types.at(-1)], ["agent_start", "agent_end"]);
    const ran = types.filter((/** @type {string} */ type) => type.startsWith("tool_execution"));
    assert.deepEqual(ran, ["start", "start", "update", "update", "end", "end"].map((kind) => `tool_execution_${kind}`));
    const pieces = events.flatMap((/** @type {any} */ { delta }) => delta?.type === "text" ? [delta.delta] : []);
    assert.deepEqual(pieces, ["It is ", "flat."]);
    assert.equal(new Set(events.map((/** @type {any} */ event) => event.runId)).size, 1);
    assert.equal(result.stopReason, "completed");
    assert.equal(messages.length, 5);
    const [system, , , north, south] = model.requests[1]?.body.messages;
    assert.equal(system.content, "Be brief.");
    assert.deepEqual([north.content, south.content], ['{"name":"north","at":1}', '{"name":"south","at":2}']);

    assert.equal((await host("stop", model.baseUrl)).stopReason, "aborted");
    assert.equal(await model.requests[2]?.closed, "left");

    const [none, wire, list, tool] = await host("misuse");
    assert.match(none, /^the options of an agent: .*missing field `model`/);
    assert.match(wire, /opnai/);
    assert.equal(list, "`tools` of an agent must be an array");
    assert.match(tool, /^this is no tool: .*missing field `description`/);
  });
}
