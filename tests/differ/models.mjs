// @ts-check
// The model of a plan: one that is scripted, one that streams by itself, or a wire over a `fetch` that is made up.

/** @import { Answer } from "./plan.mjs" */
/** @import { World } from "./world.mjs" */

/** What is said when the script is over. @type {Answer} */
const LAST = { text: ["Done."] };

/** Makes a model that says what the plan's script has next. @param {World} world @param {string} kind @param {string} [id] @param {any} [more] its options */
export function modelOf(world, kind, id = "m", more = {}) {
  const { package: own } = world;
  const next = () => world.plan.script[world.calls++] ?? LAST;
  const wired = { baseUrl: "http://server.test/v1", fetch: fetchOf(world, kind, next), apiKey: "key-1", ...more };
  switch (kind) {
    case "custom": return own.custom(id, (/** @type {any} */ request, /** @type {any} */ context) => streamed(world, next(), request, context), { ...(more.contextWindow && { contextWindow: more.contextWindow }) });
    case "scripted": return own.scripted(Array.from({ length: 40 }, () => (/** @type {any} */ request) => (world.say("asked", request), scriptedItem(world, next()))));
    case "openai-chat": return own.openaiCompatible(id, wired);
    case "openai-responses": return own.openaiResponses(id, wired);
    case "anthropic": return own.anthropic(id, wired);
    case "gemini": return own.gemini(id, wired);
    default: return kind;
  }
}

/** The model of a sub-agent. @param {World} world */
export function childModel(world) {
  return world.package.custom("child", (/** @type {any} */ request, /** @type {any} */ context) => streamed(world, world.plan.childScript[world.childCalls++] ?? LAST, request, context));
}

/** Ids that are short, and the same in both worlds. @param {World} world */
const callId = (world) => `c${world.callIds++}`;
const argumentsOf = (/** @type {{ args: any, broken?: boolean }} */ { args, broken }) => (broken ? `{"n":` : JSON.stringify(args));
const usageOf = (/** @type {Answer} */ { usage }) => usage && { ...usage, cacheRead: 0, cacheWrite: 0, total: usage.input + usage.output };
const stopOf = (/** @type {Answer} */ { stop, calls }) => stop ?? (calls?.length ? "tool_use" : "stop");

/** @param {World} world @param {Answer} answer */
function scriptedItem(world, answer) {
  const { fails, text, thinking, calls = [] } = answer;
  if (fails?.kind === "throws") throw new Error(fails.message);
  return {
    ...(thinking && { thinking }), ...(text && { text }), ...(answer.pauseMs && { delayMs: answer.pauseMs }), ...(usageOf(answer) && { usage: usageOf(answer) }), ...(answer.stop && { stopReason: answer.stop }),
    toolCalls: calls.map(({ tool, args, broken }) => ({ callId: callId(world), toolName: tool, ...(broken ? { chunks: ['{"n":'] } : { arguments: args }) })),
    ...(fails?.code && { error: { code: fails.code, message: `it is ${fails.code}` } }),
  };
}

/** @param {World} world @param {Answer} answer @param {any} request @param {any} context @returns {AsyncGenerator<any>} */
async function* streamed(world, answer, request, { signal, ...run }) {
  world.say("asked", request, run);
  const { fails, text, thinking, calls = [], pauseMs } = answer;
  const pause = () => (pauseMs ? world.clock.sleep(pauseMs, signal) : undefined);
  if (fails?.kind === "throws") throw new Error(fails.message);
  if (fails?.kind === "status") throw Object.assign(new Error(`status ${fails.status}`), { status: fails.status, headers: fails.after ? { "retry-after": String(fails.after) } : {} });
  await pause();
  if (fails?.kind === "silent") await world.clock.sleep(1e9, signal);
  let contentIndex = 0;
  if (thinking) {
    yield { type: "thinking_start", contentIndex };
    yield { type: "thinking_delta", contentIndex, delta: thinking };
    yield { type: "thinking_end", contentIndex: contentIndex++, signature: "signed" };
  }
  if (text) {
    yield { type: "text_start", contentIndex };
    for (const delta of text) {
      await pause();
      yield { type: "text_delta", contentIndex, delta };
    }
    yield { type: "text_end", contentIndex: contentIndex++ };
  }
  if (fails?.kind === "error") return yield { type: "error", error: { code: fails.code, message: `it is ${fails.code}` } };
  if (fails?.kind === "cut") return;
  for (const each of calls) {
    yield { type: "tool_call_start", contentIndex, callId: callId(world), toolName: each.tool };
    await pause();
    yield { type: "tool_call_delta", contentIndex, delta: argumentsOf(each) };
    yield { type: "tool_call_end", contentIndex: contentIndex++ };
  }
  yield { type: "done", stopReason: stopOf(answer), ...(usageOf(answer) && { usage: usageOf(answer) }) };
}

