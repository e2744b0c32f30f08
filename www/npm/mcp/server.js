// @ts-check
// An MCP server, and its tools as tools of an agent.

import { tool as checked } from "../core.js";
import { complain, misuse, textOf } from "../shared.js";
import { APPROVAL } from "./approval.js";
import { resultOf, updateOf } from "./content.js";
import { dropForeignPatterns } from "./json-schema.js";

/** @import { ToolContext, ToolDefinition } from "../index.js" */
/** @import { McpClient, McpTool, McpToolsOptions } from "../mcp.js" */
/** @import { Progress } from "./content.js" */

/** The longest tool name that every provider accepts. */
const MAX_NAME_LENGTH = 64;
/** Error codes of the SDK. */
const CLOSED = -32000;
const TIMED_OUT = -32001;
/** A server that returns more pages than this is assumed to have an endless list. */
const MAX_PAGES = 1_000;
const TIMEOUT_MS = 60_000;
const FAILED = "turnwheel/mcp: the tools of a server changed and could not be taken over";

/** An MCP server and its tools. */
export class McpServer {
  #options;
  #isShared;
  #name;
  /**
   * The tools by the server's names for them, with the JSON that each was made from; one that was refused has no definition.
   * @type {Map<string, { json: string, definition: ToolDefinition | undefined }>}
   */
  #known = new Map();
  /** @type {Set<(tools: ToolDefinition[]) => void>} */
  #listeners = new Set();
  #isClosed = false;
  #isDisposed = false;
  /** @type {() => void} */
  #unlisten;
  /** @type {Promise<void> | undefined} */
  #refreshing;
  #isStale = false;

  /**
   * @param {McpClient} client @param {McpToolsOptions} options
   * @param {boolean} isShared whether somebody else connected it, and will close it
   */
  constructor(client, options, isShared) {
    this.client = client;
    /** @type {ToolDefinition[]} */
    this.tools = [];
    this.#options = options;
    this.#isShared = isShared;
    this.#name = nameOf(client);
    this.#unlisten = this.#listen();
  }

  /** The name that the server gives itself. */
  get name() {
    return this.#name;
  }

  get isConnected() {
    return !this.#isClosed && !this.#isDisposed;
  }

  [Symbol.iterator]() {
    return this.tools[Symbol.iterator]();
  }

  /** @param {(tools: ToolDefinition[]) => void} listener */
  onChange(listener) {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Asks the server for its tools. A call during a refresh waits for another one, so that
   * it sees the latest list.
   */
  refresh() {
    this.#isStale = true;
    this.#refreshing ??= this.#read().finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  async #read() {
    while (this.#isStale) {
      this.#isStale = false;
      const listed = await this.#list();
      if (!this.#isDisposed) this.#take(listed);
    }
  }

  /** Tells the host of a failure that no call of its own would show. @param {unknown} error */
  #report = (error) => {
    const { onError } = this.#options;
    if (!onError) return complain(FAILED, error);
    try {
      const answer = /** @type {any} */ (onError(error));
      answer?.then?.(undefined, (/** @type {unknown} */ failure) => complain("turnwheel/mcp: onError failed", failure));
    } catch (failure) {
      complain("turnwheel/mcp: onError failed", failure);
    }
  };

  /** @returns {Promise<McpTool[]>} */
  async #list() {
    /** @type {McpTool[]} */
    const listed = [];
    /** @type {string | undefined} */
    let cursor;
    let pages = 0;
    do {
      if (++pages > MAX_PAGES) throw new Error(`${this.#name}: its list of tools has no end: more than ${MAX_PAGES} pages`);
      /** @type {{ tools: McpTool[], nextCursor?: string }} */
      const page = await this.client.listTools(cursor === undefined ? undefined : { cursor }).catch((/** @type {unknown} */ error) => {
        throw this.#explain(error, "cannot list its tools");
      });
      listed.push(...page.tools);
      cursor = page.nextCursor;
      // Some servers send an empty cursor at the end.
    } while (cursor);
    return listed;
  }

  /** @param {McpTool[]} listed */
  #take(listed) {
    const { only } = this.#options;
    const wanted = listed.filter((tool) => !only || (typeof only === "function" ? only(tool) : only.includes(tool.name)));
    /** @type {Map<string, { json: string, definition: ToolDefinition | undefined }>} */
    const known = new Map();
    const names = new Map();
    for (const tool of wanted) {
      const json = JSON.stringify(tool);
      const before = this.#known.get(tool.name);
      const definition = before?.json === json ? before.definition : this.#acceptable(tool);
      known.set(tool.name, { json, definition });
      if (!definition) continue;
      const other = names.get(definition.name);
      if (other !== undefined) throw misuse(`two tools of ${this.#name} would be named \`${definition.name}\`: \`${other}\` and \`${tool.name}\`; give other names with \`name\`, or leave one out with \`only\``);
      names.set(definition.name, tool.name);
    }
    const tools = [...known.values()].flatMap(({ definition }) => definition ?? []);
    const isSame = tools.length === this.tools.length && tools.every((definition, i) => definition === this.tools[i]);
    this.#known = known;
    if (isSame) return;
    this.tools = tools;
    for (const listener of [...this.#listeners]) {
      // The listener may be an async function.
      (async () => listener(tools))().catch(this.#report);
    }
  }

  /** The tool, unless it cannot be one here: its schema is none, or cannot be checked in a time that has an end. The others stay. @param {McpTool} tool */
  #acceptable(tool) {
    try {
      return checked(this.#toolOf(tool));
    } catch (error) {
      this.#report(new Error(`${this.#name}: its tool \`${tool.name}\` is left out: ${textOf(error)}`, { cause: error }));
    }
  }

  /** @param {McpTool} tool as the server describes it @returns {ToolDefinition} */
  #toolOf(tool) {
    const { approval = "destructive", maxResultBytes } = this.#options;
    const annotations = tool.annotations ?? {};
    const { $schema, ...parameters } = JSON.parse(JSON.stringify(tool.inputSchema), dropForeignPatterns);
    return {
      name: this.#nameOf(tool),
      description: tool.description ?? tool.title ?? annotations.title ?? "",
      parameters,
      // A missing answer is not permission.
      requiresApproval: typeof approval === "function" ? approval(tool) !== false : APPROVAL[approval](annotations),
      // A read-only call can be repeated.
      idempotent: annotations.readOnlyHint === true || annotations.idempotentHint === true,
      ...(maxResultBytes !== undefined && { maxResultBytes }),
      execute: (args, context) => this.#call(tool, args, context),
    };
  }

