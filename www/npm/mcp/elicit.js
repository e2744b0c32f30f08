// @ts-check
// Elicitation: the server asks the person something, in the middle of a call. Loaded with the first question.

import { Judge } from "../tools/judge.js";
import { kindOf, sleep } from "../shared.js";
import { dropForeignPatterns } from "./json-schema.js";

/** @import { McpElicitation, McpElicitResult, McpToolsOptions } from "../mcp.js" */
/** @import { Call } from "./call.js" */
/** @import { OpenRequest, Watch } from "./watch.js" */

const INVALID = -32602;
/** In characters of JSON. What a person is asked fits on a page. */
const MAX_LENGTH = 65_536;
/** How often a call may ask, one question after the other; and a connection, without a call: who is asked for ever gives in. */
const MAX_QUESTIONS = 50;
/** How long a call waits that its server wants again, without a question. */
const AGAIN_MS = 250;
const ACTIONS = ["accept", "decline", "cancel"];

export class Elicitor {
  /** How often each call, or each connection, has asked. @type {WeakMap<object, number>} */
  #asked = new WeakMap();

  /** @param {Exclude<McpToolsOptions["onElicit"], undefined | false>} onElicit @param {() => string} nameOf @param {(error: unknown) => void} report */
  constructor(onElicit, nameOf, report) {
    this.onElicit = onElicit;
    this.nameOf = nameOf;
    this.report = report;
  }

  /** Answers a request of the server. @param {Watch} watch @param {any} params @param {OpenRequest} request @returns {Promise<McpElicitResult>} */
  async answer(watch, params, { calls, controller: { signal } }) {
    // It was taken back while this was loaded: nobody is shown a question that has no asker any more.
    if (signal.aborted) return { action: "cancel" };
    const [call, another] = calls;
    return this.ask(params, signal, another ? undefined : call, watch, calls);
  }

  /**
   * Asks the host. What it answers is checked before it is sent.
   * @param {any} params @param {AbortSignal} signal @param {Call | undefined} call to which it belongs, if that is known
   * @param {Watch | undefined} [watch] @param {Iterable<Call>} [askers] the calls through which an agent may be asked: those that have not ended @returns {Promise<McpElicitResult>}
   */
  async ask(params, signal, call, watch = call?.watch, askers = call ? [call] : []) {
    const [asker] = askers;
    this.#count(asker ?? watch ?? this);
    const request = this.#requestOf(params, call);
    call?.context.update({ content: [{ type: "text", text: `waiting for an answer: ${request.message}` }], details: { elicitation: /** @type {any} */ (request) } });
    const completed = new Promise((/** @type {(value: void) => void} */ resolve) => {
      if (request.mode === "url") watch?.completions.set(request.elicitationId ?? "", resolve);
    });
    try {
      const answer = await until(signal, this.onElicit === "ask" ? askAgent(request, askers) : this.onElicit(request, { signal, completed }));
      return answer === undefined ? { action: "cancel" } : this.#check(request, answer);
    } catch (error) {
      this.report(error);
      // The server learns that nothing came of it; why is the host's affair, unless the answer does not fit.
      if (/** @type {any} */ (error)?.code === INVALID) throw error;
      return { action: "cancel" };
    } finally {
      if (request.mode === "url") watch?.completions.delete(request.elicitationId ?? "");
    }
  }

  /**
   * Asks for what a server answered a call with in place of a result, since the protocol of July 2026.
   * @param {{ inputRequests?: { [key: string]: any }, requestState?: string }} result @param {AbortSignal} signal @param {Call} call
   * @returns {Promise<object>} what the next request says besides
   */
  async inputs({ inputRequests = {}, requestState }, signal, call) {
    const state = requestState !== undefined && { requestState };
    /** @type {[string, McpElicitResult][]} */
    const answers = [];
    for (const [key, { method, params }] of Object.entries(inputRequests)) {
      if (method !== "elicitation/create") throw new Error(`it asks for \`${method}\`, and only questions to a person are answered here`);
      answers.push([key, await this.ask(params, signal, call)]);
    }
    // It only wants the call again, a little later.
    if (answers.length === 0) await sleep({}, AGAIN_MS, signal);
    return { ...state, ...(answers.length > 0 && { inputResponses: Object.fromEntries(answers) }) };
  }

