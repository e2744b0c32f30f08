// @ts-check
// A Worker without a Durable Object cannot serve an agent: what one request of it begins (a call of the model, a timer, a
// stream), no other request may touch, and it ends with its request. A prompt would hang without a word.

import { RequestError } from "./errors.js";

const MESSAGE =
  "an agent cannot be shared by the requests of a plain Worker: what one request begins ends with it, and no other may touch it. Put it into a Durable Object (DurableAgent of turnwheel/cloudflare), or answer each request with a run of its own: agent.prompt(…).toResponse()";

/** Returns a check for every request: it throws where the platform keeps the requests apart. */
export function requestsCheck() {
  if (globalThis.navigator?.userAgent !== "Cloudflare-Workers") return () => {};
  // Belongs to the request that makes it, or to the Durable Object. Where a Worker begins there is neither.
  const own = canDoIo() ? new AbortController() : undefined;
  return () => {
    try {
      // For everybody else this throws.
      if (own) return own.abort();
    } catch {
      // As below.
    }
    console.error(`turnwheel: ${MESSAGE}`);
    throw new RequestError(501, "misuse", MESSAGE);
  };
}

/** Whether timers may be set, as they may in a request and in a Durable Object. */
function canDoIo() {
  try {
    clearTimeout(setTimeout(() => {}, 0));
    return true;
  } catch {
    return false;
  }
}
