// @ts-check
// Serves an agent over HTTP: the server half of remote.js. The protocol between them is docs/remote.md.

import { AgentError, checkNames, didYouMean, kindOf, misuse } from "../shared.js";
import { checkFunctions, hostWithDefaults, numbersWithDefaults } from "../remote/run.js";
import { body, sse, waitForWake } from "../response/sse.js";

export { fromUIMessages } from "./fromuimessages.js";
export { durableObjectEvents, memoryEvents } from "./eventlog.js";
import { memoryEvents } from "./eventlog.js";

const OPTIONS = ["authorize", "cors", "limits", "events", "commit", "waitUntil", "keepAliveMs", "host"];
const LIMITS = { bodyBytes: 1_000_000, historyBytes: Infinity, listeners: 100, commandsPerMinute: Infinity, events: 10_000 };
/** The default interval of keep-alives to a silent listener, in milliseconds. */
const KEEP_ALIVE_MS = 15_000;
/** How many commands are remembered, so that a repeated one is recognised. */
const MAX_REPLIES = 1000;

/** A request that is refused. */
class RequestError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {Record<string, string>} [headers] */
  constructor(status, code, message, headers) {
    super(message);
    Object.assign(this, { status, code, headers });
  }
}

/** @param {any} value @param {number} [status] @param {Record<string, string>} [headers] */
const json = (value, status = 200, headers) => new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff", ...headers } });

/** @param {any} error */
function errorResponse(error) {
  const { status, code, message, headers } = error ?? {};
  if (error instanceof RequestError) return json({ error: { code, message } }, status, headers);
  if (AgentError.isInstance(error) && error.code === "misuse") return json({ error: { code: "misuse", message: error.message } }, 400);
  console.error("turnwheel:", error);
  return json({ error: { code: "internal", message: "the server failed; its log says why" } }, 500);
}

/**
 * Serves an agent: returns the function that answers requests for it.
 * @param {any} agent
 * @param {any} [options]
 */
export function agentHandler(agent, options = {}) {
  if (typeof agent?.prompt !== "function" || typeof agent?.subscribe !== "function") throw misuse(`agentHandler takes an Agent, got ${kindOf(agent)}`);
  if (typeof options !== "object" || options === null) throw misuse(`the options of agentHandler must be an object, got ${kindOf(options)}`);
  checkNames("unknown option", options, OPTIONS);
  // An `authorize` that is null must not let everybody in by mistake.
  checkFunctions(options, ["authorize", "commit", "waitUntil"]);
  const { cors } = options;
  if (typeof cors === "string" && cors !== "*") throw misuse(`\`cors\` must be "*", a list of origins or a function, got a string; write [${JSON.stringify(cors)}]`);
  const server = new AgentServer(agent, options);
  const handler = (/** @type {Request} */ request) => {
    if (typeof request?.headers?.get !== "function") throw misuse(`the handler of an agent takes a Request, got ${kindOf(request)}; docs/remote.md shows how one is made in Node`);
    return server.answer(request);
  };
  return Object.assign(handler, { [Symbol.dispose ?? Symbol.for("Symbol.dispose")]: () => server.close() });
}

/** The paths for GET; all others are commands. */
const QUERIES = ["events", "state"];

