// @ts-check
// Schedules of a Durable Object that is evicted from memory at random moments, and of connections that break:
// nothing is lost, nothing comes twice, no tool runs more often than it may.

import assert from "node:assert/strict";
import { RemoteAgent } from "../../../pkg/remote.js";
import { expected, interrupted, runLife, plain } from "../checkpoint/lives.mjs";
import { world } from "../checkpoint/world.mjs";
import { cutAfter } from "../cut.mjs";
import { dice } from "../dice.mjs";
import { checkTrace } from "../grammar.mjs";
import { start } from "./bundle.mjs";

/** A body that may break in the middle. @param {Response} response @param {(n: number) => number} roll */
function fragile(response, roll) {
  const body = cutAfter(/** @type {any} */ (response.body), roll(3) === 0 ? 1 + roll(4000) : Infinity);
  return new Response(body, { status: response.status, headers: /** @type {any} */ (response.headers) });
}

/** @param {number} from @param {number} to @returns {Promise<number>} how often an object died */
export async function schedules(from, to) {
  const undisturbed = plain((await runLife(world(), { onEvent() {}, die() {} })).messages);
  /** The calls that ran, by seed. @type {Map<string, string[]>} */
  const ledger = new Map();
  const server = await start("worker.mjs", {
    // Every death is logged there; a pipe that nobody reads would block everything.
    handleRuntimeStdio: (/** @type {any} */ out, /** @type {any} */ errors) => void (out.resume(), errors.resume()),
    serviceBindings: { LEDGER: (/** @type {any} */ request) => {
      const [, seed = "", callId = ""] = new URL(request.url).pathname.split("/");
      ledger.set(seed, [...(ledger.get(seed) ?? []), callId]);
      return /** @type {any} */ (Response.json({}));
    } },
  });
  await server.ready;
  let deaths = 0;
  let next = from;
  const work = async () => {
    while (next <= to) deaths += await schedule(server, next++, undisturbed, ledger);
  };
  try {
    await Promise.all([work(), work(), work(), work()]);
  } finally {
    await server.dispose();
  }
  return deaths;
}

/** @param {any} server @param {number} seed @param {any[]} undisturbed @param {Map<string, string[]>} ledger */
async function schedule(server, seed, undisturbed, ledger) {
  const at = `http://worker.example/agents/seed-${seed}`;
  const roll = dice(seed);
  const fetch = async (/** @type {any} */ url, /** @type {any} */ init) => {
    const { signal, headers, ...rest } = init;
    const response = await server.dispatchFetch(String(url), { ...rest, headers: Object.fromEntries(headers) });
    return String(url).includes("/events") && response.ok ? fragile(response, roll) : response;
  };
  const host = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => new Promise((/** @type {any} */ resolve) => {
    const end = () => (clearTimeout(timer), signal.removeEventListener("abort", end), resolve());
    const timer = setTimeout(end, ms > 40_000 ? ms : ms / 50);
    signal.addEventListener("abort", end);
  }) };
  const options = { url: at, fetch, host, reconnects: { maxAttempts: 200, maxMs: 1000 }, onError() {} };
  const mirrors = Array.from({ length: 1 + roll(3) }, () => new RemoteAgent(options));
  /** @type {any[][]} */
  const received = mirrors.map(() => []);
  mirrors.forEach((mirror, i) => mirror.subscribe((event) => void received[i]?.push(event)));
  await Promise.all(mirrors.map((mirror) => mirror.ready()));
  const decider = /** @type {RemoteAgent} */ (mirrors[roll(mirrors.length)]);
  decider.subscribe((event) => {
    if (event.type === "tool_approval_requested") decider.resolveTool(event.callId, "approve").catch(() => {});
  });
  const run = /** @type {RemoteAgent} */ (mirrors[0]).prompt("Go");
  const { stopReason, error } = await run;
  assert.equal(stopReason, "completed", `seed ${seed}: ${error?.message}`);
  await Promise.all(mirrors.map((mirror) => mirror.ready().then(() => mirror.waitForIdle())));
  const { lives } = await (await server.dispatchFetch(`${at}/lives`)).json();
  const [events = []] = received;
  for (const [i, list] of received.entries()) assert.deepEqual(list, events, `seed ${seed}: listener ${i} heard the same`);
  checkTrace(events.filter(({ type }) => type !== "run_resumed"));
  const cut = interrupted(events);
  for (const mirror of mirrors) {
    assert.deepEqual(plain(mirror.messages), expected(undisturbed, cut), `seed ${seed}`);
    mirror[Symbol.dispose]();
  }
  const ran = ledger.get(String(seed)) ?? [];
  for (const callId of ["b1", "d1"]) {
    const times = ran.filter((id) => id === callId).length;
    assert.ok(times === 1 || (times === 0 && cut.includes(callId)), `seed ${seed}: ${callId} ran ${times} times`);
  }
  return lives - 1;
}
