// @ts-check
// The Node process of the soak:   node --expose-gc node.mjs, with its orders over IPC.
// It lives many lives at once, drains when it is told, and says what it holds then. As the victim it keeps its lives in a
// folder, is killed at any moment, and goes on in another process.

import { createServer } from "node:http";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { getEngine } from "../../pkg/core.js";
import * as main from "../../pkg/entry/node.js";
import { RemoteAgent } from "../../pkg/remote.js";
import { agentHandler } from "../../pkg/server.js";
import { live } from "./agents.mjs";
import { later } from "./tools.mjs";

const orders = JSON.parse(process.argv[2] ?? "{}");
const { letter, models, control, seed, only, sabotage, atOnce, folder, verbose, grace, resume = [] } = orders;
let { next, most } = orders;

const tell = async (/** @type {string} */ what, /** @type {any} */ report) => {
  const response = await fetch(`${control}/${what}`, { method: "POST", body: JSON.stringify(report) });
  return response.json();
};
const blame = (/** @type {string} */ kind) => (/** @type {any} */ error) => void tell("fault", { kind, text: `${letter}: ${error?.stack ?? error}` });
process.on("unhandledRejection", blame("an unhandled rejection"));
process.on("uncaughtException", blame("an uncaught exception"));

// ---------------------------------------------------------------- what a life has of its host

let forgotten = 0;
let collected = 0;
const registry = new FinalizationRegistry(() => void collected++);

/** Lives of this process are stored in memory; those of the victim in files, which are there as a whole or not at all. @param {string} id */
function storage(id) {
  if (folder === undefined) return memory(id);
  const file = join(folder, `${id}.json`);
  return {
    load() {
      try {
        return JSON.parse(readFileSync(file, "utf8"));
      } catch {
        return undefined;
      }
    },
    save(/** @type {any} */ saved) {
      writeFileSync(`${file}.new`, JSON.stringify(saved));
      renameSync(`${file}.new`, file);
    },
  };
}
/** @type {Map<string, string>} */
const kept = new Map();
const memory = (/** @type {string} */ id) => ({
  load: () => (kept.has(id) ? JSON.parse(kept.get(id) ?? "") : undefined),
  save: (/** @type {any} */ saved) => void kept.set(id, JSON.stringify(saved)),
});

/** @type {Map<string, any>} */
const handlers = new Map();
const doors = createServer(async (incoming, outgoing) => {
  const handler = handlers.get(/^\/agents\/(\w+)\//.exec(incoming.url ?? "")?.[1] ?? "");
  if (!handler) return void outgoing.writeHead(404).end();
  const body = incoming.method === "POST" ? Readable.toWeb(incoming) : undefined;
  try {
    const answer = await handler(new Request(`http://${incoming.headers.host}${incoming.url}`, /** @type {any} */ ({ method: incoming.method, headers: incoming.headers, body, duplex: "half" })));
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
    if (!answer.body) return void outgoing.end();
    const stream = Readable.fromWeb(answer.body).on("error", () => {});
    outgoing.on("close", () => stream.destroy());
    stream.pipe(outgoing);
  } catch {
    outgoing.destroy();
  }
});
await new Promise((resolve) => doors.listen(0, "127.0.0.1", () => resolve(undefined)));
const { port } = /** @type {any} */ (doors.address());

/** Every other agent is asked through a real socket. @param {string} id @param {any} handler */
function serve(id, handler) {
  if (Number(id.slice(1)) % 2) return undefined;
  handlers.set(id, handler);
  return { url: `http://127.0.0.1:${port}/agents/${id}`, ask: (/** @type {Request} */ request) => fetch(request), close: () => handlers.delete(id) };
}

/** @type {import("./agents.mjs").Host} */
const host = {
  lib: { ...main, RemoteAgent, agentHandler }, models, tell, seed, only, sabotage, storage, serve,
  /** Whatever the dead one still does goes nowhere; the process of the victim is killed from outside as well. */
  die(life) {
    life.dead = true;
    void tell("death", { id: life.id });
    const { agent } = life;
    queueMicrotask(() => agent[Symbol.dispose]());
  },
  forgotten(agent) {
    forgotten++;
    registry.register(agent, undefined);
  },
  ...(verbose && { log: (/** @type {string} */ line) => console.error(line) }),
};

// ---------------------------------------------------------------- lives

/** @type {Set<Promise<void>>} */
const running = new Set();
let paused = false;
let ending = false;

/** @param {string} id */
function start(id) {
  const done = live(id, host).catch(blame(`the soak itself failed at ${id}`)).then(() => {
    kept.delete(id);
    if (folder) rmSync(join(folder, `${id}.json`), { force: true });
    running.delete(done);
    fill();
  });
  running.add(done);
}

function fill() {
  while (!paused && !ending && running.size < atOnce && most-- > 0) start(`${letter}${next++}`);
  if (most <= 0 && running.size === 0) process.send?.({ idle: true });
}

/** Frees what nobody holds. */
async function collect() {
  for (let i = 0; i < 20 && (i < 6 || collected < forgotten - 2); i++) {
    /** @type {any} */ (globalThis).gc();
    await later(5);
  }
}

/** What this process holds when all its lives have ended. */
async function measure() {
  await later(20);
  await collect();
  const { heapUsed, external } = process.memoryUsage();
  const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  return { heap: heapUsed, external, wasm: /** @type {any} */ (getEngine()).memory.buffer.byteLength, timers, held: forgotten - collected, next };
}

/** Everything has to end by itself from here on. */
async function end() {
  doors.close();
  doors.closeAllConnections();
  process.disconnect();
  setTimeout(() => {
    const left = process.getActiveResourcesInfo();
    void tell("fault", { kind: "something is left open", text: `${letter}: the process does not end: ${left.join(", ")}` }).then(() => process.exit(1));
  }, grace).unref();
}

process.on("message", async (/** @type {any} */ order) => {
  if (order.pause) {
    paused = true;
    while (running.size > 0) await Promise.race([Promise.all(running), later(50)]);
    process.send?.({ measured: await measure() });
  } else if (order.go) {
    paused = false;
    fill();
  } else if (order.end) {
    ending = true;
    while (running.size > 0) await Promise.race([Promise.all(running), later(50)]);
    if (order.measure) process.send?.({ measured: await measure() });
    await end();
  }
});

if (folder) mkdirSync(folder, { recursive: true });
for (const id of resume) start(id);
fill();