class AgentServer {
  /** @param {any} agent @param {any} options */
  constructor(agent, options) {
    this.agent = agent;
    this.options = options;
    this.limits = numbersWithDefaults("limits", options.limits, LIMITS);
    this.host = hostWithDefaults(options.host);
    this.log = options.events ?? memoryEvents({ start: this.host.now() * 1000 });
    /**
     * How much of the history was sent: the list and its length. Unset if another instance sent it.
     * @type {{ list: readonly any[], length: number } | undefined}
     */
    this.sentHistory = this.log.last > this.log.first ? undefined : { list: agent.messages, length: agent.messages.length };
    /**
     * Where a new listener starts: at the beginning of the current run, or of one of its turns.
     * @type {any}
     */
    this.base = undefined;
    /** @type {any} */
    this.ended = undefined;
    /** The current run, and how many of its events were sent. */
    this.run = { runId: "", count: 0, turnIndex: 0 };
    /** The run that was started last. */
    this.currentRunId = "";
    /** @type {{ answer: any, results: Map<string, any> }} */
    this.known = { answer: undefined, results: new Map() };
    /** Answers to commands, by id. @type {Map<string, Promise<any>>} */
    this.replies = new Map();
    /** Answers to commands that were executed but could not be stored, by id. @type {Map<string, any>} */
    this.unstoredReplies = new Map();
    /**
     * Posted messages that have not been read yet; with their text if another instance posted them.
     * @type {Map<string, { text?: string, bytes: number }>}
     */
    this.queued = new Map();
    this.queuedBytes = 0;
    /** Callbacks waiting for the next event. @type {Set<() => void>} */
    this.waiting = new Set();
    /**
     * When each listener was last seen to read. Some hosts drop a connection without notice.
     * @type {Map<object, number>}
     */
    this.listeners = new Map();
    this.closed = false;
    /** Whether an event could not be stored, so that listeners need a full snapshot. */
    this.hasGap = false;
    this.tokens = this.limits.commandsPerMinute;
    this.refilled = this.host.now();
    this.bytes = 0;
    this.counted = 0;
    /** @type {readonly any[] | undefined} */
    this.countedList = undefined;
    this.restore();
    this.unsubscribe = agent.subscribe((/** @type {any} */ event) => this.handleEvent(event));
  }

  /** Takes over from an earlier instance: the commands it executed, and the messages that wait. */
  restore() {
    for (const { type, data } of this.log.commands?.() ?? []) {
      const record = JSON.parse(data);
      if (type === "receipt") this.removeQueued(record.id);
      else {
        if (record.letter !== undefined) this.addQueued(record.id, bytesOf(record.letter), record.letter);
        this.replies.set(record.id, Promise.resolve(record.letter === undefined ? (record.reply ?? {}) : { id: record.id }));
      }
    }
  }

  close() {
    this.closed = true;
    this.unsubscribe();
    this.wake();
  }

  wake() {
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }

  // ---- events

  /** @param {any} event */
  handleEvent(event) {
    this.catchUp();
    const { type, runId } = event;
    const { log, sentHistory: sent, agent } = this;
    const at = log.last;
    const before = { list: sent?.list ?? agent.messages, length: sent?.length ?? agent.messages.length };
    if (type === "agent_start" || type === "run_resumed") {
      this.run = { runId, count: 0, turnIndex: event.turnIndex ?? 0 };
      this.currentRunId = runId;
      this.base = { at, ...before, usage: agent.usage, run: { runId, told: type === "agent_start" ? 0 : null } };
    }
    if (type === "message_end") this.known.answer = event.message;
    if (type === "tool_execution_end") this.known.results.set(event.callId, event.result);
    this.run.count += 1;
    const change = this.historyChange();
    this.append("message", type === "agent_end" ? { ...event, ...outputOf(agent, event) } : event, change);
    if (type === "turn_end") {
      this.known.results.clear();
      // A listener that joins a long run starts at one of its turns.
      if (this.base && log.last - this.base.at > this.limits.events / 4) {
        this.base = { at: log.last, .../** @type {any} */ (this.sentHistory), usage: agent.usage, run: { runId, told: this.run.count, turnIndex: event.turnIndex + 1 } };
      }
    }
    if (type === "turn_start") this.run.turnIndex = event.turnIndex;
    if (type === "agent_end") {
      this.base = undefined;
      this.ended = { ...event, messages: event.messages.length };
    }
    this.settleByText(change?.add ?? []);
    if (log.last - log.first > this.limits.events * 1.25) log.trim(log.last - this.limits.events);
  }

  /** @param {string} type @param {any} value @param {any} [history] */
  append(type, value, history) {
    try {
      this.log.append({ id: this.log.last + 1, type, data: JSON.stringify(value), ...(history && { history: JSON.stringify(history) }) });
    } catch (error) {
      this.hasGap = true;
      return console.error("turnwheel: an event could not be kept", error);
    }
    this.wake();
  }

  /** Sends a snapshot of the agent in place of events that could not be stored. */
  catchUp() {
    if (!this.hasGap) return;
    this.hasGap = false;
    const { agent, run, ended } = this;
    const { messages, pendingApprovals, usage } = agent;
    const isRunning = run.runId !== "" && ended?.runId !== run.runId;
    // The listeners' history is now this list, and later changes must not refer to earlier events.
    this.sentHistory = { list: messages, length: messages.length };
    this.known = { answer: undefined, results: new Map() };
    this.append("state", { messages, pendingApprovals, usage, openLetters: [...this.queued.keys()], ended, ...(isRunning && { run: { runId: run.runId, told: null, turnIndex: run.turnIndex } }) });
  }

