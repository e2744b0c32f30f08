/**
 * @experimental A minor version may change this entry.
 * @module
 */

export * from "./index.js";

/**
 * Says where the wasm file comes from: `load` returns its bytes, a compiled module, or a promise of either. Call it before the
 * first run; nothing is loaded earlier.
 *
 * @example
 * import { Agent, use } from "turnwheel/slim";
 * use(() => fetch("/assets/turnwheel.wasm").then((response) => response.arrayBuffer()));
 */
export function use(load: () => WasmSource | Promise<WasmSource>): void;
/** Not every host's types have a name for a compiled module. */
type WasmSource = ArrayBuffer | ArrayBufferView | (typeof globalThis extends { WebAssembly: { Module: abstract new (...args: any) => infer Module } } ? Module : object);
export {};
