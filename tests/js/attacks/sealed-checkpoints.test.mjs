// @ts-check
// A sealed checkpoint that somebody changed, cut, moved to another tenant or stripped of its seal is refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as stores from "../../../pkg/stores.js";
import { Agent, call, scripted, testTool } from "../kit.mjs";

const { durableObjectStore } = stores;
/** @type {any} */
const { seal, unseal } = stores;

const bytes = (/** @type {number} */ n) => Uint8Array.from({ length: 32 }, (_, i) => (i * 7 + n) % 256);
const key = bytes(1);

async function checkpoint() {
  const agent = new Agent({ model: scripted([call("pay")]), tools: [testTool("pay", () => "paid", { requiresApproval: true })] });
  for await (const event of agent.prompt("Pay \ud800 and 🦀.")) if (event.type === "tool_approval_requested") return agent.checkpoint();
  throw new Error("nobody asked");
}

/** @param {Promise<unknown>} work @param {RegExp} [text] */
const refused = (work, text = /the seal does not fit/) => assert.rejects(work, (/** @type {any} */ error) => {
  assert.equal(error.name, "AgentError");
  assert.equal(error.code, "misuse");
  assert.match(error.message, text);
  return true;
});

test("what was sealed comes back, through JSON and structured clone, in any order of its members", async () => {
  const saved = await checkpoint();
  const sealed = await seal(saved, key, { context: "user-1" });
  const forms = [sealed, JSON.stringify(sealed), structuredClone(sealed), JSON.parse(JSON.stringify(sealed, null, 2)), Object.fromEntries(Object.entries(sealed).reverse())];
  for (const form of forms) assert.deepEqual(await unseal(form, key, { context: "user-1" }), saved);
  const agent = await Agent.restore(await unseal(sealed, key, { context: "user-1" }), { model: scripted([]) });
  assert.equal(agent.pendingApprovals.length, 1);
});

test("every change of a member is refused: forged, cut, re-ordered, swapped", async () => {
  const saved = await checkpoint();
  const sealed = await seal(saved, key);
  const other = await seal({ ...saved, messages: [] }, key);
  const text = sealed.checkpoint;
  const { version, format, ...rest } = JSON.parse(text);
  const forged = [
    text.replace("pending", "ready"), text.slice(0, -1), ` ${text}`, `${text}\n`, JSON.stringify({ ...rest, version, format }),
    JSON.stringify(JSON.parse(text), null, 1), text.normalize("NFD") === text ? `${text} ` : text.normalize("NFD"), other.checkpoint, "",
  ];
  for (const checkpoint of forged) await refused(unseal({ ...sealed, checkpoint }, key));
  for (const mac of [other.mac, "0".repeat(64), sealed.mac.replace(/^./, (/** @type {string} */ first) => (first === "0" ? "1" : "0"))]) await refused(unseal({ ...sealed, mac }, key));
  for (let at = 0; at < text.length; at += Math.ceil(text.length / 40)) {
    const changed = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
    await refused(unseal({ ...sealed, checkpoint: changed }, key));
  }
});

test("a damaged, unsealed or newer one is named as such", async () => {
  const saved = await checkpoint();
  const sealed = await seal(saved, key);
  for (const mac of ["", sealed.mac.slice(1), sealed.mac.toUpperCase() + "g", `${sealed.mac}00`, null, 7, [sealed.mac], undefined]) await refused(unseal({ ...sealed, mac }, key), /damaged/);
  for (const checkpoint of [undefined, null, 7, JSON.parse(sealed.checkpoint), [sealed.checkpoint]]) await refused(unseal({ ...sealed, checkpoint }, key), /damaged/);
  for (const downgraded of [saved, JSON.stringify(saved), { ...saved, mac: sealed.mac }]) await refused(unseal(downgraded, key), /not sealed/);
  for (const version of [0, 2, "1", undefined, null]) await refused(unseal({ ...sealed, version }, key), /in version/);
  for (const nothing of [undefined, null, 7, "{", "null", [], [sealed], "\"x\""]) await refused(unseal(nothing, key), /unseal takes what seal gave|no JSON/);
  await refused(seal(sealed, key), /sealed already/);
  for (const nothing of [undefined, null, "x", {}, Promise.resolve(saved)]) await refused(seal(nothing, key), /seal takes what checkpoint\(\) gives/);
});

