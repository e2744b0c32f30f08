// @ts-check
// `list`: what every store says of the agents in it, without reading a checkpoint. One story for all stores.

import assert from "node:assert/strict";
import { test } from "node:test";
import "../docs/tabs-page.mjs";
import { openAgent, postgresStore } from "../../../pkg/stores-node.js";
import { durableObjectStore, extensionStore, indexedDBStore, seal } from "../../../pkg/stores.js";
import { folder, hasPostgres, hasSqlite, postgres, storeOf } from "../fleet/stores.mjs";
import { Agent, call, deferred, misusedLater, scripted, testTool } from "../kit.mjs";

const sqlite = () => /** @type {any} */ (process).getBuiltinModule("node:sqlite");

/** The storage of an extension; in newer browsers it says which keys there are. @param {boolean} isNew */
function areaOf(isNew) {
  /** @type {Map<string, string>} */
  const items = new Map();
  /** @type {(string | null)[]} */
  const asked = [];
  return {
    asked,
    get: async (/** @type {string[] | null} */ keys) => (asked.push(...(keys ?? [null])), Object.fromEntries((keys ?? [...items.keys()]).flatMap((key) => (items.has(key) ? [[key, JSON.parse(items.get(key) ?? "")]] : [])))),
    set: async (/** @type {any} */ added) => void Object.entries(added).forEach(([key, value]) => items.set(key, JSON.stringify(value))),
    remove: async (/** @type {string[]} */ keys) => void keys.forEach((key) => items.delete(key)),
    ...(isNew && { getKeys: async () => [...items.keys()] }),
  };
}

/** The storage of a Durable Object, over the same database. */
function objectStorage(database = new (sqlite().DatabaseSync)(":memory:")) {
  return {
    transactionSync: (/** @type {() => any} */ work) => work(),
    sql: { exec: (/** @type {string} */ statement, /** @type {any[]} */ ...values) => ({ toArray: () => (/^(SELECT|DELETE|INSERT)/.test(statement) ? database.prepare(statement).all(...values) : []), done: /^(CREATE|ALTER)/.test(statement) && database.exec(statement) }) },
  };
}
/** @type {[string, boolean, (t: any, options?: any) => any][]} */
const STORES = [
  ["IndexedDB", true, (t) => indexedDBStore({ name: `list of ${t.name}` })],
  ["the storage of an extension", true, () => extensionStore(areaOf(true))],
  ["the storage of an extension in an older browser", true, () => extensionStore(areaOf(false))],
  ["a Durable Object", hasSqlite, () => durableObjectStore(objectStorage())],
  ["files", true, async (t, options) => (await storeOf("files", folder(t), options)).store],
  ["SQLite", hasSqlite, async (t, options) => (await storeOf("sqlite", folder(t), options)).store],
  ["PostgreSQL", hasPostgres, async (t, options) => {
    const { store, end } = await storeOf("postgres", await postgres(t), options);
    t.after(end);
    return store;
  }],
];
/** @param {any[]} contents */
const checkpointOf = (...contents) => new Agent({ model: scripted([]), messages: contents.map((content) => ({ role: "user", content, timestamp: 1 })) }).checkpoint();
const idsOf = (/** @type {{ id: string }[]} */ entries) => entries.map(({ id }) => id);
/** When a run has ended, its last step may still be on its way into the store. @param {any} lease */
const stored = (lease) => lease.events.store();
/** So that the next save is a later one. */
const tick = () => new Promise((resolve) => setTimeout(resolve, 3));