  /**
   * Returns how the history changed since the last event. Messages that the events carry
   * themselves are only referred to.
   */
  historyChange() {
    const { sentHistory: sent, known, agent } = this;
    const list = agent.messages;
    let at = sent?.length ?? 0;
    if (sent && sent.list !== list) {
      const shortest = Math.min(sent.length, list.length);
      for (at = 0; at < shortest && sent.list[at] === list[at]; ) at += 1;
    }
    const isSame = sent !== undefined && at === sent.length && list.length === at;
    this.sentHistory = { list, length: list.length };
    if (isSame) return;
    const add = list.slice(at).map((/** @type {any} */ message) => {
      if (message === known.answer) return "answer";
      return message.role === "tool_result" && known.results.get(message.callId) === message ? `=${message.callId}` : message;
    });
    return { at, add };
  }

  /**
   * Settles messages that another instance posted: its receipts are gone, so texts are compared.
   * @param {any[]} added
   */
  settleByText(added) {
    for (const message of added) {
      if (message.role !== "user") continue;
      const text = JSON.stringify(message.content);
      for (const [id, queued] of this.queued) {
        if (queued.text !== text) continue;
        this.settle(id, { delivered: true, turnIndex: this.run.turnIndex });
        break;
      }
    }
  }

  /** @param {string} id @param {any} receipt */
  settle(id, receipt) {
    if (this.removeQueued(id)) this.append("receipt", { id, receipt });
  }

  /**
   * Remembers a message that waits to be read.
   * @param {string} id @param {number} bytes @param {string} [text]
   */
  addQueued(id, bytes, text) {
    this.queued.set(id, { text, bytes });
    this.queuedBytes += bytes;
  }

  /** Forgets a message. Returns whether it was waiting. @param {string} id */
  removeQueued(id) {
    this.queuedBytes -= this.queued.get(id)?.bytes ?? 0;
    return this.queued.delete(id);
  }

  /** The agent as a new listener must see it. */
  state() {
    const { agent, base, ended, log } = this;
    const openLetters = [...this.queued.keys()];
    if (base && base.at >= log.first) {
      const { list, length, usage, run, at } = base;
      return { at, state: { messages: list.slice(0, length), pendingApprovals: [], usage, run, openLetters, ended } };
    }
    const { messages, pendingApprovals, usage } = agent;
    // The start of this turn is no longer stored, so later changes must not refer to it.
    if (base) this.known = { answer: undefined, results: new Map() };
    const run = base && { ...base.run, told: base.run.told === null ? null : this.run.count, turnIndex: this.run.turnIndex };
    return { at: log.last, state: { messages, pendingApprovals, usage, run, openLetters, ended } };
  }

  /** @param {Request} request @param {URL} url */
  events(request, url) {
    const lastEventId = request.headers.get("last-event-id") ?? url.searchParams.get("lastEventId");
    const last = lastEventId === null || lastEventId === "" ? undefined : Number(lastEventId);
    if (last !== undefined && !(Number.isSafeInteger(last) && last >= 0)) throw new RequestError(400, "invalid_request", `the last event's id must be a number, got ${JSON.stringify(lastEventId)}`);
    const { log, listeners } = this;
    const { keepAliveMs = KEEP_ALIVE_MS } = this.options;
    for (const [other, seenAt] of listeners) if (keepAliveMs > 0 && seenAt < this.host.now() - 3 * keepAliveMs) listeners.delete(other);
    if (listeners.size >= this.limits.listeners) throw new RequestError(429, "throttled", `there are ${listeners.size} listeners already`, { "retry-after": "5" });
    const listener = {};
    const noteSeen = () => void listeners.set(listener, this.host.now());
    const removeListener = () => void listeners.delete(listener);
    noteSeen();
    request.signal?.addEventListener("abort", removeListener);
    let after = last ?? -1;
    let isReady = false;
    let hasBegun = false;
    const begin = () => {
      hasBegun = true;
      if (last !== undefined && last >= log.first && last <= log.last) return "";
      const { at, state } = this.state();
      after = at;
      return sse(at, JSON.stringify(state), "state");
    };
    const source = body({
      sleep: this.host.sleep, keepAliveMs, onLeave: removeListener,
      take: async () => {
        noteSeen();
        this.catchUp();
        let text = hasBegun ? "" : begin();
        // The listener fell behind what is stored.
        if (after < log.first) text = begin();
        const records = this.closed ? [] : await log.read(after, 64);
        for (const { id, type, data, history } of records) {
          after = id;
          if (type === "command") continue;
          if (history) text += sse(undefined, history, "history");
          text += sse(id, data, type === "message" ? undefined : type);
        }
        if (!isReady && after >= log.last) {
          isReady = true;
          text += sse(undefined, "{}", "ready");
        }
        // Nothing is sent that could still be lost.
        if (text) await log.sync?.();
        return text;
      },
      isOver: () => this.closed,
      waitForMore: async (signal) => {
        if (after >= log.last && !this.closed) await waitForWake(this.waiting, signal);
      },
    });
    return new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-content-type-options": "nosniff" } });
  }

