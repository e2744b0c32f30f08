// @ts-check
// The protocol of July 2026: no sessions, `server/discover`, calls that come back with a question; and that of 2025 by the same call.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { context, ROOT_CONTEXT, trace, TraceFlags } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { inputRequired } from "@modelcontextprotocol/server";
import { jsonSchemaValidator, mcpTools } from "../../../pkg/mcp.js";
import { observe } from "../../../pkg/otel.js";
import { bare, results, said } from "./made.mjs";
import { end, handlerOf, inProcess, serve, urlOf } from "./modern.mjs";
import { Agent, call, deferred, readRun, scripted, settle } from "../kit.mjs";

const SIZE = { type: /** @type {const} */ ("object"), properties: { size: { type: /** @type {const} */ ("string"), enum: ["small", "large"] }, gift: { type: /** @type {const} */ ("boolean"), default: false } }, required: ["size"] };
/** Asks for a size, then says what was answered. @param {any} params @param {any} request */
const asks = (params, { inputResponses, requestState }) => (inputResponses ? said({ ...inputResponses, state: requestState() }) : inputRequired({ inputRequests: { size: inputRequired.elicit({ message: `Which size of ${params.name}?`, requestedSchema: SIZE }) }, requestState: "s-1" }));
/** @param {any} result */
const textOf = (result) => result.content[0].text;
/** @param {() => unknown} isSo */
async function until(isSo) {
  for (let i = 0; i < 2_000 && !isSo(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(isSo());
}

test("an address: discovered, listed, called, without a session; progress, and an error of a tool", async () => {
  const { url, fetch, sent } = inProcess(handlerOf(() => [bare("count"), bare("fail"), bare("slow")], async ({ name }, { notify, _meta }) => {
    if (name === "slow") await notify({ method: "notifications/progress", params: { progressToken: _meta.progressToken, progress: 1, total: 2 } });
    return name === "fail" ? { ...said("out of bolts"), isError: true } : said(`${name} done`);
  }));
  const server = await mcpTools(url, { fetch });
  assert.deepEqual([server.name, server.instructions, server.isConnected, server.tools.map(({ name }) => name)], ["late", "Count well.", true, ["count", "fail", "slow"]]);
  assert.equal(/** @type {any} */ (server.client).getNegotiatedProtocolVersion(), "2026-07-28");
  const [count, fail] = await results(server.tools, "count", "fail");
  assert.deepEqual([textOf(count), count.isError, textOf(fail), fail.isError], ["count done", false, "out of bolts", true]);
  const { all } = await readRun(new Agent({ model: scripted([call("slow"), "ok"]), tools: server.tools, approval: { mode: "bypassed" } }).prompt("Go"));
  assert.deepEqual(all("tool_execution_update").map(({ update }) => update.details), [{ progress: 1, total: 2 }]);
  assert.deepEqual([sent[0].method, sent.some(({ method }) => method === "initialize")], ["server/discover", false]);
  assert.deepEqual(server.tools.length, 3);
  await server.dispose();
  assert.equal(server.isConnected, false);
});

test("one address, with servers of both protocols, and one that refuses the older", async () => {
  for (const [legacy, version] of /** @type {const} */ ([[undefined, "2026-07-28"], ["reject", "2026-07-28"]])) {
    const { url, fetch } = inProcess(handlerOf(() => [bare("count")], () => said("1"), { legacy }));
    const server = await mcpTools(url, { fetch });
    assert.equal(/** @type {any} */ (server.client).getNegotiatedProtocolVersion(), version);
    await server.dispose();
  }
  // A server that both protocols reach, by a Client that does not ask for the later one.
  const { url, fetch } = inProcess(handlerOf(() => [bare("count")], () => said("1")));
  const client = new Client({ name: "early", version: "1" }, { jsonSchemaValidator });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }));
  const server = await mcpTools(client);
  assert.deepEqual([client.getProtocolEra(), textOf((await results(server.tools, "count"))[0])], ["legacy", "1"]);
  await client.close();
});

