// @ts-check
// What a server may ask in the middle of a call: a person, a model, where the work is.

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ElicitRequestSchema, ElicitResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { jsonSchemaValidator, mcpTools } from "../../../pkg/mcp.js";
import { bare, results, said, serverOf } from "./made.mjs";
import { Agent, call, deferred, misused, readRun, scripted, settle } from "../kit.mjs";

/** The lowest SDK knows no questions at an address. */
const knowsUrls = process.env["MCP_SDK"] !== "lowest";
const SIZE = { type: "object", properties: { size: { type: "string", enum: ["small", "large"] }, gift: { type: "boolean", default: false } }, required: ["size"] };

/** A tool's answer to a call: what the client answered to a question. @param {any} extra @param {any} [params] @param {any} [options] */
const asks = async (extra, params = { message: "Which size?", requestedSchema: SIZE }, options) =>
  said(await extra.sendRequest({ method: "elicitation/create", params }, ElicitResultSchema, options).catch((/** @type {any} */ error) => `${error.code}: ${error.message}`));
/** @param {any} result */
const textOf = (result) => result.content[0].text;

test("a form: the answer is checked, gets the defaults, and goes to the server; the page hears that the call waits", async () => {
  /** @type {any[]} */
  const asked = [];
  /** @type {any[]} */
  const errors = [];
  /** @type {any[]} */
  const answers = [{ action: "accept", content: { size: "large" } }, "decline", { action: "accept", content: { size: "huge" } }, "perhaps", Promise.reject(new Error("nobody is here"))];
  answers[4].catch(() => {});
  const { here } = await serverOf(() => [bare("buy")], (_, extra) => asks(extra));
  const server = await mcpTools(here, { onElicit: (request) => (asked.push(request), answers.shift()), onError: (error) => errors.push(/** @type {any} */ (error).message) });
  const agent = new Agent({ model: scripted([call("buy"), "done"]), tools: server.tools, approval: { mode: "bypassed" } });
  const { all } = await readRun(agent.prompt("Go"));
  assert.deepEqual(asked, [{ server: "small", callId: "c1", toolName: "buy", mode: "form", message: "Which size?", requestedSchema: SIZE }]);
  assert.equal(textOf(all("tool_execution_end")[0].result), '{"action":"accept","content":{"gift":false,"size":"large"}}');
  assert.deepEqual(all("tool_execution_update").map(({ update }) => [update.content[0].text, update.details.elicitation.mode]), [["waiting for an answer: Which size?", "form"]]);
  const others = [];
  for (let i = 0; i < 4; i++) others.push(textOf((await results(server.tools, "buy"))[0]));
  assert.equal(others[0], '{"action":"decline"}');
  assert.match(others[1] ?? "", /^-32602: .*the answer does not fit what the server asks for: .*size/);
  assert.match(others[2] ?? "", /^-32602: .*onElicit returns "accept", "decline", "cancel" or \{ action, content \}, got "perhaps"/);
  assert.equal(others[3], '{"action":"cancel"}');
  assert.equal(errors.length, 3);
  assert.equal(errors[2], "nobody is here");
  await server.dispose();
});

test("without a function the question is the agent's, of the call that it belongs to", async () => {
  const { made, here } = await serverOf(() => [bare("buy"), bare("login")], ({ name }, extra) => asks(extra, name === "login" ? { mode: "url", message: "Log in", url: "https://example.com/a", elicitationId: "e" } : undefined));
  const server = await mcpTools(here, { onError: () => {} });
  /** @type {any[]} */
  const asked = [];
  const context = { callId: "c1", toolName: "buy", signal: new AbortController().signal, update() {}, ask: async (/** @type {any} */ question) => (asked.push(question), { action: "accept", content: { size: "small" } }) };
  const run = async (/** @type {string} */ name) => textOf(await server.tools.find((tool) => tool.name === name)?.execute({}, /** @type {any} */ (context)));
  assert.equal(await run("buy"), '{"action":"accept","content":{"gift":false,"size":"small"}}');
  assert.deepEqual(asked, [{ message: "small: Which size?", schema: SIZE }]);
  if (knowsUrls) {
    assert.equal(await run("login"), '{"action":"accept"}');
    assert.deepEqual(asked[1], { message: "small: Log in\nhttps://example.com/a" });
  }
  assert.deepEqual(await made.elicitInput({ message: "Out of the blue", requestedSchema: { type: "object", properties: {} } }), { action: "cancel" });
  await server.dispose();
});

test("with `onElicit: false` a server is told that nobody can be asked", async () => {
  const { made, here } = await serverOf(() => [bare("buy")], (_, extra) => asks(extra));
  const server = await mcpTools(here, { onElicit: false });
  assert.deepEqual(made.getClientCapabilities(), {});
  assert.match(textOf((await results(server.tools, "buy"))[0]), /^-3260[0-2]: /);
  await server.dispose();
});

