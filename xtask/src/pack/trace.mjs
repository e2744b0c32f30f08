// Prints what runs of the engine, and when: `node trace.mjs FACADE TRACED`, where FACADE is the folder of the joined scripts and
// TRACED a module whose functions note that they were entered. `sent` are those until a first request has left, on any wire, `read`
// those until the pieces of an answer have been read, and until requests of rarer kinds have left.
//
// Whatever is not here is not wrong: a run that enters what is not there yet waits for it (boundary/gaps.js).
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [facade, traced] = process.argv.slice(2);
const { Agent, anthropic, gemini, openai, openaiCompatible, openaiResponses, tool, use } = await import(pathToFileURL(join(facade, "slim.js")).href);

const ENTERED = "entered:";
/** The exports of the newest instance; each request has its own. @type {Record<string, any>} */
let newest = {};
const { Instance } = WebAssembly;
WebAssembly.Instance = /** @type {any} */ (function (module, imports) {
  const instance = new Instance(module, imports);
  newest = instance.exports;
  return instance;
});
const module = new WebAssembly.Module(readFileSync(traced));
use(() => module);

const image = { type: "image", data: "aGk=", mimeType: "image/png" };
const call = { type: "tool_call", callId: "c1", toolName: "weather", arguments: { city: "Oslo" } };
const weather = tool({
  name: "weather", description: "The weather\nin a city.", requiresApproval: true,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  execute: () => "rain",
});
const search = tool({
  name: "search", description: "Searches.",
  parameters: {
    type: "object", additionalProperties: false, required: ["query"], $defs: { day: { type: "string", format: "date" } },
    properties: {
      query: { type: "string", minLength: 1, description: "é \"quoted\"\n" }, limit: { type: "integer", minimum: 1, maximum: 1.5e3, default: 10 },
      tags: { type: "array", items: { enum: ["a", "b", null, 1, false] } }, day: { $ref: "#/$defs/day" }, either: { anyOf: [{ type: "null" }, { const: {} }] },
    },
  },
  execute: () => ({}),
});
const exact = tool({
  name: "exact", description: "Fits the strict form.",
  parameters: {
    type: "object", additionalProperties: false, required: ["city", "note", "days"], $defs: { day: { type: "string" } },
    properties: { city: { type: "string", pattern: "^[a-z]+$" }, note: { anyOf: [{ type: "string", enum: ["a"] }, { const: "b", type: "string" }] }, days: { type: "array", items: { $ref: "#/$defs/day" } } },
  },
  execute: () => "",
});
const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, total: 2 };
const history = (provider) => [
  { role: "user", content: [{ type: "text", text: "é \"quoted\"" }, image] },
  { role: "assistant", content: [{ type: "text", text: "I look." }, call], provider, model: "m", usage, stopReason: "tool_use" },
  { role: "tool_result", callId: "c1", toolName: "weather", content: [{ type: "text", text: "rain" }], isError: false },
  { role: "assistant", content: [{ type: "text", text: "Rain." }], provider, model: "m", usage, stopReason: "stop" },
];

const clock = tool({ name: "clock", description: "The time.", parameters: { type: "object" }, execute: () => "12" });

/** Options of an agent, for a model of this provider: those of the page whose first load is measured. */
const AGENTS = [
  () => ({}),
  () => ({ systemPrompt: "Be brief.\n", tools: [weather], approval: { mode: "smart" }, steering: { when: "immediate" } }),
  () => ({ systemPrompt: "x", tools: [clock], approveTool: () => true }),
  () => ({ tools: [clock] }),
  () => ({ tools: [weather, clock], approveTool: () => true, approval: { mode: "enabled" }, steering: { when: "after_tool", inFlight: "finish" } }),
];
/** Others: what only these take comes with what reads answers, and their requests leave when that is there. */
const OTHER_AGENTS = [
  (provider) => ({ messages: history(provider), tools: [weather], streamOptions: { temperature: 0.5, maxTokens: 100, reasoning: "low", toolChoice: "auto" } }),
  () => ({ systemPrompt: "", tools: [search, exact], streamOptions: { topP: 1, toolChoice: { toolName: "search" }, parallelToolCalls: false, reasoning: "high", cache: "auto", stop: ["."], body: { seed: 1.5, list: [true, null, -3, 1e21] } } }),
  () => ({ timeouts: { totalMs: 60_000, firstChunkMs: 10_000 }, retry: { maxAttempts: 3 }, maxTurns: 5 }),
];
const INPUTS = [["One.", "Two."], "x".repeat(5000), "What is the weather in Oslo? é\n"];
const OTHER_INPUTS = [{ role: "user", content: [{ type: "text", text: "And this?" }, image] }];
/** Models, by the wire that they speak. @type {[wire: string, provider: string, make: (id: string, options: object) => object][]} */
const MODELS = [
  ["openai-chat", "openai", openai],
  ["openai-chat", "openrouter", (id, options) => openaiCompatible(id, { server: "openrouter", ...options })],
  ["openai-chat", "own", (id, options) => openaiCompatible(id, { baseUrl: "http://127.0.0.1:9/v1", ...options })],
  ["openai-chat", "ollama", (id, options) => openaiCompatible(id, { server: "ollama", ...options })],
  ["openai-responses", "openai", openaiResponses],
  ["anthropic", "anthropic", (id, options) => anthropic(id, { dangerouslyAllowBrowser: true, ...options })],
  ["gemini", "gemini", gemini],
];

