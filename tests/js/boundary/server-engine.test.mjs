// The server engine: who runs in it, when it is loaded, and what it says where it cannot be had.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { Agent, call, scripted, subagent } from "../kit.mjs";
import { record } from "../../../pkg/tape.js";

const PACKAGE = fileURLToPath(new URL("../../../pkg/", import.meta.url));
const home = await mkdtemp(join(tmpdir(), "turnwheel-server-engine-"));
after(() => rm(home, { recursive: true }));

const step = async (_name, work) => work();
/** The result of a call of an agent that this makes. */
async function called(agent, options = {}) {
  const outer = new Agent({ model: scripted([call(["helper", { prompt: "Go" }]), "done"]), tools: [subagent({ name: "helper", description: "Helps", agent })], ...options });
  await outer.prompt("Go");
  return outer.messages.find(({ role }) => role === "tool_result").content[0].text;
}

/** Runs code that imports the package in a process of its own. */
async function alone(code, format = "esm", conditions = ["node"]) {
  const out = join(home, format === "cjs" ? "bundle.cjs" : "bundle.mjs");
  await build({ stdin: { contents: code, resolveDir: PACKAGE }, outfile: out, bundle: true, format, platform: "node", conditions, logLevel: "silent", logOverride: { "empty-import-meta": "silent" } });
  return (await promisify(execFile)(process.execPath, [out], { cwd: home })).stdout.trim();
}

test("an agent inside a call runs in the engine of the agent around it, or says why it cannot", async () => {
  const inner = (options) => () => new Agent({ model: scripted(["inner"]), host: { step }, ...options });
  assert.equal(await called(inner({})), "Sub-agent error: `host.step` needs the server engine, and an agent that runs inside a call lives in the engine of the agent around it: do the same there, or set `isolate: true` here");
  assert.equal(await called(inner({ isolate: true })), "inner");
  assert.equal(await called(inner({}), { host: { step } }), "inner");
  assert.equal(await called(inner({ host: {} }), { host: { step } }), "inner");
});

test("a recorded agent inside a call of one that is not recorded says so", async () => {
  const recorded = (options) => async () => {
    const agent = new Agent({ model: scripted(["inner"]), ...options });
    await record(agent);
    return agent;
  };
  assert.equal(await called(recorded({})), "tool `helper` failed: the agent is recorded, and an agent that runs inside a call lives in the engine of the agent around it: record that one, whose tape has those of the agents inside, or set `isolate: true` here");
  assert.equal(await called(recorded({ isolate: true })), "inner");
});

test("an agent with steps that comes from a checkpoint goes on in the server engine, with its letters", async () => {
  const options = () => ({ model: scripted(["one", "two"]), host: { step } });
  const first = new Agent(options());
  await first.prompt("1");
  const second = await Agent.restore(first.checkpoint(), { model: scripted(["more"]), host: { step } });
  const receipt = second.followUp("2");
  await second.continue();
  assert.equal((await receipt).delivered, true);
  assert.deepEqual(second.messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
});

test("an agent without either never asks for it", async () => {
  const code = `
    import { Agent, scripted } from "./entry/node.js";
    import { use } from "./tape.js";
    use(() => { throw new Error("asked"); });
    console.log((await new Agent({ model: scripted(["fine"]) }).prompt("Go").result).text);
    console.log((await new Agent({ model: scripted(["fine"]), host: { step: async (_, work) => work() } }).prompt("Go").result).error.message);`;
  await writeFile(join(home, "turnwheel.wasm"), await (await import("node:fs/promises")).readFile(join(PACKAGE, "turnwheel.wasm")));
  assert.equal(await alone(code), "fine\nasked");
});

test("a bundle runs without the server engine; an agent that needs it gets an error that names the file", async () => {
  const runs = `
    (async () => {
      console.log((await new Agent({ model: scripted(["fine"]) }).prompt("Go").result).text);
      console.log((await new Agent({ model: scripted(["fine"]), host: { step: async (_, work) => work() } }).prompt("Go").result).error.message);
    })();`;
  const missing = (why) => `fine\nturnwheel-server.wasm, the engine of agents that are recorded or have \`host.step\`, cannot be read: ${why}; copy it there, or say with \`use\` of turnwheel/tape or turnwheel/durable where it is; on Cloudflare Workers that is what an import of turnwheel/turnwheel-server.wasm gives`;
  for (const format of ["esm", "cjs"]) assert.equal(await alone(`import { Agent, scripted } from "./inline.js";${runs}`, format), missing("turnwheel/inline has no files beside it"));
  const left = await alone(`import { Agent, scripted } from "./entry/node.js";${runs}`);
  assert.equal(left, missing(/ENOENT: no such file or directory, open '\S+turnwheel-server\.wasm'/.exec(left)?.[0]));
});

test("turnwheel/tape loads in a CommonJS bundle, and records after `use` gave the file", async () => {
  const code = `
    import { readFileSync } from "node:fs";
    import { Agent, scripted, use as usePage } from "./slim.js";
    import { record, use } from "./tape.js";
    usePage(() => readFileSync(${JSON.stringify(join(PACKAGE, "turnwheel.wasm"))}));
    use(() => readFileSync(${JSON.stringify(join(PACKAGE, "turnwheel-server.wasm"))}));
    (async () => {
      const agent = new Agent({ model: scripted(["fine"]) });
      const recorder = await record(agent);
      await agent.prompt("Go");
      console.log(recorder.toTape().events > 0);
    })();`;
  assert.equal(await alone(code, "cjs"), "true");
});

test("a Worker carries it only if it has Workflows or another durable engine", async () => {
  const carries = async (line) => {
    const contents = `import { Agent } from "./entry/workerd.js"; ${line} globalThis.held = [Agent, held];`;
    const { outputFiles } = await build({ stdin: { contents, resolveDir: PACKAGE }, bundle: true, write: false, format: "esm", conditions: ["workerd"], external: ["*.wasm", "cloudflare:*"], logLevel: "silent" });
    return /import\("[^"]*turnwheel-server\.wasm"\)/.test(outputFiles[0].text);
  };
  assert.equal(await carries("const held = 1;"), false);
  assert.equal(await carries('import { DurableAgent as held } from "./cloudflare.js";'), false);
  assert.equal(await carries('import { workflowHost as held } from "./cloudflare.js";'), true);
  assert.equal(await carries('import { restate as held } from "./durable-workerd.js";'), true);
});
