// @ts-check
// An agent in a Durable Object, in workerd: evicted from memory at random moments, asleep
// until somebody answers or an alarm fires, with several listeners at once.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { fromResponse, RemoteAgent } from "../../../pkg/remote.js";
import { start } from "../durable/bundle.mjs";
import { schedules } from "../durable/lives.mjs";
import { deferred } from "../kit.mjs";

const SCHEDULES = Number(process.env["TURNWHEEL_SCHEDULES"] ?? 40);
const quiet = (/** @type {any} */ out, /** @type {any} */ errors) => void (out.resume(), errors.resume());

test(`${SCHEDULES} schedules of lives come to the same end`, { timeout: 600_000 }, async () => {
  const deaths = await schedules(1, SCHEDULES);
  assert.ok(deaths > SCHEDULES, `${deaths} deaths`);
});

/** What the ledger was told, and the callbacks waiting for it. @type {Map<string, any>} */
const ledger = new Map();
const called = (/** @type {string} */ callId) => ledger.get(callId) ?? (ledger.set(callId, deferred()), ledger.get(callId));
const sleeper = await start("sleeper.mjs", {
  handleRuntimeStdio: quiet,
  serviceBindings: { LEDGER: (/** @type {any} */ request) => {
    called(new URL(request.url).pathname.slice(1)).resolve();
    return /** @type {any} */ (Response.json({}));
  } },
});
const example = await start("../../../www/examples/durable-object/worker.ts", { handleRuntimeStdio: quiet, bindings: { TOKEN: "t" } });
after(async () => {
  await sleeper.dispose();
  await example.dispose();
});

/** @param {any} server @param {string} name @param {any} [more] */
function remote(server, name, more = {}) {
  const at = `http://worker.example/agents/${name}`;
  const fetch = (/** @type {any} */ url, /** @type {any} */ { headers, body, method, signal }) => server.dispatchFetch(String(url), { headers: Object.fromEntries(headers), body, method, signal });
  return {
    agent: new RemoteAgent({ url: at, fetch, reconnects: { initialMs: 10, maxMs: 100, maxAttempts: 50 }, onError() {}, ...more }),
    ask: (/** @type {string} */ what) => server.dispatchFetch(`${at}/${what}`).then((/** @type {any} */ response) => response.json()),
    evict: () => server.dispatchFetch(`${at}/evict`).catch(() => {}),
  };
}

test("a question waits without an alarm; who answers it wakes the object, and letters of before arrive", async () => {
  const { agent, ask, evict } = remote(sleeper, "asked");
  const requested = deferred();
  agent.subscribe(({ type }) => { if (type === "tool_approval_requested") requested.resolve(); });
  const run = agent.prompt("ask");
  await requested.promise;
  const receipt = agent.followUp("more");
  while ((await ask("state")).pendingApprovals.length === 0);
  await agent.clearQueues().then(() => receipt).then((receipt) => assert.deepEqual(receipt, { delivered: false, reason: "cleared" }));
  const secondReceipt = agent.followUp("and more");
  assert.deepEqual(await ask("alarm"), { alarm: null, sleepers: 0 });
  // Commands are executed in order: once this one is answered, the letter is there.
  await assert.rejects(agent.resolveTool("nobody", "reject"), /no open question/);
  await evict();
  await evict();
  await agent.resolveTool("pay", "approve");
  const { text, stopReason } = await run;
  assert.deepEqual([stopReason, text], ["completed", "You said and more"]);
  assert.equal((await secondReceipt).delivered, true);
  assert.deepEqual(await ask("alarm"), { alarm: null, sleepers: 0 });
  agent[Symbol.dispose]();
});

test("a call without `execute` waits without an alarm, and is answered in a later life; so the history is taken back there", async () => {
  const { agent, ask, evict } = remote(sleeper, "elsewhere");
  const asked = deferred();
  agent.subscribe((event) => { if (event.type === "question_asked") asked.resolve(event.id); });
  const run = agent.prompt("where");
  const id = await asked.promise;
  assert.deepEqual(await ask("alarm"), { alarm: null, sleepers: 0 });
  await evict();
  await evict();
  await agent.resolve(id, { output: "in Oslo" });
  await assert.rejects(agent.resolve(id, { output: "in Rome" }), /no open question/);
  assert.equal((await run).text, "It said: in Oslo");
  await agent.prompt("more");
  const cut = await agent.rewind(4);
  await evict();
  assert.deepEqual([cut.length, (await ask("state")).messages.length], [2, 4]);
  await assert.rejects(agent.rewind(4, cut), /there is no such branch any more/);
  assert.deepEqual(await ask("alarm"), { alarm: null, sleepers: 0 });
  agent[Symbol.dispose]();
});