for (const [kind, isHere, open] of STORES) {
  test(`${kind}: the newest first, page by page, of one user or of all`, { skip: !isHere && "it is not here" }, async (t) => {
    const store = await open(t);
    assert.deepEqual(await store.list(), []);
    const begun = Date.now();
    for (const id of ["u1/a", "u2/b", "u1/c", "u1/ü\"'%_", "u10/d"]) {
      await store.save(id, checkpointOf(`Hello from ${id}`));
      await tick();
    }
    await store.save("u1/a", checkpointOf("Hello again", "and more"));
    const all = await store.list();
    assert.deepEqual(all.map((/** @type {any} */ { id, title }) => [id, title]), [["u1/a", "Hello again"], ["u10/d", "Hello from u10/d"], ["u1/ü\"'%_", "Hello from u1/ü\"'%_"], ["u1/c", "Hello from u1/c"], ["u2/b", "Hello from u2/b"]]);
    assert.deepEqual(Object.keys(all[0]).sort(), ["id", "title", "updatedAt"]);
    for (const { updatedAt } of all) assert.ok(Number.isSafeInteger(updatedAt) && updatedAt >= begun - 1_000 && updatedAt <= Date.now() + 1_000, `${updatedAt}`);
    const pages = [];
    for (let page = await store.list({ limit: 2 }); page.length > 0; page = await store.list({ limit: 2, before: page.at(-1) })) pages.push(idsOf(page));
    assert.deepEqual(pages, [["u1/a", "u10/d"], ["u1/ü\"'%_", "u1/c"], ["u2/b"]]);
    assert.deepEqual(idsOf(await store.list({ prefix: "u1/" })), ["u1/a", "u1/ü\"'%_", "u1/c"]);
    assert.deepEqual(idsOf(await store.list({ prefix: "u1/", limit: 1, before: all[0] })), ["u1/ü\"'%_"]);
    assert.deepEqual(await store.list({ prefix: "U1/" }), []);
    await store.delete("u1/a");
    assert.deepEqual(idsOf(await store.list({ prefix: "u1/" })), ["u1/ü\"'%_", "u1/c"]);
    store.save("u1/last", checkpointOf("x"));
    assert.equal((await store.list())[0].id, "u1/last", "what is being saved is waited for");
  });

  test(`${kind}: entries of one millisecond are on one page each, and a list has an end by itself`, { skip: !isHere && "it is not here" }, async (t) => {
    const store = await open(t);
    const ids = Array.from({ length: 130 }, (_, i) => `chat ${i}`);
    await Promise.all(ids.map((id) => store.save(id, checkpointOf(id))));
    const first = await store.list();
    const second = await store.list({ before: first.at(-1) });
    assert.deepEqual([first.length, second.length, new Set(idsOf([...first, ...second])).size], [100, 30, 130]);
    assert.equal((await store.list({ limit: 1000 })).length, 130);
  });

  test(`${kind}: the title is the first words that a user wrote, on one line`, { skip: !isHere && "it is not here" }, async (t) => {
    const store = await open(t);
    const long = "word ".repeat(40);
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    /** @type {[string, any[], string][]} */
    const cases = [
      ["plain", ["Rain in Oslo?"], "Rain in Oslo?"],
      ["blocks", [[{ type: "text", text: "What is" }, image, { type: "text", text: "this?" }]], "What is this?"],
      ["lines", ["  one\n\n\ttwo\u0000\u0007three  "], "one two three"],
      ["picture first", [[image], "and now?"], "and now?"],
      ["none", [], ""],
      ["long", [long], `${"word ".repeat(16).trim()}…`],
      ["no blanks", ["雨".repeat(100)], `${"雨".repeat(79)}…`],
      ["pairs", ["😀".repeat(100)], `${"😀".repeat(39)}…`],
      ["half", ["\ud83d broken"], "broken"],
    ];
    for (const [id, contents, title] of cases) {
      await store.save(id, checkpointOf(...contents));
      const [entry] = await store.list({ prefix: id });
      assert.equal(entry.title, title, id);
      assert.ok(entry.title.length <= 80, id);
    }
  });

  test(`${kind}: a sealed checkpoint has no title`, { skip: !isHere && "it is not here" }, async (t) => {
    const store = await open(t);
    const key = crypto.getRandomValues(new Uint8Array(32));
    await store.save("sealed", await seal(checkpointOf("the secret plan"), key));
    assert.deepEqual((await store.list()).map((/** @type {any} */ { id, title }) => [id, title]), [["sealed", ""]]);
  });

  test(`${kind}: what is asked for wrongly is named`, { skip: !isHere && "it is not here" }, async (t) => {
    const store = await open(t);
    await misusedLater(() => store.list({ limt: 5 }), /unknown option `limt`; did you mean `limit`\?/);
    await misusedLater(() => store.list({ limit: 0 }), /`limit` must be a whole number from 1 to 1000, got 0/);
    await misusedLater(() => store.list({ prefix: 5 }), /`prefix` must be the text that the ids begin with, got a number/);
    await misusedLater(() => store.list({ before: "chat-7" }), /`before` must be the last entry of the page before, got a string/);
    await misusedLater(() => store.list("chat-7"), /list takes \{ limit, before, prefix \}, got a string/);
  });

  if (!kind.includes("Durable")) test(`${kind}: an agent of a lease is listed from its first message on, and follows a rewind`, { skip: !isHere && "it is not here" }, async (t) => {
    const store = await open(t);
    const lease = await store.claim("chat");
    assert.deepEqual(await store.list(), [], "nothing is stored of it");
    const [isOn, mayEnd] = [deferred(), deferred()];
    const tools = [testTool("work", async () => (isOn.resolve(), await mayEnd.promise, "done"))];
    const agent = await openAgent(lease, { model: scripted([call("work"), "It rains.", "It snows.", "It is dry."]), tools });
    const run = agent.prompt("Rain in Oslo?");
    await isOn.promise;
    assert.equal((await store.list())[0].title, "Rain in Oslo?");
    mayEnd.resolve();
    await run.orThrow();
    await stored(lease);
    const [before] = await store.list();
    await tick();
    await agent.prompt("And tomorrow?").orThrow();
    await stored(lease);
    const [after] = await store.list();
    assert.deepEqual([after.title, after.updatedAt > before.updatedAt], ["Rain in Oslo?", true]);
    agent.rewind(0);
    await agent.prompt("Snow in Oslo?").orThrow();
    await stored(lease);
    assert.equal((await store.list())[0].title, "Snow in Oslo?");
    await lease.release();
    const next = await store.claim("chat");
    assert.equal((await store.list())[0].title, "Snow in Oslo?", "a claim changes nothing");
    await next.release();
    await store.delete("chat");
    assert.deepEqual(await store.list(), []);
  });
}