test("the time that a person takes is not the server's; its own begins again afterwards", async (t) => {
  const answered = deferred();
  const opened = deferred();
  const asked = deferred();
  const { here } = await serverOf(() => [bare("buy")], async (_, extra) => {
    await asks(extra, undefined, { timeout: 2 ** 31 - 1 });
    asked.resolve();
    return new Promise(() => {});
  });
  const server = await mcpTools(here, { timeoutMs: 1000, onElicit: () => (opened.resolve(), answered.promise) });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const result = results(server.tools, "buy");
  await opened.promise;
  t.mock.timers.tick(1_000_000);
  await settle();
  answered.resolve({ action: "accept", content: { size: "small" } });
  await asked.promise;
  await settle();
  t.mock.timers.tick(999);
  await settle();
  t.mock.timers.tick(1);
  assert.equal(textOf((await result)[0]), "tool `buy` failed: small: `buy` did not answer within 1000 ms");
});

test("the time in all does not count it either", async () => {
  const { here } = await serverOf(() => [bare("buy")], (_, extra) => asks(extra));
  const wait = () => new Promise((resolve) => setTimeout(resolve, 60, "decline"));
  const server = await mcpTools(here, { totalTimeoutMs: 40, onElicit: /** @type {any} */ (wait) });
  assert.equal(textOf((await results(server.tools, "buy"))[0]), '{"action":"decline"}');
});

for (const whose of /** @type {const} */ (["a connection of ours", "a Client of one's own, with its own handler"])) {
  test(`an aborted call takes its question with it, and the server hears so: ${whose}`, async () => {
    /** @type {any} */
    let heard;
    const opened = deferred();
    const toldServer = deferred();
    const { made, here } = await serverOf(() => [bare("buy")], async (_, extra) => (toldServer.resolve(await asks(extra)), said("")));
    const onQuestion = (/** @type {AbortSignal} */ signal) => {
      heard = signal;
      opened.resolve();
      return new Promise(() => {});
    };
    const client = new Client({ name: "own", version: "1" }, { capabilities: { elicitation: { form: {} } } });
    if (whose !== "a connection of ours") {
      client.setRequestHandler(ElicitRequestSchema, /** @type {any} */ ((/** @type {any} */ _, /** @type {any} */ { signal }) => onQuestion(signal)));
      await client.connect(here);
    }
    const server = whose === "a connection of ours" ? await mcpTools(here, { onElicit: /** @type {any} */ ((/** @type {any} */ _, /** @type {any} */ { signal }) => onQuestion(signal)) }) : await mcpTools(client);
    // The SDK overlooks that its request with the id 0 is cancelled.
    await made.ping();
    const agent = new Agent({ model: scripted([call("buy")]), tools: server.tools, approval: { mode: "bypassed" } });
    const run = agent.prompt("Go");
    await opened.promise;
    assert.equal(heard.aborted, false);
    run.abort();
    assert.equal((await run).stopReason, "aborted");
    assert.equal(textOf(await toldServer.promise), '{"action":"cancel"}');
    assert.equal(heard.aborted, true);
    await server.dispose();
  });
}

test("a server that takes its question back aborts the signal; a question of no call stays when a call ends", async () => {
  /** @type {Map<string, AbortSignal>} */
  const signals = new Map();
  const opened = [deferred(), deferred()];
  const { made, here } = await serverOf(() => [bare("buy"), bare("other")], async ({ name }, extra) => {
    if (name === "other") return said("other");
    const controller = new AbortController();
    const asked = asks(extra, undefined, { signal: controller.signal });
    await opened[0]?.promise;
    controller.abort(new Error("never mind"));
    return asked;
  });
  const answer = deferred();
  const server = await mcpTools(here, { onElicit: /** @type {any} */ (({ message }, { signal }) => (signals.set(message, signal), opened[signals.size - 1]?.resolve(), answer.promise)) });
  const [taken] = await results(server.tools, "buy");
  assert.match(textOf(taken), /never mind/);
  assert.equal(signals.get("Which size?")?.aborted, true);
  const free = made.elicitInput({ message: "Who are you?", requestedSchema: { type: "object", properties: {} } });
  await opened[1]?.promise;
  assert.equal(textOf((await results(server.tools, "other"))[0]), "other");
  assert.equal(signals.get("Who are you?")?.aborted, false);
  answer.resolve("accept");
  assert.deepEqual(await free, { action: "accept", content: {} });
  const left = made.elicitInput({ message: "Still there?", requestedSchema: { type: "object", properties: {} } }).then(() => "", (error) => error.message);
  await settle();
  await server.dispose();
  assert.notEqual(await left, undefined);
});