test("a long back-off is an alarm, which wakes an object that was thrown out", async () => {
  const { agent, ask, evict } = remote(sleeper, "busy");
  agent.subscribe(({ type }) => { if (type === "retry_attempt") agent[Symbol.dispose](); });
  assert.equal((await agent.prompt("busy")).error?.code, "aborted");
  // Not what it waits for at the moment: a slow machine may ask after the alarm has fired.
  const slept = async () => /** @type {any} */ (await ask("slept"));
  while ((await slept()).length === 0);
  assert.ok((await slept())[0].alarm > 0);
  await evict();
  // Nobody makes another request: the alarm alone continues the run.
  await called("note").promise;
  const { agent: other } = remote(sleeper, "busy");
  await other.ready();
  await other.waitForIdle();
  assert.equal(/** @type {any} */ (other.messages.at(-1)).content[0].text, "It said: done");
  assert.deepEqual(await ask("alarm"), { alarm: null, sleepers: 0 });
  other[Symbol.dispose]();
});

test("the example answers, asks first, and hears who may", async () => {
  const { agent } = remote(example, "ada", { headers: { authorization: "Bearer t" } });
  agent.subscribe((event) => { if (event.type === "tool_approval_requested") void agent.resolveTool(event.callId, "approve"); });
  assert.equal((await agent.prompt("Hello")).text, "You said: Hello");
  assert.match((await agent.prompt("What time is it?")).text, /^Done: \d{4}-/);
  assert.equal((await agent.prompt("A refund, please")).text, "Done: paid 5 to Ada.");
  assert.equal(agent.messages.length, 10);
  agent[Symbol.dispose]();
  await assert.rejects(remote(example, "ada").agent.ready(), { code: "auth" });
  assert.equal((await example.dispatchFetch("http://worker.example/", { headers: { authorization: "Bearer t" } })).status, 404);
});

test("a Worker without a memory: one run, one response", async () => {
  const run = fromResponse(/** @type {any} */ (await sleeper.dispatchFetch("http://worker.example/run")));
  let text = "";
  for await (const piece of run.textStream) text += piece;
  assert.deepEqual([text, (await run).stopReason], ["abc", "completed"]);
  const chat = await sleeper.dispatchFetch("http://worker.example/chat");
  assert.equal(chat.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  assert.match(await chat.text(), /"text-delta","id":"text-1","delta":"c"[^]*\[DONE\]/);
});

test("an object that is killed while the engine works does not hold up the others", async () => {
  const { agent } = remote(sleeper, "good");
  agent.subscribe(() => {});
  assert.equal((await agent.prompt("one")).text, "You said one");
  const response = await sleeper.dispatchFetch("http://worker.example/agents/suicide/prompt", { method: "POST", body: '{"input":"x"}', headers: { "content-type": "application/json" } }).catch(() => {});
  assert.notEqual(response?.status, 202);
  // If it is woken and killed again right now, a run in progress ends with an error instead of hanging.
  let result;
  do result = await agent.prompt("two");
  while (result.error?.code === "internal");
  assert.equal(result.text, "You said two");
  agent[Symbol.dispose]();
});

test("so many listeners and no more", async () => {
  const open = [];
  for (let i = 0; i < 3; i++) open.push(await sleeper.dispatchFetch("http://worker.example/agents/full/events"));
  assert.equal((await sleeper.dispatchFetch("http://worker.example/agents/full/events")).status, 429);
  for (const response of open) await response.body?.cancel();
  // A listener that leaves makes room.
  for (let status = 429; status !== 200; ) {
    const again = await sleeper.dispatchFetch("http://worker.example/agents/full/events");
    status = again.status;
    await again.body?.cancel();
  }
});
