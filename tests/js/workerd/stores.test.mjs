// @ts-check
// Checkpoints in the SQLite database of a Durable Object, in workerd: more than a value may hold, several at
// once, an instance evicted from memory, a server that is restarted, a run that continues after each.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Miniflare } from "miniflare";
import { bundle, wasm } from "../checkpoint/bundle.mjs";

const script = await bundle("worker.mjs", "workerd");
const imported = /from "([^"]+\.wasm)"/.exec(script)?.[1] ?? "";
const folder = await mkdtemp(join(tmpdir(), "turnwheel-workerd-"));

const start = async () => new Miniflare({
  cf: false, compatibilityDate: "2026-07-01", durableObjectsPersist: folder,
  durableObjects: { CHAT: { className: "Chat", useSQLite: true }, OLD: { className: "Old" } },
  modules: [
    { type: "ESModule", path: "worker.js", contents: script.replace(imported, "./turnwheel.wasm") },
    { type: "CompiledWasm", path: "turnwheel.wasm", contents: await wasm() },
  ],
});
let server = await start();
after(async () => {
  await server.dispose();
  await rm(folder, { recursive: true, force: true });
});

/** What the object with that name says. @param {string} name @param {string} path @returns {Promise<any>} */
async function ask(name, path) {
  const response = await server.dispatchFetch(`http://worker.example/${name}/${path}`);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}

test("what was saved is loaded, also by another instance and another server; what is deleted is gone", async () => {
  assert.equal(await ask("a", "load?id=one"), null);
  await ask("a", "save?id=one&size=10");
  const { checkpoint, instance } = await ask("a", "load?id=one");
  assert.equal(checkpoint.messages[0].content, "x".repeat(10));
  await ask("a", "evict");
  const again = await ask("a", "load?id=one");
  assert.notEqual(again.instance, instance);
  assert.deepEqual(again.checkpoint, checkpoint);
  await server.dispose();
  server = await start();
  assert.deepEqual((await ask("a", "load?id=one")).checkpoint, checkpoint);
  assert.equal(await ask("a", "load?id=other"), null);
  assert.equal(await ask("b", "load?id=one"), null);
  await ask("a", "delete?id=one");
  assert.equal(await ask("a", "load?id=one"), null);
});

test("a checkpoint may be longer than a value there, in any letters; a shorter one leaves nothing of it", async () => {
  for (const letter of ["x", "€", "😀", "\\", "\ud800"]) {
    const id = encodeURIComponent(letter.isWellFormed() ? letter : "lone");
    await ask("large", `save?id=${id}&size=2500001&letter=${letter.charCodeAt(0)},${letter.charCodeAt(1) || ""}`);
    const { length, end, parts } = await ask("large", `measure?id=${id}`);
    assert.deepEqual([length, end], [2_500_001 * letter.length, letter], letter);
    assert.ok(parts > 4, `${parts} parts`);
    await ask("large", `save?id=${id}&size=3`);
    assert.equal((await ask("large", `measure?id=${id}`)).parts, 1);
  }
});

test("a save that fails in the middle leaves the older one whole, and the error names the thing", async () => {
  await ask("half", "save?id=chat&size=5");
  const { message, cause, code } = await ask("half", "fail?id=chat&size=2000000");
  assert.match(message, /^the checkpoint `chat` could not be saved in the Durable Object's SQLite: Error: the disk is full$/);
  assert.deepEqual([code, cause], ["unknown", "the disk is full"]);
  assert.equal((await ask("half", "load?id=chat")).checkpoint.messages[0].content, "xxxxx");
});

test("what was saved is listed, also by another instance; what is deleted is not", async () => {
  for (const id of ["u1/a", "u1/b", "u2/c"]) await ask("listed", `save?id=${id}&size=3`);
  await ask("listed", "delete?id=u1/a");
  await ask("listed", "evict");
  assert.deepEqual(await ask("listed", "list?prefix=u1/"), [["u1/b", "xxx"]]);
  assert.equal((await ask("listed", "list")).length, 2);
});

test("of many that come at once the first and the newest are written", async () => {
  assert.deepEqual(await ask("many", "churn?id=chat"), { written: ["0", "99"], loaded: "99" });
});

test("an object without SQLite, or none, is told so", async () => {
  assert.match((await ask("plain", "old")).message, /could not be saved in the Durable Object's SQLite: .*SQL is not enabled/);
  assert.match((await ask("plain", "none")).message, /durableObjectStore takes the storage of a Durable Object, `ctx.storage`, got nothing/);
});

test("a run goes on in one new instance after the other, and comes to the same end", async () => {
  const { history: whole } = await ask("whole", "live?until=0");
  const ran = [];
  for (let life = 0; ; life++) {
    assert.ok(life < 40, "it comes to an end");
    const said = await ask("sleeper", `live?until=${19 + life}`);
    ran.push(...said.ran);
    if (!said.history) {
      await ask("sleeper", "evict");
      continue;
    }
    assert.ok(life > 2, `${life} lives`);
    const isCut = (/** @type {any} */ { cause }) => cause === "interrupted";
    assert.deepEqual(said.history.map((/** @type {any} */ one) => [one.role, one.callId, isCut(one) || one.content]), whole.map((/** @type {any} */ one, /** @type {number} */ i) => [one.role, one.callId, isCut(said.history[i]) || one.content]));
    for (const id of ["b1", "d1"]) assert.ok(ran.filter((other) => other === id).length <= 1, `${id} ran once`);
    break;
  }
});
