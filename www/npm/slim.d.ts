export * from "./index.js";
/** Says where the wasm file comes from: its bytes, a compiled module, or a promise of either. */
export function use(load: () => BufferSource | WebAssembly.Module | Promise<BufferSource | WebAssembly.Module>): void;