test("two calls, one question: both clocks stand, and it is not said whose it is", async (t) => {
  const opened = deferred();
  const answer = deferred();
  const go = deferred();
  /** @type {any} */
  let request;
  const { here } = await serverOf(() => [bare("buy"), bare("slow")], async ({ name }, extra) => (name === "slow" ? go.promise : (await new Promise((resolve) => setImmediate(resolve)), asks(extra))));
  const server = await mcpTools(here, { timeoutMs: 1000, onElicit: (given) => ((request = given), opened.resolve(), answer.promise) });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const both = results(server.tools, "slow", "buy");
  await opened.promise;
  t.mock.timers.tick(50_000);
  assert.deepEqual([request.callId, request.toolName], [undefined, undefined]);
  answer.resolve("cancel");
  await settle();
  go.resolve(said("slow"));
  assert.deepEqual((await both).map(textOf), ["slow", '{"action":"cancel"}']);
});

test("a question of an agent outlives the call through which it was asked, as long as another may wait for it", async () => {
  const asked = deferred();
  const { here } = await serverOf(() => [bare("look"), bare("buy")], async ({ name }, extra) => (name === "look" ? (await asked.promise, said("seen")) : asks(extra)));
  const server = await mcpTools(here);
  const agent = new Agent({ model: scripted([call("look", "buy"), "done"]), tools: server.tools, approval: { mode: "bypassed" } });
  /** @type {any[]} */
  const questions = [];
  agent.subscribe((event) => {
    if (event.type !== "question_asked") return;
    questions.push(event.toolName);
    // The first question goes with the call that ends.
    if (event.toolName === "look") asked.resolve();
    else agent.resolve(event.id, { action: "accept", content: { size: "small" } });
  });
  const { all } = await readRun(agent.prompt("Go"));
  assert.deepEqual(questions, ["look", "buy"]);
  assert.deepEqual(all("tool_execution_end").map(({ result }) => textOf(result)), ["seen", '{"action":"accept","content":{"gift":false,"size":"small"}}']);
  assert.deepEqual(agent.pendingQuestions, []);
  await server.dispose();
});

test("more questions than a page can show are refused, and one that is too long", async () => {
  const answer = deferred();
  const { here } = await serverOf(() => [bare("many"), bare("long")], async ({ name }, extra) => {
    if (name === "long") return asks(extra, { message: "x".repeat(70_000), requestedSchema: SIZE });
    const all = Array.from({ length: 18 }, () => asks(extra));
    const refused = await Promise.all(all.slice(16));
    answer.resolve("decline");
    return said([...(await Promise.all(all.slice(0, 16))), ...refused].map(textOf));
  });
  const server = await mcpTools(here, { onElicit: () => answer.promise, onError: () => {} });
  const [many] = await results(server.tools, "many");
  const told = JSON.parse(textOf(many));
  assert.deepEqual([told.filter((/** @type {string} */ text) => text === '{"action":"decline"}').length, told.slice(16).every((/** @type {string} */ text) => /16 requests of this server are open/.test(text))], [16, true]);
  assert.match(textOf((await results(server.tools, "long"))[0]), /the question is longer than 65536 characters/);
});

test("at an address: shown, followed by its completion; an address of another kind is not shown", { skip: !knowsUrls }, async () => {
  const { made, here } = await serverOf(() => [bare("login")], async ({ arguments: { url } }, extra) => {
    const asked = asks(extra, { mode: "url", message: "Log in", url, elicitationId: "e1" });
    await settle();
    await made.notification({ method: "notifications/elicitation/complete", params: { elicitationId: "e1" } });
    return asked;
  });
  const server = await mcpTools(here, { onError: () => {}, onElicit: async ({ mode }, { completed }) => (await completed, mode === "url" ? "accept" : "cancel") });
  assert.equal(textOf((await results(server.tools, ["login", { url: "https://example.com/login" }]))[0]), '{"action":"accept"}');
  assert.match(textOf((await results(server.tools, ["login", { url: "javascript:alert(1)" }]))[0]), /-32602: .*only addresses of http and https/);
});

test("a call that needs a login first is made again after it, a few times at most", { skip: !knowsUrls }, async () => {
  let tries = 0;
  const need = () => Object.assign(new Error("log in first"), { code: -32042, data: { elicitations: [{ mode: "url", message: "Log in", url: "https://example.com/login", elicitationId: `e${tries}` }] } });
  const { here } = await serverOf(() => [bare("read"), bare("never")], ({ name }) => {
    tries += 1;
    if (name === "never" || tries === 1) throw need();
    return said(`read at try ${tries}`);
  });
  /** @type {any[]} */
  const asked = [];
  const server = await mcpTools(here, { onElicit: (request) => (asked.push(request), "accept") });
  assert.equal(textOf((await results(server.tools, "read"))[0]), "read at try 2");
  assert.deepEqual([asked.length, asked[0].callId, asked[0].url], [1, "c1", "https://example.com/login"]);
  const [never] = await results(server.tools, "never");
  assert.deepEqual([never.isError, tries, /log in first/.test(textOf(never))], [true, 8, true]);
});

