// @ts-check
// Tools of MCP servers: of the official server-everything over stdio, and, for what that one does not do, of
// servers made here with the official SDK.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createRequire } from "node:module";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { jsonSchemaValidator, mcpTools } from "../../../pkg/mcp.js";
import { Agent, call, deferred, misused, readRun, scripted, settle } from "../kit.mjs";

const EVERYTHING = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");
/** @type {(() => unknown)[]} */
const ends = [];
after(async () => {
  for (const end of ends) await end();
});

/**
 * A client connected to a server-everything of its own, and the messages it sent.
 * @param {any} [capabilities]
 */
async function everything(capabilities = {}) {
  const transport = new StdioClientTransport({ command: process.execPath, args: [EVERYTHING], stderr: "ignore" });
  /** @type {any[]} */
  const sent = [];
  const { send } = transport;
  transport.send = (message) => (sent.push(message), send.call(transport, message));
  const client = new Client({ name: "test", version: "1" }, { capabilities });
  ends.push(() => client.close());
  await client.connect(transport);
  return { client, sent, transport };
}

/**
 * Runs an agent that makes these calls at once; returns their results.
 * @param {any} tools @param {any[]} calls
 */
async function results(tools, ...calls) {
  const agent = new Agent({ model: scripted([call(...calls), "done"]), tools, approval: { mode: "bypassed" } });
  const { events } = await readRun(agent.prompt("Go"));
  return events.filter((event) => event.type === "tool_execution_end").sort((a, b) => (a.callId < b.callId ? -1 : 1)).map((event) => event.result);
}

const shared = await everything();
const server = await mcpTools(shared.client);
const named = (/** @type {string} */ name, /** @type {any} */ from = server) => from.tools.find((/** @type {any} */ tool) => tool.name === name);

