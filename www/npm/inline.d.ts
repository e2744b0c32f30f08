/**
 * @experimental A minor version may change this entry.
 * @module
 */

// The package as one script, with the engine inside: it loads nothing, and no bundler has to know of a wasm file.
export * from "./index.js";
