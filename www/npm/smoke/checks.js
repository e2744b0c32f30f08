// @ts-check
// The eight checks of `npx turnwheel smoke`: each is a small run of an agent, whose end is judged.

import { Agent, tool } from "../core.js";

/** @import { AgentMessage, AgentOptions, AgentResult, Input, JsonSchema, Model, ThinkingBlock, ToolDefinition, Usage } from "../index.js" */
/**
 * Where the checks are made. `model` makes the model anew, with a `fetch` that may listen.
 * @typedef {{ model(fetch?: typeof globalThis.fetch): Model, ms: number, isLocal: boolean }} Bench
 */
/** @typedef {{ result: "passed" | "failed" | "skipped", detail: string, usage?: Usage, code?: string }} Verdict */

/** An upper limit, of which models that think use more than others. None of the answers is longer than a few words. */
const MAX_TOKENS = 2_000;
/** Longer than any context of a hosted model, and of those that people run themselves. A word is a token. */
const TOO_MANY = { hosted: 2_200_000, local: 300_000 };
/** How long a run may go on after its abort. */
const ABORT_MS = 5_000;
/** What is kept under the names. No model guesses it. @type {Record<string, string>} */
const KEPT = { amber: "7241", cobalt: "9038" };
/** A square of 32 pixels, yellow: the answers of a model that sees nothing are red and blue. */
const YELLOW = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NMQkAAAwDsPo33anoMQjkT9pMRSAQCAQCgUAgEHwJDl0q+Gok8jNhAAAAAElFTkSuQmCC";

