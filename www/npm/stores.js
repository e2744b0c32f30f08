// @ts-check
// turnwheel/stores: where checkpoints are kept, by whom, and how they are sealed. They are not part of the main bundle.

export { extensionStore } from "./stores/extension.js";
export { indexedDBStore } from "./stores/indexed-db.js";
export { durableObjectStore } from "./stores/object-list.js";
export { seal, unseal } from "./stores/seal.js";
