// What the facade finds beside it only when it runs: Node's own modules, and the files that the build adds.

declare const process: { getBuiltinModule?<Name extends "node:fs" | "node:zlib">(name: Name): Name extends "node:fs" ? import("node:fs") : import("node:zlib"), on?(event: "exit", listener: () => void): void, exitCode?: number };

declare module "node:fs" {
  interface fs { readFileSync(path: URL): Uint8Array<ArrayBuffer> }
  const fs: fs;
  export = fs;
}

declare module "node:zlib" {
  interface zlib { inflateSync(bytes: Uint8Array): Uint8Array }
  const zlib: zlib;
  export = zlib;
}

declare module "node:fs/promises" {
  export function access(path: string): Promise<void>;
  export function mkdir(folder: string, options?: { recursive?: boolean }): Promise<unknown>;
  export function readFile(file: string): Promise<Uint8Array>;
  export function readFile(file: string, encoding: "utf8"): Promise<string>;
  export function open(path: string, flags: string): Promise<{ truncate(length: number): Promise<void>; writeFile(text: string): Promise<void>; datasync(): Promise<void>; sync(): Promise<void>; close(): Promise<void> }>;
  export function readdir(folder: string): Promise<string[]>;
  export function rename(from: string, to: string): Promise<void>;
  export function rm(path: string, options?: { recursive?: boolean; force?: boolean }): Promise<void>;
  export function stat(path: string): Promise<{ mtimeMs: number }>;
  export function writeFile(file: string, text: string): Promise<void>;
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

/** What Workers have; users take the types of @cloudflare/workers-types, or those that Wrangler makes. */
declare module "cloudflare:workers" {
  export abstract class DurableObject<Env = unknown> {
    constructor(ctx: DurableObjectState, env: Env);
    protected ctx: DurableObjectState;
    protected env: Env;
    alarm?(info?: { readonly isRetry: boolean; readonly retryCount: number }): void | Promise<void>;
    fetch?(request: Request): Response | Promise<Response>;
  }
  interface DurableObjectState {
    readonly id: { readonly name?: string };
    readonly storage: {
      sql: { exec(statement: string, ...values: any[]): { toArray(): any[] } };
      transactionSync<T>(work: () => T): T;
      sync(): Promise<void>;
      getAlarm(): Promise<number | null>;
      setAlarm(at: number): Promise<void>;
      deleteAlarm(): Promise<void>;
    };
    blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
  }
}

// The types of @modelcontextprotocol/client name it; there is none here.
interface Buffer extends Uint8Array {}
