// @ts-check
// Agents in files: a process is killed before every single access to a file, in the middle of writing one, and stopped there while
// another does something whole. What was stored is there afterwards, as it was before or as it was to be.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { after, before, test } from "node:test";
import { fileStore } from "../../../pkg/stores-node.js";
import { folder } from "../fleet/stores.mjs";
import { Agent, deferred, scripted } from "../kit.mjs";

/** Nothing is renewed while a test runs. */
const TTL = 86_400_000;
const blank = new Agent({ model: scripted([]) }).checkpoint();
const checkpointOf = (/** @type {string[]} */ ...texts) => /** @type {any} */ ({ ...blank, messages: texts.map((text) => ({ role: "user", content: text, timestamp: 1 })) });
const textOf = (/** @type {any} */ checkpoint) => checkpoint?.messages.map((/** @type {any} */ { content }) => content).join();
const lost = (/** @type {any} */ error) => {
  assert.equal(error.code, "lost_lease", error.message);
  return "lost";
};
/** @param {string} place */
const storeIn = (place) => fileStore(place, { ttlMs: TTL });
/** In memory where that can be had: thousands of files are made and removed. @param {any} t */
const inFolder = (t) => (existsSync("/dev/shm") ? folder(t, "/dev/shm") : folder(t));
/** A checkpoint whose run is in progress. @param {string[]} texts */
function running(...texts) {
  const checkpoint = checkpointOf(...texts);
  return { ...checkpoint, metadata: { ...checkpoint.metadata, turnwheel: { ...checkpoint.metadata?.turnwheel, prompts: [] } } };
}

// ---- accesses to files, of one process at a time

/** @type {any} */
const files = fs;
const real = { ...files };
/** What happens before each access of a process. @type {AsyncLocalStorage<(name: string, args: any[]) => Promise<void>>} */
const process = new AsyncLocalStorage();
const onAccess = async (/** @type {string} */ name, /** @type {any[]} */ args) => process.getStore()?.(name, args);
const NAMES = ["access", "mkdir", "open", "readFile", "readdir", "rename", "rm", "stat", "writeFile"];
const CHANGES = ["mkdir", "open", "rename", "rm", "truncate", "writeFile"];
const HANDLE = ["truncate", "writeFile", "datasync", "sync"];
/** The system closes what a killed process had open. @type {Set<any>} */
const opened = new Set();
const clock = Date.now;

before(() => {
  for (const name of NAMES) files[name] = async (/** @type {any[]} */ ...args) => {
    await onAccess(name, args);
    const result = await real[name](...args);
    if (name === "open") opened.add(result);
    if (name === "open") for (const name of HANDLE) {
      const method = result[name].bind(result);
      // What a power failure does cannot be tried, and waiting for the disk takes minutes.
      result[name] = async (/** @type {any[]} */ ...args) => (await onAccess(name, [result, ...args]), /sync/.test(name) ? undefined : method(...args));
    }
    return result;
  };
  syncBuiltinESMExports();
});
after(() => {
  Object.assign(files, real);
  Date.now = clock;
  syncBuiltinESMExports();
});

/** Stops a process before its access number `at`, does something else, and lets it go on. Returns what became of its work, and whether it had so many accesses. @param {number} at @param {() => Promise<any>} work @param {() => Promise<any>} other */
async function stopped(at, work, other) {
  let count = 0;
  let isReached = false;
  const result = await process.run(async () => {
    if (count++ !== at) return;
    isReached = true;
    await process.exit(other);
  }, work);
  return { result, isReached };
}

/** Kills a process before it changes something for the time `at`; of what it writes then, half is written. Says whether it had so many. @param {number} at @param {() => Promise<any>} work */
async function killed(at, work) {
  let count = 0;
  /** @type {(isDead: true) => void} */
  let die = () => {};
  const death = new Promise((resolve) => (die = resolve));
  const done = process.run(async (name, args) => {
    if (!CHANGES.includes(name) || count++ < at) return;
    if (count === at + 1 && name === "writeFile") {
      const [file, text] = args;
      const half = Buffer.from(text).subarray(0, text.length / 2);
      if (typeof file === "string") await real.writeFile(file, half);
      else await file.appendFile(half);
    }
    die(true);
    // Nothing that it does comes to an end any more.
    await new Promise(() => {});
  }, work);
  const isDead = (await Promise.race([done, death])) === true;
  for (const handle of opened) await handle.close();
  opened.clear();
  return isDead;
}

