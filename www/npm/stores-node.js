// @ts-check
// turnwheel/stores/node: stores that several processes share, and the agents that they hand from one to another.

export { fileStore } from "./stores/node/files.js";
export { joinFleet } from "./stores/node/join.js";
export { openAgent } from "./stores/open.js";
export { postgresStore } from "./stores/node/postgres.js";
export { sqliteStore } from "./stores/node/sqlite.js";