test("a Client of one's own: declared, it is answered; undeclared or taken, it is an error that says what to do; letting go gives it back", async () => {
  const { here } = await serverOf(() => [bare("buy")], (_, extra) => asks(extra));
  const client = new Client({ name: "own", version: "1" }, { capabilities: { elicitation: {} }, jsonSchemaValidator });
  await client.connect(here);
  const server = await mcpTools(client, { onElicit: () => "decline" });
  assert.equal(textOf((await results(server.tools, "buy"))[0]), '{"action":"decline"}');
  await misusedLater(() => mcpTools(client, { onElicit: () => "decline" }), /the client cannot answer the server's requests: .*elicitation\/create.*leave its handler to mcpTools/);
  const mute = new Client({ name: "mute", version: "1" });
  await mute.connect((await serverOf(() => [bare("buy")], () => said(""))).here);
  await misusedLater(() => mcpTools(mute, { onElicit: () => "decline" }), /declare the capability when you make the Client/);
  await mute.close();
  await server.dispose();
  const again = await mcpTools(client, { onElicit: () => "cancel" });
  assert.equal(textOf((await results(again.tools, "buy"))[0]), '{"action":"cancel"}');
  await client.close();
});

test("the lists of one client come and go in any order, and leave it as it was", async () => {
  let names = ["a"];
  const { made, here } = await serverOf(() => names.map((name) => bare(name)), () => said(""));
  const client = new Client({ name: "own", version: "1" });
  const onclose = mock.fn();
  client.onclose = onclose;
  await client.connect(here);
  const before = [here.onmessage, here.send, Object.hasOwn(here, "send"), client.onclose];
  const first = await mcpTools(client);
  const second = await mcpTools(client, { prefix: "x" });
  await first.dispose();
  names = ["a", "b"];
  const changed = deferred();
  second.onChange(() => changed.resolve());
  await made.sendToolListChanged();
  await changed.promise;
  assert.deepEqual([first.tools.length, second.tools.length], [1, 2]);
  assert.deepEqual([first.isConnected, second.isConnected], [false, true]);
  await second.dispose();
  assert.deepEqual([here.onmessage, here.send, Object.hasOwn(here, "send"), client.onclose], before);
  const third = await mcpTools(client);
  assert.equal(third.tools.length, 2);
  await client.close();
  assert.deepEqual([third.isConnected, onclose.mock.callCount() > 0], [false, true]);
});

test("a Client that was connected anew is heard again", async () => {
  const first = await serverOf(() => [bare("a")], () => said("first"));
  let names = ["a"];
  const second = await serverOf(() => names.map((name) => bare(name)), () => said("second"));
  const client = new Client({ name: "own", version: "1" });
  await client.connect(first.here);
  const server = await mcpTools(client);
  await client.close();
  assert.equal(server.isConnected, false);
  await client.connect(second.here);
  await server.refresh();
  assert.equal(server.isConnected, true);
  assert.equal(textOf((await results(server.tools, "a"))[0]), "second");
  names = ["a", "b"];
  const changed = deferred();
  server.onChange(() => changed.resolve());
  await second.made.sendToolListChanged();
  await changed.promise;
  await client.close();
});

test("a list that changes while it fails is fetched once more; one that changes at the last moment too", async () => {
  const failing = deferred();
  /** @type {any[]} */
  const lists = [[bare("a")], failing.promise, [bare("a"), bare("b")]];
  let asked = 0;
  const { made, here } = await serverOf(() => lists[asked++] ?? [], () => said(""));
  /** @type {any[]} */
  const errors = [];
  const server = await mcpTools(here, { onError: (error) => errors.push(error) });
  const changed = deferred();
  server.onChange(() => changed.resolve());
  await made.sendToolListChanged();
  await settle();
  await made.sendToolListChanged();
  await settle();
  failing.reject(new Error("the database is away"));
  await changed.promise;
  assert.deepEqual([asked, server.tools.map(({ name }) => name), errors], [3, ["a", "b"], []]);
  // The microtask after the list was taken belongs to it no more.
  const late = server.refresh().then(() => server.refresh());
  await late;
  assert.equal(asked, 5);
});

/** Like `misused`, for a promise. @param {() => Promise<unknown>} act @param {RegExp} text */
async function misusedLater(act, text) {
  const outcome = await act().then(() => undefined, (error) => error);
  misused(() => { if (outcome) throw outcome; }, text);
}