  /** @param {McpTool} tool */
  #nameOf(tool) {
    const { prefix, name } = this.#options;
    const own = name?.(tool) ?? tool.name;
    // A server that calls itself `a__b` must not be able to name its tools as those of the server `a`.
    const server = prefix === true ? sendable(this.#name).replace(/_{2,}/g, "_").replace(/^_+|_+$/g, "") || "server" : prefix;
    return `${server ? `${server}__` : ""}${sendable(own)}`.slice(0, MAX_NAME_LENGTH);
  }

  /** @param {McpTool} tool @param {unknown} args @param {ToolContext} context */
  async #call(tool, args, { signal, update }) {
    const { timeoutMs = TIMEOUT_MS, totalTimeoutMs } = this.#options;
    // The SDK checks the total only when progress arrives.
    const limit = Math.min(timeoutMs, totalTimeoutMs ?? Infinity);
    const params = { name: tool.name, arguments: args };
    const options = {
      // A timer with a longer delay than this would fire at once.
      signal, timeout: Math.min(limit, 2 ** 31 - 1), resetTimeoutOnProgress: true,
      ...(totalTimeoutMs !== undefined && { maxTotalTimeout: totalTimeoutMs }),
      onprogress: (/** @type {Progress} */ progress) => update(updateOf(progress)),
    };
    try {
      // Some tools only run as tasks, whose result is fetched once it is there.
      const isTask = /** @type {{ execution?: { taskSupport?: string } }} */ (tool).execution?.taskSupport === "required";
      return resultOf(isTask ? await this.#task(params, options, update) : await this.client.callTool(params, undefined, options));
    } catch (error) {
      throw this.#explain(error, `\`${tool.name}\` did not answer within ${limit} ms`);
    }
  }

  /** @param {object} params @param {object} options @param {ToolContext["update"]} update */
  async #task(params, options, update) {
    const client = /** @type {any} */ (this.client);
    for await (const status of client.experimental.tasks.callToolStream(params, undefined, options)) {
      if (status.type === "result") return status.result;
      if (status.type === "error") throw status.error;
      if (status.type === "taskStatus") update(status.task.statusMessage ?? status.task.status);
    }
    throw new Error("the task ended without a result");
  }

  /**
   * Rewords an error of the SDK: names the server, and what to do.
   * @param {unknown} thrown @param {string} timeoutMessage
   */
  #explain(thrown, timeoutMessage) {
    const error = /** @type {{ code?: unknown, message?: unknown, name?: unknown } | null} */ (thrown);
    const isGone = error?.code === CLOSED || this.#isClosed || error?.message === "Not connected";
    if (isGone) return new Error(`${this.#name} is gone: its connection is closed; connect to it again and call mcpTools anew`, { cause: error });
    // Over HTTP there is no lasting connection that could close.
    if (error instanceof TypeError || error?.name === "StreamableHTTPError") return new Error(`${this.#name} cannot be reached: ${textOf(error)}`, { cause: error });
    if (error instanceof EvalError) return new Error(`${this.#name}: the Client compiles code to check results, which is forbidden here; make it with \`jsonSchemaValidator\` of turnwheel/mcp: new Client(info, { jsonSchemaValidator })`, { cause: error });
    if (error?.code === TIMED_OUT) return new Error(`${this.#name}: ${timeoutMessage}`, { cause: error });
    return new Error(`${this.#name}: ${textOf(error)}`, { cause: error });
  }

  /** Listens for changes and for the end of the connection. The client's own handlers stay in place. */
  #listen() {
    const { client } = this;
    const { transport, onclose } = client;
    const { onmessage } = transport ?? {};
    const onMessage = (/** @type {any} */ message, /** @type {any} */ extra) => {
      onmessage?.(message, extra);
      if (message?.method === "notifications/tools/list_changed") this.refresh().catch(this.#report);
    };
    const onClose = () => {
      this.#isClosed = true;
      onclose?.();
    };
    if (transport) transport.onmessage = onMessage;
    client.onclose = onClose;
    return () => {
      if (transport?.onmessage === onMessage) transport.onmessage = onmessage;
      if (client.onclose === onClose) client.onclose = onclose;
    };
  }

  /** Stops listening to the server. Closes the connection if it was opened here. */
  async dispose() {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#listeners.clear();
    this.#unlisten();
    if (!this.#isShared) await this.client.close();
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.dispose();
  }
}

/** A name as every provider accepts it. @param {string} name */
const sendable = (name) => name.replace(/[^a-zA-Z0-9_-]/g, "_");

/** The name that a server gives itself. @param {McpClient & { getServerVersion?(): { name?: string } | undefined }} client @returns {string} */
function nameOf(client) {
  return client.getServerVersion?.()?.name ?? "the MCP server";
}
