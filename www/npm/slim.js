// For hosts that supply the wasm file themselves: call `use(() => bytes)` before the first run.
export * from "./index.js";
export { use } from "./core.js";
