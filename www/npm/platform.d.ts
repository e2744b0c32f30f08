// What the types of the package name of the platform. Each is empty here and merges with that of `lib: ["DOM"]`, of @types/node, of
// Deno, Bun or Workers, where there is one.

export {};

declare global {
  interface AbortSignal {}
  interface Headers {}
  interface ReadableStream<R = any> {}
  interface Request {}
  interface RequestInit {}
  interface Response {}
  interface ResponseInit {}
  interface SharedWorker {}
  interface URL {}
  namespace WebAssembly {
    interface Module {}
  }
}
