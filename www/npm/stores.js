// @ts-check
// turnwheel/stores: where checkpoints are kept. They are not part of the main bundle.

export { durableObjectStore } from "./stores/durable-object.js";
export { indexedDBStore } from "./stores/indexed-db.js";