  /** @param {object} asker */
  #count(asker) {
    const count = (this.#asked.get(asker) ?? 0) + 1;
    if (count > MAX_QUESTIONS) throw refusal(`${MAX_QUESTIONS} questions were asked already, and nobody is asked any more`);
    this.#asked.set(asker, count);
  }

  /** @param {any} params @param {Call | undefined} call @returns {McpElicitation} */
  #requestOf(params, call) {
    const { mode = "form", message = "", requestedSchema, url, elicitationId } = params ?? {};
    const where = { server: this.nameOf(), ...(call && { callId: call.context.callId, toolName: call.context.toolName }) };
    if (JSON.stringify([message, requestedSchema, url]).length > MAX_LENGTH) throw refusal(`the question is longer than ${MAX_LENGTH} characters`);
    if (mode === "url") {
      return { ...where, mode, message: String(message), url: shownAddress(url), elicitationId };
    }
    return { ...where, mode: "form", message: String(message), requestedSchema };
  }

  /** @param {McpElicitation} request @param {any} given @returns {McpElicitResult} */
  #check(request, given) {
    const answer = typeof given === "string" ? { action: given } : given;
    if (!ACTIONS.includes(answer?.action)) throw refusal(`onElicit returns "accept", "decline", "cancel" or { action, content }, got ${typeof given === "string" ? JSON.stringify(given) : kindOf(given)}`);
    if (answer.action !== "accept" || request.mode === "url") return { action: answer.action };
    const content = { ...defaultsOf(request.requestedSchema), ...answer.content };
    const errors = new Judge("the schema of the question is", JSON.parse(JSON.stringify(request.requestedSchema ?? { type: "object" }), dropForeignPatterns)).errorsOf(content);
    if (errors.length > 0) throw refusal(`the answer does not fit what the server asks for: ${errors.slice(0, 10).join("; ")}`);
    return { action: "accept", content };
  }
}

/** The key of a question that says that its answers are checked before they are taken. */
const FORM = Symbol.for("turnwheel.form");

/** What a call gives that ended while its question was open. */
const ENDED = Symbol("ended");

/**
 * Makes it a question of an agent whose call is in flight. A call that ends takes its question along; as long as another one may be
 * the one that waits for the answer, it is asked again through that.
 * @param {McpElicitation} request @param {Iterable<Call>} calls
 */
async function askAgent(request, calls) {
  const message = `${request.server}: ${request.message}`;
  const question = request.mode === "url" ? { message: `${message}\n${request.url}` } : Object.defineProperty({ message, schema: request.requestedSchema }, FORM, { value: true });
  for (const call of calls) {
    const { ask } = /** @type {any} */ (call.context);
    if (typeof ask !== "function") break;
    const answer = await Promise.race([ask(question), call.ended.then(() => ENDED)]);
    if (answer !== ENDED) return answer;
  }
  // Nobody can be asked about what belongs to no call.
  return undefined;
}

/** What a person who changed nothing in the form says. @param {any} schema */
function defaultsOf(schema) {
  const fields = Object.entries(schema?.properties ?? {}).filter(([, field]) => /** @type {any} */ (field)?.default !== undefined);
  return Object.fromEntries(fields.map(([name, field]) => [name, /** @type {any} */ (field).default]));
}

/** An address that a person can judge: what stands before an `@` looks like a host and is none. @param {unknown} given */
function shownAddress(given) {
  const url = typeof given === "string" && /^https?:\/\//i.test(given) && URL.canParse(given) ? new URL(given) : undefined;
  if (!url) throw refusal("only addresses of http and https are shown to a person");
  if (url.username !== "" || url.password !== "") throw refusal("an address with a user's name in it is not shown to a person");
  return url.href;
}

/** An error that the server is told. @param {string} message */
const refusal = (message) => Object.assign(new Error(message), { code: INVALID });

/** The value, or nothing when the signal is aborted first. @template T @param {AbortSignal} signal @param {T | Promise<T>} value @returns {Promise<T | undefined>} */
async function until(signal, value) {
  /** @type {() => void} */
  let onAbort = () => {};
  const aborted = new Promise((/** @type {(value: undefined) => void} */ resolve) => {
    onAbort = () => resolve(undefined);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
  });
  try {
    return await Promise.race([value, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