const chunk = (delta) => ({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: null }], usage: null });
const item = { id: "m", type: "message", status: "in_progress", role: "assistant", content: [] };
const reasoning = { id: "rs", type: "reasoning", summary: [] };
const part = (parts) => ({ candidates: [{ content: { parts, role: "model" }, index: 0 }], usageMetadata: { promptTokenCount: 4, totalTokenCount: 4 }, modelVersion: "m", responseId: "r" });
const TEXTS = ["Hé \"l\"\n", "lo"];
const LAST = ".";

/** What comes in of an answer before it ends, by wire: text, thinking, the beginning of a call, more text. @type {Record<string, object[]>} */
const ANSWERS = {
  "openai-chat": [
    chunk({ role: "assistant", content: "" }), chunk({ reasoning_content: "hm" }), chunk({ reasoning: "hm" }), ...TEXTS.map((content) => chunk({ content })),
    chunk({ tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "weather", arguments: "" } }] }), chunk({ tool_calls: [{ index: 0, function: { arguments: '{"ci' } }] }), chunk({ content: LAST }),
  ],
  "openai-responses": [
    { type: "response.created", response: { id: "r", status: "in_progress", output: [] } }, { type: "response.in_progress", response: { id: "r", status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: reasoning }, { type: "response.reasoning_summary_part.added", item_id: "rs", output_index: 0, summary_index: 0, part: { type: "summary_text", text: "" } },
    { type: "response.reasoning_summary_text.delta", item_id: "rs", output_index: 0, summary_index: 0, delta: "hm" }, { type: "response.output_item.done", output_index: 0, item: { ...reasoning, summary: [{ type: "summary_text", text: "hm" }] } },
    { type: "response.output_item.added", output_index: 1, item }, { type: "response.content_part.added", item_id: "m", output_index: 1, content_index: 0, part: { type: "output_text", text: "", annotations: [] } },
    ...[...TEXTS, LAST].map((delta) => ({ type: "response.output_text.delta", item_id: "m", output_index: 1, content_index: 0, delta })),
  ],
  anthropic: [
    { type: "message_start", message: { id: "m", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, usage: { input_tokens: 3, output_tokens: 1 } } }, { type: "ping" },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } }, { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "abc" } }, { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } }, ...TEXTS.map((text) => ({ type: "content_block_delta", index: 1, delta: { type: "text_delta", text } })), { type: "content_block_stop", index: 1 },
    { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: "c1", name: "weather", input: {} } }, { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"ci' } },
    { type: "content_block_start", index: 3, content_block: { type: "text", text: "" } }, { type: "content_block_delta", index: 3, delta: { type: "text_delta", text: LAST } },
  ],
  gemini: [part([{ text: "hm", thought: true }]), ...[...TEXTS, LAST].map((text) => part([{ text }]))],
};
const frame = (data) => `${data.type ? `event: ${data.type}\n` : ""}data: ${JSON.stringify(data)}\n\n`;

const FIXTURES = new URL("../../../tests/data/fixtures/", import.meta.url);
/** Recorded answers, by wire. */
const RECORDED = ["openai-chat", "openai-responses", "anthropic", "gemini"].map((wire) => [wire, fileURLToPath(new URL(`${wire}/`, FIXTURES))]);
/** Frames that end an answer: from there on everything is needed. */
const ENDS = /"(finish_reason|stop_reason|finishReason)": ?"|\[DONE\]|"type": ?"(response\.(completed|incomplete|failed)|error)"|"error": ?[{"]/;

