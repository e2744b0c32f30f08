// @ts-check
// Several copies of the package in one process work together, and one of another version is named.

import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "vite";

const PACKAGE = fileURLToPath(new URL("../../../pkg", import.meta.url));
const folder = await mkdtemp(join(tmpdir(), "copies-"));
after(() => rm(folder, { recursive: true }));

/** A copy of the package: the function imports an entry of it. @param {string} name @param {(text: string) => string} [change] of its scripts */
async function copyOf(name, change) {
  const to = join(folder, name);
  await cp(PACKAGE, to, { recursive: true, filter: (path) => !/\/(?:docs|skills|create)$/.test(path) });
  for (const file of change ? await readdir(to, { recursive: true }) : []) {
    if (!file.endsWith(".js")) continue;
    const text = await readFile(join(to, file), "utf8");
    if (change) await writeFile(join(to, file), change(text));
  }
  return (/** @type {string} */ entry) => /** @type {Promise<any>} */ (import(pathToFileURL(join(to, entry)).href));
}

const [one, two] = await Promise.all([copyOf("one"), copyOf("two")]);
const older = await copyOf("older", (text) => text.replaceAll('"0.1.0"', '"0.0.9"'));
const [{ Agent, scripted, subagent, tool }, other] = await Promise.all([one("entry/node.js"), two("entry/node.js")]);
const ask = () => scripted([{ toolCalls: [{ toolName: "pay" }] }, "It is paid."]);

/** An agent of a copy that asks before it pays. @param {any} copy */
const clerkOf = (copy) => () => new copy.Agent({ model: ask(), tools: [copy.tool({ name: "pay", description: "Pays", parameters: { type: "object" }, requiresApproval: true, execute: () => "paid" })] });

/** Runs an agent of the first copy that delegates to a tool. @param {any} delegate */
async function delegated(delegate) {
  const boss = new Agent({ model: scripted([{ toolCalls: [{ toolName: "clerk", arguments: { prompt: "Pay" } }] }, "Done."]), tools: [delegate] });
  const run = boss.prompt("Pay the bill");
  const asked = [];
  for await (const event of run) {
    for (const { id } of boss.pendingQuestions) if (!asked.includes(id)) (asked.push(id), boss.resolve(id, "approve"));
    if (event.type === "agent_end") break;
  }
  const { text } = await run.result;
  return { text, asked: asked.length };
}

test("an agent of one copy runs inside a call of an agent of another, and its questions are answered", async () => {
  const definition = { name: "clerk", description: "Pays bills", agent: clerkOf(other) };
  assert.deepEqual(await delegated(other.subagent(definition)), { text: "Done.", asked: 1 });
  assert.deepEqual(await delegated(subagent(definition)), { text: "Done.", asked: 1 });
  assert.deepEqual(await delegated(other.subagent({ ...definition, agent: clerkOf({ Agent, tool }) })), { text: "Done.", asked: 1 });
});

test("an agent takes a reducer of another copy", async () => {
  const agent = new Agent({ model: scripted(["Yes."]), transformContext: other.keepLast(2) });
  assert.equal((await agent.prompt("Is it there?")).text, "Yes.");
});

test("a copy records, serves and translates the runs of another", async () => {
  const [{ record }, { agentHandler }, { RemoteAgent }, { toAGUI }] = await Promise.all(["tape.js", "server.js", "remote.js", "ag-ui.js"].map(two));
  const agent = new Agent({ model: scripted(["Hello.", "Again."]) });
  const recorder = await record(agent);
  await agent.prompt("Hi");
  recorder.stop();
  assert.ok(recorder.toTape().events > 0);
  const handler = agentHandler(new Agent({ model: scripted(["Served."]) }));
  const remote = new RemoteAgent({ url: "http://a.localhost/x", fetch: (/** @type {string} */ url, /** @type {object} */ init) => handler(new Request(url, init)) });
  assert.equal((await remote.prompt("Hi")).text, "Served.");
  let count = 0;
  for await (const _ of toAGUI(agent.prompt("Hi"))) count++;
  assert.ok(count > 3);
});

