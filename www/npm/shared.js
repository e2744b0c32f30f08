// @ts-check
// What the engine's entry files share with those that need no engine (remote, react, stores). Code outside
// imports it from here: then it ships as one file, and a host that loads file by file starts faster.

export * from "./errors.js";
export * from "./messages.js";
export * from "./partial.js";
export * from "./respond.js";
export * from "./sleep.js";
export * from "./texts.js";
export * from "./uuid.js";
