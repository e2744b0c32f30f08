// @ts-check
// Stores whose storage fails: either the newest checkpoint is stored, or the caller learns that it is not.
// The real storages are tested in browser/stores.test.mjs and in workerd.

import assert from "node:assert/strict";
import { test } from "node:test";
import { durableObjectStore, indexedDBStore } from "../../../pkg/stores.js";
import { Database } from "../../../www/npm/stores/database.js";
import { deferred, misused } from "../kit.mjs";

const checkpoint = (/** @type {number} */ n) => /** @type {any} */ ({ version: 1, messages: [n] });

/** The storage of a Durable Object, as far as the store asks for it. @param {() => any} sync */
function storageOf(sync) {
  /** @type {Map<string, any[]>} */
  const rows = new Map();
  return {
    sync,
    transactionSync: (/** @type {() => any} */ work) => work(),
    sql: {
      exec(/** @type {string} */ statement, /** @type {any[]} */ ...[id, , json]) {
        if (statement.includes("turnwheel_list")) return { toArray: () => [] };
        if (statement.startsWith("DELETE")) rows.delete(id);
        if (statement.startsWith("INSERT")) rows.set(id, [...(rows.get(id) ?? []), { json }]);
        return { toArray: () => (statement.startsWith("SELECT") ? (rows.get(id) ?? []) : []) };
      },
    },
  };
}

test("what is saved now is not overwritten by what waited", async () => {
  const gate = deferred();
  const store = durableObjectStore(/** @type {any} */ (storageOf(() => gate.promise)));
  const saved = [store.save("a", checkpoint(1)), store.save("a", checkpoint(2))];
  const deleted = [store.save("b", checkpoint(1)), store.delete("b")];
  store.saveNow("a", checkpoint(3));
  store.saveNow("b", checkpoint(3));
  gate.resolve();
  await Promise.all([...saved, ...deleted]);
  assert.deepEqual([await store.load("a"), await store.load("b")], [checkpoint(3), checkpoint(3)]);
});

test("of what came while one was written the newest is written, and nothing else", async () => {
  const gate = deferred();
  /** @type {any[]} */
  const synced = [];
  const store = durableObjectStore(/** @type {any} */ (storageOf(() => (synced.push(1), gate.promise))));
  const saved = [1, 2, 3].map((n) => store.save("a", checkpoint(n)));
  gate.resolve();
  await Promise.all(saved);
  assert.deepEqual([await store.load("a"), synced.length, await store.load("b")], [checkpoint(3), 2, undefined]);
});

test("what cannot be written is told, and the next one is written", async () => {
  let isFull = true;
  const storage = storageOf(() => {});
  const store = durableObjectStore(/** @type {any} */ ({ ...storage, transactionSync: (/** @type {() => any} */ work) => {
    if (isFull) throw new RangeError("no room");
    return work();
  } }));
  await assert.rejects(store.save("a", checkpoint(1)), (/** @type {any} */ error) => error.code === "unknown" && error.cause instanceof RangeError && /`a` could not be saved in the Durable Object's SQLite: RangeError: no room/.test(error.message));
  isFull = false;
  await store.save("a", checkpoint(2));
  assert.deepEqual(await store.load("a"), checkpoint(2));
});

test("no part of a long checkpoint ends within a character", async () => {
  const storage = storageOf(() => {});
  /** @type {string[]} */
  const parts = [];
  const { exec } = storage.sql;
  storage.sql.exec = (statement, ...values) => {
    if (statement.startsWith("INSERT INTO")) parts.push(values[2]);
    return exec(statement, ...values);
  };
  const store = durableObjectStore(/** @type {any} */ (storage));
  for (const before of ["", "x"]) {
    const long = /** @type {any} */ ({ version: 1, messages: [before + "\u{1f600}".repeat(400_000)] });
    await store.save("a", long);
    assert.deepEqual(await store.load("a"), long);
  }
  assert.deepEqual([parts.length, parts.filter((part) => /^[\udc00-\udfff]|[\ud800-\udbff]$/.test(part)).length], [4, 0]);
});

test("saveNow takes what save takes", () => {
  const store = durableObjectStore(/** @type {any} */ (storageOf(() => {})));
  misused(() => store.saveNow(/** @type {any} */ (5), checkpoint(1)), /the id of a checkpoint must be a text, got a number/);
  misused(() => store.saveNow("a", /** @type {any} */ (undefined)), /saveNow\(`a`, …\) takes what checkpoint\(\) gives, got nothing/);
});

test("a connection that was lost is made anew", async () => {
  let opened = 0;
  const transaction = () => {
    const request = (/** @type {() => void} */ then) => {
      /** @type {any} */
      const asked = { result: undefined };
      setImmediate(() => (asked.onsuccess?.(), then()));
      return asked;
    };
    /** @type {any} */
    const made = { objectStore: () => ({ get: () => request(() => {}), put: () => request(() => setImmediate(() => made.oncomplete())) }) };
    return made;
  };
  const host = /** @type {any} */ (globalThis);
  host.indexedDB = {
    open() {
      const number = ++opened;
      /** @type {any} */
      const openRequest = { result: { transaction: () => {
        if (number === 1) throw new DOMException("the database connection is closing", "InvalidStateError");
        return transaction();
      } } };
      setImmediate(() => openRequest.onsuccess());
      return openRequest;
    },
  };
  try {
    const store = indexedDBStore();
    await Promise.all([store.save("a", checkpoint(1)), store.save("b", checkpoint(1))]);
    await store.save("a", checkpoint(2));
    assert.equal(opened, 2);
  } finally {
    delete host.indexedDB;
  }
});

test("a database that another tab keeps open, or of a later version, is told and not waited for", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  /** @type {any[]} */
  const requests = [];
  const before = Object.getOwnPropertyDescriptor(globalThis, "indexedDB");
  Object.defineProperty(globalThis, "indexedDB", { configurable: true, value: { open: () => (requests.push({}), requests.at(-1)) } });
  t.after(() => (before ? Object.defineProperty(globalThis, "indexedDB", before) : Reflect.deleteProperty(globalThis, "indexedDB")));
  const database = new Database("mine");
  const refused = assert.rejects(database.transact("readonly", () => {}), { code: "misuse", message: /another tab keeps an earlier version of the database `mine` open: close or reload it/ });
  requests[0].onblocked();
  t.mock.timers.tick(5000);
  await refused;
  // It opens when nobody waits for it any more.
  let isClosed = false;
  requests[0].result = { close: () => (isClosed = true) };
  requests[0].onsuccess();
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(isClosed);
  const later = assert.rejects(database.transact("readonly", () => {}), { code: "misuse", message: /is of a later version than this page: reload it/ });
  requests[1].error = Object.assign(new Error("The requested version (3) is less than the existing version (9)."), { name: "VersionError" });
  requests[1].onerror();
  await later;
});