/** The words by which a server says that it or its model does not have something. Other refusals mean that the request was wrong. */
const REFUSES = /(n['’o]t|never|no longer) (\w+ )?(support|allow|available|enabled|capable|accept)|unsupported|no endpoints|only (supports|accepts)|text[- ]only|unknown variant|must be a string|expected (a )?string|mmproj|multimodal/i;

/** @param {AgentResult | undefined} result @param {string} detail @returns {Verdict} */
const passed = (result, detail) => ({ result: "passed", detail, ...(result && { usage: result.usage }) });
/** @param {AgentResult | undefined} result @param {string} detail @returns {Verdict} */
const failed = (result, detail) => ({ result: "failed", detail, ...(result && { usage: result.usage }), ...(result?.error && { code: result.error.code }) });
/** @param {AgentResult | undefined} result @param {string} detail @returns {Verdict} */
const skipped = (result, detail) => ({ ...failed(result, detail), result: "skipped" });

/** A text as it is quoted. @param {string} text */
const quoted = (text) => JSON.stringify(text.trim());

/** An agent for one check. @param {Bench} bench @param {Partial<AgentOptions>} [options] */
function agentFor(bench, { streamOptions, ...options } = {}) {
  return new Agent({
    model: bench.model(),
    maxTurns: 4,
    // One more try: a server that is busy for a moment is not wrong.
    retry: { maxAttempts: 2, maxRetryDelayMs: 20_000 },
    timeouts: { totalMs: bench.ms },
    streamOptions: { maxTokens: MAX_TOKENS, ...streamOptions },
    ...options,
  });
}

/** @param {Bench} bench @param {Input} input @param {Partial<AgentOptions>} [options] @returns {Promise<AgentResult>} */
const ran = (bench, input, options) => agentFor(bench, options).prompt(input).result;

/**
 * Why a run is no success, if it is none. Where the server says that it does not have the `feature`, the check is skipped.
 * @param {AgentResult} result @param {RegExp} [feature] @returns {Verdict | undefined}
 */
function flawOf(result, feature) {
  const { error, stopReason } = result;
  if (error) {
    const isRefusal = ["invalid_request", "server"].includes(error.code) && feature?.test(error.message) && REFUSES.test(error.message);
    return isRefusal ? skipped(result, error.message) : failed(result, `${error.code}: ${error.message}`);
  }
  return stopReason === "completed" ? undefined : failed(result, `the run ended with ${stopReason}`);
}

/** What is wrong with an answer, in words. @param {AgentResult} result @param {string} otherwise */
function wrongAnswer({ text, messages }, otherwise) {
  const last = messages.at(-1);
  const isCut = last?.role === "assistant" && last.stopReason === "length";
  return `${text.trim() === "" ? "the model says nothing" : `${otherwise}: ${quoted(text)}`}${isCut ? " (cut off at the limit of its length)" : ""}`;
}

/** A tool that gives what is kept under a name. @returns {ToolDefinition} */
const lookUp = () => tool({
  name: "look_up",
  description: "Gives the number that is kept under a name.",
  parameters: { type: "object", properties: { name: { type: "string", description: "The name, such as amber" } }, required: ["name"], additionalProperties: false },
  execute: ({ name }) => KEPT[name.trim().toLowerCase()] ?? "Nothing is kept under this name.",
});

/** The numbers that the calls have got. @param {readonly AgentMessage[]} messages */
function numbersOf(messages) {
  const results = messages.flatMap((message) => (message.role === "tool_result" && !message.isError ? message.content : []));
  return Object.values(KEPT).filter((number) => results.some((block) => block.type === "text" && block.text === number));
}

/** Whether an answer has a number, however its digits are grouped. @param {string} text @param {string} number */
const tells = (text, number) => text.replace(/(?<=\d)[,.'’\s\u202f](?=\d)/g, "").includes(number);

/**
 * Judges a run whose answer must tell what its calls have got.
 * @param {AgentResult} result @param {number} wanted how many numbers @returns {Verdict | undefined} nothing if all is well
 */
function flawOfCalls(result, wanted) {
  const flaw = flawOf(result, /tool|function/i);
  if (flaw) return flaw;
  const numbers = numbersOf(result.messages);
  if (numbers.length < wanted) return failed(result, wrongAnswer(result, `the tool gave ${numbers.length} of ${wanted} numbers, and the model says`));
  return numbers.every((number) => tells(result.text, number)) ? undefined : failed(result, wrongAnswer(result, `the answer does not use what the tool gave (${numbers.join(", ")})`));
}

/** @param {Bench} bench @returns {Promise<Verdict>} */
async function text(bench) {
  const result = await ran(bench, "Say hello in one short sentence.");
  return flawOf(result) ?? (result.text.trim() === "" ? failed(result, wrongAnswer(result, "")) : passed(result, quoted(result.text)));
}

/** @param {Bench} bench @returns {Promise<Verdict>} */
async function tools(bench) {
  const result = await ran(bench, "Which number is kept under amber? Call the tool look_up, then answer with the number.", { tools: [lookUp()] });
  return flawOfCalls(result, 1) ?? passed(result, quoted(result.text));
}

/** @param {Bench} bench @returns {Promise<Verdict>} */
async function parallel(bench) {
  const result = await ran(bench, "Which numbers are kept under amber and under cobalt? Call the tool look_up for both names at once, then answer with both numbers.", { tools: [lookUp()] });
  const most = Math.max(0, ...result.messages.map(({ role, ...message }) => (role === "assistant" && "content" in message ? message.content.filter(({ type }) => type === "tool_call").length : 0)));
  return flawOfCalls(result, 2) ?? passed(result, `${most > 1 ? "both calls in one answer" : "one call in each of two answers"}; ${quoted(result.text)}`);
}

/**
 * What of a thought a later request must repeat: its words, or the longest text in its signature.
 * @param {ThinkingBlock} thought
 */
function traceOf({ thinking, signature = "" }) {
  /** @type {string[]} */
  const texts = [thinking, signature];
  try {
    texts.push(...Object.values(JSON.parse(signature)).filter((value) => typeof value === "string"));
  } catch {
    // The signature is a text itself.
  }
  return texts.filter((trace) => trace.length > 0).map((trace) => JSON.stringify(trace).slice(1, -1));
}

/** @param {Bench} bench @returns {Promise<Verdict>} */
async function thinking(bench) {
  /** @type {string[]} */
  const sent = [];
  /** @type {typeof fetch} */
  const listening = (url, init) => {
    sent.push(new TextDecoder().decode(/** @type {Uint8Array<ArrayBuffer>} */ (init?.body)));
    return fetch(url, init);
  };
  const result = await ran(bench, "Think about which name has more letters, amber or cobalt. Call the tool look_up with that name, then answer with the number.", {
    model: bench.model(listening), tools: [lookUp()], streamOptions: { reasoning: "low", maxTokens: 2 * MAX_TOKENS },
  });
  const answers = result.messages.filter((message) => message.role === "assistant");
  const thoughts = answers.flatMap(({ content }) => content.filter((block) => block.type === "thinking"));
  // Once the server has let it think, whatever it refuses is what it was sent back.
  const flaw = thoughts.length > 0 ? flawOf(result) : flawOf(result, /reason|think|effort|prompt_mode/i);
  if (flaw) return flaw.result === "failed" && thoughts.length > 0 ? { ...flaw, detail: `after a thought, ${flaw.detail}` } : flaw;
  const { reasoning = 0 } = result.usage;
  if (thoughts.length === 0) return skipped(result, reasoning > 0 ? `the model thinks (${reasoning} tokens), and the server does not show it` : "the answers hold no thinking");
  const wrong = flawOfCalls(result, 1);
  if (wrong) return wrong;
  const traces = thoughts.flatMap(traceOf);
  const isSent = sent.slice(1).some((body) => traces.some((trace) => body.includes(trace)));
  const count = `${thoughts.length} thought${thoughts.length > 1 ? "s" : ""}${thoughts.some(({ signature }) => signature) ? ", signed" : ""}`;
  return passed(result, `${count}; ${isSent ? "sent back, and accepted" : "not sent back on this wire, and the next turn went through"}`);
}

/** @param {Bench} bench @returns {Promise<Verdict>} */
async function abort(bench) {
  const run = agentFor(bench).prompt("Write the numbers from one to two hundred as words, one in each line.");
  let from = 0;
  for await (const event of run) {
    if (event.type !== "message_update" || from > 0) continue;
    from = performance.now();
    run.abort("the check has seen enough");
  }
  const result = await run.result;
  const took = Math.round(performance.now() - from);
  if (result.stopReason === "aborted") return took > ABORT_MS ? failed(result, `the run went on for ${took} ms after its abort`) : passed(result, `ended ${took} ms after the first piece`);
  return flawOf(result) ?? failed(result, from > 0 ? "the answer was over before it could be aborted" : "no piece of an answer came");
}

/** @param {Bench} bench @returns {Promise<Verdict>} */
async function overflow(bench) {
  const sent = bench.isLocal ? TOO_MANY.local : TOO_MANY.hosted;
  const result = await ran(bench, `Say yes.${" a".repeat(sent)}`, { maxTurns: 1, retry: { maxAttempts: 1 }, streamOptions: { maxTokens: 16 } });
  const { error, usage } = result;
  if (error?.code === "context_overflow") return passed(result, error.message);
  if (error?.code === "throttled") return skipped(result, `a limit of the rate comes before that of the context: ${error.message}`);
  const flaw = flawOf(result);
  if (flaw) return flaw;
  const taken = usage.input + usage.cacheRead + usage.cacheWrite;
  if (!usage.estimated && taken > sent / 2) return skipped(result, `the model takes all of it: its context is longer than ${taken} tokens`);
  const cut = `the server says nothing, and ${usage.estimated ? "may have cut" : "has cut"} ${sent} tokens silently${usage.estimated ? "" : `, to ${taken}`}`;
  return bench.isLocal ? skipped(result, cut) : failed(result, cut);
}

/** @param {Bench} bench @returns {Promise<Verdict>} */
async function image(bench) {
  const result = await ran(bench, { role: "user", timestamp: Date.now(), content: [
    { type: "text", text: "Which colour is this picture? Answer with the name of the colour alone." },
    { type: "image", mimeType: "image/png", data: YELLOW },
  ] });
  const flaw = flawOf(result, /image|vision|picture|multimodal|content.*must be a string/i);
  return flaw ?? (/\byellow\b/i.test(result.text) ? passed(result, quoted(result.text)) : failed(result, wrongAnswer(result, "the picture is yellow, and the model says")));
}

/** @type {JsonSchema} */
const CITY = { type: "object", properties: { city: { type: "string" }, letters: { type: "integer" } }, required: ["city", "letters"], additionalProperties: false };

/** @param {Bench} bench @returns {Promise<Verdict>} */
async function structured(bench) {
  const result = await ran(bench, "Which city is the capital of Norway, and how many letters has its name?", { output: CITY, outputRetries: 1 });
  const { city, letters } = /** @type {Record<string, unknown>} */ (result.output ?? {});
  const flaw = flawOf(result, /response_format|json|schema|structured|tool/i);
  return flaw ?? (typeof city === "string" && Number.isInteger(letters) ? passed(result, JSON.stringify(result.output)) : failed(result, wrongAnswer(result, "there is no value that fits the schema")));
}

/** The checks, in their order. @type {Record<string, (bench: Bench) => Promise<Verdict>>} */
export const CHECKS = { text, tools, parallel, thinking, abort, overflow, image, structured };
