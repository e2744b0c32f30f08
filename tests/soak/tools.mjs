// @ts-check
// The tools of the soak's agents. Each reports to the ledger before it does anything, with the token from its arguments.

import { childOf } from "./judge.mjs";

const TOKEN = { type: "object", properties: { token: { type: "string" }, answer: { type: "string" }, changed: { type: "boolean" } }, required: ["token"] };

/** @param {number} ms @param {AbortSignal} [signal] */
export const later = (ms, signal) => new Promise((/** @type {(value: void) => void} */ resolve) => {
  const end = () => (clearTimeout(timer), signal?.removeEventListener("abort", end), resolve());
  const timer = setTimeout(end, ms);
  signal?.addEventListener("abort", end);
});
const until = (/** @type {AbortSignal} */ signal) => new Promise((resolve) => (signal.aborted ? resolve(undefined) : signal.addEventListener("abort", resolve, { once: true })));

/** What each tool does after it has told the ledger. @type {Record<string, (token: string, context: any) => any>} */
const DOES = {
  note: () => undefined,
  look: () => undefined,
  pay: () => undefined,
  slow: (_, { signal }) => later(15, signal),
  fail: () => { throw new Error("the disk is full"); },
  /** Neither answers nor hears that nobody waits any more. */
  hang: () => new Promise(() => {}),
  /** Waits until it is stopped. */
  deaf: (_, { signal }) => until(signal),
  patient: (_, { signal }) => later(60, signal),
  huge: () => "z".repeat(300_000),
};

/** @type {Record<string, any>} */
const MORE = {
  look: { idempotent: true }, pay: { requiresApproval: true }, hang: { timeoutMs: 40 }, huge: { maxResultBytes: 500 },
};

/**
 * @param {(what: string, report: any) => Promise<any>} tell
 * @param {(id: string) => any} childAgent makes the agent for a child with that id
 * @param {any} lib the package
 */
export function toolsOf(tell, childAgent, lib) {
  const begin = (/** @type {string} */ token, /** @type {string} */ name) => tell("effect", { token, once: name !== "look" });
  const tools = Object.entries(DOES).map(([name, does]) => lib.tool({
    name, description: name, parameters: TOKEN, ...MORE[name],
    async execute(/** @type {{ token: string }} */ { token }, /** @type {any} */ context) {
      await begin(token, name);
      const more = await does(token, context);
      return `@${token}=ok@${more ?? ""}`;
    },
  }));
  const child = lib.subagent({
    name: "child", description: "child", parameters: TOKEN,
    async agent(/** @type {{ token: string }} */ { token }) {
      await begin(token, "child");
      return childAgent(childOf(token));
    },
    toPrompt: (/** @type {{ token: string }} */ { token }) => `do ${token}`,
  });
  return [...tools, child];
}
