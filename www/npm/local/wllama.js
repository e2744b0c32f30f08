// @ts-check
// llama.cpp as WebAssembly: an engine of @wllama/wllama, version 3.8 or newer.

import { misuse } from "../shared.js";
import { chatRequest, chunksOf, engineOf } from "./chunks.js";
import { checkLocal, localModel } from "./model.js";

/** @import { LocalOptions } from "../local.js" */
/** @import { Asked, Chunk } from "./model.js" */

const OVERFLOW = /exceeds the available context|context (size|length)|n_ctx/i;

/** @param {any} engine a Wllama with a model, or a function that makes one @param {LocalOptions} [options] */
export function wllama(engine, options = {}) {
  checkLocal("wllama", options);
  if (typeof engine !== "function" && typeof engine?.createChatCompletion !== "function") throw misuse("wllama: the first argument must be a Wllama that has loaded a model, or a function that makes one; `createChatCompletion` is missing (it needs version 3)");
  const held = engineOf(engine);
  const make = (/** @type {AbortSignal | undefined} */ signal) => held.get({ signal, onProgress: progressOf(options) });
  return localModel(
    {
      name: "wllama",
      native: () => import("./native.js"),
      availability: async () => (held.ready ? "available" : held.making ? "downloading" : typeof WebAssembly === "object" ? "downloadable" : "unavailable"),
      prepare: async (signal) => void (await make(signal)),
      constrain: async (form) => (await import("./grammar.js")).grammarOf(form),
      /** @param {Asked} asked @returns {AsyncGenerator<Chunk>} */
      async *answer(asked) {
        const wllama = /** @type {any} */ (await make(asked.signal));
        const { constraint: grammar } = asked;
        const chunks = await wllama.createChatCompletion({ ...chatRequest(asked), abortSignal: asked.signal, ...(grammar && { grammar }) });
        for await (const chunk of chunks) yield* chunksOf(chunk);
      },
      failure(error) {
        const text = String(error?.message ?? error);
        if (OVERFLOW.test(text)) return { code: "context_overflow" };
        if (/grammar/i.test(text)) return "constraint";
        if (error?.type === "load_error" || error?.type === "model_not_initialized" || !held.ready) return { code: "server" };
        // A worker that died is made anew.
        held.lost();
        return { code: "server", retryable: typeof engine === "function" };
      },
      dispose: async () => void (held.ready && (await /** @type {any} */ (await make(undefined)).exit?.())),
    },
    options,
  );
}

/** Tells the progress of loading as `LocalOptions.onProgress` has it. @param {LocalOptions} options */
export const progressOf = ({ onProgress }) => (/** @type {{ loaded: number, total?: number }} */ { loaded, total }) => onProgress?.({ phase: "download", loaded, ...(total !== undefined && { total }) });