/** A server that answers with the script. @param {World} world @param {string} kind @param {() => Answer} next */
function fetchOf(world, kind, next) {
  return async (/** @type {any} */ url, /** @type {any} */ { body, headers, signal, ...init } = {}) => {
    world.say("fetch", String(url), body && new TextDecoder().decode(typeof body === "string" ? new TextEncoder().encode(body) : body), Object.fromEntries([...new Headers(headers)].sort()), init);
    const answer = next();
    const { fails, pauseMs = 0 } = answer;
    if (pauseMs) await world.clock.sleep(pauseMs, signal);
    if (signal?.aborted) throw signal.reason;
    if (fails?.kind === "throws") throw new TypeError(fails.message);
    const error = { error: { message: `it is ${fails?.code}`, type: fails?.code, code: fails?.code === "context_overflow" ? "context_length_exceeded" : fails?.code } };
    if (fails?.kind === "status") return new Response(JSON.stringify(error), { status: fails.status, headers: { "content-type": "application/json", ...(fails.after && { "retry-after": String(fails.after) }) } });
    if (fails?.kind === "error") return new Response(JSON.stringify(error), { status: fails.code === "context_overflow" ? 400 : 500, headers: { "content-type": "application/json" } });
    const frames = (/** @type {any} */ (WIRES)[kind])(world, answer);
    if (fails?.kind === "cut") frames.splice(Math.max(1, frames.length - 2));
    return new Response(bodyOf(world, frames, pauseMs, fails?.kind === "silent", signal), { headers: { "content-type": "text/event-stream" } });
  };
}

/** @param {World} world @param {string[]} frames @param {number} pauseMs @param {boolean} isSilent @param {AbortSignal | undefined} signal */
function bodyOf(world, frames, pauseMs, isSilent, signal) {
  const bytes = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const frame = frames.shift();
      if (frame === undefined) return controller.close();
      if (pauseMs) await world.clock.sleep(pauseMs, signal);
      if (isSilent && frames.length === 1) await world.clock.sleep(1e9, signal);
      if (signal?.aborted) return controller.error(signal.reason);
      controller.enqueue(bytes.encode(frame));
    },
    cancel: (reason) => world.say("body cancelled", reason),
  }, { highWaterMark: 0 });
}

const frame = (/** @type {any} */ data) => `data: ${JSON.stringify(data)}\n\n`;
const named = (/** @type {any} */ data) => `event: ${data.type}\n${frame(data)}`;

/** Why an answer stopped, in the words of each wire. @type {{ [stop: string]: string }} */
const CHAT_STOPS = { length: "length", content_filter: "content_filter" };
/** @type {{ [stop: string]: string }} */
const MESSAGES_STOPS = { length: "max_tokens", refusal: "refusal", pause: "pause_turn" };
/** @type {{ [stop: string]: string }} */
const GEMINI_STOPS = { length: "MAX_TOKENS", content_filter: "SAFETY" };

