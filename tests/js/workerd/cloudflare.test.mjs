// @ts-check
// turnwheel/cloudflare in workerd: options that wait or fail, the one alarm that is shared, RPC, who may ask, and what it
// says where it cannot be.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { start } from "../durable/bundle.mjs";
import { deferred } from "../kit.mjs";

/** What the ledger answers, by path; what is not there is fine. @type {Map<string, () => any>} */
const answers = new Map();
/** How often it was asked. @type {Map<string, number>} */
const asked = new Map();
let console = "";

const NAMES = ["Failing", "Polite", "Forgetful", "Watched", "Busy", "Unsaid"];
const server = await start("objects.mjs", {
  durableObjects: { ...Object.fromEntries(NAMES.map((className) => [className.toUpperCase(), { className, useSQLite: true }])), OLD: { className: "Old" } },
  handleRuntimeStdio: (/** @type {any} */ out, /** @type {any} */ errors) => {
    for (const stream of [out, errors]) stream.on("data", (/** @type {any} */ piece) => void (console += piece));
  },
  serviceBindings: { LEDGER: async (/** @type {any} */ request) => {
    const path = new URL(request.url).pathname.slice(1);
    asked.set(path, (asked.get(path) ?? 0) + 1);
    const status = await answers.get(path)?.();
    return /** @type {any} */ (new Response("", { status: status ?? 200 }));
  } },
});
after(() => server.dispose());

const get = async (/** @type {string} */ path, /** @type {any} */ init = {}) => /** @type {any} */ (await server.dispatchFetch(`http://worker.example/${path}`, init));
const ask = async (/** @type {string} */ path) => (await get(path)).json();
const rpc = async (/** @type {string} */ path, /** @type {any[]} */ ...given) => (await get(path, { method: "POST", body: JSON.stringify(given) })).json();
const evict = (/** @type {string} */ object) => get(`${object}/evict`).catch(() => {});

/** Asks until it is so. @template T @param {() => Promise<T>} look @param {(found: T) => boolean} isSo @returns {Promise<T>} */
async function until(look, isSo) {
  for (;;) {
    const found = await look();
    if (isSo(found)) return found;
  }
}

const state = (/** @type {string} */ object) => ask(`${object}/state`);
const texts = (/** @type {any} */ { messages }) => messages.map((/** @type {any} */ { content }) => content[0].text);

test("options that throw are a 503, and the next request asks again", async () => {
  answers.set("options/a", () => ((asked.get("options/a") ?? 0) <= 2 ? 500 : 200));
  // The first attempt is that of the constructor, and this request's own is the second.
  const refused = await get("failing/a/state");
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "5"]);
  const { error } = await refused.json();
  assert.deepEqual([error.code, /vault/.test(error.message)], ["server", false]);
  assert.equal((await get("failing/a/state")).status, 200);
  assert.equal(asked.get("options/a"), 3);
  assert.match(console, /the agent of a Durable Object could not be made; the next request tries again.*the vault is closed/s);
});

test("options that wait make everybody wait, and are asked once", async () => {
  const answered = deferred();
  answers.set("options/b", () => answered.promise);
  const both = Promise.all([get("failing/b/state"), get("failing/b/state")]);
  while (!asked.has("options/b")) await get("host/a");
  answered.resolve(200);
  assert.deepEqual((await both).map(({ status }) => status), [200, 200]);
  assert.equal(asked.get("options/b"), 1);
});

test("a run whose agent cannot be made is tried again by the alarm, later and later, and goes on", async () => {
  const held = deferred();
  answers.set("model/slow", () => held.promise);
  await rpc("failing/slow/rpc-prompt", "Go");
  while (!asked.has("model/slow")) await get("host/a");
  answers.set("options/slow", () => 500);
  await evict("failing/slow");
  assert.equal((await get("failing/slow/state")).status, 503);
  /** @type {number[]} */
  const waits = [];
  for (let i = 0; i < 3; i++) {
    const now = Date.now();
    await get("failing/slow/ring");
    const { rows, alarm } = await ask("failing/slow/rows");
    const retry = rows.find((/** @type {any} */ { kind }) => kind === "retry");
    assert.deepEqual([retry.data, alarm], [String(i + 1), retry.at]);
    assert.ok(rows.some((/** @type {any} */ { kind }) => kind === "watch"), "the run is not forgotten");
    waits.push(Math.round((retry.at - now) / 30_000));
  }
  assert.deepEqual(waits, [1, 2, 4]);
  answers.delete("options/slow");
  answers.delete("model/slow");
  await get("failing/slow/ring");
  const { rows } = await ask("failing/slow/rows");
  assert.ok(!rows.some((/** @type {any} */ { kind }) => kind === "retry"));
  assert.deepEqual(texts(await until(() => state("failing/slow"), ({ isRunning }) => !isRunning)), ["Go", "You said Go"]);
  held.resolve();
});

test("an alarm of one's own that calls the base's works, and what is scheduled is said at its time", async () => {
  const tomorrow = Date.now() + 86_400_000;
  const { value: later } = await rpc("polite/a/rpc-schedule", tomorrow, "Good night");
  const { value: id } = await rpc("polite/a/rpc-schedule", tomorrow - 1000, "Not this");
  assert.match(id, /^[\da-f-]{36}$/);
  assert.equal((await ask("polite/a/rows")).alarm, tomorrow - 1000);
  await rpc("polite/a/rpc-unschedule", id);
  assert.equal((await ask("polite/a/rows")).alarm, tomorrow);
  await rpc("polite/a/rpc-schedule", Date.now() + 150, "Good morning");
  await evict("polite/a");
  assert.deepEqual(texts(await until(() => state("polite/a"), ({ messages }) => messages.length === 2)), ["Good morning", "You said Good morning"]);
  assert.ok((asked.get("alarm/polite") ?? 0) >= 1);
  await until(() => ask("polite/a/rows"), ({ rows }) => rows.length === 1);
  assert.equal((await ask("polite/a/rows")).alarm, tomorrow);
  assert.deepEqual(await rpc("polite/a/rpc-unschedule", later), { value: true });
  assert.deepEqual(await rpc("polite/a/rpc-unschedule", later), { value: false });
  assert.deepEqual(await ask("polite/a/rows"), { rows: [], alarm: null });
});

