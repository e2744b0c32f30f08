// @ts-check
// An engine of @mlc-ai/web-llm, on WebGPU. Experimental: tested against a double that behaves as recorded.

import { misuse } from "../shared.js";
import { chatRequest, chunksOf, engineOf } from "./chunks.js";
import { checkLocal, localModel } from "./model.js";

/** @import { LocalOptions } from "../local.js" */
/** @import { Asked, Chunk } from "./model.js" */

/** @param {any} engine an MLCEngine, or a function that makes one @param {LocalOptions} [options] */
export function webLlm(engine, options = {}) {
  checkLocal("webLlm", options);
  if (typeof engine !== "function" && typeof engine?.chat?.completions?.create !== "function") throw misuse("webLlm: the first argument must be an MLCEngine that has loaded a model, or a function that makes one; `chat.completions.create` is missing");
  const held = engineOf(engine);
  const initProgressCallback = (/** @type {{ progress: number }} */ { progress }) => options.onProgress?.({ phase: "load", loaded: progress, total: 1 });
  const make = () => held.get({ initProgressCallback });
  return localModel(
    {
      name: "webLlm",
      native: () => import("./native.js"),
      availability: async () => (held.ready ? "available" : held.making ? "downloading" : /** @type {any} */ (globalThis.navigator)?.gpu ? "downloadable" : "unavailable"),
      prepare: async () => void (await make()),
      // No bounds: its grammar compiler would take minutes over them.
      constrain: async (form) => (await import("./grammar.js")).grammarOf(form, { bounded: false }),
      /** @param {Asked} asked @returns {AsyncGenerator<Chunk>} */
      async *answer(asked) {
        const mlc = /** @type {any} */ (await make());
        const { signal, constraint: grammar } = asked;
        const constraint = grammar && { response_format: { type: "grammar", grammar } };
        const stop = () => void Promise.resolve(mlc.interruptGenerate?.()).catch(() => {});
        signal.addEventListener("abort", stop, { once: true });
        try {
          const chunks = (await mlc.chat.completions.create({ ...chatRequest(asked), ...constraint }))[Symbol.asyncIterator]();
          let step = await chunks.next();
          try {
            for (; !step.done; step = await chunks.next()) if (!signal.aborted) yield* chunksOf(step.value);
          } finally {
            // Whoever hears no more of it interrupts it and drains the rest, or the engine stays busy.
            if (!step.done) stop();
            while (!step.done) step = await chunks.next();
          }
          signal.throwIfAborted();
        } finally {
          signal.removeEventListener("abort", stop);
        }
      },
      failure(error) {
        const name = String(error?.name ?? "");
        if (name === "ContextWindowSizeExceededError") return { code: "context_overflow" };
        if (/grammar|response_format|ResponseFormat/.test(`${name} ${error?.message}`)) return "constraint";
        if (name === "DeviceLostError") {
          held.lost("unload");
          return { code: "server", retryable: typeof engine === "function" };
        }
        return { code: "server" };
      },
      dispose: async () => void (held.ready && (await /** @type {any} */ (await make()).unload?.())),
    },
    options,
  );
}
