// @ts-check
// Offers the tools of an MCP server as tools of an agent, through the official SDK.

import { kindOf, misuse, textOf } from "../shared.js";
import { resultOf, updateOf } from "./content.js";
import { dereference, validate } from "../core.js";

/** @typedef {import("../mcp.js").McpToolsOptions} Options */
/** @typedef {import("../index.js").ToolDefinition} ToolDefinition */

const OPTIONS = ["prefix", "name", "only", "approval", "timeoutMs", "totalTimeoutMs", "maxResultBytes", "onError", "clientInfo"];
/** The longest tool name that every provider accepts. */
const MAX_NAME_LENGTH = 64;
/** Error codes of the SDK. */
const CLOSED = -32000;
const TIMED_OUT = -32001;
/** A server that returns more pages than this is assumed to have an endless list. */
const MAX_PAGES = 1_000;
const TIMEOUT_MS = 60_000;

/** @type {Record<string, (annotations: any) => boolean>} */
const APPROVAL = {
  always: () => true,
  never: () => false,
  writes: ({ readOnlyHint }) => readOnlyHint !== true,
  // Without hints a tool counts as destructive, as the protocol says.
  destructive: ({ readOnlyHint, destructiveHint }) => readOnlyHint !== true && destructiveHint !== false,
};

/**
 * A validator that interprets schemas. The SDK's own compiles them to code, which a Content-Security-Policy
 * forbids and a Worker cannot do.
 */
export const jsonSchemaValidator = {
  /** @param {any} schema @returns {(input: unknown) => any} */
  getValidator(schema) {
    const own = JSON.parse(JSON.stringify(schema), dropForeignPatterns);
    const lookup = dereference(own);
    return (input) => {
      const { valid, errors } = validate(input, own, lookup);
      return valid ? { valid, data: input, errorMessage: undefined } : { valid, data: undefined, errorMessage: errors.map((/** @type {any} */ { error }) => error).join("\n") };
    };
  },
};

/**
 * Drops patterns that are no JavaScript regular expressions: servers write them in their own language.
 * The server checks those.
 * @param {string} key @param {unknown} value
 */
function dropForeignPatterns(key, value) {
  if (key !== "pattern" || typeof value !== "string") return value;
  try {
    new RegExp(value, "u");
    return value;
  } catch {
    return undefined;
  }
}

/**
 * Returns the tools of a server, kept up to date.
 * @param {any} source a connected Client of the SDK, a transport, or a URL @param {Options} [options]
 */
export async function mcpTools(source, options = {}) {
  if (typeof options !== "object" || options === null) throw misuse(`the options of mcpTools must be an object, got ${kindOf(options)}`);
  for (const name of Object.keys(options)) if (!OPTIONS.includes(name)) throw misuse(`unknown option \`${name}\` of mcpTools; there are ${OPTIONS.join(", ")}`);
  const { approval = "destructive" } = options;
  if (typeof approval !== "function" && !Object.hasOwn(APPROVAL, approval)) throw misuse(`\`approval\` must be ${Object.keys(APPROVAL).map((word) => JSON.stringify(word)).join(", ")} or a function, got ${JSON.stringify(approval)}`);
  const isClient = typeof source?.callTool === "function";
  if (isClient && !source.transport) throw misuse("the MCP client is not connected; await client.connect(transport) first");
  const client = isClient ? source : await connect(source, options);
  const server = new McpServer(client, options, isClient);
  try {
    await server.refresh();
  } catch (error) {
    await server.dispose();
    throw error;
  }
  return server;
}

/** Connects a client of our own. @param {any} source @param {Options} options */
async function connect(source, { clientInfo = { name: "turnwheel", version: "1" } }) {
  const transport = await transportOf(source);
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const client = new Client(clientInfo, { jsonSchemaValidator });
  try {
    await client.connect(transport);
  } catch (error) {
    throw new Error(`no MCP server answers at ${source instanceof URL || typeof source === "string" ? source : "the other end of the transport"}: ${textOf(error)}`, { cause: error });
  }
  return client;
}

/** @param {any} source */
async function transportOf(source) {
  if (typeof source?.start === "function" && typeof source.send === "function") return source;
  if (typeof source !== "string" && !(source instanceof URL)) throw misuse(`mcpTools takes a connected Client, a transport or an address, got ${kindOf(source)}`);
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  let url;
  try {
    url = new URL(source, globalThis.location?.href);
  } catch (error) {
    throw misuse(`mcpTools takes the address of a server, such as http://localhost:3000/mcp, got ${JSON.stringify(source)}`, error);
  }
  return new StreamableHTTPClientTransport(url);
}

