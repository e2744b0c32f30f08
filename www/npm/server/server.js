// @ts-check
// Serves an agent over HTTP: the server half of remote/. The protocol between them is docs/remote.md.

import { checkAnswersOption } from "../messages/client.js";
import { checkFunctions, checkNames, didYouMean, hostWithDefaults, kindOf, misuse, numbersWithDefaults } from "../shared.js";
import { COMMANDS, Commands } from "./commands.js";
import { corsHeaders, preflight, withHeaders } from "./cors.js";
import { errorResponse, json, RequestError } from "./errors.js";
import { memoryEvents } from "./eventlog.js";
import { Feed } from "./feed.js";
import { hostCheck } from "./hosts.js";
import { requestsCheck } from "./plain-worker.js";
import { questionsOf, shownEvent } from "./questions.js";
import { readCommand, RUN_OPTIONS } from "./read-command.js";
import { EventStreams } from "./stream.js";
import { KEEP_ALIVE_MS } from "../response/sse.js";

/** @import { Agent } from "../index.js" */
/** @import { AgentCommand, AgentHandlerOptions, EventLog } from "../server.js" */
/** @import { CommandName } from "./commands.js" */

const OPTIONS = ["authorize", "allowedHosts", "cors", "caller", "customMessages", "runOptions", "answers", "limits", "events", "commit", "waitUntil", "keepAliveMs", "host"];
const LIMITS = {
  bodyBytes: 1_000_000, historyBytes: Infinity, queueBytes: 8_000_000,
  listeners: 100, listenersPerCaller: 10, backlogBytes: 8_000_000,
  commandsPerMinute: Infinity, commandIds: 10_000,
  events: 10_000, logBytes: 16_000_000,
};
/** The paths for GET; all others are commands. */
const QUERIES = ["events", "state"];

/**
 * Serves an agent: returns the function that answers requests for it.
 * @param {Agent} agent
 * @param {AgentHandlerOptions} [options]
 */
export function agentHandler(agent, options = {}) {
  checkOptions(agent, options);
  const server = new AgentServer(agent, options);
  const handler = (/** @type {Request} */ request) => {
    if (typeof request?.headers?.get !== "function") throw misuse(`the handler of an agent takes a Request, got ${kindOf(request)}; docs/remote.md shows how one is made in Node`);
    return server.answer(request);
  };
  Object.defineProperty(handler, "listeners", { get: () => server.streams.listeners.size });
  return Object.assign(handler, { [Symbol.dispose ?? Symbol.for("Symbol.dispose")]: () => server.close() });
}

/** @param {Agent} agent @param {AgentHandlerOptions} options */
function checkOptions(agent, options) {
  if (typeof agent?.prompt !== "function" || typeof agent?.subscribe !== "function") throw misuse(`agentHandler takes an Agent, got ${kindOf(agent)}`);
  if (typeof options !== "object" || options === null) throw misuse(`the options of agentHandler must be an object, got ${kindOf(options)}`);
  checkNames("unknown option", options, OPTIONS);
  // An `authorize` that is null must not let everybody in by mistake.
  checkFunctions(options, ["authorize", "caller", "commit", "waitUntil"]);
  const { cors, customMessages, runOptions, answers } = options;
  if (typeof cors === "string" && cors !== "*") throw misuse(`\`cors\` must be "*", a list of origins or a function, got a string; write [${JSON.stringify(cors)}]`);
  if (customMessages !== undefined && typeof customMessages !== "boolean" && !Array.isArray(customMessages)) throw misuse(`\`customMessages\` must be true, false or a list of kinds, got ${kindOf(customMessages)}`);
  if (runOptions !== undefined && !(Array.isArray(runOptions) && runOptions.every((name) => RUN_OPTIONS.includes(name)))) throw misuse(`\`runOptions\` must be a list of ${RUN_OPTIONS.map((name) => `"${name}"`).join(", ")}`);
  checkAnswersOption(answers, "answers");
}

