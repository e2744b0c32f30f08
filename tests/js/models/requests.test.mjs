// @ts-check
// The requests of tests/data/requests again, through the package, which must send what the crate writes
// natively. A compiler once made something else of it (docs/internals/build.md, on functions with several results).

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Agent, anthropic, gemini, openai, openaiResponses } from "../kit.mjs";

const DATA = new URL("../../data/requests/", import.meta.url);

/** Each wire, and how many cases it has at least. @type {[string, (id: string, options: any) => any, number][]} */
const WIRES = [["openai_chat", openai, 70], ["openai_responses", openaiResponses, 20], ["anthropic", anthropic, 25], ["gemini", gemini, 20]];

/** Cases whose model takes a schema itself: the agent is given it, and the whole body is compared. */
const NATIVE = ["anthropic/structured_output.json", "anthropic/structured_output_of_any_members.json", "openai_chat/structured_output_strict.json", "openai_responses/options.json"];

/** The part of a body about the output schema: other models are offered a tool for it. @param {any} body */
function withoutSchema(body) {
  const { response_format, text, output_config, generationConfig, ...rest } = body;
  const { format, ...effort } = output_config ?? {};
  const { responseMimeType, responseJsonSchema, ...config } = generationConfig ?? {};
  return { ...rest, ...(effort.effort && { output_config: effort }), ...(generationConfig && { generationConfig: config }) };
}

for (const [wire, make, least] of WIRES) {
  test(`${wire}: the package sends what the crate writes`, async () => {
    let played = 0;
    for (const file of readdirSync(new URL(`${wire}/`, DATA))) {
      const { options, request, ...wanted } = JSON.parse(readFileSync(new URL(`${wire}/${file}`, DATA), "utf8"));
      const { model, systemPrompt, messages, tools, options: streamOptions, sessionId, apiKey } = request;
      // An agent starts with a message, and does not answer itself.
      if (messages.length === 0 || messages.at(-1).role === "assistant") continue;
      /** @type {any} */
      let sent;
      const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => ((sent = { url: String(url), ...init }), new Response("{}", { status: 400 }));
      const isNative = NATIVE.includes(`${wire}/${file}`);
      const agent = new Agent({
        model: make(model, { ...options, apiKey, fetch }), systemPrompt, messages, streamOptions, ...(sessionId && { sessionId }), ...(isNative && { output: request.output }),
        tools: tools.map((/** @type {any} */ tool) => ({ ...tool, execute: () => "" })),
      });
      await agent.continue();
      const body = JSON.parse(new TextDecoder().decode(sent.body));
      // An agent always has a session, whether one was set or not.
      if (!sessionId && !streamOptions.body?.prompt_cache_key) delete body.prompt_cache_key;
      if (isNative) assert.deepEqual(body, wanted.body, file);
      else assert.deepEqual(withoutSchema(body), withoutSchema(wanted.body), file);
      if (wanted.url) assert.equal(sent.url, wanted.url, file);
      played += 1;
    }
    assert.ok(played >= least, `${played} of ${least}`);
  });
}
