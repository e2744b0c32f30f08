// @ts-check
// A run keeps the async context in which it was started, after every decision, steering message and abort. A call for one tenant
// never runs in the context of another.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, deferred, scripted, settle, subagent, testTool } from "../kit.mjs";

/** @type {AsyncLocalStorage<string>} */
const tenants = new AsyncLocalStorage();

/** An agent of the first tenant that notes in whose name each of its functions is called. @param {{ asks?: boolean, inside?: boolean }} how */
function noting({ asks = false, inside = false }) {
  /** @type {[string, string | undefined][]} */
  const notes = [];
  const note = (/** @type {string} */ what) => void notes.push([what, tenants.getStore()]);
  const working = deferred();
  const own = /** @type {any} */ (scripted([call("work"), "Said.", "Said."]));
  const model = { ...own, streamFn: (/** @type {any[]} */ ...given) => (note("model"), own.streamFn(...given)) };
  const work = testTool("work", async (/** @type {any} */ _, /** @type {any} */ { signal }) => {
    note("tool");
    working.resolve();
    if (!asks) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    note("tool's end");
    return "worked";
  }, { requiresApproval: asks });
  const options = { model, tools: [work], hooks: { beforeInference: () => note("hook"), afterToolExecution: () => note("hook after"), onError: () => note("hook of the error") } };
  const made = new Agent(/** @type {any} */ (options));
  const agent = inside ? new Agent({ model: scripted([call(["work", { prompt: "Go" }]), "Done."]), tools: [subagent({ name: "work", description: "Works", agent: () => made })] }) : made;
  agent.subscribe(() => note("listener"));
  return { agent, notes, working };
}

const served = (/** @type {any} */ agent) => {
  const handler = agentHandler(agent);
  return new RemoteAgent({ url: "http://agents.localhost/7", fetch: (/** @type {any} */ url, /** @type {any} */ init) => handler(new Request(url, init)) });
};

/** What another tenant does with the run. @type {Record<string, { asks?: boolean, inside?: boolean, act(agent: any): any }>} */
const ACTS = {
  "a decision": { asks: true, act: (agent) => agent.resolve(agent.pendingQuestions[0].id, "approve") },
  "a decision by the call": { asks: true, act: (agent) => agent.resolveTool("c1", "approve") },
  "a decision from elsewhere": { asks: true, act: async (agent) => {
    const remote = served(agent);
    await remote.ready();
    await remote.resolve(/** @type {any} */ (remote.pendingQuestions[0]).id, "approve");
    remote[Symbol.dispose]();
  } },
  "a decision about a call of an agent inside": { asks: true, inside: true, act: (agent) => agent.resolve(agent.pendingQuestions[0].id, "approve") },
  "immediate steering": { act: (agent) => void agent.steer("Now", { when: "immediate" }) },
  "immediate steering from elsewhere": { act: async (agent) => {
    const remote = served(agent);
    const receipt = remote.steer("Now", { when: "immediate" });
    await receipt;
    remote[Symbol.dispose]();
  } },
  "an abort": { act: (agent) => agent.abort("enough") },
  "an abort of a call of an agent inside": { inside: true, act: (agent) => agent.abort("enough") },
};

for (const [name, { act, ...how }] of Object.entries(ACTS)) {
  test(`after ${name} a run goes on in the context in which it was started`, async () => {
    const { agent, notes, working } = noting(how);
    const run = tenants.run("first", () => agent.prompt("Go"));
    if (how.asks) while (agent.isRunning && agent.pendingQuestions.length === 0) await settle();
    else await working.promise;
    const before = notes.length;
    await tenants.run("second", () => act(agent));
    await run.result;
    const later = notes.slice(before);
    assert.ok(later.length > 0);
    assert.deepEqual(later.filter(([, whose]) => whose !== "first"), []);
  });
}

test("two tenants in one process never see each other's context, in either order", async () => {
  const ids = Array.from({ length: 40 }, (_, i) => `tenant ${i}`);
  const others = await Promise.all(ids.map(async (id, i) => {
    const { agent, notes } = noting({ asks: true });
    const run = tenants.run(id, () => agent.prompt("Go"));
    while (agent.isRunning && agent.pendingQuestions.length === 0) await settle();
    tenants.run(/** @type {string} */ (ids[(i + 1) % ids.length]), () => agent.resolve(/** @type {any} */ (agent.pendingQuestions[0]).id, "approve"));
    await run.result;
    return notes.filter(([, whose]) => whose !== id);
  }));
  assert.deepEqual(others.flat(), []);
});

test("what a RemoteAgent posts is posted in the context of who says it, one behind the other", async () => {
  const { agent } = noting({});
  const handler = agentHandler(agent);
  /** @type {[string, string | null][]} */
  const posts = [];
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    const request = new Request(url, init);
    await settle();
    if (request.method === "POST") posts.push([/** @type {string} */ (url.split("/").at(-1)), request.headers.get("x-tenant")]);
    return handler(request);
  };
  const remote = new RemoteAgent({ url: "http://agents.localhost/7", fetch, headers: () => ({ "x-tenant": tenants.getStore() ?? "none" }) });
  const run = tenants.run("first", () => remote.prompt("Go"));
  const receipt = tenants.run("second", () => remote.steer("Then"));
  const ended = tenants.run("third", () => remote.abort());
  await Promise.all([run.result, ended]);
  remote[Symbol.dispose]();
  await receipt;
  assert.deepEqual(posts, [["prompt", "first"], ["steer", "second"], ["abort", "third"]]);
});