/**
 * Stops a process before its change number `i`, and another one that begins then before its number `j`; the first one goes on to its
 * end, and the other after it. Returns what became of both, and which of them had so many changes.
 * @param {number} i @param {number} j @param {() => Promise<any>} first @param {() => Promise<any>} second
 */
async function crossed(i, j, first, second) {
  const [counts, isReached] = [[0, 0], [false, false]];
  const [isThere, mayEnd] = [deferred(), deferred()];
  /** @type {Promise<any> | undefined} */
  let other;
  const reaches = (/** @type {number} */ who, /** @type {string} */ name) => CHANGES.includes(name) && (counts[who] = (counts[who] ?? 0) + 1) === [i, j][who] + 1 && (isReached[who] = true);
  const one = await process.run(async (name) => {
    if (!reaches(0, name)) return;
    other = process.run(async (name) => {
      if (!reaches(1, name)) return;
      isThere.resolve();
      await mayEnd.promise;
    }, second);
    await Promise.race([isThere.promise, other]);
  }, first);
  mayEnd.resolve();
  return { one, two: await other, isReached };
}

/** Does something for every access of a process, in a folder of its own. @param {any} t @param {(at: number, place: string) => Promise<boolean>} once */
async function atEveryAccess(t, once) {
  let at = 0;
  while (await once(at, inFolder(t))) {
    Date.now = clock;
    at += 1;
  }
  Date.now = clock;
  assert.ok(at >= 2, `only ${at} accesses`);
  return at;
}
const later = (ms = TTL + 60_000) => (Date.now = () => clock() + ms);

// ---- what must not happen

test("an agent that is loaded while it is stored for the first time after a claim is never gone", async (t) => {
  await atEveryAccess(t, async (at, place) => {
    const [one, two] = [storeIn(place), storeIn(place)];
    await one.save("a", checkpointOf("old"));
    const lease = await one.claim("a");
    const { result, isReached } = await stopped(at, () => two.load("a"), async () => lease?.save(checkpointOf("new")));
    assert.ok(["old", "new"].includes(textOf(result)), `at ${at}: ${textOf(result)}`);
    await lease?.release();
    return isReached;
  });
});

test("an agent that is claimed while a process that was stopped stores it keeps what was stored", async (t) => {
  await atEveryAccess(t, async (at, place) => {
    const [one, two] = [storeIn(place), storeIn(place)];
    await one.save("a", checkpointOf("old"));
    const lease = await one.claim("a");
    lease?.events.append({ id: lease.events.last + 1, type: "command", data: "{}" });
    // It was stopped when it had just seen that nobody else has the agent.
    const [isThere, goesOn] = [deferred(), deferred()];
    let count = 0;
    const saving = process.run(async () => {
      if (count++ !== 1) return;
      isThere.resolve();
      await goesOn.promise;
    }, async () => lease?.save(checkpointOf("new")).then(() => "stored", lost));
    await isThere.promise;
    later();
    const { result, isReached } = await stopped(at, () => two.claim("a"), async () => (goesOn.resolve(), saving));
    goesOn.resolve();
    const saved = await saving;
    // One that is over, and nobody has claimed, is renewed by what it stores.
    if (saved === "stored") assert.ok(result === undefined || (textOf(result.checkpoint) === "new" && result.events.commands().length === 1), `at ${at}: ${textOf(result?.checkpoint)}`);
    else assert.ok(result && ["old", "new"].includes(textOf(result.checkpoint)), `at ${at}: ${textOf(result?.checkpoint)}`);
    await result?.save(checkpointOf("two"));
    assert.equal(textOf(await one.load("a")), result ? "two" : "new");
    await result?.release();
    await lease?.release();
    return isReached;
  });
});

test("whoever claims after a claim that stored nothing finds what that one found, although a process that lost its lease was still storing", async (t) => {
  let [crossings, found] = [0, new Set()];
  for (let i = 0, more = true; more; i++) for (let j = 0; ; j++) {
    const place = inFolder(t);
    const [one, two, three] = [storeIn(place), storeIn(place), storeIn(place)];
    await one.save("a", checkpointOf("old"));
    const lease = await one.claim("a");
    later();
    const both = await crossed(i, j, async () => lease?.save(checkpointOf("new")).then(() => "stored", lost), () => two.claim("a"));
    // The second is killed before it stores anything.
    later(3 * TTL);
    const last = await three.claim("a");
    const [told, at] = [textOf(both.two?.checkpoint), `at ${i}, ${j}`];
    if (both.one === "lost") assert.equal(textOf(last?.checkpoint), told, at);
    else assert.deepEqual([textOf(last?.checkpoint), told ?? "new"], ["new", "new"], at);
    found.add(`${both.one} ${told}`);
    Date.now = clock;
    for (const each of [lease, both.two, last]) await each?.release();
    [more, crossings] = [both.isReached[0] === true, crossings + 1];
    if (!both.isReached[1]) break;
  }
  assert.ok(crossings > 50 && found.has("lost old") && found.has("lost new"), `${crossings}: ${[...found]}`);
});

