// @ts-check
// Orders in a durable engine, one after the other. The office is who the tools ask and who is told of questions; it decides them, and
// kills what it is told to kill when a step has come to a point.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { after } from "node:test";
import { clean, install, ROOT } from "../../examples/kit.mjs";

/** @typedef {{ messages: any[], told: string[], costs: number[], refunds: number, kills: number }} Story */
/**
 * An engine: processes that can be opened and killed, and what can be asked of them.
 * @typedef {object} Engine
 * @property {(what?: string) => Promise<void>} open opens what is not
 * @property {(what?: string) => Promise<void>} kill by SIGKILL
 * @property {(customer: string) => Promise<string>} begin gives the id of a new order
 * @property {(id: string, name: string) => Promise<unknown>} decide approves
 * @property {(id: string) => Promise<{ stopReason: string, messages: any[] } | undefined>} output nothing unless the order is at its end
 */

/** A program that can be killed with whatever it starts. @param {string} file @param {string[]} args @param {import("node:child_process").SpawnOptions} options */
export function program(file, args, options) {
  const child = spawn(file, args, { detached: true, stdio: ["ignore", "ignore", process.env["DURABLE_LOUD"] ? "inherit" : "ignore"], ...options });
  const ended = once(child, "exit");
  return {
    isOver: () => child.exitCode !== null || child.signalCode !== null,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      process.kill(-(/** @type {number} */ (child.pid)), "SIGKILL");
      await ended;
    },
  };
}

/** Waits until an address answers. @param {string} address @param {{ isOver(): boolean }} running */
export async function answers(address, running) {
  for (const end = Date.now() + 60_000; ; ) {
    if (await fetch(address).then(({ status }) => status < 500, () => false)) return;
    assert.ok(!running.isOver(), `nobody is at ${address}: the program has ended`);
    assert.ok(Date.now() < end, `nobody is at ${address}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

/** Asks for JSON; nothing if nobody is there, or the answer is none. @param {string} address @param {unknown} [body] @returns {Promise<any>} */
export async function ask(address, body) {
  try {
    const response = await fetch(address, body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    const text = await response.text();
    return response.ok && text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * An example with the packages of a folder, or of one scope there; they find their own there.
 * @param {string} name @param {string | undefined} from @param {string} [scope]
 */
export async function example(name, from, scope) {
  const folder = await install(name);
  const there = join(String(from), "node_modules");
  const has = new Set(readdirSync(join(folder, "node_modules")));
  for (const each of scope ? [scope] : readdirSync(there)) if (!has.has(each)) symlinkSync(join(there, each), join(folder, "node_modules", each));
  return folder;
}

/**
 * An office, if the machine has what the engine needs, and an order in it that nobody kills.
 * @param {string | undefined} skip why not @param {(office: string) => Promise<Engine>} engineOf
 */
export async function opened(skip, engineOf) {
  const office = skip ? undefined : await officeFor(engineOf);
  after(async () => {
    await office?.close();
    await clean();
  });
  const unbroken = await office?.order();
  // Without them every test is skipped.
  return { office: /** @type {NonNullable<typeof office>} */ (office), unbroken: /** @type {NonNullable<typeof unbroken>} */ (unbroken) };
}

/** Opens an office for an engine. @param {(office: string) => Promise<Engine>} engineOf */
async function officeFor(engineOf) {
  const now = { told: /** @type {string[]} */ ([]), costs: /** @type {number[]} */ ([]), refunds: 0, kills: 0, killAt: "", what: "", questions: /** @type {string[]} */ ([]), killing: Promise.resolve() };
  const server = createServer(async (request, response) => {
    const [, what = "", id = "", name = ""] = (request.url ?? "").split("/");
    let body = "";
    for await (const piece of request) body += piece;
    if (what === "cost") now.costs.push(Number(name));
    if (what === "refund") now.refunds += 1;
    if (what === "question") now.questions.push(JSON.parse(body).name);
    if (!["begin", "end", "stored"].includes(what)) return void response.end(`${what} of ${id}`);
    const point = `${what} ${decodeURIComponent(name)}`;
    now.told.push(point);
    if (point !== now.killAt) return void response.end();
    now.killAt = "";
    now.kills += 1;
    now.killing = engine.kill(now.what);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", () => ready(undefined)));
  const engine = await engineOf(`http://127.0.0.1:${/** @type {any} */ (server.address()).port}`);

  /** One order, from its beginning to its end. @param {string} [killAt] a point, such as `end t1/model` @param {string} [what] is killed @returns {Promise<Story>} */
  async function order(killAt = "", what = "") {
    Object.assign(now, { told: [], costs: [], refunds: 0, kills: 0, killAt, what, questions: [], killing: Promise.resolve() });
    await engine.open();
    const id = await engine.begin("Ada");
    const decided = new Set();
    for (const end = Date.now() + 90_000; ; ) {
      await now.killing;
      await engine.open();
      // Nobody decides before the kill that comes while a person is awaited. What a process was told may be lost with it.
      const isEarly = now.killAt.startsWith("stored t1/approve");
      for (const name of new Set(isEarly ? [] : now.questions)) {
        const once = `${name} after ${now.kills}`;
        if (decided.has(once)) continue;
        decided.add(once);
        // Its answer may need a process that is killed meanwhile.
        engine.decide(id, name);
      }
      const found = await engine.output(id);
      if (found) {
        assert.equal(found.stopReason, "completed");
        return { messages: found.messages, told: now.told, costs: now.costs, refunds: now.refunds, kills: now.kills };
      }
      assert.ok(Date.now() < end, `killed at \`${killAt}\`, it never ends: ${now.told.slice(-5)}`);
      await new Promise((go) => setTimeout(go, 20));
    }
  }

  async function close() {
    await engine.kill();
    await engine.kill("server");
    server.closeAllConnections();
    server.close();
  }

  /** A new process. */
  const restart = () => engine.kill();

  return { order, restart, close };
}

/**
 * What an engine adds to a step, in ms: the median of a few unbroken orders, each step from its call to its beginning and from its
 * end to its record. `cargo xtask bench` shows what is left here.
 * @param {string} engine @param {{ order(): Promise<Story> }} office
 */
export async function costOf(engine, office) {
  const costs = [];
  for (let i = 0; i < 5; i++) costs.push(...(await office.order()).costs);
  const ms = Number((costs.sort((a, b) => a - b)[costs.length >> 1] ?? NaN).toFixed(1));
  const file = join(resolve(ROOT, process.env["CARGO_TARGET_DIR"] ?? "target"), "e2e-durable.json");
  const known = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  writeFileSync(file, JSON.stringify({ ...known, [engine]: ms }));
  return `${engine}: ${ms} ms per step`;
}
