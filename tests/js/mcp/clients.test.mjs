// @ts-check
// The clients that turnwheel/mcp works with: the successor of the SDK, with which it connects, and the SDK; the lowest version of each.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as newest from "@modelcontextprotocol/client";
import * as newestStdio from "@modelcontextprotocol/client/stdio";
import * as lowest from "mcp-client-lowest";
import * as lowestStdio from "mcp-client-lowest/stdio";
import { jsonSchemaValidator, mcpTools } from "../../../pkg/mcp.js";
import { results } from "./made.mjs";
import { Agent, call, deferred, scripted } from "../kit.mjs";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const EVERYTHING = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");

test("the lowest versions of the SDK and of its successor pass the same tests", async () => {
  const read = createRequire(import.meta.url);
  const lowest = read("../../../package.json").devDependencies["mcp-sdk-lowest"];
  assert.equal(lowest, `npm:@modelcontextprotocol/sdk@${read("../../../pkg/package.json").peerDependencies["@modelcontextprotocol/sdk"].slice(2)}.0`);
  assert.equal(read("../../../package.json").devDependencies["mcp-client-lowest"], `npm:@modelcontextprotocol/client@${read("../../../pkg/package.json").peerDependencies["@modelcontextprotocol/client"].slice(2)}.0`);
  const files = ["tools", "everything", "elicitation", "sessions", "stateless"].map((name) => here(`${name}.test.mjs`));
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", here("sdk.mjs"), "--test", "--test-reporter=tap", ...files], { env }).catch((error) => error);
  assert.match(stdout, /^# fail 0$/m, stdout);
  assert.ok(Number(/^# pass (\d+)$/m.exec(stdout)?.[1]) >= 45, stdout);
});

/** The two ends of the range that docs/mcp.md names. @type {[string, any][]} */
const SUCCESSORS = [["2.0.0", { ...lowest, ...lowestStdio }], ["2.4.0", { ...newest, ...newestStdio }]];

for (const [version, { Client, StdioClientTransport }] of SUCCESSORS) test(`the successor's Client ${version}: tools, progress, abort, a list that changes, questions, resources, prompts`, async () => {
  const client = new Client({ name: "next", version: "1" }, { capabilities: { elicitation: { form: {}, url: {} } }, jsonSchemaValidator });
  const transport = new StdioClientTransport({ command: process.execPath, args: [EVERYTHING], stderr: "ignore" });
  /** @type {any[]} */
  const sent = [];
  await client.connect(transport);
  const { send } = transport;
  transport.send = (/** @type {any} */ message) => (sent.push(message), send.call(transport, message));
  /** @type {any[]} */
  const asked = [];
  const server = await mcpTools(client, { resources: true, onElicit: (request) => (asked.push(request), { action: "accept", content: { name: "Ada", check: true } }) });
  const all = deferred();
  const has = () => server.tools.some(({ name }) => name === "trigger-url-elicitation");
  server.onChange(() => has() && all.resolve());
  if (!has()) await all.promise;
  const told = await results(server.tools, ["echo", { message: "hi" }], ["get-structured-content", { location: "Chicago" }], "trigger-elicitation-request", ["trigger-url-elicitation", { url: "https://example.com/a", message: "Log in", errorPath: true }], "list_resources");
  const texts = told.map((result) => result.content[0].text);
  assert.equal(texts[0], "Echo: hi");
  assert.equal(told[1].details.structuredContent.temperature, 36);
  assert.match(JSON.stringify(told[2].content), /Ada/);
  assert.match(texts[3], /User completed the URL elicitation flow/);
  assert.match(texts[4], /architecture\.md/);
  assert.deepEqual(asked.map(({ mode }) => mode).toSorted(), ["form", "url", "url"]);
  const agent = new Agent({ model: scripted([call(["trigger-long-running-operation", { duration: 20, steps: 200 }])]), tools: server.tools });
  /** @type {any[]} */
  const updates = [];
  agent.subscribe((event) => { if (event.type === "tool_execution_update") (updates.push(event.update), agent.abort("enough")); });
  assert.equal((await agent.prompt("Go")).stopReason, "aborted");
  assert.deepEqual(updates[0].details, { progress: 1, total: 200 });
  assert.ok(sent.some(({ method }) => method === "notifications/cancelled"));
  assert.equal((await server.prompts()).length, 4);
  assert.match(server.instructions ?? "", /Everything Server/);
  const hasty = await mcpTools(client, { timeoutMs: 50, only: ["trigger-long-running-operation"] });
  const [late] = await results(hasty.tools, ["trigger-long-running-operation", { duration: 0.3, steps: 1 }]);
  assert.match(late.content[0].text, /did not answer within 50 ms/);
  await client.close();
  const [gone] = await results(server.tools, ["echo", { message: "hi" }]);
  assert.match(gone.content[0].text, /is gone: its connection is closed/);
});
