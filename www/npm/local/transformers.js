// @ts-check
// A model of @huggingface/transformers (transformers.js). Experimental: tested against a double that behaves as
// recorded.

import { misuse } from "../shared.js";
import { plain } from "./chunks.js";
import { checkLocal, failure, localModel } from "./model.js";

/** @import { LocalOptions } from "../local.js" */
/** @import { Asked, Chunk } from "./model.js" */

/** An answer without `maxTokens` ends here: some models never end one. */
const MOST_TOKENS = 1024;

/** @typedef {{ model: any, tokenizer: any, library: any, StructuredOutputProcessor?: any }} Parts */

/** @param {Parts} parts @param {LocalOptions} [options] */
export function transformers(parts, options = {}) {
  checkLocal("transformers", options);
  const { model, tokenizer, library, StructuredOutputProcessor } = parts ?? {};
  if (typeof model?.generate !== "function") throw misuse("transformers: `model` must be a loaded model, with `generate`");
  if (typeof tokenizer?.apply_chat_template !== "function") throw misuse("transformers: `tokenizer` must be the model's tokenizer, with `apply_chat_template`");
  if (typeof library?.TextStreamer !== "function" || typeof library.InterruptableStoppingCriteria !== "function") throw misuse('transformers: `library` must be the module itself: import * as library from "@huggingface/transformers"');
  return localModel(
    {
      name: "transformers",
      availability: async () => "available",
      prepare: async () => {},
      constrain: async (form) => (await import("./schema.js")).schemaOf(form),
      answer: (asked) => answer(parts, options.contextWindow ?? model.config?.max_position_embeddings, asked),
      failure: (error) => (/json_schema|grammar|structured/i.test(String(error?.message)) ? "constraint" : { code: "server" }),
      dispose: async () => void (await model.dispose?.()),
    },
    // Without the processor nothing holds the model to the form.
    StructuredOutputProcessor || options.tools ? options : { ...options, tools: "prompted" },
  );
}

/** @param {Parts} parts @param {number | undefined} window @param {Asked} asked @returns {AsyncGenerator<Chunk>} */
async function* answer({ model, tokenizer, library, StructuredOutputProcessor }, window, { chat, constraint: json_schema, options: { maxTokens = MOST_TOKENS, temperature = 0, topP }, signal }) {
  const inputs = tokenizer.apply_chat_template(plain(chat), { add_generation_prompt: true, return_dict: true });
  const input = Number(inputs.input_ids.dims.at(-1));
  // It would cut the conversation, or write nonsense.
  if (window !== undefined && input >= window) throw failure("context_overflow", `transformers: the conversation has ${input} tokens, and the model takes ${window}`);
  const most = window === undefined ? maxTokens : Math.min(maxTokens, window - input);
  /** @type {string[]} */
  const arrived = [];
  let [output, isDone, wake] = [0, false, () => {}];
  /** @type {unknown} */
  let failed;
  const streamer = new library.TextStreamer(tokenizer, {
    skip_prompt: true,
    skip_special_tokens: true,
    callback_function: (/** @type {string} */ text) => (arrived.push(text), wake()),
    token_callback_function: (/** @type {unknown[]} */ tokens) => (output += tokens.length),
  });
  const stopping_criteria = new library.InterruptableStoppingCriteria();
  const stop = () => stopping_criteria.interrupt();
  signal.addEventListener("abort", stop, { once: true });
  const constraint = json_schema && StructuredOutputProcessor && { logits_processor: new StructuredOutputProcessor(tokenizer, { type: "json_schema", json_schema }) };
  const sampling = temperature > 0 ? { do_sample: true, temperature, ...(topP !== undefined && { top_p: topP }) } : { do_sample: false };
  const writing = (async () => model.generate({ ...inputs, ...sampling, ...constraint, max_new_tokens: most, streamer, stopping_criteria }))()
    .catch((/** @type {unknown} */ error) => void (failed = error ?? new Error("generate failed")))
    .finally(() => ((isDone = true), wake()));
  try {
    while (!isDone || arrived.length > 0) {
      const text = arrived.shift();
      if (text !== undefined) yield { text };
      else await new Promise((done) => (wake = () => done(undefined)));
    }
  } finally {
    // The model writes on until it is told: nobody else may use it before.
    stop();
    signal.removeEventListener("abort", stop);
    await writing;
  }
  signal.throwIfAborted();
  if (failed) throw failed;
  yield { usage: { input, output, total: input + output }, reason: output >= most ? "length" : "stop" };
}