/** The functions that ran. @type {Set<number>} */
const sent = new Set();
/** @type {Set<number>} */
const read = new Set();

for (const [, provider, make] of MODELS) {
  for (const options of [...AGENTS, ...OTHER_AGENTS]) {
    for (const input of [...INPUTS, ...OTHER_INPUTS]) {
      const isOther = OTHER_AGENTS.includes(options) || OTHER_INPUTS.includes(input);
      await request(make, options(provider), input, isOther ? read : sent);
    }
  }
}
for (const [wire, , make] of MODELS) {
  const frames = ANSWERS[wire].map(frame);
  for (const lines of ["\n", "\r\n"]) await answer(make, frames.map((text) => text.replaceAll("\n", lines)), LAST, read);
}
// What servers have really sent. What only few of them make run can come with the rest: text that needs it waits.
for (const [wire, folder] of RECORDED) {
  const [, , make] = MODELS.find(([known]) => known === wire);
  const names = readdirSync(folder).filter((name) => name.endsWith(".sse"));
  /** @type {Map<number, number>} */
  const counts = new Map();
  for (const name of names) {
    const frames = readFileSync(join(folder, name), "utf8").split(/(?<=\r?\n\r?\n)/);
    const end = frames.findIndex((text) => ENDS.test(text));
    /** @type {Set<number>} */
    const entered = new Set();
    await answer(make, frames.slice(0, end < 0 ? frames.length : end), undefined, entered);
    for (const number of entered) counts.set(number, (counts.get(number) ?? 0) + 1);
  }
  for (const [number, count] of counts) if (count * 10 > names.length) read.add(number);
}
console.log(JSON.stringify({ sent: [...sent], read: [...read] }));

/** Adds what ran in the newest instance. @param {Set<number>} entered */
function take(entered) {
  for (const [name, flags] of Object.entries(newest)) {
    if (!name.startsWith(ENTERED)) continue;
    const first = 32 * Number(name.slice(ENTERED.length));
    for (let bits = flags.value >>> 0, bit = 0; bits !== 0; bits >>>= 1, bit++) if (bits & 1) entered.add(first + bit);
  }
}

/** Sends a first request, and notes what ran before it left. @param {Set<number>} entered */
async function request(make, options, input, entered) {
  let isSent = false;
  const fetch = async () => {
    if (!isSent) take(entered);
    isSent = true;
    throw new Error("enough");
  };
  const agent = new Agent({ ...options, isolate: true, model: make("m", { apiKey: "not-a-real-key", fetch }), retry: { maxAttempts: 1 } });
  const { error } = await agent.prompt(input).result;
  if (!isSent) throw new Error(`no request was sent: ${error?.message}`);
}

/**
 * Reads pieces of an answer, and notes what ran until all were delivered: until this text was heard, or nothing comes any more.
 * @param {string[]} frames @param {string | undefined} last @param {Set<number>} entered
 */
async function answer(make, frames, last, entered) {
  const body = new TransformStream();
  const writer = body.writable.getWriter();
  const fetch = async () => new Response(body.readable, { headers: { "content-type": "text/event-stream" } });
  const agent = new Agent({ isolate: true, model: make("m", { apiKey: "not-a-real-key", fetch }), systemPrompt: "Be brief.", tools: [weather], retry: { maxAttempts: 1 } });
  let isHeard = false;
  agent.subscribe(({ type, delta }) => (isHeard ||= type === "message_update" && delta.type === "text" && delta.delta === last));
  const run = agent.prompt("Hello");
  let isOver = false;
  run.result.then(() => (isOver = true));
  for (const [i, text] of frames.entries()) {
    // Networks cut where they like.
    const bytes = new TextEncoder().encode(text);
    const cut = i % 2 === 0 ? bytes.length : bytes.length >> 1;
    for (const piece of [bytes.slice(0, cut), bytes.slice(cut)]) if (piece.length > 0) await Promise.race([writer.write(piece), run.result]);
  }
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
  if (last !== undefined && !isHeard) throw new Error(`an answer was not read: ${(await run.result).error?.message}`);
  // What a run does at its end needs everything.
  if (!isOver) take(entered);
  run.abort("enough");
  await run.result;
}
