// @ts-check
// What the engine's entries share with those that need no engine (remote, react, stores). Whoever is outside imports it from
// here: then it is one file of the package, and a host that reads each file for itself begins sooner.

export * from "./errors.js";
export * from "./messages.js";
export * from "./partial.js";
export * from "./respond.js";
export * from "./sleep.js";
export * from "./texts.js";
export * from "./uuid.js";
