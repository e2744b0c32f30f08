// @ts-check
// As much of IndexedDB as `indexedDBStore` needs, for docs that show it. The real behaviour is tested in
// Chromium: tests/js/browser/stores.test.mjs.

/** @type {Map<string, any>} */
const rows = new Map();

/** A request that succeeds. @param {any} result */
const done = (result) => {
  const request = /** @type {any} */ ({ result });
  queueMicrotask(() => request.onsuccess?.());
  return request;
};
const table = {
  put: (/** @type {any} */ value, /** @type {string} */ id) => done(void rows.set(id, structuredClone(value))),
  get: (/** @type {string} */ id) => done(structuredClone(rows.get(id))),
  delete: (/** @type {string} */ id) => done(void rows.delete(id)),
};
const database = {
  createObjectStore: () => table,
  transaction() {
    const transaction = /** @type {any} */ ({ objectStore: () => table });
    setTimeout(() => transaction.oncomplete());
    return transaction;
  },
};
/** @type {any} */ (globalThis).indexedDB = { open: () => done(database) };
