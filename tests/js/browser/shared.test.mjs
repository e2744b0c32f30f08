// @ts-check
// One agent in several tabs, in Chromium: owners that end, pages that are left and come back, tabs that sleep, decide at once, or
// stand still.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { checkTrace } from "../grammar.mjs";
import { chromiumTabs, plainChromium } from "./tabs/chromium.mjs";
import { medianOf, open, play, summaryOf } from "./tabs/runs.mjs";
import { tabsSite } from "./tabs/site.mjs";
import { until } from "./tabs.mjs";

const site = await tabsSite();
const browser = await chromiumTabs();
after(async () => {
  await browser.close();
  site.end();
});
const ROLE = "page.agent.role";
const ended = "page.events.at(-1)?.type === 'agent_end'";
/** @param {string} id @param {any} [how] */
const join = (id, how) => `page.join(${JSON.stringify(id)}, ${JSON.stringify(how ?? {})})`;
const start = 'void page.agent.prompt("Go")';
/** @param {string} id @param {string} callId */
const times = (id, callId) => site.ran.get(id)?.filter((one) => one === callId).length;

test("owners that crash, leave and are closed: one whole run, the same history, nothing paid twice", { timeout: 240_000 }, async (t) => {
  const takeovers = await play(browser, site, [3, 10, 14, 20, 25, 28]);
  t.diagnostic(summaryOf(takeovers));
  assert.ok(takeovers.length >= 6);
  // A machine that does other things takes longer at times, and never less.
  assert.ok(medianOf(takeovers.map(({ ours }) => ours)) < 500, JSON.stringify(takeovers));
});

test("a tab that follows has loaded what an owner needs, before there is anything to take over", { timeout: 60_000 }, async () => {
  const [owner, follower] = [await open(browser, site, "owner"), await open(browser, site, "follower")];
  await owner.run(join("warm"));
  await follower.run(join("warm"));
  const loaded = "performance.getEntriesByType('resource').some(({ name, responseEnd }) => name.endsWith('turnwheel-rest.wasm') && responseEnd > 0)";
  await until(follower, loaded);
  // Who owns an agent that nobody asks anything needs no engine.
  assert.equal(await owner.run(loaded), false);
  for (const tab of [owner, follower]) await tab.close();
});

test("three tabs decide at once, and one decision counts", { timeout: 60_000 }, async () => {
  const tabs = await Promise.all(["a", "b", "c"].map((name) => open(browser, site, name)));
  for (const tab of tabs) await tab.run(join("three"));
  assert.deepEqual(await Promise.all(tabs.map((tab) => tab.run(ROLE))), ["owner", "follower", "follower"]);
  await tabs[1]?.run(start);
  for (const tab of tabs) await until(tab, ended);
  for (const tab of tabs) await until(tab, "page.decisions.length === 2");
  const decisions = (await Promise.all(tabs.map((tab) => tab.run("page.decisions")))).flat();
  assert.deepEqual(decisions.sort(), ["accepted", "accepted", "misuse", "misuse", "misuse", "misuse"]);
  assert.deepEqual([times("three", "b1"), times("three", "d1")], [1, 1]);
  const [one, two, three] = await Promise.all(tabs.map((tab) => tab.run("page.events")));
  checkTrace(one);
  assert.deepEqual([two, three], [one, one]);
  for (const tab of tabs) await tab.close();
});

test("a lease belongs to one tab, and goes on when that one has crashed: paid once", { timeout: 60_000 }, async () => {
  const [a, b] = [await open(browser, site, "a"), await open(browser, site, "b")];
  assert.deepEqual(await a.run('page.claim("leased")'), { fence: 1, isHeld: true, messages: 0 });
  assert.equal(await b.run('page.claim("leased")'), null);
  assert.equal(await a.run('page.open("leased")'), "completed");
  const waiting = b.run('page.claim("leased", { waitMs: 30000 })');
  void a.crash().catch(() => {});
  const claimed = await waiting;
  assert.deepEqual([claimed.fence, claimed.isHeld], [2, true]);
  assert.ok(claimed.messages > 5);
  assert.deepEqual([times("leased", "b1"), times("leased", "d1")], [1, 1]);
  await b.close();
  await a.close();
});