test("what is removed is removed as a whole, whoever is writing into it", async (t) => {
  const place = inFolder(t);
  const [one, two, three] = [storeIn(place), storeIn(place), storeIn(place)];
  await one.save("a", checkpointOf("old"));
  const lease = await one.claim("a");
  const [isThere, goesOn] = [deferred(), deferred()];
  // Stopped when all but the state is written.
  const saving = process.run(async (name, [, to]) => {
    if (name !== "rename" || !to.endsWith("state.json")) return;
    isThere.resolve();
    await goesOn.promise;
  }, async () => lease?.save(checkpointOf("new")).then(() => "stored", lost));
  await isThere.promise;
  later();
  const next = await process.run(async (name, [path, options]) => {
    if (name !== "rm" || !options?.recursive) return;
    // A folder is removed file by file.
    await real.rm(`${path}/messages-0.jsonl`, { force: true });
    goesOn.resolve();
    await saving;
    throw Object.assign(new Error("directory not empty"), { code: "ENOTEMPTY" });
  }, () => two.claim("a"));
  goesOn.resolve();
  assert.equal(await saving, "lost");
  assert.equal(textOf(next?.checkpoint), "old");
  await next?.release();
  assert.equal(textOf((await three.claim("a"))?.checkpoint), "old");
  Date.now = clock;
});

test("a process that is stopped at any point of a save changes nothing that another has stored since", async (t) => {
  for (const isFirst of [true, false]) await atEveryAccess(t, async (at, place) => {
    const [one, two] = [storeIn(place), storeIn(place)];
    await one.save("a", checkpointOf("old"));
    const lease = await one.claim("a");
    if (!isFirst) await lease?.save(checkpointOf("old", "more"));
    later();
    /** @type {any} */
    let next;
    const { result, isReached } = await stopped(at, async () => lease?.save(checkpointOf("late")).then(() => "stored", lost), async () => {
      next = await two.claim("a");
      await next?.save(checkpointOf("two"));
    });
    // What is almost stored has renewed the lease.
    assert.equal(result, next ? "lost" : "stored", `at ${at}`);
    assert.equal(textOf(await one.load("a")), next ? "two" : "late");
    await next?.release();
    await lease?.release();
    return isReached;
  });
});

test("whoever is killed at any point of a write leaves what was or what was to be, and runs are found", async (t) => {
  /** @type {[string, (lease: any, store: any) => Promise<any>, (string | undefined)[]][]} */
  const works = [
    ["claim", async (_, store) => store.claim("b"), ["old,more"]],
    ["first save", async (lease) => lease.save(running("old", "new")), ["old,more", "old,new"]],
    ["second save", async (lease) => {
      await lease.save(checkpointOf("old", "more"));
      await lease.save(running("old", "more", "new"));
    }, ["old,more", "old,more,new"]],
    ["log", async (lease) => {
      for (let i = 0; i < 2; i++) {
        lease.events.append({ id: lease.events.last + 1, type: "command", data: "{}" });
        await lease.save(checkpointOf("old", "more"));
      }
      lease.events.trim(lease.events.last - 1);
      await lease.save(checkpointOf("old", "more", "new"));
    }, ["old,more", "old,more,new"]],
    ["release", async (lease) => lease.release(), ["old,more"]],
    ["delete", async (_, store) => store.delete("a"), ["old,more", undefined]],
  ];
  for (const [name, work, allowed] of works) await atEveryAccess(t, async (at, place) => {
    const [one, two] = [storeIn(place), storeIn(place)];
    const id = name === "claim" ? "b" : "a";
    await two.save(id, checkpointOf("old", "more"));
    const lease = name === "claim" ? undefined : await one.claim("a");
    const isKilled = await killed(at, async () => void (await work(lease, one)));
    later();
    const found = await two.load(id);
    assert.ok(allowed.includes(textOf(found)), `${name}, at ${at}: ${textOf(found)}`);
    const isRunning = /** @type {any} */ (found)?.metadata?.turnwheel?.prompts !== undefined;
    if (isRunning) assert.deepEqual(await two.abandoned(), ["a"], `${name}, at ${at}`);
    const next = await two.claim(id);
    assert.ok(next && next.fence > (lease?.fence ?? 1), `${name}, at ${at}`);
    assert.equal(textOf(next?.checkpoint), textOf(found));
    await next.save(checkpointOf("next"));
    assert.equal(textOf(await two.load(id)), "next");
    await next.release();
    return isKilled;
  });
});

