// @ts-check
// Sends a request to a model, and passes the response to the engine as it arrives.

import { AgentError, infoOf, kindOf, misuse, PLAIN } from "../shared.js";
import { late, loadRest } from "../boundary/rest.js";
import { setupOf } from "../models/setup.js";
import { Intake } from "./intake.js";
import { ModelRequest } from "./request.js";
import { quietly } from "./slot.js";

/** @import { Core } from "../agent/core.js" */
/** @import { Driver } from "../run/driver.js" */
/** @import { Slot } from "./slot.js" */
/**
 * `hasLinks`: the body refers to images or files by their addresses. `warnings`: what its tools lost.
 * @typedef {{ kind: "http", url: string, headers: Record<string, string>, model: number, hasLinks?: boolean, warnings?: string[] }} HttpEffect
 */

/** Servers that answer nobody without a key; it may be in the address. */
const KEYED = /^https:\/\/(api\.(openai|anthropic|groq|mistral|deepseek|x|together)\.(com|ai|xyz)|openrouter\.ai|generativelanguage\.googleapis\.com)\/(?!.*[?&]key=)/;

/**
 * The warnings about requests. They are loaded once, with the first request that deserves one: an import of what is there
 * already takes hosts longer than all else that is done here for a request. Where it cannot be loaded, the request goes on.
 * @type {Promise<typeof import("./warnings.js")> | undefined}
 */
let warners;

/** @param {Driver} run @param {number} slot @param {HttpEffect} effect @param {Slot} state */
export function fetchAnswer(run, slot, effect, state) {
  pump(run, slot, effect, state)
    .catch((error) => {
      const fail = () => run.engineRun.fail(slot, error, failureOf(error, effect.url, state.reading));
      // Without what explains it the error is told as it is.
      return late.rest ? fail() : loadRest().then(fail, fail);
    })
    .finally(() => clearTimeout(state.timer));
}

/** Explains a failure, whatever the host threw. @param {unknown} error @param {string} url @param {boolean} reading */
function failureOf(error, url, reading) {
  try {
    return AgentError.isInstance(error) ? infoOf(error) : late.rest.networkError(error, url, reading);
  } catch {
    return { ...infoOf(error), code: /** @type {const} */ ("network"), retryable: true };
  }
}

/** @param {Driver} run @param {number} slot @param {HttpEffect} effect @param {Slot} state */
async function pump(run, slot, effect, state) {
  const { engineRun } = run;
  const request = requestOf(run.core, effect, engineRun.takeBody(slot));
  if (effect.hasLinks) {
    const { putInFiles } = await import("./links.js");
    await putInFiles(request, setupOf(run.core.settings.models.known[effect.model]), run.core, state.signal, AgentError);
  }
  const { warnings } = effect;
  if (warnings) warn(({ warnOnce }) => warnOnce(warnings));
  const response = send(request, state);
  // What reads the answer is loaded while the model thinks.
  engineRun.engine.load();
  const intake = await response.then((answer) => openResponse(run, slot, answer, state, request));
  if (!intake) return;
  try {
    if (!(await drain(intake))) return quietly(() => intake.reader.cancel());
  } catch (error) {
    // The bytes that arrived before the error count.
    intake.flush();
    throw error;
  }
  state.complete = true;
  intake.flush();
  engineRun.feedEnd(slot);
}

/**
 * A request, for the model's own `fetch` if it has one.
 * @param {Core} core @param {HttpEffect} effect @param {Uint8Array<ArrayBuffer>} body
 */
function requestOf(core, { url, headers, model }, body) {
  return new ModelRequest(setupOf(core.settings.models.known[model]).fetch ?? globalThis.fetch, url, headers, body);
}

/** @param {Record<string, string>} headers */
export const hasKey = (headers) => Object.keys(headers).some((name) => /^(authorization|api-key|x-[\w-]*key|cf-aig-authorization)$/i.test(name));