test("an owner that is frozen in the background gives way, and follows when it wakes", { timeout: 120_000 }, async () => {
  const plain = await plainChromium();
  try {
    const [a, b] = [await open(plain, site, "a"), await open(plain, site, "b")];
    for (const tab of [a, b]) await tab.run(join("frozen", { approve: false }));
    assert.deepEqual([await a.run(ROLE), await a.run("document.visibilityState")], ["owner", "hidden"]);
    await b.run(start);
    await until(b, "page.agent.pendingApprovals.length === 1");
    await a.life("frozen");
    await until(b, `${ROLE} === "owner"`);
    await a.life("active");
    await until(a, `${ROLE} === "follower"`);
    await a.run("page.decide(page.agent.pendingApprovals[0].id)");
    await until(b, "page.agent.pendingApprovals[0]?.callId === 'd1'");
    // The other way round, and without sleep.
    await b.run("page.agent.handOver()");
    await until(a, `${ROLE} === "owner"`);
    await b.run("page.decide(page.agent.pendingApprovals[0].id)");
    for (const tab of [a, b]) await until(tab, ended);
    const events = await a.run("page.events");
    checkTrace(events.filter((/** @type {any} */ { type }) => type !== "run_resumed"));
    assert.deepEqual(await b.run("page.events"), events);
    assert.deepEqual([times("frozen", "b1"), times("frozen", "d1")], [1, 1]);
  } finally {
    await plain.close();
  }
});

test("an owner that stands still loses the agent, and starts nothing when it wakes", { timeout: 120_000 }, async () => {
  const [a, b] = [await open(browser, site, "a"), await open(browser, site, "b")];
  for (const tab of [a, b]) await tab.run(join("still", { approve: false, options: { stealMs: 1000 } }));
  await a.run(start);
  for (const tab of [a, b]) await until(tab, "page.agent.pendingApprovals.length === 1");
  /** @type {() => void} */
  let go = () => {};
  const isStill = new Promise((resolve) => site.onEnd((told) => (go = told.go, resolve(undefined))));
  const standing = a.run('page.block("still")');
  await isStill;
  await b.run("page.decide(page.agent.pendingApprovals[0].id)");
  await until(b, `${ROLE} === "owner"`);
  await until(b, "page.agent.pendingApprovals[0]?.callId === 'd1'");
  go();
  await standing;
  await until(a, `${ROLE} === "follower"`);
  await until(a, "page.agent.pendingApprovals[0]?.callId === 'd1'");
  await a.run("page.decide(page.agent.pendingApprovals[0].id)");
  for (const tab of [a, b]) await until(tab, ended);
  assert.deepEqual(await a.run("page.events"), await b.run("page.events"));
  assert.deepEqual([times("still", "b1"), times("still", "d1")], [1, 1]);
  assert.deepEqual(await a.run("page.roles.map(([role]) => role)"), ["owner", "follower"]);
  for (const tab of [a, b]) await tab.close();
});

test("a page in the back/forward cache keeps nobody waiting, and follows when it comes back", { timeout: 120_000 }, async () => {
  const cached = await chromiumTabs({ hasCache: true });
  try {
    const [a, b] = [await open(cached, site, "a"), await open(cached, site, "b")];
    for (const tab of [a, b]) await tab.run(join("cache", { approve: false }));
    await a.run(start);
    await until(b, "page.agent.pendingApprovals.length === 1");
    const back = new Promise((resolve) => site.onBack(resolve));
    await a.open(`${site.address}elsewhere`);
    await until(b, `${ROLE} === "owner"`);
    // Whoever drives the browser loses a page that comes back, so it tells the server.
    await a.page.evaluate("history.back()").catch(() => {});
    assert.equal(await back, "follower");
    assert.equal(await b.run(ROLE), "owner");
    await b.run("page.decide(page.agent.pendingApprovals[0].id)");
    await until(b, "page.agent.pendingApprovals[0]?.callId === 'd1'");
    await b.run("page.decide(page.agent.pendingApprovals[0].id)");
    await until(b, ended);
    assert.deepEqual([times("cache", "b1"), times("cache", "d1")], [1, 1]);
  } finally {
    await cached.close();
  }
});