test("a question of a call is answered, declined, answered wrongly; it is known whose it is", async () => {
  const { url, fetch, sent } = inProcess(handlerOf(() => [bare("hat", { outputSchema: { type: "object", properties: { n: { type: "number" } } } }), bare("coat")], (params, request) => (params.name === "hat" && request.inputResponses ? { ...asks(params, request), structuredContent: { n: 1 } } : asks(params, request))));
  /** @type {any[]} */
  const asked = [];
  /** @type {any[]} */
  const answers = [{ action: "accept", content: { size: "large" } }, "decline", { action: "accept", content: { size: "huge" } }];
  const server = await mcpTools(url, { fetch, onError: () => {}, onElicit: (request) => (asked.push(request), answers.shift()) });
  const [hat] = await results(server.tools, "hat");
  assert.deepEqual([JSON.parse(textOf(hat)), hat.details], [{ size: { action: "accept", content: { size: "large", gift: false } }, state: "s-1" }, { structuredContent: { n: 1 } }]);
  assert.deepEqual(asked, [{ server: "late", callId: "c1", toolName: "hat", mode: "form", message: "Which size of hat?", requestedSchema: SIZE }]);
  assert.deepEqual(JSON.parse(textOf((await results(server.tools, "hat"))[0])).size, { action: "decline" });
  const [wrong] = await results(server.tools, "hat");
  assert.deepEqual([wrong.isError, /the answer does not fit what the server asks for: .*size/.test(textOf(wrong))], [true, true]);
  answers.push({ action: "accept", content: { size: "small" } }, { action: "accept", content: { size: "large" } });
  asked.length = 0;
  await results(server.tools, "hat", "coat");
  assert.deepEqual(asked.map(({ callId, toolName }) => `${callId} ${toolName}`).toSorted(), ["c1 hat", "c2 coat"]);
  assert.equal(sent.filter(({ method }) => method === "tools/call").length, 9);
  await server.dispose();
});

test("without a function it is a question of the agent", async () => {
  const { url, fetch } = inProcess(handlerOf(() => [bare("hat")], asks));
  const server = await mcpTools(url, { fetch, timeoutMs: 200 });
  const agent = new Agent({ model: scripted([call("hat"), "ok"]), tools: server.tools, approval: { mode: "bypassed" } });
  const opened = deferred();
  agent.subscribe((event) => { if (event.type === "question_asked") opened.resolve(event); });
  const run = agent.prompt("Go");
  const question = await opened.promise;
  assert.deepEqual([question.kind, question.message, question.callId, question.schema], ["elicitation", "late: Which size of hat?", "c1", SIZE]);
  // The time that a person takes is not the server's.
  await new Promise((resolve) => setTimeout(resolve, 400));
  agent.resolve(question.id, { action: "accept", content: { size: "small" } });
  const { messages } = await run;
  assert.match(JSON.stringify(messages), /small/);
  await server.dispose();
});

test("a server that asks for ever, and one that always wants the call again", async () => {
  let shown = 0;
  const { url, fetch } = inProcess(handlerOf(() => [bare("nag")], () => inputRequired({ inputRequests: { more: inputRequired.elicit({ message: "Sure?", requestedSchema: { type: "object", properties: {} } }) } })));
  const server = await mcpTools(url, { fetch, onError: () => {}, onElicit: () => (shown++, "decline") });
  const [result] = await results(server.tools, "nag");
  assert.deepEqual([shown, result.isError], [50, true]);
  assert.match(textOf(result), /asked 50 times for more|50 questions were asked already/);
  await server.dispose();
});

test("a changed list is read again; `refresh` reads it though the cache still holds", async () => {
  let tools = [bare("one")];
  const handler = handlerOf(() => tools, () => said(""), { list: { ttlMs: 3_600_000, cacheScope: "public" } });
  const { url, fetch, sent, to } = inProcess(handler);
  const server = await mcpTools(url, { fetch });
  const names = () => server.tools.map(({ name }) => name);
  const reads = () => sent.filter(({ method }) => method === "tools/list").length;
  assert.equal(reads(), 1);
  tools = [bare("one"), bare("two")];
  await server.refresh();
  assert.deepEqual([names(), reads()], [["one", "two"], 2]);
  tools = [bare("two")];
  handler.notify.toolsChanged();
  await until(() => names().length === 1);
  assert.deepEqual(names(), ["two"]);
  // The answer that tells of changes ends, as when a server is started again: it is asked for again, and the list is read.
  tools = [bare("three")];
  to.handler = handlerOf(() => tools, () => said(""));
  await handler.close();
  await until(() => names()[0] === "three");
  assert.equal(sent.filter(({ method }) => method === "subscriptions/listen").length, 2);
  tools = [bare("four")];
  to.handler.notify.toolsChanged();
  await until(() => names()[0] === "four");
  await server.dispose();
});

test("a call that is aborted ends at the server too", async () => {
  const began = deferred();
  const ended = deferred();
  const http = await serve(handlerOf(() => [bare("wait")], (_, { signal }) => new Promise((resolve) => {
    began.resolve();
    signal.addEventListener("abort", () => (ended.resolve(), resolve(said("late"))));
  })));
  const server = await mcpTools(urlOf(http));
  const agent = new Agent({ model: scripted([call("wait"), "ok"]), tools: server.tools, approval: { mode: "bypassed" } });
  const run = agent.prompt("Go");
  await began.promise;
  agent.abort("enough");
  assert.equal((await run).stopReason, "aborted");
  await ended.promise;
  await server.dispose();
  await end(http);
});