/** The frames of an answer on each wire. */
const WIRES = {
  /** @param {World} world @param {Answer} answer */
  "openai-chat": (world, { text = [], thinking, calls = [], usage, stop }) => {
    const delta = (/** @type {any} */ it) => frame({ id: "r", choices: [{ index: 0, delta: it }] });
    return [
      ...(thinking ? [delta({ reasoning_content: thinking })] : []), ...text.map((content) => delta({ content })),
      ...calls.flatMap((call, index) => [delta({ tool_calls: [{ index, id: callId(world), type: "function", function: { name: call.tool, arguments: "" } }] }), delta({ tool_calls: [{ index, function: { arguments: argumentsOf(call) } }] })]),
      frame({ id: "r", choices: [{ index: 0, delta: {}, finish_reason: CHAT_STOPS[stop ?? ""] ?? (calls.length ? "tool_calls" : "stop") }], ...(usage && { usage: { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output } }) }),
      "data: [DONE]\n\n",
    ];
  },
  /** @param {World} world @param {Answer} answer */
  "openai-responses": (world, { text = [], calls = [], usage, stop }) => [
    named({ type: "response.created", response: { id: "r" } }),
    ...text.map((delta) => named({ type: "response.output_text.delta", output_index: 0, content_index: 0, delta })),
    ...calls.flatMap((call, at) => {
      const item = { type: "function_call", id: `f${at}`, call_id: callId(world), name: call.tool, arguments: argumentsOf(call) };
      return [named({ type: "response.output_item.added", output_index: at + 1, item: { ...item, arguments: "" } }), named({ type: "response.output_item.done", output_index: at + 1, item })];
    }),
    named({ type: stop === "length" ? "response.incomplete" : "response.completed", response: { id: "r", status: stop === "length" ? "incomplete" : "completed", ...(stop === "length" && { incomplete_details: { reason: "max_output_tokens" } }), ...(usage && { usage: { input_tokens: usage.input, output_tokens: usage.output, total_tokens: usage.input + usage.output } }) } }),
  ],
  /** @param {World} world @param {Answer} answer */
  anthropic: (world, { text = [], thinking, calls = [], usage, stop }) => {
    let index = 0;
    const block = (/** @type {any} */ content_block, /** @type {any[]} */ deltas) => [
      named({ type: "content_block_start", index, content_block }), ...deltas.map((delta) => named({ type: "content_block_delta", index, delta })), named({ type: "content_block_stop", index: index++ }),
    ];
    return [
      named({ type: "message_start", message: { id: "r", usage: usage ? { input_tokens: usage.input, output_tokens: 1 } : {} } }),
      ...(thinking ? block({ type: "thinking", thinking: "" }, [{ type: "thinking_delta", thinking }, { type: "signature_delta", signature: "signed" }]) : []),
      ...(text.length ? block({ type: "text", text: "" }, text.map((piece) => ({ type: "text_delta", text: piece }))) : []),
      ...calls.flatMap((call) => block({ type: "tool_use", id: callId(world), name: call.tool, input: {} }, [{ type: "input_json_delta", partial_json: argumentsOf(call) }])),
      named({ type: "message_delta", delta: { stop_reason: MESSAGES_STOPS[stop ?? ""] ?? (calls.length ? "tool_use" : "end_turn") }, ...(usage && { usage: { output_tokens: usage.output } }) }),
      named({ type: "message_stop" }),
    ];
  },
  /** @param {World} world @param {Answer} answer */
  gemini: (world, { text = [], thinking, calls = [], usage, stop }) => {
    const part = (/** @type {any} */ it, /** @type {any} */ more = {}, /** @type {any} */ beside = {}) => frame({ candidates: [{ content: { parts: [it] }, ...more }], ...beside });
    return [
      ...(thinking ? [part({ text: thinking, thought: true })] : []), ...text.map((piece) => part({ text: piece })),
      ...calls.map((call) => part({ functionCall: { id: callId(world), name: call.tool, args: call.args } })),
      part({ text: "" }, { finishReason: GEMINI_STOPS[stop ?? ""] ?? "STOP" }, usage && { usageMetadata: { promptTokenCount: usage.input, candidatesTokenCount: usage.output, totalTokenCount: usage.input + usage.output } }),
    ];
  },
};
