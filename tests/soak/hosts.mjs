// @ts-check
// The hosts, as run.mjs starts, watches and ends them.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { WebSocket } from "ws";
import { planOf } from "./scenarios.mjs";

// The Worker can then free what nobody holds before it is measured.
process.env["MINIFLARE_WORKERD_V8_FLAGS"] = "--expose-gc";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
export const sleep = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A Node process. @param {any} orders @param {(message: any) => void} hear */
export function nodeHost(orders, hear) {
  const child = fork(here("node.mjs"), [JSON.stringify(orders)], { execArgv: ["--expose-gc"], stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const gone = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
  child.on("message", hear);
  return {
    send: (/** @type {any} */ order) => void (child.connected && child.send(order)),
    kill: () => child.kill("SIGKILL"),
    /** @type {Promise<{ code: number | null, signal: string | null }>} */
    gone: /** @type {any} */ (gone),
  };
}

/** The Worker's script in one file. */
async function bundle() {
  const { outputFiles } = await build({ entryPoints: [here("worker.mjs")], bundle: true, write: false, format: "esm", logLevel: "silent", external: ["*.wasm", "cloudflare:*"] });
  return /** @type {any} */ (outputFiles[0]).text;
}

/** How much of the Worker's heap is used: its inspector knows. @param {Miniflare} server @returns {Promise<number>} */
async function heapOf(server) {
  const { host } = new URL(await server.getInspectorURL());
  const socket = new WebSocket(`ws://${host}/core:user:`);
  try {
    return await new Promise((resolve, reject) => {
      socket.on("error", reject);
      socket.on("open", () => socket.send('{"id":1,"method":"Runtime.getHeapUsage"}'));
      socket.on("message", (data) => {
        const { id, result } = JSON.parse(String(data));
        if (id === 1) resolve(result.usedSize);
      });
    });
  } finally {
    socket.close();
  }
}

/** The workerd process, whose lives this process begins. @param {any} orders @param {import("./ledger.mjs").Ledger} ledger */
export async function workerdHost(orders, ledger) {
  const code = await bundle();
  const imported = /from "([^"]+\.wasm)"/.exec(code)?.[1] ?? "";
  const server = new Miniflare({
    cf: false, compatibilityDate: "2026-07-01", inspectorPort: 0, bindings: { ORDERS: orders },
    durableObjects: { CHAT: { className: "Chat", useSQLite: true } },
    // Every death is logged there; a pipe that nobody reads would block everything.
    handleRuntimeStdio: (out, errors) => void (out.resume(), errors.resume()),
    modules: [
      { type: "ESModule", path: "worker.js", contents: code.replace(imported, "./turnwheel.wasm") },
      { type: "CompiledWasm", path: "turnwheel.wasm", contents: await readFile(here("../../pkg/turnwheel.wasm")) },
    ],
  });
  await server.ready;
  const ask = async (/** @type {string} */ path) => {
    const response = await server.dispatchFetch(`http://worker.example/${path}`);
    return { status: response.status, text: await response.text() };
  };
  /** A stored life is asked for again until it has told its end. @param {string} id */
  const live = async (id) => {
    const { stored } = planOf(id, orders.seed, orders.only);
    for (let tries = 0; tries < 60 && !ledger.hasEnded(id); tries++) {
      if (stored && tries > 0) ledger.counts.deaths += 1;
      const answer = await ask(`${stored ? "stored" : "live"}/${id}/${tries}`).catch((error) => ({ status: 0, text: String(error) }));
      if (!stored && answer.status !== 200) return ledger.fault("the soak itself failed", id, answer.text);
      if (stored && answer.status !== 200) await sleep(5);
    }
  };
  const state = async () => JSON.parse((await ask("state/now")).text);
  return { live, state, heap: () => heapOf(server), close: () => server.dispose() };
}