class AgentServer {
  /** @param {Agent} agent @param {AgentHandlerOptions} options */
  constructor(agent, options) {
    const host = hostWithDefaults(options.host, () => options);
    this.agent = agent;
    this.options = options;
    this.limits = numbersWithDefaults("limits", options.limits, LIMITS);
    /** @type {EventLog} */
    this.log = options.events ?? memoryEvents({ start: host.now() * 1000 });
    this.checkHost = hostCheck(options);
    this.checkRequests = requestsCheck();
    this.feed = new Feed(agent, this.log, this.limits);
    this.commands = new Commands(agent, this.feed, options, host, this.limits);
    this.streams = new EventStreams(this.feed, host, { limits: this.limits, keepAliveMs: options.keepAliveMs ?? KEEP_ALIVE_MS });
    this.commands.restore();
    this.unsubscribe = agent.subscribe((event, info) => {
      if (event.type === "agent_start" || event.type === "run_resumed") this.commands.currentRunId = event.runId;
      this.commands.asked.take(event);
      // What is lived again has been told.
      const shown = info?.replaying ? undefined : shownEvent(agent, event);
      if (shown) this.feed.take(shown);
    }, { keep: true });
  }

  close() {
    this.unsubscribe();
    this.streams.close();
  }

  /** @param {Request} request @returns {Promise<Response>} */
  async answer(request) {
    let cors = {};
    try {
      this.checkHost(request);
      cors = corsHeaders(request, this.options.cors);
      const response = request.method === "OPTIONS" ? preflight(request) : await this.#handle(request);
      return withHeaders(response, cors);
    } catch (error) {
      return withHeaders(errorResponse(error), cors);
    }
  }

  /** @param {Request} request */
  async #handle(request) {
    this.checkRequests();
    const url = new URL(request.url);
    const name = commandOf(request, url);
    const refusal = await this.#authorize(request, name);
    if (refusal) return refusal;
    if (name === "events") return this.streams.open(request, url, String((await this.options.caller?.(request)) ?? ""));
    if (name === "state") return this.#state();
    return this.commands.execute(/** @type {CommandName} */ (name), await readCommand(request, this.limits.bodyBytes));
  }

  /** Returns the answer for somebody who may not ask. @param {Request} request @param {AgentCommand} name */
  async #authorize(request, name) {
    const { authorize } = this.options;
    // A function that forgets to answer, or finds no user to ask about, has not said yes.
    const allowed = authorize ? await authorize.call(this.options, request, name) : true;
    if (typeof allowed === "object" && typeof allowed?.status === "number") return allowed;
    if (!allowed) throw new RequestError(401, "auth", "the server's `authorize` does not allow this request");
    if (allowed !== true) throw new TypeError(`\`authorize\` must give true, false or a Response, got ${kindOf(allowed)}`);
  }

  async #state() {
    this.feed.catchUp();
    const { messages, isRunning, usage } = this.agent;
    const questions = questionsOf(this.agent);
    await this.log.sync?.();
    await this.log.verify?.();
    return json({ messages, ...questions, isRunning, usage, ...(isRunning && { runId: this.commands.currentRunId }), lastEventId: String(this.log.last) });
  }
}

/** The last name of the path says what is asked. @param {Request} request @param {URL} url */
function commandOf({ method }, url) {
  const name = /** @type {string} */ (url.pathname.replace(/\/+$/, "").split("/").at(-1));
  const isQuery = QUERIES.includes(name);
  if (!isQuery && !Object.hasOwn(COMMANDS, name)) throw new RequestError(404, "invalid_request", `there is no \`${name}\` here${didYouMean(name, [...QUERIES, ...Object.keys(COMMANDS)])}`);
  const expected = isQuery ? "GET" : "POST";
  if (method !== expected) throw new RequestError(405, "invalid_request", `\`${name}\` is asked for by ${expected}, got ${method}`, { allow: expected });
  return /** @type {AgentCommand} */ (name);
}
