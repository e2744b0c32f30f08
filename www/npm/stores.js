// @ts-check
// turnwheel/stores: where checkpoints are kept.

export { durableObjectStore, indexedDBStore } from "./stores/stores.js";
