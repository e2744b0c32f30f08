// What the facade finds beside it only when it runs: Node's own modules, and the files that the build adds.

declare const process: { getBuiltinModule?(name: "node:fs"): import("node:fs"), on?(event: "exit", listener: () => void): void, exitCode?: number };

declare module "node:fs" {
  interface fs { readFileSync(path: URL): Uint8Array<ArrayBuffer> }
  const fs: fs;
  export = fs;
}

declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

/** The validator of JSON Schema, bundled from npm (`[vendor]` in wasm-pack.toml). */
declare module "*/validator.js" {
  export interface Lookup { left: number; matches(lookup: Lookup, pattern: string, text: string): boolean }
  export function dereference(schema: object, lookup?: Lookup): Lookup;
  export function validate(value: unknown, schema: object, lookup?: Lookup): { valid: boolean; errors: { error: string; instanceLocation: string }[] };
}
