// @ts-check
// An answer in the four wire formats, as frames of server-sent events.

/**
 * What the model says in one attempt.
 * @typedef {object} Answer
 * @property {string[]} text in pieces
 * @property {{ id: string, name: string, args: string }[]} calls `args` is JSON text
 * @property {"stop" | "length" | "filter" | "lie" | "unknown"} finish `lie`: the other reason than the true one
 * @property {boolean} [open] the last call is not closed, as when the limit of tokens cut it
 */

/**
 * The frames; those from `end` on say that the answer is over.
 * @typedef {{ frames: string[], end: number }} Rendered
 */

const data = (/** @type {any} */ value) => `data: ${JSON.stringify(value)}\n\n`;
const named = (/** @type {any} */ value) => `event: ${value.type}\n${data(value)}`;
const half = (/** @type {string} */ text) => [text.slice(0, text.length >> 1), text.slice(text.length >> 1)];
const hasCalls = (/** @type {Answer} */ answer) => answer.calls.length > 0;

/** The reason in the words of a wire. @param {Answer} answer @param {{ stop: string, tools: string, length: string, filter: string }} words */
function reason(answer, words) {
  if (answer.finish === "unknown") return "banana";
  if (answer.finish === "length" || answer.finish === "filter") return words[answer.finish];
  return hasCalls(answer) === (answer.finish === "stop") ? words.tools : words.stop;
}

/** @param {Answer} answer @returns {Rendered} */
function chat(answer) {
  const delta = (/** @type {any} */ delta) => data({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta }] });
  const frames = answer.text.map((content) => delta({ content }));
  for (const [index, { id, name, args }] of answer.calls.entries()) {
    const [head = "", tail = ""] = half(args);
    frames.push(delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: head } }] }));
    frames.push(delta({ tool_calls: [{ index, function: { arguments: tail } }] }));
  }
  const finish_reason = reason(answer, { stop: "stop", tools: "tool_calls", length: "length", filter: "content_filter" });
  const last = { choices: [{ index: 0, delta: {}, finish_reason }], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } };
  return { frames: [...frames, data(last), "data: [DONE]\n\n"], end: frames.length };
}

/** @param {Answer} answer @returns {Rendered} */
function responses(answer) {
  const frames = answer.text.map((delta) => named({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta }));
  for (const [at, { id, name, args }] of answer.calls.entries()) {
    const output_index = at + 1;
    const item = { type: "function_call", id: `fc_${at}_${id}`, call_id: id, name };
    frames.push(named({ type: "response.output_item.added", output_index, item: { ...item, arguments: "" } }));
    for (const delta of half(args)) frames.push(named({ type: "response.function_call_arguments.delta", output_index, delta }));
    if (!(answer.open && at === answer.calls.length - 1)) frames.push(named({ type: "response.output_item.done", output_index, item: { ...item, arguments: args } }));
  }
  const usage = { input_tokens: 7, output_tokens: 3, total_tokens: 10 };
  const why = { length: "max_output_tokens", filter: "content_filter", unknown: "banana" }[/** @type {string} */ (answer.finish)];
  const last = why
    ? { type: "response.incomplete", response: { status: "incomplete", incomplete_details: { reason: why }, usage } }
    : { type: "response.completed", response: { status: "completed", usage } };
  return { frames: [...frames, named(last)], end: frames.length };
}

/** @param {Answer} answer @returns {Rendered} */
function anthropic(answer) {
  const frames = [named({ type: "message_start", message: { usage: { input_tokens: 7, output_tokens: 1 } } })];
  let index = 0;
  if (answer.text.length > 0) {
    frames.push(named({ type: "content_block_start", index, content_block: { type: "text", text: "" } }));
    for (const text of answer.text) frames.push(named({ type: "content_block_delta", index, delta: { type: "text_delta", text } }));
    frames.push(named({ type: "content_block_stop", index: index++ }));
  }
  for (const [at, { id, name, args }] of answer.calls.entries()) {
    frames.push(named({ type: "content_block_start", index, content_block: { type: "tool_use", id, name, input: {} } }));
    for (const partial_json of half(args)) frames.push(named({ type: "content_block_delta", index, delta: { type: "input_json_delta", partial_json } }));
    if (!(answer.open && at === answer.calls.length - 1)) frames.push(named({ type: "content_block_stop", index }));
    index++;
  }
  const stop_reason = reason(answer, { stop: "end_turn", tools: "tool_use", length: "max_tokens", filter: "refusal" });
  return { frames: [...frames, named({ type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 3 } }), named({ type: "message_stop" })], end: frames.length };
}

/** @param {Answer} answer @returns {Rendered} */
function gemini(answer) {
  const part = (/** @type {any} */ part) => data({ candidates: [{ content: { role: "model", parts: [part] }, index: 0 }] });
  const frames = answer.text.map((text) => part({ text }));
  for (const { id, name, args } of answer.calls) {
    // This wire has arguments as a value: its JSON text goes in as it is, also where it says a thing twice.
    frames.push(part({ functionCall: { id, name, args: "ARGS" } }).replace('"ARGS"', () => args));
  }
  const finishReason = reason(answer, { stop: "STOP", tools: "STOP", length: "MAX_TOKENS", filter: "SAFETY" });
  const last = { candidates: [{ finishReason, index: 0 }], usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 } };
  return { frames: [...frames, data(last)], end: frames.length };
}

/** An error in the middle of an answer. @type {Record<string, string>} */
const ERRORS = {
  chat: data({ error: { message: "The server is overloaded", type: "server_error", code: 503 } }),
  responses: named({ type: "response.failed", response: { status: "failed", error: { code: "server_error", message: "The server had an error" } } }),
  anthropic: `event: error\n${data({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })}`,
  gemini: data({ error: { code: 503, message: "The model is overloaded", status: "UNAVAILABLE" } }),
};

/** @type {Record<string, (answer: Answer) => Rendered>} */
const RENDER = { chat, responses, anthropic, gemini };

export const WIRES = Object.keys(RENDER);

/** @param {string} wire @param {Answer} answer @returns {Rendered} */
export const render = (wire, answer) => /** @type {any} */ (RENDER[wire])(answer);

/** @param {string} wire */
export const errorFrame = (wire) => ERRORS[wire] ?? "";

/** A refusal, as the wire has it. @param {string} wire @param {string} type @param {string} message */
export function refusal(wire, type, message) {
  if (wire === "gemini") return JSON.stringify({ error: { code: 400, message, status: type } });
  return JSON.stringify({ type: "error", error: { type, code: type, message } });
}
