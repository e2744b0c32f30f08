// @ts-check
// Plays the set `overflow`: which code an error gets by its text.

import { Agent, custom } from "../../../pkg/entry/node.js";

export const unreachable = () => undefined;

/** @param {any} input */
export async function play({ error: message, kind }) {
  const model = custom("m", async function* () {
    yield { type: "error", error: { code: kind === "rate_limit" ? "throttled" : "unknown", message } };
  });
  const { error } = await new Agent({ model, retry: { maxAttempts: 1 } }).prompt("go");
  return { overflow: error?.code === "context_overflow" };
}