  // ---- requests

  /** @param {Request} request @returns {Promise<Response>} */
  async answer(request) {
    let cors = {};
    try {
      cors = this.corsOf(request);
      const response = request.method === "OPTIONS" ? this.preflight(request) : await this.handle(request);
      return withHeaders(response, cors);
    } catch (error) {
      return withHeaders(errorResponse(error), cors);
    }
  }

  /** @param {Request} request */
  async handle(request) {
    const url = new URL(request.url);
    const name = /** @type {string} */ (url.pathname.replace(/\/+$/, "").split("/").at(-1));
    const isGet = QUERIES.includes(name);
    if (!isGet && !Object.hasOwn(COMMANDS, name)) throw new RequestError(404, "invalid_request", `there is no \`${name}\` here${didYouMean(name, [...QUERIES, ...Object.keys(COMMANDS)])}`);
    const method = isGet ? "GET" : "POST";
    if (request.method !== method) throw new RequestError(405, "invalid_request", `\`${name}\` is asked for by ${method}, got ${request.method}`, { allow: method });
    const { authorize } = this.options;
    // A function that forgets to answer, or finds no user to ask about, has not said yes.
    const allowed = authorize ? await authorize.call(this.options, request, name) : true;
    if (typeof allowed?.status === "number") return allowed;
    if (!allowed) throw new RequestError(401, "auth", "who asks is not allowed to");
    if (allowed !== true) throw new TypeError(`\`authorize\` must give true, false or a Response, got ${kindOf(allowed)}`);
    if (name === "events") return this.events(request, url);
    if (name === "state") return this.snapshot();
    return this.execute(name, await this.read(request));
  }

  async snapshot() {
    const { messages, pendingApprovals, isRunning, usage } = this.agent;
    await this.log.sync?.();
    return json({ messages, pendingApprovals, isRunning, usage, ...(isRunning && { runId: this.currentRunId }), lastEventId: String(this.log.last) });
  }

  /** @param {Request} request */
  async read(request) {
    const type = request.headers.get("content-type") ?? "";
    // A form on another site could send any other type without a preflight.
    if (!/^application\/json\b/i.test(type)) throw new RequestError(415, "invalid_request", `a command is JSON: send content-type application/json, got ${type || "none"}`);
    const { bodyBytes } = this.limits;
    const text = await readAtMost(request, bodyBytes);
    if (text === undefined) throw new RequestError(413, "invalid_request", `a command may have ${bodyBytes} bytes`);
    let command;
    try {
      command = text === "" ? {} : JSON.parse(text);
    } catch (error) {
      throw new RequestError(400, "invalid_request", `the command is no JSON: ${/** @type {Error} */ (error).message}`);
    }
    if (typeof command !== "object" || command === null || Array.isArray(command)) throw new RequestError(400, "invalid_request", `a command is an object, got ${kindOf(command)}`);
    // An abort must not fail for its reason: a long one is cut.
    if (typeof command.reason === "string") command.reason = command.reason.slice(0, 1000) || undefined;
    for (const key of ["id", "runId", "reason"]) {
      const value = command[key];
      if (value !== undefined && (typeof value !== "string" || value === "" || value.length > 1000)) throw new RequestError(400, "invalid_request", `\`${key}\` must be a text of at most 1000 characters`);
    }
    return command;
  }

