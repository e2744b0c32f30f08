// @ts-check
// Plays the set `retry`: how long a run waits after a failed call, which `retry_attempt` says.

import { Agent, custom, openai } from "../../../pkg/entry/node.js";

/** The package says how long it waits, and not what told it so. */
export const HIDDEN = ["source"];

const CONFIG = { initial_backoff_ms: 2_000, max_backoff_ms: 30_000, multiplier: 2 };
/** More attempts than a player has time for. */
const MANY = 10_000;

/** Why a case cannot be played by the package. @param {any} input @returns {string | undefined} */
export function unreachable({ op, attempt, config = {}, headers = {} }) {
  if (Object.values(headers).some((value) => Number(value) > Number.MAX_SAFE_INTEGER)) return "no clock of JavaScript counts such a delay";
  if (op === "headers") return undefined;
  const { multiplier = 2 } = config;
  if (typeof multiplier !== "number" || multiplier < 0) return "the option `retry` refuses such a multiplier";
  if (attempt < 1 || attempt > MANY) return `a run makes between 1 and ${MANY} attempts here`;
  return undefined;
}

/** @param {any} input */
export async function play({ op, headers = {}, now, attempt = 1, config }) {
  const { initial_backoff_ms: initialBackoffMs, max_backoff_ms: maxBackoffMs, multiplier } = { ...CONFIG, ...config };
  /** @type {any} */
  let last;
  const agent = new Agent({
    model: op === "backoff" ? broken() : answering(headers),
    retry: { maxAttempts: attempt + 1, initialBackoffMs, maxBackoffMs, multiplier, jitter: false, maxRetryDelayMs: Infinity },
    host: { now: () => (now ? Date.parse(now) : 0), sleep: async () => {}, random: () => 0.5 },
  });
  for await (const event of agent.prompt("go")) if (event.type === "retry_attempt") last = event;
  if (op === "headers") return last.error.retryAfterMs === undefined ? null : { delay_ms: last.delayMs };
  return { delay_ms: last.delayMs };
}

function broken() {
  return custom("m", async function* () {
    yield { type: "error", error: { code: "overloaded", message: "busy" } };
  });
}

/** A server that is busy, with these headers. @param {Record<string, string>} headers */
function answering(headers) {
  return openai("m", { apiKey: "k", fetch: async () => new Response('{"error":{"message":"busy"}}', { status: 503, headers }) });
}
