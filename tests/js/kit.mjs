// @ts-check
// What the tests of the package share. They use the built package in pkg/.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { beforeEach } from "node:test";
import { inParts, shared, use, useRest } from "../../pkg/core.js";
import { checkTrace } from "./grammar.mjs";

export * from "../../pkg/entry/node.js";

// As in a page: the engine is fetched in parts, and the first request leaves before the others are there. With `anew`, each test
// fetches it again.
const { TURNWHEEL_LOAD } = process.env;
if (TURNWHEEL_LOAD === "parts" || TURNWHEEL_LOAD === "anew") {
  const part = (/** @type {string} */ name) => async () => WebAssembly.compile(await readFile(new URL(`../../pkg/turnwheel-${name}.wasm`, import.meta.url)));
  const load = inParts({ first: part("first"), answer: part("answer"), rest: part("rest"), whole: () => Promise.reject(new Error("there is no whole")) });
  use(load);
  if (TURNWHEEL_LOAD === "anew") beforeEach(() => {
    shared.engine = undefined;
    use(load);
    // The script has parts, too.
    useRest(/** @type {any} */ (undefined));
  });
}

/**
 * Reads a run to its end, checks its trace, and returns everything there is to know about it.
 * @param {any} run
 */
export async function readRun(run) {
  /** @type {any[]} */
  const events = [];
  for await (const event of run) events.push(event);
  return checkRun(events, await run.result);
}

/** A trace and its result, checked. @param {any[]} events @param {any} result */
export function checkRun(events, result) {
  checkTrace(events);
  const end = events.at(-1);
  assert.equal(result.stopReason, end.stopReason);
  assert.deepEqual(result.messages, end.messages);
  assert.deepEqual(result.usage, end.usage);
  assert.equal(result.turns, end.turns);
  assert.equal(result.error?.message, end.error?.message);
  return {
    events, result, end,
    /** The names of the events, deltas of one block joined. */
    names: events.map((event) => event.type).filter((name, i, all) => name !== "message_update" || all[i - 1] !== name),
    /** @param {string} type @returns {any[]} */
    all: (type) => events.filter((event) => event.type === type),
    text: events.filter((event) => event.type === "message_update" && event.delta.type === "text").map((event) => event.delta.delta).join(""),
  };
}

/** A tool that does what `execute` says. @param {string} name @param {any} execute @param {any} [more] */
export const testTool = (name, execute, more = {}) => ({
  name, description: `says ${name}`, parameters: { type: "object", properties: {} }, execute, ...more,
});

/** Calls of a scripted model: the names of the tools, or [name, arguments]. @param {...(string | [string, any])} tools */
export const call = (...tools) => ({
  toolCalls: tools.map((tool, i) => {
    const [toolName, args] = typeof tool === "string" ? [tool, {}] : tool;
    return { callId: `c${i + 1}`, toolName, arguments: args };
  }),
});

/** A promise, with the functions to settle it. @template [T=any] */
export function deferred() {
  /** @type {(value?: any) => void} */
  let resolve = () => {};
  /** @type {(error: any) => void} */
  let reject = () => {};
  const promise = new Promise((done, failed) => ([resolve, reject] = [done, failed]));
  return { promise, resolve, reject };
}

/** Lets everything happen that does not have to wait. */
export const settle = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Whether a promise is still open after everything happened that does not have to wait.
 * @param {Promise<any>} promise
 */
export async function isOpen(promise) {
  const open = Symbol();
  await settle();
  return (await Promise.race([promise, settle().then(() => open)])) === open;
}

/**
 * A host whose clock stands still until it is asked to sleep, and whose sleep returns at
 * once and records the time.
 */
export function clock() {
  const slept = /** @type {number[]} */ ([]);
  let now = 1_700_000_000_000;
  return {
    slept,
    host: {
      now: () => now,
      random: () => 0.5,
      /** @param {number} ms */
      sleep: async (ms) => {
        slept.push(ms);
        now += ms;
      },
    },
  };
}

/** The text of a message. @param {any} message */
export const textOf = (message) => message.content.filter((/** @type {any} */ block) => block.type === "text").map((/** @type {any} */ block) => block.text).join("");

/**
 * Expects misuse: thrown at the call, with a code and a helpful text.
 * @param {() => unknown} act @param {RegExp} text
 */
export function misused(act, text) {
  assert.throws(act, (error) => isMisuse(error, text));
}

/** The same of what is awaited. @param {() => Promise<unknown>} act @param {RegExp} text */
export const misusedLater = (act, text) => assert.rejects(act, (error) => isMisuse(error, text));

/** @param {any} error @param {RegExp} text */
function isMisuse(error, text) {
  assert.equal(error.name, "AgentError");
  assert.equal(error.code, "misuse", error.message);
  assert.match(error.message, text);
  return true;
}
