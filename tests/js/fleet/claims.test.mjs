// @ts-check
// Stores that processes share: a claim has one holder, a fence is used once, what is new is what is written, and who lost a
// lease starts nothing. The same tests for files, SQLite and PostgreSQL, as far as they are here.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fileStore, openAgent, postgresStore, sqliteStore } from "../../../pkg/stores-node.js";
import { seal } from "../../../pkg/stores.js";
import { folder, hasPostgres, hasSqlite, postgres, storeOf } from "./stores.mjs";
import { Agent, call, misused, misusedLater, scripted, testTool } from "../kit.mjs";

const KINDS = [["files", true], ["sqlite", hasSqlite], ["postgres", hasPostgres]];
const checkpointOf = (/** @type {string[]} */ ...texts) => new Agent({ model: scripted([]), messages: texts.map((text) => ({ role: "user", content: [{ type: "text", text }], timestamp: 1 })) }).checkpoint();
const textsOf = (/** @type {any} */ checkpoint) => checkpoint?.messages.map((/** @type {any} */ { content }) => content);
const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

for (const [kind, isHere] of /** @type {[string, boolean][]} */ (KINDS)) {
  test(`shared stores: ${kind}`, { skip: !isHere && `there is no ${kind} here` }, async (t) => {
    const place = kind === "postgres" ? await postgres(t) : folder(t);
    /** A store as another process would open it. @param {any} [options] */
    const open = async (options) => {
      const { store, end } = await storeOf(kind, place, options);
      ends.push(end);
      return store;
    };
    /** @type {(() => Promise<void>)[]} */
    const ends = [];
    const one = await open({ owner: "one" });
    const two = await open({ owner: "two" });

    await t.test("a claim has one holder; given back, the next one has a higher fence and all that was stored", async () => {
      const claims = await Promise.all([one.claim("a"), two.claim("a"), one.claim("a"), two.claim("a")]);
      const [lease, second] = claims.filter((claim) => claim !== undefined);
      if (!lease) throw new Error("nobody has it");
      assert.deepEqual([second, lease.fence, lease.checkpoint], [undefined, 1, undefined]);
      assert.ok(["one", "two"].includes((await one.owner("a")) ?? ""));
      await lease.save(checkpointOf("x", "y ünïcode 𝒳 \u0000 \ud800"));
      await lease.save(checkpointOf("x", "y ünïcode 𝒳 \u0000 \ud800", "z"));
      await assert.rejects(one.save("a", checkpointOf("stolen")), { code: "lost_lease" });
      await lease.release();
      assert.equal(await one.owner("a"), undefined);
      const next = await two.claim("a");
      assert.deepEqual([next?.fence, textsOf(next?.checkpoint)], [2, ["x", "y ünïcode 𝒳 \u0000 \ud800", "z"]]);
      await next?.save(checkpointOf("x", "other"));
      assert.deepEqual(textsOf(await one.load("a")), ["x", "other"]);
      await assert.rejects(lease.save(checkpointOf("late")), { code: "lost_lease" });
      await next?.release();
      await one.save("a", checkpointOf("x", "other", "more"));
      assert.deepEqual(textsOf(await two.load("a")), ["x", "other", "more"]);
      assert.equal((await two.claim("a"))?.fence, 4);
      await one.delete("a");
      assert.equal(await one.load("a"), undefined);
    });

    await t.test("what is deleted comes back under a later fence, so a lease of before writes no more", async () => {
      const before = await one.claim("gone");
      await before?.save(checkpointOf("old"));
      await two.delete("gone");
      const after = await two.claim("gone");
      assert.ok((after?.fence ?? 0) > (before?.fence ?? 0));
      assert.equal(after?.checkpoint, undefined);
      await assert.rejects(async () => before?.save(checkpointOf("late")), { code: "lost_lease" });
      await after?.release();
      await two.delete("gone");
    });

    await t.test("who waits gets it when it is given back", async () => {
      const lease = await one.claim("wait");
      const waiting = two.claim("wait", { waitMs: 20_000 });
      await lease?.release();
      assert.equal((await waiting)?.fence, 2);
      assert.equal(await one.claim("wait", { waitMs: 1 }), undefined);
    });

    await t.test("a lease that runs out goes to another; the first one is told, and stores nothing", async () => {
      const first = await one.claim("short", { ttlMs: 400 });
      await first?.save(checkpointOf("first"));
      // As if the process had been stopped: nothing renews it.
      const { setInterval: every, setTimeout: later } = globalThis;
      globalThis.setInterval = /** @type {any} */ (() => ({ unref() {} }));
      globalThis.setTimeout = /** @type {any} */ (() => ({ unref() {} }));
      const frozen = await one.claim("frozen", { ttlMs: 300 });
      globalThis.setInterval = every;
      globalThis.setTimeout = later;
      await frozen?.save(checkpointOf("frozen"));
      await pause(350);
      const taken = await two.claim("frozen", { waitMs: 20_000 });
      assert.deepEqual([taken?.fence, textsOf(taken?.checkpoint)], [2, ["frozen"]]);
      await taken?.save(checkpointOf("frozen", "on"));
      assert.equal(frozen?.isHeld, false, "by its own clock");
      assert.equal(frozen?.signal.reason.code, "lost_lease");
      await assert.rejects(Promise.resolve(frozen?.save(checkpointOf("frozen", "never"))), /the lease of `frozen` is lost \(fence 1\): another process may have the agent now; claim it again/);
      assert.deepEqual(textsOf(await one.load("frozen")), ["frozen", "on"]);
      // One that is renewed holds.
      await pause(900);
      assert.deepEqual([first?.isHeld, await two.claim("short")], [true, undefined]);
      await first?.release();
      await taken?.release();
    });

    await t.test("an agent is stored at every step, found when its process is gone, and goes on elsewhere", async () => {
      /** @type {string[]} */
      const began = [];
      let isFirst = true;
      const tools = [testTool("work", async (/** @type {any} */ _, /** @type {any} */ { signal }) => {
        began.push("work");
        // Killed in here.
        if (isFirst) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("gone"))));
        return "worked";
      }, { idempotent: true })];
      const lease = await one.claim("run", { ttlMs: 1_000 });
      if (!lease) throw new Error("taken");
      const first = await openAgent(lease, { model: scripted([call("work")]), tools });
      const run = first.prompt("Go");
      while (began.length === 0) await pause(5);
      // What a tool that has begun can rely on: its announcement is stored.
      assert.match(JSON.stringify(await one.load("run")), /"work"/);
      isFirst = false;
      const loser = lease.save.bind(lease);
      await lease.release();
      run.abort();
      await run;
      await assert.rejects(loser(first.checkpoint()), { code: "lost_lease" });
      assert.ok((await two.abandoned()).includes("run"));
      const taken = await two.claim("run");
      if (!taken) throw new Error("taken");
      const second = await openAgent(taken, { model: scripted(["done"]), tools });
      assert.equal(second.canContinue, true);
      const { stopReason, text } = await second.continue();
      assert.deepEqual([stopReason, text, began.length], ["completed", "done", 2]);
      await taken.release();
      assert.equal((await two.abandoned()).includes("run"), false);
      assert.equal((await one.load("run"))?.messages.length, 4);
    });

    await t.test("what was stored once is not written again, however long the conversation", async () => {
      const lease = await one.claim("long");
      if (!lease) throw new Error("taken");
      const agent = await openAgent(lease, { model: scripted(["one", "two"]), messages: checkpointOf("x").messages.map(() => ({ role: /** @type {const} */ ("user"), content: "x", timestamp: 1 })) });
      await agent.prompt("Go");
      await lease.events.sync?.();
      let readings = 0;
      Object.defineProperty(agent.messages[0], "timestamp", { enumerable: true, get: () => (readings++, 1) });
      await agent.prompt("Go on");
      await lease.save(/** @type {any} */ (agent.checkpoint()));
      const byCheckpoint = readings;
      readings = 0;
      /** @type {any} */ (lease.events).needsCheckpoint = true;
      await /** @type {any} */ (lease.events).store();
      assert.deepEqual([byCheckpoint > 0, readings], [true, 0]);
      assert.deepEqual((await one.load("long"))?.messages, agent.checkpoint().messages);
      await lease.release();
    });

    await t.test("a lost lease stops the run, and no tool begins after it", async () => {
      const lease = await one.claim("lost", { ttlMs: 60_000 });
      if (!lease) throw new Error("taken");
      let began = 0;
      const agent = await openAgent(lease, { model: scripted([call("first"), call("second"), "done"]), tools: [testTool("first", async () => (began++, await two.delete("lost"), "gone")), testTool("second", () => began++)] });
      const { stopReason, error } = await agent.prompt("Go");
      assert.deepEqual([stopReason, began, lease.isHeld], ["aborted", 1, false], error?.message);
      assert.equal(await one.load("lost"), undefined);
    });

    await t.test("sealed: nobody else can write one, nor put one in the place of another's", async () => {
      const key = new Uint8Array(32).map((_, i) => i * 7 + 1);
      const sealing = await open({ seal: { key } });
      await sealing.save("s", checkpointOf("secret"));
      assert.equal(/** @type {any} */ (await one.load("s"))?.format, "turnwheel_sealed_checkpoint");
      assert.deepEqual(textsOf((await sealing.claim("s"))?.checkpoint), ["secret"]);
      await one.save("forged", checkpointOf("forged"));
      await assert.rejects(sealing.claim("forged"), /`forged` is not sealed: anybody may have written it/);
      await one.save("other", /** @type {any} */ (await seal(checkpointOf("secret"), key, { context: "s" })));
      await assert.rejects(sealing.claim("other"), /the seal does not fit/);
      assert.equal(await one.owner("other"), undefined, "a claim that failed holds nothing");
    });

    await t.test("processes that are killed and stopped: every fence once, no tool without a lease, every run ends", { timeout: 120_000 }, async (t) => {
      const log = join(folder(t), "log");
      writeFileSync(log, "");
      const [agents, ttl] = [4, 800];
      const start = () => spawn(process.execPath, [fileURLToPath(new URL("process.mjs", import.meta.url)), kind, place, String(agents), String(ttl), log], { stdio: ["ignore", "ignore", "inherit"] });
      const running = [start(), start(), start()];
      const lines = () => readFileSync(log, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
      const ended = () => lines().filter(({ type, stopReason }) => type === "end" && stopReason === "completed").length;
      for (let round = 0; ended() < 12; round++) {
        await pause(700);
        const at = round % running.length;
        if (round % 3 === 2) {
          running[at]?.kill("SIGKILL");
          running[at] = start();
        } else if (round % 3 === 1) {
          const paused = running[at];
          paused?.kill("SIGSTOP");
          setTimeout(() => paused?.kill("SIGCONT"), ttl * 2);
        }
      }
      for (const child of running) child.kill("SIGKILL");
      const told = lines();
      const claims = told.filter(({ type }) => type === "claim").map(({ id, fence }) => `${id} ${fence}`);
      assert.equal(new Set(claims).size, claims.length, "a fence was used twice");
      assert.deepEqual(told.filter(({ type, isHeld }) => type === "tool" && !isHeld), []);
      assert.ok(claims.length >= 12 && told.some(({ type }) => type === "tool"));
      assert.deepEqual(told.filter(({ type, code }) => type === "error" && code !== "lost_lease"), []);
    });
    for (const end of ends) await end();
  });
}

