// @ts-check
// node tests/js/fixtures.mjs DIR
//
// Plays recorded answers of providers through the built package in pkg/: an agent, its model on the wire of the
// recording, a `fetch` that gives the bytes whole and in pieces. What comes out is compared with the expectation, as
// far as the package shows it. `cargo xtask fixtures DIR --engine wasm` runs it.

import { relative } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Agent, anthropic, checkRun, gemini, openai, openaiResponses } from "./kit.mjs";
import { find, readCase } from "./recordings.mjs";

const PIECES = [Infinity, 1, 7, 17, 4096];

/** @type {Record<string, (id: string, options: any) => any>} */
const WIRES = { "openai-chat": openai, "openai-responses": openaiResponses, anthropic, gemini };

/** Plays a run against a response to its end. @param {any} expected @param {() => Response} answer */
async function play(expected, answer) {
  const wire = WIRES[expected.wire];
  /** @type {any[]} */
  const ran = [];
  const tools = [...new Set((expected.tool_calls ?? []).map((/** @type {any} */ call) => call.name))].map((name) => ({
    name, description: "", parameters: { type: "object" },
    execute: (/** @type {any} */ args) => void ran.push([name, args]),
  }));
  const model = wire("recorded", { apiKey: "not-a-secret", fetch: async () => answer() });
  const agent = new Agent({ model, tools, retry: { maxAttempts: 1 }, maxTurns: 1 });
  const run = agent.prompt("Go");
  const [events, grown] = [/** @type {any[]} */ ([]), /** @type {any[]} */ ([])];
  for await (const event of run) {
    events.push(event);
    if (event.type !== "message_update" || event.delta.type !== "tool_call") continue;
    const { callId } = event.delta;
    const known = grown.find((entry) => entry.callId === callId);
    const partial = run.partialArguments(callId);
    if (known) known.isOne &&= known.partial === undefined || known.partial === partial;
    else grown.push({ callId, partial, isOne: true });
  }
  return { ...checkRun(events, await run.result), ran, grown };
}

/** The name and the arguments of a call; a tool with text input has a single argument. @param {any} call */
const nameAndArguments = ({ name, arguments: args, input_text: input }) => [name, args ?? { input }];

/**
 * Lists how the result differs from the expectation.
 * @param {any} expected @param {any} outcome @param {number} size of the pieces
 */
function differences(expected, outcome, size) {
  /** @type {string[]} */
  const found = [];
  const compare = (/** @type {string} */ what, /** @type {any} */ got, /** @type {any} */ wanted) => {
    if (!isDeepStrictEqual(got, wanted)) found.push(`${what}: ${JSON.stringify(got)} in place of ${JSON.stringify(wanted)}`);
  };
  const { message } = outcome.all("message_end")[0];
  const { error } = outcome.result;
  if (expected.error) {
    const { kind, retryable, retry_after_ms: after, provider_type: type, provider_code: code } = expected.error;
    compare("error", [error?.info.code, error?.info.retryable, error?.info.retryAfterMs ?? null], [kind, retryable, after ?? null]);
    if (type) compare("its type", String(error?.info.provider?.type), String(type));
    if (code) compare("its code", String(error?.info.provider?.code), String(code));
  } else compare("error", error?.message, undefined);
  // The pieces of an answer that did not fit are taken back.
  if (expected.text === undefined || (error && outcome.all("message_reset").length > 0)) return found;

  const of = (/** @type {string} */ type) => message.content.filter((/** @type {any} */ block) => block.type === type);
  const shown = of("text").map((/** @type {any} */ block) => block.text).join("");
  const refusal = expected.refusal ?? "";
  if (![expected.text + refusal, refusal + expected.text].includes(shown)) compare("text", shown, expected.text + refusal);
  if (expected.text_from_deltas === undefined) compare("text of the deltas", outcome.text, shown);
  if (expected.stop_reason !== undefined && expected.stop_reason !== "unknown" && !expected.error) compare("stop reason", message.stopReason, expected.stop_reason);
  if (expected.usage) {
    const { input, output, cache_read: cacheRead, cache_write: cacheWrite, reasoning } = expected.usage;
    const { input: i, output: o, cacheRead: r, cacheWrite: w, reasoning: t } = message.usage;
    compare("usage", [i, o, r, w, t ?? null], [input, output, cacheRead, cacheWrite, reasoning ?? null]);
  }
  if (expected.thinking) {
    const thoughts = of("thinking");
    compare("thinking", thoughts.map((/** @type {any} */ { thinking, redacted }) => [thinking, redacted ?? false]), expected.thinking.map((/** @type {any} */ { text, redacted }) => [text ?? "", redacted ?? false]));
    for (const [at, { signature, data }] of expected.thinking.entries()) {
      const wanted = signature ?? data ?? "";
      if (!(thoughts[at]?.signature ?? "").includes(JSON.stringify(wanted).slice(1, -1))) compare("signature", thoughts[at]?.signature, wanted);
    }
  }
  if (expected.text_signature) compare("signature of the text", of("text").findLast((/** @type {any} */ block) => block.signature)?.signature, expected.text_signature);

  if (!expected.tool_calls) return found;
  // A failed message keeps its complete calls, and none of them runs.
  const wanted = expected.tool_calls.filter((/** @type {any} */ call) => call.complete !== false);
  const runs = expected.error ? [] : wanted;
  const called = of("tool_call");
  const complete = expected.error ? called : called.filter((/** @type {any} */ _, /** @type {number} */ at) => expected.tool_calls[at]?.complete !== false);
  compare("calls", complete.map((/** @type {any} */ call) => [call.toolName, call.arguments]), wanted.map(nameAndArguments));
  for (const [at, { id }] of wanted.entries()) {
    if (id) compare("id", complete[at]?.metadata?.originalCallId ?? complete[at]?.callId, id);
  }
  if (expected.stop_reason === "tool_use" || expected.stop_reason === "length") {
    compare("what ran", outcome.ran, runs.map(nameAndArguments));
  }
  // What is shown meanwhile is what the server wrote, also where it is not what the arguments are.
  if (expected.note === "the pieces, as they come, are not those of the arguments") return found;
  for (const { callId, partial, isOne } of outcome.grown) {
    const call = complete.find((/** @type {any} */ call) => call.callId === callId);
    // If an answer comes at once, its last pieces are only seen when the message is complete.
    if (call && partial !== undefined) compare("partial arguments", [partial, isOne || size > 1], [call.arguments, true]);
  }
  return found;
}

const [dir] = process.argv.slice(2);
if (!dir) {
  console.error("usage: node tests/js/fixtures.mjs DIR");
  process.exit(2);
}
let [passed, failed] = [0, 0];
for (const path of find(dir).sort()) {
  const before = failed;
  const fails = (/** @type {string} */ how, /** @type {string} */ why) => {
    console.log(`${relative(dir, path)} (${how}): ${why}`);
    failed = before + 1;
  };
  try {
    const { expected, body, answer } = readCase(path);
    if (!Object.hasOwn(WIRES, expected.wire)) throw new Error(`its wire is not built: ${expected.wire}`);
    for (const size of body ? PIECES : [Infinity]) {
      const found = differences(expected, await play(expected, () => answer(size)), size);
      if (found.length > 0) fails(size === Infinity ? "whole" : `pieces of ${size}`, found.join("; "));
    }
  } catch (/** @type {any} */ error) {
    fails("not played", error.message);
  }
  if (failed === before) passed++;
}
if (passed + failed === 0) console.log(`no case in ${dir}: one is NAME.expect.json beside NAME.sse or NAME.http.json`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
