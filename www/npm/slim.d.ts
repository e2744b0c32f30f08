export * from "./index.js";

/**
 * Says where the wasm file comes from: its bytes, a compiled module, or a promise of either. To be called before the
 * first run; nothing is loaded before it.
 *
 * @example
 * import { Agent, use } from "turnwheel/slim";
 * use(() => fetch("/assets/turnwheel.wasm").then((response) => response.arrayBuffer()));
 */
export function use(load: () => BufferSource | WebAssembly.Module | Promise<BufferSource | WebAssembly.Module>): void;
