// An engine of @mlc-ai/web-llm, on WebGPU, as a model: it streams chunks in the form of OpenAI's chat.

import { custom } from "turnwheel";

/** @param {string} id of the model @param {() => Promise<any>} load makes the engine, at the first answer */
export function webLlm(id, load) {
  let engine; // a promise: it is loaded once
  let free = Promise.resolve(); // it writes one answer at a time
  return custom(id, async function* (request, { signal }) {
    const before = free;
    let leave = () => {};
    free = new Promise((done) => (leave = () => before.then(done)));
    const stop = () => void mlc?.interruptGenerate();
    let mlc;
    let chunks;
    let isOver = false;
    try {
      await before;
      signal.throwIfAborted();
      engine ??= load();
      mlc = await engine.catch((error) => ((engine = undefined), Promise.reject(error)));
      signal.throwIfAborted();
      signal.addEventListener("abort", stop, { once: true });
      const { systemPrompt, messages, options } = request;
      const textOf = ({ content }) => content.map((block) => (block.type === "text" ? block.text : "")).join("");
      const stream = await mlc.chat.completions.create({
        stream: true,
        stream_options: { include_usage: true },
        messages: [...(systemPrompt ? [{ role: "system", content: systemPrompt }] : []), ...messages.map((message) => ({ role: message.role, content: textOf(message) }))],
        ...(options.temperature !== undefined && { temperature: options.temperature }),
        ...(options.maxTokens !== undefined && { max_tokens: options.maxTokens }),
      });
      chunks = stream[Symbol.asyncIterator]();
      yield { type: "text_start", contentIndex: 0 };
      let stopReason = "stop";
      let used = {};
      for (;;) {
        const { done, value } = await chunks.next();
        isOver = done;
        signal.throwIfAborted();
        if (done) break;
        const [choice] = value.choices;
        if (choice?.delta.content) yield { type: "text_delta", contentIndex: 0, delta: choice.delta.content };
        if (choice?.finish_reason === "length") stopReason = "length";
        used = value.usage ?? used;
      }
      const { prompt_tokens: input = 0, completion_tokens: output = 0 } = used;
      yield { type: "text_end", contentIndex: 0 };
      yield { type: "done", stopReason, usage: { input, output, total: input + output } };
    } catch (error) {
      // The loop compacts the conversation, or asks the next model.
      if (error?.name === "ContextWindowSizeExceededError") throw Object.assign(error, { code: "context_overflow" });
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
      // An answer that nobody reads to its end is interrupted and drained, or the engine stays busy.
      if (chunks && !isOver && !signal.aborted) stop();
      while (chunks && !isOver) isOver = (await chunks.next()).done;
      leave();
    }
  });
}
