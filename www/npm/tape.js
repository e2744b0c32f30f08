// @ts-check
// turnwheel/tape: runs are written down and lived again. It has a wasm module of its own, which is loaded when it is used.

export { cassette } from "./tape/cassette.js";
export { TapeDivergence } from "./tape/divergence.js";
export { fork } from "./tape/fork.js";
export { use } from "./boundary/server.js";
export { ready } from "./tape/module.js";
export { record, recordNow } from "./tape/record.js";
export { replay } from "./tape/replay.js";
export { Tape } from "./tape/text.js";
