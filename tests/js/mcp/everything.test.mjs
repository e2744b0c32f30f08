// @ts-check
// Everything that the protocol's reference server has: each of its tools is called, and its resources, prompts and
// instructions are used. A new version with more tools fails here.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createRequire } from "node:module";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { mcpTools } from "../../../pkg/mcp.js";
import { results } from "./made.mjs";
import { Agent, checkRun, scripted } from "../kit.mjs";

const EVERYTHING = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");

const FORM = { name: "Ada", check: true, email: "ada@example.com" };
/** @type {any[]} */
const asked = [];
/** @type {any[]} */
const errors = [];
const transport = new StdioClientTransport({ command: process.execPath, args: [EVERYTHING], stderr: "ignore" });
const server = await mcpTools(transport, {
  resources: true, onError: (error) => errors.push(error),
  onElicit: (request) => (asked.push(request), request.mode === "url" ? "accept" : { action: "accept", content: /** @type {any} */ (request.requestedSchema)?.properties?.interpretation ? { interpretation: Object.values(/** @type {any} */ (request.requestedSchema).properties.interpretation.oneOf ?? [])[0]?.const ?? "technical" } : FORM }),
});
after(() => server.dispose());

/** What each tool is called with, and what its result must say. @type {Record<string, [args: any, says: RegExp]>} */
const CALLS = {
  echo: [{ message: "hi" }, /^Echo: hi$/],
  "get-annotated-message": [{ messageType: "success", includeImage: true }, /Operation completed successfully/],
  "get-env": [{}, /"PATH"/],
  "get-resource-links": [{ count: 2 }, /demo:\/\/resource\/dynamic/],
  "get-resource-reference": [{ resourceType: "Text", resourceId: 1 }, /demo:\/\/resource\/dynamic\/text\/1/],
  "get-structured-content": [{ location: "Chicago" }, /"temperature":36/],
  "get-sum": [{ a: 17, b: 25 }, /42/],
  "get-tiny-image": [{}, /image\/png\]/],
  "gzip-file-as-resource": [{ name: "a.gz", data: "data:text/plain;base64,aGVsbG8=", outputType: "resource" }, /demo:\/\/resource\/session\/a\.gz, application\/gzip, \d+ bytes/],
  "simulate-research-query": [{ topic: "wheels", ambiguous: true }, /^# Research Report: wheels/],
  "toggle-simulated-logging": [{}, /Started simulated/],
  "toggle-subscriber-updates": [{}, /Started simulated/],
  "trigger-elicitation-request": [{}, /Ada/],
  "trigger-long-running-operation": [{ duration: 0.2, steps: 2 }, /completed/],
  "trigger-url-elicitation": [{ url: "https://example.com/a", message: "Log in", errorPath: true }, /User completed the URL elicitation flow/],
  list_resources: [{}, /demo:\/\/resource\/static\/document\/architecture\.md: .*[^]*/],
  read_resource: [{ uri: "demo://resource/dynamic/text/7" }, /Resource 7/],
};

test("its tools: those that depend on what the client offers come with it, and each says what it should", async () => {
  await settled(() => server.tools.length >= Object.keys(CALLS).length);
  const names = server.tools.map(({ name }) => name);
  assert.deepEqual(names.toSorted(), Object.keys(CALLS).toSorted());
  for (const [name, [args, says]] of Object.entries(CALLS)) {
    const [result] = await results(server.tools, [name, args]);
    const text = result.content.map((/** @type {any} */ block) => block.text ?? `[${block.mimeType}]`).join("\n");
    assert.equal(result.isError, false, `${name}: ${text}`);
    assert.match(text, says, name);
  }
  const modes = asked.map(({ mode, toolName }) => `${toolName}: ${mode}`);
  assert.deepEqual(modes, ["simulate-research-query: form", "trigger-elicitation-request: form", "trigger-url-elicitation: url", "trigger-url-elicitation: url"]);
  assert.deepEqual([asked.at(-1)?.url, errors], ["https://example.com/a", []]);
});

test("its resources: listed with their templates, read as text and as bytes; what is not there is an error", async () => {
  const [list, text, blob, page, none] = await results(server.tools, "list_resources", ["read_resource", { uri: "demo://resource/static/document/features.md" }], ["read_resource", { uri: "demo://resource/dynamic/blob/3" }], ["read_resource", { uri: "demo://resource/dynamic/text/1" }], ["read_resource", { uri: "demo://nothing" }]);
  assert.match(list.content[0].text, /^demo:\/\/resource\/dynamic\/text\/\{resourceId\}: /m);
  assert.ok(list.details.resources.length >= 7 && list.details.resourceTemplates.length === 2);
  assert.match(text.content[0].text, /^\[demo:\/\/resource\/static\/document\/features\.md\]\n# Everything Server - Features/);
  assert.match(blob.content[0].text, /^\[demo:\/\/resource\/dynamic\/blob\/3, text\/plain, \d+ bytes\]$/);
  assert.equal(typeof blob.details.contents[0].blob, "string");
  assert.match(page.content[0].text, /Resource 1/);
  assert.deepEqual([none.isError, /not found/i.test(none.content[0].text)], [true, true]);
  assert.ok(server.tools.filter(({ name }) => name.endsWith("_resource") || name.endsWith("_resources")).every(({ requiresApproval, idempotent }) => !requiresApproval && idempotent));
});

test("its prompts: listed, filled in, given to an agent; its instructions", async () => {
  const prompts = await server.prompts();
  assert.deepEqual(prompts.map(({ name }) => name).toSorted(), ["args-prompt", "completable-prompt", "resource-prompt", "simple-prompt"]);
  assert.deepEqual(prompts.find(({ name }) => name === "args-prompt")?.arguments?.map(({ name, required }) => [name, required]), [["city", true], ["state", false]]);
  const messages = await server.prompt("args-prompt", { city: "Oslo" });
  assert.deepEqual(messages, [{ role: "user", content: [{ type: "text", text: "What's weather in Oslo?" }], timestamp: 0 }]);
  const shown = await server.prompt("resource-prompt", { resourceType: "Text", resourceId: "1" });
  assert.equal(shown.length, 1);
  assert.match(JSON.stringify(shown), /demo:\/\/resource\/dynamic\/text\/1/);
  const agent = new Agent({ model: scripted(["Cold."]), systemPrompt: server.instructions ?? "" });
  /** @type {any[]} */
  const events = [];
  const run = agent.prompt(/** @type {any} */ (messages));
  for await (const event of run) events.push(event);
  checkRun(events, await run);
  assert.equal((await run).text, "Cold.");
  assert.match(server.instructions ?? "", /Everything Server/);
  await assert.rejects(server.prompt("args-prompt", {}), /mcp-servers\/everything: .*city/s);
  await assert.rejects(server.prompt("no-prompt"), /not found/);
});

/** Waits until the list is such. @param {() => boolean} holds */
async function settled(holds) {
  if (!holds()) await new Promise((resolve) => server.onChange(() => holds() && resolve(undefined)));
}