test("an alarm that forgets the base's is noticed aloud, and nothing is lost", async () => {
  await rpc("forgetful/a/rpc-schedule", Date.now() + 50, "Hello");
  assert.deepEqual(texts(await until(() => state("forgetful/a"), ({ messages }) => messages.length === 2)), ["Hello", "You said Hello"]);
  assert.equal(asked.get("alarm/forgetful"), 1);
  assert.match(console, /`alarm` of Forgetful must call `await super\.alarm\(\)`/);
  assert.doesNotMatch(console, /`alarm` of (Polite|Failing|Busy)/);
});

test("what is scheduled while a run is in progress is a follow-up of it", async () => {
  const held = deferred();
  answers.set("model/busy", () => held.promise);
  await rpc("busy/a/rpc-prompt", "First");
  assert.match((await rpc("busy/a/rpc-prompt", "Again")).error, /already running/);
  await rpc("busy/a/rpc-schedule", Date.now() - 1, "Second");
  await until(() => ask("busy/a/rows"), ({ rows }) => !rows.some((/** @type {any} */ { kind }) => kind === "prompt"));
  assert.equal((await state("busy/a")).isRunning, true);
  answers.delete("model/busy");
  held.resolve();
  assert.deepEqual(texts(await until(() => state("busy/a"), ({ isRunning }) => !isRunning)), ["First", "You said First", "Second", "You said Second"]);
});

test("what cannot be scheduled or said is refused with the reason", async () => {
  for (const [at, input, pattern] of /** @type {[any, any, RegExp][]} */ ([
    [Math.floor(Date.now() / 1000), "x", /milliseconds since 1970/], ["soon", "x", /got a string/], [8e15, "x", /ten years/],
    [Date.now(), "", /empty text/], [Date.now(), "x".repeat(1_000_001), /bytes of at most 1000000/],
  ])) assert.match((await rpc("polite/b/rpc-schedule", at, input)).error, pattern);
  assert.match((await rpc("polite/b/rpc-prompt", 7)).error, /input/);
  assert.deepEqual(await ask("polite/b/rows"), { rows: [], alarm: null });
});

test("onEvent hears what is stored, authorize decides by command, and limits are its own", async () => {
  const { value: { runId } } = await rpc("watched/a/rpc-prompt", "Hello");
  assert.match(runId, /^[\da-f-]{36}$/);
  const may = (/** @type {string} */ command, more = {}) => ({ headers: { "x-may": command, ...more } });
  assert.equal((await get("watched/a/state")).status, 401);
  const idle = await until(async () => (await get("watched/a/state", may("state"))).json(), ({ isRunning }) => !isRunning);
  assert.deepEqual(texts(idle), ["Hello", "You said Hello"]);
  const heard = await ask("watched/a/heard");
  assert.deepEqual([heard[0], heard.at(-1)], [["agent_start", "agent_start"], ["agent_end", "agent_end"]]);
  for (const [event, stored] of heard) assert.equal(event, stored);
  assert.match(console, /the ear hurts/);
  const page = await get("watched/a/state", may("state", { origin: "https://app.example" }));
  assert.equal(page.headers.get("access-control-allow-origin"), "https://app.example");
  // It is told by its own Worker, or by a client, that it is full.
  await until(() => rpc("watched/a/rpc-prompt", "x".repeat(400)), ({ error }) => /full: it has \d+ bytes of 600/.test(error));
});

test("route passes on what is below the prefix, and nothing else", async () => {
  assert.equal((await get("polite")).status, 404);
  assert.equal((await get("polite/")).status, 404);
  const odd = encodeURIComponent("Ada / Grace?");
  await rpc(`polite/${odd}/rpc-prompt`, "x");
  assert.equal((await get(`polite/${odd}/state`)).status, 200);
  for (const name of ["%ff", "x".repeat(257)]) {
    const refused = await get(`polite/${name}/state`);
    assert.equal(refused.status, 400);
    assert.match((await refused.json()).error.message, /at most 256 characters/);
  }
});

test("where it cannot be, it says what is missing", async () => {
  const { code, message } = await ask("plain");
  assert.equal(code, "misuse", message);
  assert.match(message, /^Failing is a Durable Object, which Cloudflare makes: bind it in wrangler\.jsonc/);
  assert.match((await rpc("old/a/rpc-prompt", "x")).error, /could not be loaded from the Durable Object's SQLite: .*new_sqlite_classes/);
  assert.equal((await get("unsaid/a/state")).status, 503);
  assert.match(console, /Unsaid extends DurableAgent, and must say by options\(\) which agent it is/);
});

test("a remote agent hears everything over route", async () => {
  const fetch = (/** @type {any} */ url, /** @type {any} */ { headers, body, method, signal }) => server.dispatchFetch(String(url), { headers: Object.fromEntries(headers), body, method, signal });
  const remote = new RemoteAgent({ url: "http://worker.example/polite/remote", fetch: /** @type {any} */ (fetch), onError() {} });
  assert.equal((await remote.prompt("Hi")).text, "You said Hi");
  remote[Symbol.dispose]();
});