test("a deletion and a claim at one time: one of them is later, and both know it", async (t) => {
  await atEveryAccess(t, async (at, place) => {
    const [one, two] = [storeIn(place), storeIn(place)];
    await one.save("a", checkpointOf("old"));
    const { result, isReached } = await stopped(at, () => one.claim("a"), () => two.delete("a"));
    if (isReached && result) assert.equal(result.checkpoint, undefined, `at ${at}: what was deleted is there`);
    if (isReached) assert.equal(await two.load("a"), undefined);
    await result?.save(checkpointOf("new")).catch(lost);
    await result?.release();
    assert.ok(((await two.claim("a"))?.fence ?? 0) > (result?.fence ?? 0), `at ${at}`);
    return isReached;
  });
  await atEveryAccess(t, async (at, place) => {
    const [one, two] = [storeIn(place), storeIn(place)];
    await one.save("a", checkpointOf("old"));
    /** @type {any} */
    let lease;
    const { isReached } = await stopped(at, () => one.delete("a"), async () => {
      lease = await two.claim("a");
      await lease?.save(checkpointOf("new"));
    });
    const found = textOf(await two.load("a"));
    assert.ok(found === undefined || (isReached && found === "new"), `at ${at}: ${found}`);
    const saved = await lease?.save(checkpointOf("newer")).then(() => "stored", lost);
    if (lease) assert.equal(saved, found === undefined ? "lost" : "stored", `at ${at}`);
    await lease?.release();
    const next = await one.claim("a");
    assert.ok(next && next.fence > (lease?.fence ?? 0));
    await next.release();
    return isReached;
  });
});

test("a renewal beside a save does not undo what that says, and none outlasts the release", async (t) => {
  await atEveryAccess(t, async (at, place) => {
    const [one, two] = [storeIn(place), storeIn(place)];
    const lease = await one.claim("a");
    await lease?.save(checkpointOf("x"));
    /** @type {Promise<void> | undefined} */
    let saved;
    const { isReached } = await stopped(at, () => /** @type {any} */ (lease?.events).verify(), async () => {
      saved = lease?.save(running("x"));
      await Promise.race([saved, new Promise((resolve) => setTimeout(resolve, 50))]);
    });
    await saved;
    if (!isReached) await lease?.save(running("x"));
    await lease?.release();
    assert.deepEqual([await two.owner("a"), await two.abandoned()], [undefined, ["a"]], `at ${at}`);
    return isReached;
  });
});

test("however often an agent was claimed and nothing stored, what was stored is found, and two folders stay", async (t) => {
  const place = inFolder(t);
  const store = storeIn(place);
  await store.save("a", checkpointOf("old"));
  for (let i = 0; i < 5; i++) await (await store.claim("a"))?.release();
  const [agent = ""] = readdirSync(place);
  assert.deepEqual(readdirSync(`${place}/${agent}`).map(Number).sort((a, b) => a - b), [1, 6]);
  // As an earlier version left them.
  for (let fence = 7; fence < 1_200; fence++) mkdirSync(`${place}/${agent}/${fence}`);
  later();
  assert.equal(textOf((await store.claim("a"))?.checkpoint), "old");
  Date.now = clock;
});

test("files that are not there are named", async (t) => {
  const place = inFolder(t);
  const store = storeIn(place);
  await store.save("a", checkpointOf("x"));
  const [agent = ""] = readdirSync(place);
  await real.rm(`${place}/${agent}/1/messages-0.jsonl`);
  await assert.rejects(store.load("a"), /files are missing in .*\/61\.agent, which `state\.json` there names/);
  await assert.rejects(store.claim("a"), /files are missing/);
  assert.equal(await store.owner("a"), undefined);
});