test("a Client of one's own that speaks the later protocol: its handler answers, or `onElicit` does; its list changes too", async () => {
  let tools = [bare("hat")];
  const handler = handlerOf(() => tools, asks);
  const { url, fetch } = inProcess(handler);
  const connected = async () => {
    const client = new Client({ name: "own", version: "1" }, { jsonSchemaValidator, capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }));
    return client;
  };
  const [own, ours] = [await connected(), await connected()];
  own.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { size: "small" } }));
  const [first, second] = [await mcpTools(own), await mcpTools(ours, { onElicit: () => ({ action: "accept", content: { size: "large" } }) })];
  assert.match(textOf((await results(first.tools, "hat"))[0]), /small/);
  assert.match(textOf((await results(second.tools, "hat"))[0]), /large.*s-1/);
  tools = [bare("hat"), bare("coat")];
  handler.notify.toolsChanged();
  await until(() => first.tools.length === 2 && second.tools.length === 2);
  await first.dispose();
  assert.notEqual(own.transport, undefined);
  await Promise.all([own.close(), ours.close()]);
  assert.deepEqual([second.isConnected, /is gone: its connection is closed/.test(textOf((await results(second.tools, "hat"))[0]))], [false, true]);
});

test("a server that is off and comes back: calls say so, `isConnected` too, and the next call is answered", async () => {
  const handler = handlerOf(() => [bare("count")], () => said("1"));
  const { url, fetch, to } = inProcess(handler);
  const server = await mcpTools(url, { fetch });
  to.isOff = true;
  const [off] = await results(server.tools, "count");
  assert.deepEqual([off.isError, server.isConnected], [true, false]);
  assert.match(textOf(off), /late cannot be reached: fetch failed/);
  await assert.rejects(server.refresh(), /late cannot be reached/);
  to.isOff = false;
  assert.equal(textOf((await results(server.tools, "count"))[0]), "1");
  assert.equal(server.isConnected, true);
  to.isOff = true;
  await assert.rejects(mcpTools(url, { fetch }), /no MCP server answers at http:\/\/late\.localhost\/mcp: .*fetch failed \(connect ECONNREFUSED\)$/);
  await server.dispose();
});

test("a server that is started again, and one of two processes: a call goes on where it was not begun", async (t) => {
  const begin = async (/** @type {string} */ name) => {
    const child = spawn(process.execPath, [fileURLToPath(new URL("modern-process.mjs", import.meta.url)), name], { stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => child.kill());
    return { child, url: String((await once(child.stdout, "data"))[0]).trim() };
  };
  const [a, b] = [await begin("a"), await begin("b")];
  let turn = 0;
  const fetch = (/** @type {any} */ _, /** @type {any} */ init) => globalThis.fetch(turn++ % 2 ? b.url : a.url, init);
  const server = await mcpTools(a.url, { fetch, onElicit: () => ({ action: "accept", content: { number: 12 } }) });
  const said = [];
  for (let i = 0; i < 4; i++) said.push(textOf((await results(server.tools, "order"))[0]));
  for (const text of said) assert.match(text, /^12, begun at (a, ended at b|b, ended at a)$/);
  const c = await begin("c");
  a.child.kill();
  Object.assign(a, c);
  Object.assign(b, c);
  assert.equal(textOf((await results(server.tools, "count"))[0]), "at c");
  assert.equal(server.isConnected, true);
  await server.dispose();
});

test("the span of a call goes along with it, if spans are made", async (t) => {
  const { url, fetch, sent } = inProcess(handlerOf(() => [bare("count")], () => said("1")));
  const server = await mcpTools(url, { fetch });
  const calls = () => sent.filter(({ method }) => method === "tools/call").map(({ params }) => params._meta);
  await results(server.tools, "count");
  assert.equal(calls()[0].traceparent, undefined);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  t.after(() => context.disable());
  const agent = new Agent({ model: scripted([call("count"), "ok"]), tools: server.tools, approval: { mode: "bypassed" } });
  const stop = observe(agent, { tracer: new BasicTracerProvider().getTracer("test") });
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const state = { serialize: () => "vendor=1", get: () => undefined, set: () => state, unset: () => state };
  const parent = trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId: "b7ad6b7169203331", traceFlags: TraceFlags.SAMPLED, traceState: /** @type {any} */ (state) });
  await context.with(parent, () => agent.prompt("Go"));
  assert.match(calls()[1].traceparent, new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
  assert.notEqual(calls()[1].traceparent.slice(36, 52), "b7ad6b7169203331");
  assert.equal(calls()[1].tracestate, "vendor=1");
  stop();
  await server.dispose();
  await settle();
});