test("a SharedWorker owns the agent, is started again when it is gone, and a tab owns it where there is none", { timeout: 120_000 }, async () => {
  const tab = await open(browser, site, "a");
  const inWorker = (/** @type {string} */ file) => `page.join("worker", { options: { worker: () => new SharedWorker("${file}", { type: "module" }) } })`;
  assert.equal(await tab.run(inWorker("/app/worker.js")), "follower");
  await tab.run(start);
  await until(tab, ended);
  await tab.run('void new BroadcastChannel("end the worker").postMessage(1)');
  await tab.run("page.agent.reset()");
  await tab.run(start);
  await until(tab, "page.events.filter(({ type }) => type === 'agent_end').length === 2");
  assert.deepEqual(await tab.run("[page.agent.role, page.errors]"), ["follower", []]);
  // A worker lives in the process of the tab that made it, which may crash.
  const other = await open(browser, site, "b");
  assert.equal(await other.run(inWorker("/app/worker.js")), "follower");
  const which = `new Promise((resolve) => {
    const channel = new BroadcastChannel("which worker");
    channel.onmessage = ({ data }) => void (data !== "?" && resolve(data));
    channel.postMessage("?");
  })`;
  const first = await other.run(which);
  await other.run("page.agent.reset()");
  void tab.crash().catch(() => {});
  await other.run(start);
  await until(other, ended);
  assert.deepEqual(await other.run("[page.agent.role, page.errors]"), ["follower", []]);
  assert.notEqual(await other.run(which), first, "it went with the tab");
  await other.run("page.leave()");
  await other.run('void new BroadcastChannel("end the worker").postMessage(1)');
  assert.equal(await other.run(inWorker("/app/nothing.js")), "owner");
  // The notice may come after the agent.
  await until(other, "/the SharedWorker does not answer, so this tab owns the agent/.test(String(page.errors))");
  await other.close();
});

test("what is no message of a tab is dropped with a notice, and a command that is too long is refused", { timeout: 60_000 }, async () => {
  const [a, b] = [await open(browser, site, "a"), await open(browser, site, "b")];
  for (const tab of [a, b]) await tab.run(join("noise"));
  browser.said.length = 0;
  const name = 'turnwheel:["turnwheel","noise"]';
  for (const noise of ["1", "null", "{ v: 2, type: 'owner', epoch: 99 }", "{ v: 1, type: 'reset' }", "{ v: 1, type: 'request', id: 'x', from: 'y', method: 'PUT', path: 'reset' }", "{ v: 1, type: 'owner', epoch: '99' }", "{ v: 1, type: 'request', id: 'x', from: 'y', method: 'POST', path: 'prompt', body: 'x'.repeat(2_000_000) }"]) {
    await b.run(`void new BroadcastChannel(${JSON.stringify(name)}).postMessage(${noise})`);
  }
  await b.run(start);
  await until(b, ended);
  assert.ok(browser.said.filter((text) => /a message on the channel .* was dropped: /.test(text)).length >= 7, browser.said.join("\n"));
  assert.equal(await b.run(`page.agent.steer("x".repeat(2_000_000)).then(({ reason }) => reason)`), "lost");
  assert.match(String(await b.run("page.errors")), /a command may have 1000000 bytes/);
  for (const tab of [a, b]) await tab.close();
});