test("answers of every kind are read by whichever copy is asked", async () => {
  const { Agent: Other, scripted: script } = other;
  const agent = new Other({ model: script([{ toolCalls: [{ toolName: "look" }] }, "Seen."]), tools: [{ name: "look", description: "Looks", parameters: { type: "object" } }] });
  const run = agent.prompt("Look");
  for await (const event of run) if (event.type === "question_asked") agent.resolve(event.id, { output: "a tree" });
  assert.equal((await run.result).text, "Seen.");
});

test("a process has one listener of its end, whatever the number of copies", () => {
  assert.equal(process.listeners("exit").filter((listener) => String(listener).includes("turnwheel")).length, 1);
});

test("what another version has made is refused with both versions", async () => {
  const [old, { recordNow, ready }] = await Promise.all([older("entry/node.js"), two("tape.js")]);
  const wanted = /was made by turnwheel 0\.0\.9, and this copy is turnwheel 0\.1\.0: install one version/;
  const definition = { name: "clerk", description: "Pays bills", agent: clerkOf(old) };
  assert.throws(() => new Agent({ model: scripted([]), tools: [old.subagent(definition)] }), wanted);
  await ready();
  assert.throws(() => recordNow(new old.Agent({ model: old.scripted([]) })), wanted);
  const boss = new Agent({ model: scripted([{ toolCalls: [{ toolName: "clerk", arguments: { prompt: "Pay" } }] }, "Done."]), tools: [subagent(definition)] });
  const { messages } = await boss.prompt("Pay");
  assert.match(JSON.stringify(messages), wanted);
});

test("late chunks that import the page's script under another address work for both copies of it", async () => {
  // Bundlers put the core into the app's own script, and late chunks import it back from there.
  const app = join(folder, "app");
  await cp(join(folder, "one"), join(app, "node_modules/turnwheel"), { recursive: true });
  await writeFile(join(app, "app.mjs"), `
    import { Agent, keepLast, scripted, subagent, tool } from "turnwheel";
    const pay = tool({ name: "pay", description: "Pays", parameters: { type: "object" }, requiresApproval: true, execute: () => "paid" });
    const choose = tool({ name: "choose", description: "Chooses", parameters: { type: "object", properties: { place: { type: "string", pattern: "^h(er|is)e$" } } },
      execute: async (args, context) => JSON.stringify(await context.ask({ message: "Which?", schema: { type: "object", properties: {} } })) });
    const clerk = () => new Agent({ model: scripted([{ toolCalls: [{ toolName: "pay" }] }, "It is paid."]), tools: [pay] });
    const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "clerk", arguments: { prompt: "Pay" } }, { toolName: "look" }, { toolName: "choose", arguments: { place: "here" } }] }, "Done."]),
      transformContext: keepLast(3), prepareTurn: () => ({ systemPrompt: "Be kind." }), tools: [choose, subagent({ name: "clerk", description: "Pays bills", agent: clerk }), { name: "look", description: "Looks", parameters: { type: "object" } }] });
    const run = agent.prompt("Pay");
    (async () => { for await (const event of run) for (const { id, kind } of agent.pendingQuestions) agent.resolve(id, { tool_call: { output: "a tree" }, elicitation: { action: "decline" }, tool: "approve" }[kind]); })();
    (globalThis.ended ??= []).push(run.result);
  `);
  await build({
    root: app, logLevel: "error", configFile: false, ssr: { noExternal: true },
    build: { ssr: "app.mjs", outDir: "dist", minify: false, rollupOptions: { output: { entryFileNames: "app.js", chunkFileNames: "[name]-[hash].js", format: "es" } } },
  });
  const scripts = (await readdir(join(app, "dist"), { recursive: true })).filter((name) => name.endsWith(".js"));
  const texts = await Promise.all(scripts.filter((name) => name !== "app.js").map((name) => readFile(join(app, "dist", name), "utf8")));
  assert.ok(texts.some((text) => /from ["']\.\.?\/app\.js["']/.test(text)), "no late chunk imports the app's script: the test tests nothing");
  for (const name of await readdir(PACKAGE)) if (name.endsWith(".wasm")) await cp(join(PACKAGE, name), join(app, "dist", name));
  await import(`${pathToFileURL(join(app, "dist/app.js")).href}?ver=6.8`);
  const ended = /** @type {any} */ (globalThis).ended;
  assert.equal((await ended[0]).text, "Done.");
  // The second copy is the script that the late chunks have imported: it has begun a run of its own.
  assert.equal(ended.length, 2);
  assert.equal((await ended[1]).text, "Done.");
});
