// @ts-check
// The tools of a plan, by name: quick, slow, failing, reporting, asking, and those that are agents.

import { childModel } from "./models.mjs";

/** @import { World } from "./world.mjs" */

const N = { type: "object", properties: { n: { type: "integer" } } };

/** The tools of these names; a name that is not here is left as it is, for the package to refuse. @param {World} world @param {readonly string[]} names @returns {any[]} */
export function toolsOf(world, names) {
  const all = tableOf(world);
  return names.map((name) => (all[name] ? { name, description: `does ${name}`, parameters: N, ...all[name] } : name));
}

/** @param {World} world @returns {{ [name: string]: any }} */
function tableOf(world) {
  const { clock, package: own } = world;
  /** Notes that a tool ran, and with what. @param {(args: any, context: any) => any} work */
  const runs = (work) => (/** @type {any} */ args, /** @type {any} */ context) => {
    const { signal, update, ask, state, messages, ...about } = context;
    world.say("tool runs", args, about, messages.length);
    return work(args, context);
  };
  const unlessAborted = async (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => {
    await clock.sleep(ms, signal);
    if (signal.aborted) throw signal.reason;
  };
  const throws = (/** @type {string} */ message) => () => {
    throw new Error(message);
  };
  const child = (/** @type {string[]} */ names, /** @type {any} */ more) => {
    const agent = (/** @type {any} */ args) => (world.say("child made", args), new own.Agent({ model: childModel(world), tools: toolsOf(world, names), host: world.host(), retry: { maxAttempts: 2, initialBackoffMs: 5 }, maxTurns: 4 }));
    return own.subagent({ name: more.name, description: "a child", parameters: N, agent, toPrompt: ({ n = 0 }) => `Count to ${n}`, ...more });
  };
  return {
    look: { execute: runs(({ n = 0 }) => `seen ${n}`), idempotent: true }, data: { execute: runs(({ n }) => ({ n, list: [1, null, "two"] })), priority: 2 },
    blocks: { execute: runs(() => ({ content: [{ type: "text", text: "a picture" }, { type: "image", mimeType: "image/png", data: "AAAA" }], details: { kept: true } })) },
    nothing: { execute: runs(() => undefined) }, odd: { execute: runs(() => new Map([[1, 2]])) }, fails: { execute: runs(throws("it broke")) },
    fails_late: { execute: runs(async () => (await clock.sleep(20), throws("it broke late")())) }, fatal: { execute: runs(throws("it is over")), fatal: true },
    slow: { execute: runs(async (_args, { signal }) => (await unlessAborted(50, signal), "slow and sure")), idempotent: true }, deaf: { execute: runs(async () => (await clock.sleep(80), "did not listen")) },
    tells: { execute: runs(async (_args, { update, signal }) => (update("a"), await unlessAborted(10, signal), update({ content: [{ type: "text", text: "b" }], details: 1 }), "told")) },
    asks: { execute: runs(async ({ n = 0 }, { ask }) => ask({ message: `Which branch, of ${n}?`, ...(n > 2 && { schema: { type: "object", properties: { branch: { type: "string" } } } }) })) },
    keeps: { execute: runs((_args, { state, callId }) => (state.set("calls", Number(state.get("calls") ?? 0) + 1), state.set("last", callId), state.delete("k"), String(state.get("calls")))) },
    pay: { execute: runs(({ n = 0 }) => `paid ${n}`), requiresApproval: true }, maybe: { execute: runs(async () => (await clock.sleep(5), "maybe")), requiresApproval: (/** @type {any} */ { n }) => n > 2 },
    limited: { execute: runs(async () => (await clock.sleep(100), "too late")), timeoutMs: 30 }, big: { execute: runs(() => "ä".repeat(200)), maxResultBytes: 60 },
    moves_on: { execute: runs(() => ({ transfer: { to: "second", reason: "knows more" } })) }, quits: { execute: runs(() => own.CANCELLED) },
    child: child(["look", "slow"], { name: "child" }), child_asks: child(["look", "pay", "asks"], { name: "child_asks" }),
  };
}