/** Sends a request for the first time. @param {ModelRequest} request @param {Slot} state @returns {Promise<Response>} */
function send(request, state) {
  const { url, headers } = request;
  // Every host words this error differently, and each wording would be taken for a dead network.
  if (/[^\t -\xff]/.test(Object.values(headers).join(""))) throw misuse("a header cannot be sent, for it holds a line break or a letter that is not Latin; is the key whole?");
  if (request.fetch === globalThis.fetch && KEYED.test(url) && !hasKey(headers)) {
    throw new AgentError({ code: "auth", message: `there is no key for ${new URL(url).host}; give the model an \`apiKey\`, or the agent \`getApiKey\``, retryable: false, phase: "model" });
  }
  if (PLAIN.test(url)) warn(({ warnOfPlainHttp }) => warnOfPlainHttp(url, headers));
  return request.send(state);
}

/** @param {(warnings: typeof import("./warnings.js")) => void} about */
function warn(about) {
  (warners ??= import("./warnings.js")).then(about, () => (warners = undefined));
}

/**
 * Starts to read a response, if it succeeded and is still wanted. A separate function, called by the
 * promise, to keep it out of the compiled request: V8 discards the shapes of the host's objects with the
 * last such object, and all code compiled for them.
 * @param {Driver} run @param {number} slot @param {Response} response @param {Slot} state @param {ModelRequest} request
 * @returns {Intake | void | Promise<Intake | void>}
 */
function openResponse(run, slot, response, state, request) {
  if (typeof response?.ok !== "boolean") throw misuse(`\`fetch\` must give a Response, got ${kindOf(response)}`);
  const { ok, status } = response;
  if (state.aborted) return quietly(() => response.body?.cancel());
  if (response.redirected || (!ok && (response.type === "opaqueredirect" || (status >= 300 && status < 400)))) return redirect(run, slot, response, state, request);
  return ok ? readAnswer(run, slot, response, state) : readRefusal(run, slot, response, request);
}

/** @param {Driver} run @param {number} slot @param {Response} response @param {Slot} state */
function readAnswer(run, slot, { body }, state) {
  if (!body) return run.engineRun.feedEnd(slot);
  state.reading = true;
  const { getReader } = body;
  // node-fetch returns a stream of Node's instead.
  if (typeof getReader !== "function") throw misuse(`the body of an answer must be a ReadableStream; \`fetch\` gave ${kindOf(body)}`);
  state.reader = /** @type {ReadableStreamDefaultReader<Uint8Array>} */ (getReader.call(body));
  return new Intake(run, slot, state.reader);
}

/**
 * Sends the request on, if that is allowed.
 * @param {Driver} run @param {number} slot @param {Response} response @param {Slot} state @param {ModelRequest} request
 */
async function redirect(run, slot, response, state, request) {
  const { follows } = await import("./redirect.js");
  let again = true;
  try {
    again = follows(request, response);
  } finally {
    if (again) quietly(() => response.body?.cancel());
  }
  if (again) return state.aborted ? undefined : openResponse(run, slot, await request.send(state), state, request);
  return response.ok ? readAnswer(run, slot, response, state) : readRefusal(run, slot, response, request);
}

/**
 * What a server refused is read by a script that comes with the last parts of the engine.
 * @param {Driver} run @param {number} slot @param {Response} response @param {ModelRequest} request @returns {Promise<undefined>}
 */
async function readRefusal(run, slot, response, request) {
  if (!late.rest) await loadRest();
  return late.rest.readRefusal(run, slot, response, request);
}

/**
 * Reads to the end, or until nobody wants more. Returns whether it got to the end. A separate function,
 * because V8 compiles the loop that waits here.
 * @param {Intake} intake
 */
async function drain(intake) {
  const { reader, read } = intake;
  for (;;) {
    const { done, value } = await read.call(reader);
    if (done) return true;
    if (!intake.take(value)) return false;
    // Nobody reads ahead while what came cannot be read yet: a server could fill the memory.
    const flows = intake.run.engineRun.engine.flows();
    if (flows) await flows;
  }
}
