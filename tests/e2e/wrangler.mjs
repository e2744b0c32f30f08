// @ts-check
// The examples of agents in a Durable Object and in a Workflow with what npm installs for its package.json on this Node (on Node 20 that is
// Wrangler 4.86): its types under strict, what it would deploy, and `wrangler dev`, stopped and started again.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import { RemoteAgent } from "../../pkg/remote.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HOME = join(resolve(ROOT, process.env["CARGO_TARGET_DIR"] ?? "target"), "e2e-wrangler");
/** The size of what the Worker ships besides the package: the server half and the example. */
const OWN = 28_000;
/** @type {any} */
const env = { ...process.env, HOME, CI: "1", WRANGLER_SEND_METRICS: "false", NO_COLOR: "1" };

/** Sets up the example as a project of its own. Returns the reason if that is not possible. */
function prepare() {
  mkdirSync(HOME, { recursive: true });
  const { dependencies, ...asked } = JSON.parse(readFileSync(join(ROOT, "www/examples/durable-object/package.json"), "utf8"));
  assert.deepEqual(Object.keys(dependencies), ["turnwheel"]);
  writeFileSync(join(HOME, "package.json"), JSON.stringify(asked));
  const names = Object.keys(asked.devDependencies);
  if (!names.every((name) => existsSync(join(HOME, "node_modules", name)))) {
    const { status, stderr } = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: HOME, encoding: "utf8" });
    if (status !== 0) return `npm cannot install wrangler, or what is beside it: ${stderr?.trim().split("\n").at(-1)}`;
  }
  // The output of an earlier build must not be counted.
  for (const old of ["out", "node_modules/turnwheel"]) rmSync(join(HOME, old), { recursive: true, force: true });
  cpSync(join(ROOT, "www/examples/durable-object"), HOME, { recursive: true, filter: (path) => !path.endsWith("package.json") });
  cpSync(join(ROOT, "www/examples/workflow"), join(HOME, "workflow"), { recursive: true });
  cpSync(join(ROOT, "pkg"), join(HOME, "node_modules/turnwheel"), { recursive: true });
}

const missing = prepare();
const wrangler = join(HOME, "node_modules/wrangler/bin/wrangler.js");

test("the examples are right under strict, with Cloudflare's types", { skip: missing }, () => {
  for (const cwd of [HOME, join(HOME, "workflow")]) {
    const { status, stdout } = spawnSync(process.execPath, [join(HOME, "node_modules/typescript/bin/tsc")], { cwd, encoding: "utf8" });
    assert.deepEqual([stdout, status], ["", 0]);
  }
});

test("every example asks for a compatibility date that this Wrangler knows", { skip: missing }, () => {
  const { version } = JSON.parse(readFileSync(join(HOME, "node_modules/workerd/package.json"), "utf8"));
  const [, year, month, day] = /^\d+\.(\d{4})(\d\d)(\d\d)\./.exec(version) ?? [];
  const examples = readdirSync(join(ROOT, "www/examples")).flatMap((name) => ["wrangler.jsonc", "wrangler.toml", "package.json"].map((file) => join(ROOT, "www/examples", name, file)));
  const dates = examples.filter((file) => existsSync(file)).flatMap((file) => [...readFileSync(file, "utf8").matchAll(/compatibility.date\W+(\d{4}-\d\d-\d\d)/g)].map(([, date]) => ({ file, date: date ?? "" })));
  assert.ok(dates.length >= 3);
  for (const { file, date } of dates) assert.ok(date <= `${year}-${month}-${day}`, `${file} asks for ${date}, workerd is ${version}`);
});

