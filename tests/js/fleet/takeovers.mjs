// @ts-check
// Leases that are taken from owners that still run, all the time: three members of a fleet in one process, pages that ask, and
// a thief who says in the store that a lease is over. Every run must end, and every page hear one story.
//   node takeovers.mjs KIND PLACE SECONDS

import assert from "node:assert/strict";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { custom, tool } from "../../../pkg/entry/node.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { joinFleet, openAgent } from "../../../pkg/stores-node.js";
import { checkTexts } from "./pages.mjs";
import { storeOf } from "./stores.mjs";
import { checkTrace } from "../grammar.mjs";

const [kind = "files", place = "", seconds = "20"] = process.argv.slice(2);
const [MEMBERS, AGENTS] = [3, 4];
const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));
const until = Date.now() + Number(seconds) * 1000;
const DISPOSE = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** Says in the store that a lease is over, whose owner does not know it. @returns {Promise<(id: string) => Promise<unknown>>} */
async function thief() {
  if (kind === "postgres") {
    const pool = new (await import("pg")).default.Pool({ connectionString: place, max: 1 });
    pool.on("error", () => {});
    return (id) => pool.query("UPDATE turnwheel_agents SET until = NULL WHERE id = $1", [id]);
  }
  if (kind === "sqlite") {
    const { DatabaseSync } = /** @type {any} */ (process).getBuiltinModule("node:sqlite");
    const database = new DatabaseSync(join(place, "agents.db"));
    return async (id) => database.prepare("UPDATE turnwheel_agents SET until = NULL WHERE id = ?").run(id);
  }
  return async (id) => {
    const agent = join(place, `${Buffer.from(id).toString("hex")}.agent`);
    const file = join(agent, String(Math.max(...readdirSync(agent).map(Number).filter(Number.isInteger))), "lease.json");
    writeFileSync(`${file}.x`, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), until: 0 }));
    renameSync(`${file}.x`, file);
  };
}

/** What the model answers, by the number of answers to the last prompt. @type {[string, string[]][]} */
const ANSWERS = [["I look north and south at the same time. ", ["look", "look"]], ["Now I pay, and only once. ", ["pay"]], ["All of it is done, and every piece of this answer has to arrive. ", []]];
const model = custom("taken", async function* ({ messages }) {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user")).filter(({ role }) => role === "assistant").length;
  const [text, calls] = ANSWERS[Math.min(turn, 2)] ?? ["", []];
  yield { type: "start" };
  yield { type: "text_start", contentIndex: 0 };
  for (const delta of text.match(/.{1,6}/g) ?? []) {
    await pause(Math.random() * 6);
    yield { type: "text_delta", contentIndex: 0, delta };
  }
  yield { type: "text_end", contentIndex: 0 };
  for (const [i, toolName] of calls.entries()) {
    yield { type: "tool_call_start", contentIndex: i + 1, callId: `${messages.length}-${i}`, toolName };
    yield { type: "tool_call_delta", contentIndex: i + 1, delta: "{}" };
    yield { type: "tool_call_end", contentIndex: i + 1 };
  }
  yield { type: "done", stopReason: calls.length > 0 ? "tool_use" : "stop", usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, total: 15 } };
});
/** @param {string} name @param {boolean} idempotent */
const make = (name, idempotent) => tool({ name, description: name, idempotent, parameters: { type: "object" }, execute: async () => (await pause(Math.random() * 40), `${name} is done`) });

const stores = await Promise.all(Array.from({ length: MEMBERS }, (_, i) => storeOf(kind, place, { owner: String(i), ttlMs: 5_000 })));
const fleets = stores.map(({ store }) => joinFleet(store, { takeoverMs: 20, onError() {}, open: async (lease) => {
  const agent = await openAgent(lease, { model, tools: [make("look", true), make("pay", false)] });
  return { agent, handler: agentHandler(agent, { events: lease.events, allowedHosts: true }) };
} }));
/** A router: asks anybody, and follows to the owner. @param {string} id */
const routerOf = (id) => async (/** @type {any} */ url, /** @type {any} */ init) => {
  for (let hop = 0, at = Math.floor(Math.random() * MEMBERS); hop < 6; hop++) {
    const response = await fleets[at]?.answer(id, new Request(url, init));
    const owner = response?.headers.get("turnwheel-owner") ?? undefined;
    if (owner === undefined) return /** @type {Response} */ (response);
    at = Number(owner);
  }
  return Response.json({ error: { code: "overloaded", message: "the agent moves" } }, { status: 503 });
};

/** Waits until a page has heard the end of a run: it may be behind the page that started it. @param {RemoteAgent} page @param {any[]} heard @param {string | undefined} runId */
const heardEndOf = (page, heard, runId) =>
  new Promise((/** @type {(value: void) => void} */ resolve) => {
    const isIt = (/** @type {any} */ event) => event.type === "agent_end" && event.runId === runId;
    if (heard.some(isIt)) return resolve();
    page.subscribe((event) => isIt(event) && resolve());
  });

/** Asks one agent again and again. @param {string} id @returns {Promise<string[]>} how its runs ended */
async function tell(id) {
  const pages = [0, 1].map(() => new RemoteAgent({ url: `http://localhost/agents/${id}`, fetch: /** @type {any} */ (routerOf(id)), reconnects: { maxAttempts: 10_000, initialMs: 2, maxMs: 20 }, onError() {} }));
  /** @type {any[][]} */
  const heard = pages.map(() => []);
  pages.forEach((page, i) => page.subscribe((event) => void heard[i]?.push(event)));
  await Promise.all(pages.map((page) => page.ready()));
  const ended = [];
  for (let n = 1; Date.now() < until; n++) {
    const result = await pages[0]?.prompt(`Go ${n}`);
    ended.push(result?.error ? `${result.stopReason}: ${result.error.message}` : String(result?.stopReason));
  }
  const last = heard[0]?.findLast(({ type }) => type === "agent_end");
  await Promise.all(pages.map((page, i) => heardEndOf(page, heard[i] ?? [], last?.runId)));
  assert.deepEqual(heard[1], heard[0], `the pages of ${id} heard different stories`);
  for (const runId of new Set(heard[0]?.map((event) => event.runId))) {
    const trace = heard[0]?.filter((event) => event.runId === runId) ?? [];
    checkTrace(trace.filter(({ type }) => type !== "run_resumed"));
    checkTexts(trace);
  }
  assert.deepEqual(pages[0]?.messages, pages[1]?.messages);
  for (const page of pages) page[DISPOSE]();
  return ended;
}

const ids = Array.from({ length: AGENTS }, (_, i) => `agent-${i}`);
const take = await thief();
const taking = (async () => {
  let taken = 0;
  for (; Date.now() < until; taken++) {
    await pause(Math.random() * 80);
    const id = ids[taken % AGENTS] ?? "";
    await take(id).catch(() => {});
    // Whoever is first.
    fleets[Math.floor(Math.random() * MEMBERS)]?.open(id).catch(() => {});
  }
})();
const ended = (await Promise.all(ids.map(tell))).flat();
await taking;
const sum = (/** @type {"claimed" | "lost" | "takenOver"} */ name) => fleets.reduce((sum, fleet) => sum + fleet.counts()[name], 0);
console.log(JSON.stringify({ "runs ended": ended.length, "not completed": ended.filter((end) => end !== "completed"), claims: sum("claimed"), "taken from an owner that runs": sum("lost"), "runs taken over": sum("takenOver") }));
process.exit(0);