test("one tenant's checkpoint does not open for another, and a missing id is nobody's", async () => {
  const saved = await checkpoint();
  const contexts = ["user-1", "user-2", "user-1\u0000", "user-\ud800", "user-\udc00", "null"];
  for (const context of contexts) {
    const sealed = await seal(saved, key, { context });
    assert.deepEqual(await unseal(sealed, key, { context }), saved);
    for (const other of contexts) if (other !== context) await refused(unseal(sealed, key, { context: other }));
    await refused(unseal(sealed, key));
  }
  await refused(unseal(await seal(saved, key), key, { context: "user-1" }));
  for (const context of [undefined, null, "", 7, {}]) await refused(seal(saved, key, { context }), /`context` must be a text/);
  await refused(seal(saved, key, { contxt: "a" }), /unknown option/);
});

test("keys: the first of several seals, any of them opens; what is no key is named", async () => {
  const saved = await checkpoint();
  const usable = await crypto.subtle.importKey("raw", bytes(2), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  const sealed = await seal(saved, [key, bytes(2)]);
  assert.deepEqual(await unseal(sealed, [bytes(3), key]), saved);
  await refused(unseal(sealed, [bytes(2), bytes(3)]));
  assert.deepEqual(await unseal(await seal(saved, usable), bytes(2)), saved);
  assert.deepEqual(await unseal(await seal(saved, bytes(2).buffer), usable), saved);
  const view = new Uint8Array([...bytes(9), ...bytes(2), ...bytes(9)]).subarray(32, 64);
  assert.deepEqual(await unseal(await seal(saved, view), usable), saved);
  const onlySigns = await crypto.subtle.importKey("raw", bytes(2), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const weak = await crypto.subtle.importKey("raw", bytes(2).slice(0, 8), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const otherHash = await crypto.subtle.importKey("raw", bytes(2), { name: "HMAC", hash: "SHA-1" }, false, ["sign"]);
  const aes = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt"]);
  await refused(unseal(sealed, onlySigns), /may not be used to verify/);
  for (const wrong of [weak, otherHash, aes]) await refused(seal(saved, wrong), /HMAC with SHA-256 of 256 bits/);
  for (const wrong of ["secret".repeat(10), undefined, null, 7, {}, bytes(1).slice(0, 31), new Uint8Array(0), [7]]) await refused(seal(saved, wrong), /a key for sealing is 32 bytes or more/);
  await refused(seal(saved, new Uint8Array(32)), /must be random/);
  for (const list of [[], /** @type {any[]} */ ([])]) await refused(unseal(sealed, list), /the list of keys is empty/);
});

test("what reads checkpoints says that one is sealed, and stores keep it as it is", async () => {
  const sealed = await seal(await checkpoint(), key);
  for (const form of [sealed, JSON.stringify(sealed), { ...sealed, messages: [], version: 1, metadata: {} }]) {
    await assert.rejects(() => Agent.restore(form, { model: scripted([]) }), /is sealed; unseal it first/);
  }
  await assert.rejects(() => Agent.restore(/** @type {any} */ (Promise.resolve(sealed)), { model: scripted([]) }), /got a promise; await it first/);
  /** @type {any[]} */
  const rows = [];
  const storage = { transactionSync: (/** @type {() => any} */ work) => work(), sql: { exec: (/** @type {string} */ statement, /** @type {any[]} */ ...[, , json]) => (statement.startsWith("INSERT INTO turnwheel_checkpoints") && rows.push({ json }), { toArray: () => (statement.startsWith("SELECT") ? rows : []) }) } };
  const store = durableObjectStore(/** @type {any} */ (storage));
  await store.save("chat", /** @type {any} */ (sealed));
  assert.deepEqual(await store.load("chat"), sealed);
  await assert.rejects(store.save("chat", /** @type {any} */ (seal(await checkpoint(), key))), /await it first/);
});

test("without Web Crypto the error says where there is one", async () => {
  const saved = await checkpoint();
  const { crypto } = globalThis;
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  try {
    await refused(seal(saved, key), /HTTPS or on localhost/);
  } finally {
    Object.defineProperty(globalThis, "crypto", { value: crypto, configurable: true });
  }
});