test("what would be deployed is within the budget", { skip: missing }, () => {
  const said = execFileSync(process.execPath, [wrangler, "deploy", "--dry-run", "--minify", "--outdir", "out"], { cwd: HOME, env, encoding: "utf8" });
  assert.match(said, /Total Upload/);
  const files = readdirSync(join(HOME, "out")).filter((name) => /\.(js|wasm)$/.test(name));
  assert.equal(files.filter((name) => name.endsWith(".wasm")).length, 1);
  const size = files.reduce((sum, name) => sum + brotliCompressSync(readFileSync(join(HOME, "out", name))).length, 0);
  const budget = Number(/^everything = (\d+)/m.exec(readFileSync(join(ROOT, "wasm-pack.toml"), "utf8"))?.[1]);
  console.log(`# ${size} bytes after brotli; ${/Total Upload.*/.exec(said)?.[0]}`);
  assert.ok(size <= budget + OWN, `${size} bytes, of which ${budget + OWN} are allowed`);
});

/** Returns a free port. @returns {Promise<number>} */
const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = /** @type {any} */ (server.address());
    server.close(() => resolve(port));
  });
});

/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
after(() => { for (const child of running) stop(child); });

/** @param {import("node:child_process").ChildProcess} child */
function stop(child) {
  running.delete(child);
  const ended = new Promise((resolve) => child.once("close", resolve));
  // Kills it and the workerd that it started.
  try { process.kill(-(/** @type {number} */ (child.pid)), "SIGKILL"); } catch { /* It has ended. */ }
  return ended;
}

/** @param {number} port @param {string} [cwd] @param {string} [path] what is asked until it answers */
async function dev(port, cwd = HOME, path = `agents/e2e-${port}/state`) {
  const child = spawn(process.execPath, [wrangler, "dev", "--local", "--ip", "127.0.0.1", "--port", String(port), "--inspector-port", "0", "--persist-to", join(HOME, "state")], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece) => (said = (said + piece).slice(-4000)));
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`wrangler dev ended:\n${said}`);
    const response = await fetch(`http://127.0.0.1:${port}/${path}`).catch(() => {});
    if (response && response.status < 500) return { child, agent: new RemoteAgent({ url: `http://127.0.0.1:${port}/agents/e2e-${port}` }) };
    await pause(100);
  }
  throw new Error(`wrangler dev does not answer:\n${said}`);
}

test("wrangler dev serves it; ended while a question waits, it asks on when it is back", { skip: missing, timeout: 180_000 }, async () => {
  const port = await freePort();
  const first = await dev(port);
  assert.equal((await first.agent.prompt("Hello")).text, "You said: Hello");
  for await (const event of first.agent.prompt("A refund, please")) if (event.type === "tool_approval_requested") { first.agent[Symbol.dispose](); break; }
  await stop(first.child);
  const second = await dev(port);
  await second.agent.ready();
  assert.deepEqual(second.agent.pendingApprovals.map(({ toolName }) => toolName), ["refund"]);
  const { callId } = /** @type {any} */ (second.agent.pendingApprovals[0]);
  second.agent.subscribe(() => {});
  await second.agent.resolveTool(callId, "approve");
  await second.agent.waitForIdle();
  assert.equal(/** @type {any} */ (second.agent.messages.at(-1)).content[0].text, "Done: paid 5 to Ada.");
  assert.equal(second.agent.messages.length, 6);
  second.agent[Symbol.dispose]();
  await stop(second.child);
});

test("wrangler dev runs the example of a Workflow, until somebody has decided", { skip: missing, timeout: 180_000 }, async () => {
  const port = await freePort();
  const { child } = await dev(port, join(HOME, "workflow"), "");
  const ask = async (/** @type {string} */ path, /** @type {any} */ body = undefined) => (await fetch(`http://127.0.0.1:${port}/orders${path}`, body && { method: "POST", body: JSON.stringify(body) })).json();
  const { id } = await ask("", { customer: "Grace" });
  await ask(`/${id}/decision`, { type: "t1-approve-0", decision: "approve" });
  let found = await ask(`/${id}`);
  for (; found.status !== "complete" && found.status !== "errored"; found = await ask(`/${id}`)) await pause(100);
  assert.deepEqual([found.status, found.output?.text], ["complete", "Done."], JSON.stringify(found));
  assert.match(found.output.messages, /refund of Grace/);
  await stop(child);
});
