// @ts-check
// What an HTTP answer with an error means: for authors of models and bridges.

import { shared } from "../boundary/engine.js";
import { kindOf, misuse } from "../shared.js";

/** @import { ErrorInfo } from "../index.js" */

/** @param {{ status: number, headers?: any, body?: unknown, text?: () => Promise<string> }} response @returns {Promise<ErrorInfo>} */
export async function errorInfo(response) {
  const { status, headers, body } = response ?? {};
  if (!Number.isInteger(status) || status < 0 || status > 999) throw misuse(`\`errorInfo\` needs the \`status\` of a response, got ${kindOf(status)}`);
  const given = typeof response.text === "function" ? await response.text() : body ?? "";
  const bytes = typeof given === "string" || given instanceof Uint8Array ? given : JSON.stringify(given);
  const { classify, headersOf } = await import("./thrown-info.js");
  const engine = await shared.ready();
  await engine.whole();
  return classify(engine, { status, headers: headersOf(headers), body: bytes }, Date.now());
}