  /** Executes a command, once per id. @param {string} name @param {any} command @returns {Promise<Response>} */
  async execute(name, command) {
    const { replies } = this;
    const pastReply = command.id && replies.get(command.id);
    if (pastReply) return json(await pastReply, 202);
    this.throttle();
    const execution = (async () => {
      // A command that was executed but not stored is only stored when it is repeated.
      const reply = this.unstoredReplies.get(command.id) ?? this.perform(name, command);
      if (command.id) this.unstoredReplies.set(command.id, reply);
      await this.options.commit?.(name);
      await this.log.sync?.();
      this.unstoredReplies.delete(command.id);
      return reply;
    })();
    if (!command.id) return json(await execution, 202);
    replies.set(command.id, execution);
    if (replies.size > MAX_REPLIES) replies.delete(/** @type {string} */ (replies.keys().next().value));
    // A refused command was not executed, so it may be repeated.
    execution.catch(() => replies.delete(command.id));
    return json(await execution, 202);
  }

  /**
   * Executes a command. If it is repeated to another instance, that one must know of it: resetting twice loses what
   * came between.
   * @param {string} name @param {any} command
   */
  perform(name, command) {
    const reply = COMMANDS[name](this, command) ?? {};
    if (command.id && ["reset", "abort", "clear-queues"].includes(name)) this.append("command", { id: command.id });
    return reply;
  }

  /** Registers a run that a command started. @param {any} run @param {string} [id] */
  registerRun(run, id) {
    this.currentRunId = run.runId;
    const reply = { runId: run.runId };
    if (id) this.append("command", { id, reply });
    try {
      this.options.waitUntil?.(run.result);
    } catch (error) {
      // The run has started nevertheless, and the client gets a success.
      console.error("turnwheel: waitUntil threw", error);
    }
    return reply;
  }

  /** @param {any} command @param {"steer" | "followUp"} kind */
  postMessage({ id = this.host.id(), input }, kind) {
    if (input === undefined) throw new RequestError(400, "misuse", "a letter needs an `input`");
    this.checkRoom();
    const receipt = this.agent[kind](input);
    // A custom message has no content.
    const text = JSON.stringify(contentOf(input) ?? input);
    this.addQueued(id, bytesOf(text));
    this.append("command", { id, letter: text });
    receipt.then((/** @type {any} */ outcome) => this.settle(id, outcome));
    return { id };
  }

  throttle() {
    const { commandsPerMinute } = this.limits;
    if (commandsPerMinute === Infinity) return;
    const now = this.host.now();
    this.tokens = Math.min(commandsPerMinute, this.tokens + ((now - this.refilled) * commandsPerMinute) / 60_000);
    this.refilled = now;
    if (this.tokens < 1) throw new RequestError(429, "throttled", `more than ${commandsPerMinute} commands a minute`, { "retry-after": String(Math.ceil((60 * (1 - this.tokens)) / commandsPerMinute)) });
    this.tokens -= 1;
  }

  /** Refuses if the history, with the messages waiting for it, is full. */
  checkRoom() {
    const { historyBytes } = this.limits;
    if (historyBytes === Infinity) return;
    const { messages } = this.agent;
    if (this.countedList !== messages) [this.countedList, this.counted, this.bytes] = [messages, 0, 0];
    for (; this.counted < messages.length; this.counted++) this.bytes += bytesOf(JSON.stringify(messages[this.counted]));
    const bytes = this.bytes + this.queuedBytes;
    if (bytes >= historyBytes) throw new RequestError(413, "invalid_request", `the conversation is full: it has ${bytes} bytes of ${historyBytes}; begin a new one`);
  }

  // ---- CORS

  /** @param {Request} request @returns {Record<string, string>} */
  corsOf(request) {
    const origin = request.headers.get("origin");
    const site = request.headers.get("sec-fetch-site");
    const isOwn = origin === null ? site !== "cross-site" : site === "same-origin" || hostOfUrl(origin) === new URL(request.url).host;
    if (isOwn) return {};
    const { cors } = this.options;
    const allowed = origin !== null && (cors === "*" || cors === true || (Array.isArray(cors) && cors.includes(origin)) || (typeof cors === "function" && /** @type {any} */ (cors(origin)) === true));
    if (!allowed) throw new RequestError(403, "auth", `pages of ${origin ?? "other sites"} may not ask; see the option \`cors\``);
    return { "access-control-allow-origin": origin, vary: "origin", "access-control-expose-headers": "retry-after" };
  }