test("a list reads its own entries and no checkpoint, in the storage of an extension", async () => {
  const area = areaOf(true);
  const store = extensionStore(area);
  await store.save("a", checkpointOf("Hello"));
  area.asked.length = 0;
  await store.list();
  assert.deepEqual(area.asked, ['turnwheel:"a":t']);
});

for (const [kind, isHere, open] of STORES.slice(4)) test(`${kind}: a store that seals keeps no title`, { skip: !isHere && "it is not here" }, async (t) => {
  const store = await open(t, { seal: { key: crypto.getRandomValues(new Uint8Array(32)) } });
  const lease = await store.claim("chat");
  await (await openAgent(lease, { model: scripted(["Yes."]) })).prompt("the secret plan").orThrow();
  await lease.release();
  assert.deepEqual((await store.list()).map((/** @type {any} */ { id, title }) => [id, title]), [["chat", ""]]);
});

test("tables of a version without a list get one, and what is saved again appears", { skip: !hasSqlite && "there is no SQLite here" }, async (t) => {
  const database = new (sqlite().DatabaseSync)(":memory:");
  database.exec("CREATE TABLE turnwheel_checkpoints (id TEXT, part INTEGER, json TEXT NOT NULL, PRIMARY KEY (id, part))");
  database.prepare("INSERT INTO turnwheel_checkpoints VALUES ('old', 0, ?)").run(JSON.stringify(checkpointOf("Old")));
  const object = durableObjectStore(/** @type {any} */ (objectStorage(database)));
  assert.deepEqual(await object.list(), []);
  const old = await object.load("old");
  await object.save("old", old);
  assert.equal((await object.list())[0]?.title, "Old");

  const place = folder(t);
  const early = new (sqlite().DatabaseSync)(`${place}/agents.db`);
  early.exec("CREATE TABLE turnwheel_agents (id TEXT PRIMARY KEY, fence INTEGER NOT NULL, owner TEXT, until REAL, state TEXT, running INTEGER NOT NULL DEFAULT 0, count INTEGER NOT NULL DEFAULT 0, first_event INTEGER NOT NULL, last_event INTEGER NOT NULL, log_bytes INTEGER NOT NULL DEFAULT 0)");
  early.close();
  const { store, end } = await storeOf("sqlite", place);
  await store.save("new", checkpointOf("New"));
  assert.deepEqual(idsOf(await store.list()), ["new"]);
  await end();
});

test("a table of PostgreSQL of a version without a list gets one", { skip: !hasPostgres && "there is no PostgreSQL here" }, async (t) => {
  const pg = (await import("pg")).default;
  const pool = new pg.Pool({ connectionString: await postgres(t), max: 4 });
  pool.on("error", () => {});
  await pool.query("CREATE TABLE turnwheel_agents (id text PRIMARY KEY, fence bigint NOT NULL, owner text, until timestamptz, state text, running boolean NOT NULL DEFAULT false, count integer NOT NULL DEFAULT 0, first_event bigint NOT NULL, last_event bigint NOT NULL, log_bytes bigint NOT NULL DEFAULT 0)");
  for (const store of [postgresStore(pool), postgresStore(pool)]) await store.save("new", checkpointOf("New"));
  assert.deepEqual((await postgresStore(pool).list()).map(({ title }) => title), ["New"]);
  await pool.end();
});