test("misuse is named", async (t) => {
  misused(() => fileStore(""), /fileStore takes the name of a folder/);
  misused(() => postgresStore(/** @type {any} */ ({})), /postgresStore takes something with `query\(text, values\)`/);
  misused(() => postgresStore({ query: async () => ({ rows: [] }) }, { table: "a; drop table b" }), /`table` must be a name of lower-case letters/);
  misused(() => sqliteStore(/** @type {any} */ (7)), /sqliteStore takes a file's name or a DatabaseSync, got a number/);
  if (!hasSqlite) misused(() => sqliteStore("a.db"), /sqliteStore needs `node:sqlite`, which Node has from 22 on; here, use fileStore\(folder\)/);
  misused(() => fileStore("a", /** @type {any} */ ({ ttl: 5 })), /unknown option `ttl` of a store; there are ttlMs, owner, seal/);
  await misusedLater(() => openAgent(/** @type {any} */ ({}), { model: scripted([]) }), /openAgent takes a lease, as store\.claim gives it/);
  const store = fileStore(folder(t));
  await assert.rejects(store.claim(""), /the id of an agent must be a text of 500 characters at most/);
  for (const id of ["a\0b", "half \ud800", "\udc00"]) await assert.rejects(store.claim(id), /the id of an agent must be a text without zeros \(U\+0000\) and without halves of surrogate pairs/);
  await (await store.claim("𝒳'\";/../\n"))?.release();
  await assert.rejects(store.claim("a", { ttlMs: 1 }), /`ttlMs` must be from 100/);
});
