// @ts-check
// Reads what a server says that refuses a request.

import { hasKey } from "./http.js";
import { quietly } from "./slot.js";

/** @import { Driver } from "../run/driver.js" */
/** @import { ModelRequest } from "./request.js" */

/** @param {Driver} run @param {number} slot @param {Response} response @param {ModelRequest} request @returns {Promise<undefined>} */
export async function readRefusal(run, slot, response, { url, headers }) {
  const { status } = response;
  let bytes = await readErrorBody(response, run.core.host);
  // Of a 400 without a body the engine knows what it means.
  if ((status !== 400 || bytes.length > 0) && bytes.length < 99 && SAYS_NOTHING.test(new TextDecoder().decode(bytes))) {
    const { origin, pathname } = new URL(url);
    bytes = new TextEncoder().encode(JSON.stringify({ error: { message: `${origin}${pathname} answered ${status} without saying why` } }));
  }
  if ((status === 401 || status === 403) && !hasKey(headers) && !/[?&]key=/.test(url)) bytes = withHint(bytes, "no key was given to the model: its `apiKey`, or `getApiKey` of the agent");
  run.engineRun.refuse(slot, Number(status), Object.fromEntries(response.headers), bytes);
}

/** Adds words to those of a server, whose other members count as before. @param {Uint8Array} bytes @param {string} hint */
function withHint(bytes, hint) {
  const text = new TextDecoder().decode(bytes);
  /** @type {any} */
  let said;
  try {
    const [document] = [JSON.parse(text)].flat();
    said = document?.error ?? document;
  } catch {
    // The text is all there is.
  }
  const { message = typeof said === "string" ? said : text } = Object(said);
  return new TextEncoder().encode(JSON.stringify({ error: { ...(typeof said === "object" && said), message: `${String(message).slice(0, 3_000)} (${hint})` } }));
}

/** JSON without a word, such as `[]`, `""` or `{"error":null}`. */
const SAYS_NOTHING = /^([\s{}[\]",]|"(error|message)"\s*:|null|false|0)*$/;

/** How long the body of an error response may take, by the host's clock and by the platform's, and how many reads. */
const ERROR_MS = 10_000;
const ERROR_READS = 10_000;

/**
 * Reads the body of an error response, at most 256 KiB of it, and as much as comes in ten seconds.
 * @param {Response} response @param {{ now(): number }} host
 */
async function readErrorBody(response, host) {
  const body = new Uint8Array(1 << 18);
  let length = 0;
  const end = host.now() + ERROR_MS;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const silence = new Promise((resolve) => (timer = setTimeout(resolve, ERROR_MS)));
  try {
    const reader = response.body?.getReader();
    for (let reads = 0; reader; reads++) {
      const read = length < body.length && reads < ERROR_READS && host.now() < end && (await Promise.race([reader.read(), silence]));
      if (!read) quietly(() => reader.cancel());
      if (!read || read.done) break;
      body.set(read.value.subarray(0, body.length - length), length);
      length = Math.min(body.length, length + read.value.length);
    }
  } catch {
    // The status says enough.
  }
  clearTimeout(timer);
  return body.subarray(0, length);
}