/** An MCP server and its tools. */
class McpServer {
  #options;
  #isShared;
  #name;
  /**
   * The tools by the server's names for them, with the JSON that each was made from.
   * @type {Map<string, { json: string, definition: ToolDefinition }>}
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
   * @param {any} client @param {Options} options
   * @param {boolean} isShared whether somebody else connected it, and will close it
   */
  constructor(client, options, isShared) {
    this.client = client;
    /** @type {ToolDefinition[]} */
    this.tools = [];
    this.#options = options;
    this.#isShared = isShared;
    this.#name = client.getServerVersion?.()?.name ?? "the MCP server";
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

  /** @returns {Promise<any[]>} */
  async #list() {
    /** @type {any[]} */
    const listed = [];
    /** @type {string | undefined} */
    let cursor;
    let pages = 0;
    do {
      if (++pages > MAX_PAGES) throw new Error(`${this.#name}: its list of tools has no end: more than ${MAX_PAGES} pages`);
      /** @type {any} */
      const page = await this.client.listTools(cursor === undefined ? undefined : { cursor }).catch((/** @type {unknown} */ error) => {
        throw this.#explain(error, "cannot list its tools");
      });
      listed.push(...page.tools);
      cursor = page.nextCursor;
      // Some servers send an empty cursor at the end.
    } while (cursor);
    return listed;
  }

  /** @param {any[]} listed */
  #take(listed) {
    const { only, onError } = this.#options;
    const wanted = listed.filter((tool) => !only || (typeof only === "function" ? only(tool) : only.includes(tool.name)));
    /** @type {Map<string, { json: string, definition: ToolDefinition }>} */
    const known = new Map();
    const names = new Map();
    for (const tool of wanted) {
      const json = JSON.stringify(tool);
      const before = this.#known.get(tool.name);
      const definition = before?.json === json ? before.definition : this.#toolOf(tool);
      const other = names.get(definition.name);
      if (other !== undefined) throw misuse(`two tools of ${this.#name} would be named \`${definition.name}\`: \`${other}\` and \`${tool.name}\`; give other names with \`name\`, or leave one out with \`only\``);
      names.set(definition.name, tool.name);
      known.set(tool.name, { json, definition });
    }
    const tools = [...known.values()].map(({ definition }) => definition);
    const isSame = tools.length === this.tools.length && tools.every((definition, i) => definition === this.tools[i]);
    this.#known = known;
    if (isSame) return;
    this.tools = tools;
    for (const listener of [...this.#listeners]) {
      // The listener may be an async function.
      (async () => listener(tools))().catch(onError ?? report);
    }
  }

  /** @param {any} tool as the server describes it @returns {ToolDefinition} */
  #toolOf(tool) {
    const { approval = "destructive", maxResultBytes } = this.#options;
    const annotations = tool.annotations ?? {};
    const { $schema, ...parameters } = JSON.parse(JSON.stringify(tool.inputSchema), dropForeignPatterns);
    return {
      name: this.#nameOf(tool),
      description: tool.description ?? tool.title ?? annotations.title ?? "",
      parameters,
      // A missing answer is not permission.
      requiresApproval: typeof approval === "function" ? approval(tool) !== false : /** @type {any} */ (APPROVAL[approval])(annotations),
      // A read-only call can be repeated.
      idempotent: annotations.readOnlyHint === true || annotations.idempotentHint === true,
      ...(maxResultBytes !== undefined && { maxResultBytes }),
      execute: (args, context) => this.#call(tool, args, context),
    };
  }

  /** @param {any} tool */
  #nameOf(tool) {
    const { prefix, name } = this.#options;
    const own = name?.(tool) ?? tool.name;
    const before = prefix === true ? `${this.#name}__` : prefix ? `${prefix}__` : "";
    return `${before}${own}`.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, MAX_NAME_LENGTH);
  }

  /** @param {any} tool @param {any} args @param {import("../index.js").ToolContext} context */
  async #call(tool, args, { signal, update }) {
    const { timeoutMs = TIMEOUT_MS, totalTimeoutMs } = this.#options;
    // The SDK checks the total only when progress arrives.
    const limit = Math.min(timeoutMs, totalTimeoutMs ?? Infinity);
    const params = { name: tool.name, arguments: args };
    const options = {
      // A timer with a longer delay than this would fire at once.
      signal, timeout: Math.min(limit, 2 ** 31 - 1), resetTimeoutOnProgress: true,
      ...(totalTimeoutMs !== undefined && { maxTotalTimeout: totalTimeoutMs }),
      onprogress: (/** @type {any} */ progress) => update(updateOf(progress)),
    };
    try {
      // Some tools only run as tasks, whose result is fetched once it is there.
      const isTask = tool.execution?.taskSupport === "required";
      return resultOf(isTask ? await this.#task(params, options, update) : await this.client.callTool(params, undefined, options));
    } catch (error) {
      throw this.#explain(error, `\`${tool.name}\` did not answer within ${limit} ms`);
    }
  }

  /** @param {any} params @param {any} options @param {(partial: any) => void} update */
  async #task(params, options, update) {
    for await (const status of this.client.experimental.tasks.callToolStream(params, undefined, options)) {
      if (status.type === "result") return status.result;
      if (status.type === "error") throw status.error;
      if (status.type === "taskStatus") update(status.task.statusMessage ?? status.task.status);
    }
    throw new Error("the task ended without a result");
  }

  /**
   * Rewords an error of the SDK: names the server, and what to do.
   * @param {any} error @param {string} timeoutMessage
   */
  #explain(error, timeoutMessage) {
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
      if (message?.method === "notifications/tools/list_changed") this.refresh().catch(this.#options.onError ?? report);
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

/** @param {unknown} error */
function report(error) {
  console.error("turnwheel/mcp: the tools of a server changed and could not be taken over", error);
}