  /** @param {Request} request */
  preflight(request) {
    return new Response(null, { status: 204, headers: {
      "access-control-allow-methods": "GET, POST", "access-control-max-age": "600",
      "access-control-allow-headers": request.headers.get("access-control-request-headers") ?? "content-type",
    } });
  }
}

/** @type {Record<string, (server: AgentServer, command: any) => any>} */
const COMMANDS = {
  prompt(server, { id, input, runId }) {
    if (server.agent.isRunning) throw new RequestError(409, "misuse", "the agent is already running; steer it, queue a follow-up, or wait for it");
    if (input === undefined) throw new RequestError(400, "misuse", "a prompt needs an `input`");
    server.checkRoom();
    return server.registerRun(server.agent.prompt(input, runId && { runId }), id);
  },
  continue(server, { id, runId }) {
    if (server.agent.isRunning) throw new RequestError(409, "misuse", "the agent is already running; steer it, queue a follow-up, or wait for it");
    return server.registerRun(server.agent.continue(runId && { runId }), id);
  },
  steer: (server, command) => server.postMessage(command, "steer"),
  "follow-up": (server, command) => server.postMessage(command, "followUp"),
  "clear-queues"(server) {
    server.agent.clearQueues();
    // The others have a receipt of the agent's.
    for (const [id, { text }] of [...server.queued]) if (text !== undefined) server.settle(id, { delivered: false, reason: "cleared" });
  },
  resolve(server, { callId, decision, decisions }) {
    if (decisions === undefined) {
      if (typeof callId !== "string") throw new RequestError(400, "misuse", "a decision needs the `callId` that it is about");
      return server.agent.resolveTool(callId, decision);
    }
    if (kindOf(decisions) !== "an object (Object)") throw new RequestError(400, "misuse", "`decisions` must be an object, with a decision for each call's id");
    server.agent.resolveTools(decisions);
  },
  abort(server, { reason, runId }) {
    // Ignored for a run that is not the current one.
    if (runId === undefined || runId === server.currentRunId) server.agent.abort(reason);
  },
  reset(server) {
    const { agent } = server;
    agent.reset();
    server.base = undefined;
    server.sentHistory = { list: agent.messages, length: 0 };
    server.append("state", { messages: agent.messages, pendingApprovals: agent.pendingApprovals, usage: agent.usage, openLetters: [] });
  },
};

/** @param {any} input */
const contentOf = (input) => (typeof input === "string" ? [{ type: "text", text: input }] : Array.isArray(input) ? input : typeof input.content === "string" ? [{ type: "text", text: input.content }] : input.content);

const encoder = new TextEncoder();

/** The length of a text in UTF-8. @param {string} text */
const bytesOf = (text) => encoder.encode(text).length;

/** The structured answer, if it is the text of the last answer. @param {any} agent @param {any} event */
function outputOf(agent, { messages, stopReason }) {
  if (agent.output === undefined || stopReason !== "completed") return {};
  const answer = messages.findLast((/** @type {any} */ { role }) => role === "assistant");
  try {
    return { output: JSON.parse(answer.content.filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ { text }) => text).join("")) };
  } catch {
    return {};
  }
}

/** @param {Response} response @param {Record<string, string>} headers */
function withHeaders(response, headers) {
  if (Object.keys(headers).length === 0) return response;
  // A response made elsewhere may have immutable headers.
  const copy = new Response(response.body, response);
  for (const [name, value] of Object.entries(headers)) copy.headers.set(name, value);
  return copy;
}

/** @param {string} url */
function hostOfUrl(url) {
  try {
    return new URL(url).host;
  } catch {
    return "";
  }
}

/** Reads the body as text; returns nothing if it is longer. @param {Request} request @param {number} limit */
async function readAtMost(request, limit) {
  if (!request.body) return "";
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (const reader = request.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > limit) {
      await reader.cancel().catch(() => {});
      return;
    }
    text += decoder.decode(value, { stream: true });
  }
}