test("tools run in an agent: text, structured content, a picture, resources, links, an error", async () => {
  const [echo, weather, image, text, blob, links, wrong, unfit] = await results(server.tools, ["echo", { message: "hi" }], ["get-structured-content", { location: "Chicago" }], "get-tiny-image",
    ["get-resource-reference", { resourceType: "Text", resourceId: 1 }], ["get-resource-reference", { resourceType: "Blob", resourceId: 2 }], ["get-resource-links", { count: 2 }], ["get-resource-reference", { resourceId: -1 }], ["echo", { message: 1 }]);
  assert.deepEqual(echo.content, [{ type: "text", text: "Echo: hi" }]);
  assert.deepEqual(weather.details, { structuredContent: { temperature: 36, conditions: "Light rain / drizzle", humidity: 82 } });
  assert.match(weather.content[0].text, /"humidity":82/);
  const picture = image.content.find((/** @type {any} */ block) => block.type === "image");
  assert.deepEqual([picture.mimeType, picture.data.slice(0, 8)], ["image/png", "iVBORw0K"]);
  assert.match(text.content[1].text, /^\[demo:\/\/resource\/dynamic\/text\/1\]\nResource 1: /);
  assert.match(blob.content[1].text, /^\[demo:\/\/resource\/dynamic\/blob\/2, text\/plain, \d\d bytes\]$/);
  assert.equal(blob.details.content[0].resource.uri, "demo://resource/dynamic/blob/2");
  assert.match(links.content[1].text, /^\[Blob Resource 1, demo:\/\//);
  assert.deepEqual([wrong.isError, /Must be a finite positive integer/.test(wrong.content[0].text)], [true, true]);
  assert.deepEqual([unfit.isError, unfit.cause], [true, "invalid_arguments"], "checked before it is sent");
});

test("progress is told as updates, and holds off the time limit", async () => {
  const patient = await mcpTools(shared.client, { only: ["trigger-long-running-operation"], timeoutMs: 3000 });
  assert.equal(patient.tools.length, 1);
  const agent = new Agent({ model: scripted([call(["trigger-long-running-operation", { duration: 4, steps: 10 }]), "done"]), tools: patient.tools });
  const { events, all } = await readRun(agent.prompt("Go"));
  const updates = events.filter((event) => event.type === "tool_execution_update").map((event) => event.update);
  assert.ok(updates.length >= 8, `${updates.length} updates`);
  assert.deepEqual(updates[0], { content: [{ type: "text", text: "1 of 10" }], details: { progress: 1, total: 10 } });
  assert.equal(all("tool_execution_end")[0].isError, false);
});

test("a call that takes too long is an error that says so; one that is aborted is called off at the server", async () => {
  const hasty = await mcpTools(shared.client, { timeoutMs: 50 });
  const [late] = await results(hasty.tools, ["trigger-long-running-operation", { duration: 0.3, steps: 1 }]);
  assert.deepEqual([late.isError, /mcp-servers\/everything: `trigger-long-running-operation` did not answer within 50 ms/.test(late.content[0].text)], [true, true]);
  shared.sent.length = 0;
  const agent = new Agent({ model: scripted([call(["trigger-long-running-operation", { duration: 20, steps: 200 }])]), tools: server.tools });
  agent.subscribe((event) => { if (event.type === "tool_execution_update") agent.abort("enough"); });
  assert.equal((await agent.prompt("Go")).stopReason, "aborted");
  const called = shared.sent.find((message) => message.method === "tools/call");
  const off = shared.sent.find((message) => message.method === "notifications/cancelled");
  assert.equal(off?.params.requestId, called.id);
});

test("names are made legal and get a prefix; annotations say what asks and what may run again", async () => {
  const own = await mcpTools(shared.client, { prefix: true, only: ["echo"] });
  assert.deepEqual(own.tools.map(({ name }) => name), ["mcp-servers_everything__echo"]);
  const short = await mcpTools(shared.client, { prefix: "all", name: ({ name }) => (name === "echo" ? "sagt/ä.b" : undefined), approval: "always" });
  assert.deepEqual([named("all__sagt___b", short)?.requiresApproval, named("all__get-sum", short)?.requiresApproval], [true, true]);
  const [result] = await results(short.tools, ["all__sagt___b", { message: "hi" }]);
  assert.equal(result.content[0].text, "Echo: hi");
  assert.deepEqual([named("echo").requiresApproval, named("echo").idempotent, named("echo").parameters.$schema], [false, true, undefined]);
  const asks = async (/** @type {any} */ approval) => (await mcpTools(shared.client, { approval })).tools.filter(({ requiresApproval }) => requiresApproval).map(({ name }) => name);
  const [writes, destroys] = [await asks("writes"), await asks("destructive")];
  assert.deepEqual([writes.includes("toggle-simulated-logging"), writes.includes("echo"), destroys.includes("toggle-simulated-logging")], [true, false, false]);
  assert.deepEqual(await asks((/** @type {any} */ tool) => tool.name === "echo"), ["echo"]);
  assert.equal((await asks(() => undefined)).length, server.tools.length, "a hint that is not there is no leave");
});

test("the server's list changes: what is new comes, what stays is the same object, the agent takes it over", async () => {
  const { client } = await everything({ elicitation: {} });
  const liveServer = await mcpTools(client);
  const before = new Map([...liveServer].map((tool) => [tool.name, tool]));
  const agent = new Agent({ model: scripted([]), tools: liveServer.tools });
  const changed = deferred();
  liveServer.onChange((tools) => {
    agent.tools = tools;
    if (tools.some(({ name }) => name === "trigger-elicitation-request")) changed.resolve();
  });
  if (!named("trigger-elicitation-request", liveServer)) await changed.promise;
  assert.ok(liveServer.tools.length > 12, `${liveServer.tools.length} tools`);
  for (const tool of liveServer) if (before.has(tool.name)) assert.equal(tool, before.get(tool.name));
});

test("a tool that exists as a task only runs too, and tells how it goes", async () => {
  const { client } = await everything();
  const tasks = await mcpTools(client);
  // The server adds the tool once it knows that the client is there.
  await tasks.refresh();
  const [result] = await results(tasks.tools, ["simulate-research-query", { topic: "wheels" }]);
  if (process.env["MCP_SDK"] === "lowest") return assert.match(result.content[0].text, /this tool only runs as a task, which this version of the Client cannot do/);
  assert.match(result.content[0].text, /^# Research Report: wheels/);
});

test("a server that is gone: the call that is on and the next ones say so", async () => {
  const { client, transport } = await everything();
  const closedServer = await mcpTools(client);
  const agent = new Agent({ model: scripted([call(["trigger-long-running-operation", { duration: 60, steps: 600 }]), call(["echo", { message: "hi" }]), "done"]), tools: closedServer.tools });
  agent.subscribe((event) => { if (event.type === "tool_execution_update" && transport.pid) process.kill(transport.pid); });
  const { all } = await readRun(agent.prompt("Go"));
  for (const { result } of all("tool_execution_end")) {
    assert.deepEqual([result.isError, result.cause], [true, "threw"]);
    assert.match(result.content[0].text, /mcp-servers\/everything is gone: its connection is closed; connect to it again and call mcpTools again/);
  }
  assert.deepEqual([all("tool_execution_end").length, closedServer.isConnected], [2, false]);
  await assert.rejects(closedServer.refresh(), /is gone/);
  misusedLater(() => mcpTools(client), /the MCP client is not connected/);
});

test("a transport: connected here, and closed when it is let go", async () => {
  const transport = new StdioClientTransport({ command: process.execPath, args: [EVERYTHING], stderr: "ignore" });
  const made = await mcpTools(transport, { prefix: "x" });
  const [sum, weather] = await results(made.tools, ["x__get-sum", { a: 17, b: 25 }], ["x__get-structured-content", { location: "New York" }]);
  assert.match(sum.content[0].text, /42/);
  assert.equal(weather.details.structuredContent.humidity, 82);
  const closed = new Promise((resolve) => (transport.onclose = ((before) => () => (before?.(), resolve(undefined)))(transport.onclose)));
  await made.dispose();
  await closed;
  await assert.rejects(mcpTools("http://127.0.0.1:9/mcp"), /no MCP server answers at http:\/\/127\.0\.0\.1:9\/mcp: /);
});

/** A server made here. @param {() => any[]} tools @param {(params: any) => any} answer */
async function small(tools, answer = () => ({ content: [] })) {
  const made = new Server({ name: "small", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  made.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const all = tools();
    const from = Number(params?.cursor ?? 0);
    return { tools: all.slice(from, from + 2), ...(from + 2 < all.length && { nextCursor: String(from + 2) }) };
  });
  made.setRequestHandler(CallToolRequestSchema, ({ params }) => answer(params));
  const [here, there] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "test", version: "1" });
  await Promise.all([made.connect(there), client.connect(here)]);
  return { client, made };
}
const bare = (/** @type {string} */ name, more = {}) => ({ name, inputSchema: { type: "object" }, ...more });

test("a server that changes its list whenever it is read is read a few times, and again later", async (t) => {
  let lists = 0;
  /** @type {any} */
  let own;
  const { client, made } = await small(() => (own?.sendToolListChanged(), [bare(`t${++lists}`)]));
  own = made;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const handle = await mcpTools(client);
  for (let i = 0; i < 20; i++) await settle();
  const first = lists;
  assert.ok(first <= 5, `${first} readings`);
  assert.equal(handle.tools.length, 1);
  t.mock.timers.tick(10_000);
  for (let i = 0; i < 20; i++) await settle();
  assert.ok(lists > first && lists <= 2 * first + 5, `${lists} readings`);
  await handle.dispose();
  const last = lists;
  t.mock.timers.tick(100_000);
  for (let i = 0; i < 5; i++) await settle();
  assert.equal(lists, last);
  await client.close();
});

test("a list in pages; two tools of one name; a list that cannot be taken over leaves the old one; letting go hears no more", async () => {
  let tools = ["a", "b", "c", "d", "e"].map((name) => bare(name));
  const { client, made } = await small(() => tools);
  /** @type {any[]} */
  const errors = [];
  let notified = deferred();
  client.onclose = () => errors.push("closed");
  const handle = await mcpTools(client, { onError: (/** @type {any} */ error) => (errors.push(error.message), notified.resolve()) });
  assert.deepEqual([handle.name, handle.tools.map(({ name }) => name).join("")], ["small", "abcde"]);
  assert.ok(handle.tools.every(({ requiresApproval, idempotent }) => requiresApproval && !idempotent), "who says nothing may destroy");
  tools = [bare("a.b"), bare("a b")];
  await made.sendToolListChanged();
  await notified.promise;
  assert.deepEqual([errors, handle.tools.length], [["two tools of small would be named `a_b`: `a.b` and `a b`; give other names with `name`, or leave one out with `only`"], 5]);
  tools = [bare("z")];
  notified = deferred();
  handle.onChange(async () => { throw new Error("a listener"); });
  handle.onChange(() => notified.resolve());
  await made.sendToolListChanged();
  await notified.promise;
  assert.deepEqual(handle.tools.map(({ name }) => name), ["z"]);
  await handle.dispose();
  await settle();
  assert.equal(errors[1], "a listener");
  await client.close();
  assert.equal(errors[2], "closed", "the client's own handler is as it was");
  await misusedLater(() => mcpTools(client), /not connected/);
});

test("patterns that JavaScript cannot read are the server's to check", async () => {
  const written = { type: "object", properties: { pattern: { type: "string", pattern: "(?P<word>\\w+)" }, day: { type: "string", pattern: "^\\d+\\-\\d+$" }, n: { type: "string", pattern: "^\\d+$" } } };
  const { client } = await small(() => [bare("find", { inputSchema: written })], () => ({ content: [{ type: "text", text: "found" }] }));
  const [found, unfit] = await results((await mcpTools(client)).tools, ["find", { pattern: "a", day: "1-2", n: "1" }], ["find", { n: "a" }]);
  assert.deepEqual([found.content, unfit.cause], [[{ type: "text", text: "found" }], "invalid_arguments"]);
  assert.equal(jsonSchemaValidator.getValidator(written)({ pattern: "a" }).valid, true);
});

test("a server may be waited for as long as it takes", async () => {
  const { client } = await small(() => [bare("slow")], async () => (await new Promise((resolve) => setTimeout(resolve, 20)), { content: [{ type: "text", text: "at last" }] }));
  const [slow] = await results((await mcpTools(client, { timeoutMs: Infinity, totalTimeoutMs: Infinity })).tools, "slow");
  assert.equal(slow.content[0].text, "at last");
});

test("the time that a call may take in all also limits a server that says nothing", { timeout: 20_000 }, async () => {
  const { client } = await small(() => [bare("silent")], () => new Promise(() => {}));
  const [silent] = await results((await mcpTools(client, { totalTimeoutMs: 20 })).tools, "silent");
  assert.match(silent.content[0].text, /within 20 ms/);
});

test("an empty cursor is the end of the list", async () => {
  let pages = 0;
  const client = { callTool: async () => {}, transport: {}, close: async () => {}, listTools: async () => ({ tools: [bare(`t${(pages += 1)}`)], nextCursor: pages < 3 ? "more" : "" }) };
  assert.deepEqual((await mcpTools(client)).tools.map(({ name }) => name), ["t1", "t2", "t3"]);
});

test("a list that has no end is an error", async () => {
  const client = { callTool: async () => {}, transport: {}, close: async () => {}, listTools: async () => ({ tools: [], nextCursor: "more" }) };
  await assert.rejects(mcpTools(client), /its list of tools has no end: more than 1000 pages/);
});

test("sounds, pictures as resources, answers without blocks, old and unknown ones", async () => {
  /** @type {Record<string, any>} */
  const answers = {
    sound: { content: [{ type: "audio", mimeType: "audio/wav", data: "AAAAAAA=" }] },
    picture: { content: [{ type: "resource", resource: { uri: "x://p", mimeType: "image/png", blob: "AAAA" } }] },
    plain: { content: [], structuredContent: { a: 1 }, _meta: { cost: 2 } },
    nothing: { content: [] },
  };
  const { client } = await small(() => Object.keys(answers).map((name) => bare(name)), ({ name }) => answers[name]);
  const [sound, picture, plain, nothing] = await results((await mcpTools(client)).tools, ...Object.keys(answers));
  assert.deepEqual([sound.content, sound.details.content], [[{ type: "text", text: "[audio, audio/wav, 5 bytes]" }], answers.sound.content]);
  assert.deepEqual(picture.content, [{ type: "image", mimeType: "image/png", data: "AAAA" }]);
  assert.deepEqual([plain.content, plain.details], [[{ type: "text", text: '{"a":1}' }], { structuredContent: { a: 1 }, meta: { cost: 2 } }]);
  assert.deepEqual(nothing.content, []);
});

test("misuse is named", async () => {
  await misusedLater(() => mcpTools(/** @type {any} */ (42)), /mcpTools takes a connected Client, a transport or an address, got a number/);
  await misusedLater(() => mcpTools("weather"), /mcpTools takes the address of a server, such as .*, got "weather"/);
  await misusedLater(() => mcpTools(shared.client, /** @type {any} */ ({ prefx: "a" })), /unknown option `prefx` of mcpTools; there are prefix/);
  await misusedLater(() => mcpTools(shared.client, { approval: /** @type {any} */ ("sometimes") }), /`approval` must be "always", "never", "writes", "destructive" or a function, got "sometimes"/);
});

/** Like `misused`, for a promise. @param {() => Promise<unknown>} act @param {RegExp} text */
async function misusedLater(act, text) {
  const outcome = await act().then(() => undefined, (error) => error);
  misused(() => { if (outcome) throw outcome; }, text);
}
