// @ts-check
// What the engine's entry files share with those that need no engine (remote, react, stores). Code outside
// imports it from here: then it ships as one file, and a host that loads file by file starts faster.

export * from "./errors/errors.js";
export * from "./messages/messages.js";
export * from "./events/partial-json.js";
export * from "./response/respond.js";
export * from "./host/sleep.js";
export * from "./events/texts.js";
export * from "./host/uuid.js";
