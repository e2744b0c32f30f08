// @ts-check
// An MCP server, and its tools as tools of an agent.

import { tool as checked } from "../core.js";
import { complain, kindOf, misuse, textOf } from "../shared.js";
import { ToolList } from "./tool-list.js";
import { APPROVAL } from "./approval.js";
import { Call } from "./call.js";
import { statusOf, unauthorized } from "./connect.js";
import { dropForeignPatterns } from "./json-schema.js";
import { Watch } from "./watch.js";

/** @import { ToolContext, ToolDefinition } from "../index.js" */
/** @import { McpClient, McpPrompt, McpTool, McpToolsOptions } from "../mcp.js" */
/** @import { Elicitor } from "./elicit.js" */
/** @import { Elicitors } from "./offers.js" */

/** The longest tool name that every provider accepts. */
const MAX_NAME_LENGTH = 64;
/** Error codes of the SDK, and of its successor. */
const CLOSED = [-32000, "CONNECTION_CLOSED", "NOT_CONNECTED"];
/** The errors of the SDK, and of its successor, for what came from no server that speaks the protocol. */
const UNREACHED = ["StreamableHTTPError", "SdkHttpError"];
/** A server that returns more pages than this is assumed to have an endless list. */
const MAX_PAGES = 1_000;
const TIMEOUT_MS = 60_000;
/** The successor of the SDK would give out a list that it has, for as long as its server allowed. */
const FRESH = { cacheMode: "refresh" };
/** More tools, or prompts, than anybody can choose from. */
const MAX_LISTED = 10_000;
/** In characters: what every turn sends of a tool, beside its schema. */
const MAX_DESCRIPTION = 16_384;
/** In characters. A name is shown to people, and stands in errors. */
const MAX_SERVER_NAME = 200;
/** In characters. A server's instructions are for a system prompt, which every turn sends. */
const MAX_INSTRUCTIONS = 16_384;
const NOT_ANSWERED = "a question of a server was not answered";
const NOT_TAKEN = "the tools of a server changed and could not be taken over";

/** An MCP server and its tools. */
export class McpServer extends ToolList {
  #options;
  /**
   * The tools by the server's names for them, with the JSON that each was made from; one that was refused has no definition.
   * @type {Map<string, { json: string, definition: ToolDefinition | undefined }>}
   */
  #known = new Map();
  /** @type {ToolDefinition[]} */
  #resourceTools = [];
  /** What is undone at the end. @type {(() => void)[]} */
  #undo = [];
  #isOwn;
  /** @type {Watch | undefined} */
  #watch;

  /** @param {McpToolsOptions} options @param {boolean} isOwn whether the connection is made here, and closed here */
  constructor(options, isOwn) {
    super();
    this.#options = options;
    /** The client; there is one as soon as there is a server. @type {McpClient} */
    this.client = /** @type {any} */ (undefined);
    this.#isOwn = isOwn;
    // Who made the client himself has decided what it answers.
    const { onElicit = isOwn && "ask" } = options;
    /** @type {Promise<Elicitor> | undefined} */
    let elicitor;
    const make = async () => new (await import("./elicit.js")).Elicitor(/** @type {any} */ (onElicit), () => this.name, (error) => this.report(error, NOT_ANSWERED));
    /** Answers the server's questions; made with the first one. @type {Elicitors | undefined} */
    this.elicitor = onElicit === false ? undefined : () => (elicitor ??= make().catch((error) => {
      elicitor = undefined;
      this.report(error, NOT_ANSWERED);
      throw error;
    }));
  }

  /** Begins a new session at an address. @type {(() => Promise<void>) | undefined} */
  renew = undefined;
  /** @type {Promise<void> | undefined} */
  #renewing;
  /** Whether the last request did not reach the server: over HTTP there is no lasting connection that could close. */
  #isOut = false;

  /**
   * Begins to listen to a connected client, in place of the one before it, which ends when its calls have.
   * @param {McpClient} client @param {() => void} withdraw takes back what the client was given to answer the server
   */
  attach(client, withdraw) {
    const { client: before } = this;
    for (const undo of this.#undo.splice(0)) undo();
    if (before) void Promise.all([...Watch.of(before).calls].map(({ ended }) => ended)).then(() => before.close()).catch(() => {});
    this.client = client;
    this.#watch = Watch.of(client);
    this.#undo.push(withdraw, this.#watch.listen({ onListChanged: () => this.changed(this.report) }));
  }

  /**
   * Does something at the server. One that has forgotten the session, as after a restart, has not begun it: it is done again in a new
   * session, once.
   * @template T @param {() => Promise<T>} work @returns {Promise<T>}
   */
  async #inSession(work) {
    const { client } = this;
    try {
      const done = await work();
      this.#isOut = false;
      return done;
    } catch (error) {
      if (!this.renew || this.isDisposed || !hasForgotten(client, error)) throw error;
      if (this.client === client) await (this.#renewing ??= this.#begin().finally(() => (this.#renewing = undefined)));
      // Another version of it may have other tools.
      this.changed(this.report);
      return work();
    }
  }

  async #begin() {
    this.#isOut = true;
    await this.renew?.();
    this.#isOut = false;
  }

  /** The name that the server gives itself. @returns {string} */
  get name() {
    const name = this.client?.getServerVersion?.()?.name;
    return typeof name === "string" ? name.slice(0, MAX_SERVER_NAME) : "the MCP server";
  }

  /** What the server says of itself, for a system prompt. @returns {string | undefined} */
  get instructions() {
    const text = this.client.getInstructions?.();
    return text ? cut(text, MAX_INSTRUCTIONS) : undefined;
  }

  /** @override */
  get isConnected() {
    return !this.#isClosed && !this.#isOut;
  }

  get #isClosed() {
    return this.#watch?.isClosed === true || this.isDisposed;
  }

  /** @override */
  async readOnce() {
    // The client may have been connected again.
    this.#watch?.attach();
    await this.#watch?.subscribed;
    const listed = await this.#list();
    await this.#loadResourceTools();
    if (!this.isDisposed) this.#take(listed);
  }

  /** The prompts that the server offers, for a person to choose from. @returns {Promise<McpPrompt[]>} */
  async prompts() {
    if (!this.#offers("prompts")) return [];
    return this.#pages("its list of prompts", "cannot list its prompts", (params) => this.client.listPrompts?.(params, FRESH), "prompts");
  }

  /** One of them, filled in, as messages. @param {string} name @param {{ [name: string]: string }} [args] */
  async prompt(name, args) {
    if (typeof name !== "string") throw misuse(`the name of a prompt must be a text, got ${kindOf(name)}`);
    const { messagesOf } = await import("./prompts.js");
    try {
      return messagesOf(await this.#inSession(async () => this.client.getPrompt?.({ name, ...(args && { arguments: args }) })));
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** Tells the host of a failure that no call of its own would show. @param {unknown} error @param {string} [what] */
  report = (error, what = NOT_TAKEN) => {
    const { onError } = this.#options;
    if (!onError) return complain(`turnwheel/mcp: ${what}`, error);
    try {
      const answer = /** @type {any} */ (onError(error));
      answer?.then?.(undefined, (/** @type {unknown} */ failure) => complain("turnwheel/mcp: onError failed", failure));
    } catch (failure) {
      complain("turnwheel/mcp: onError failed", failure);
    }
  };

  /** @returns {Promise<McpTool[]>} */
  async #list() {
    // A server of resources or prompts alone does not know the question.
    if (!this.#offers("tools")) return [];
    return this.#pages("its list of tools", "cannot list its tools", (params) => this.client.listTools(params, FRESH), "tools");
  }

  /** Whether the server has such things; a client that cannot tell is believed to have one that does. @param {string} what */
  #offers(what) {
    const capabilities = this.client.getServerCapabilities?.();
    return capabilities === undefined || capabilities[what] !== undefined;
  }

  /**
   * All pages of a list.
   * @param {string} what @param {string} failure @param {(params: { cursor: string } | undefined) => Promise<any> | undefined} request @param {string} key
   */
  async #pages(what, failure, request, key) {
    const listed = [];
    /** @type {string | undefined} */
    let cursor;
    let pages = 0;
    do {
      if (++pages > MAX_PAGES) throw new Error(`${this.name}: ${what} has no end: more than ${MAX_PAGES} pages`);
      let page;
      try {
        // The successor of the SDK fetches all pages when it is given no parameters.
        page = await this.#inSession(async () => request(cursor === undefined ? undefined : { cursor }));
      } catch (error) {
        throw this.#explain(error, failure);
      }
      for (const one of page?.[key] ?? []) listed.push(one);
      if (listed.length > MAX_LISTED) throw new Error(`${this.name}: ${what} is too long: more than ${MAX_LISTED}`);
      cursor = page?.nextCursor;
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
    for (const tool of wanted) {
      const json = JSON.stringify(tool);
      const before = this.#known.get(tool.name);
      known.set(tool.name, { json, definition: before?.json === json ? before.definition : this.#acceptable(tool) });
    }
    const tools = [...[...known.values()].flatMap(({ definition }) => definition ?? []), ...this.#ofResources()];
    this.#refuseTwins(tools, [...known]);
    this.#known = known;
    this.replace(tools, this.report);
  }

  /** @param {ToolDefinition[]} tools @param {[string, { definition: ToolDefinition | undefined }][]} known */
  #refuseTwins(tools, known) {
    const theirs = new Map(known.map(([name, { definition }]) => [definition, name]));
    const names = new Map();
    for (const definition of tools) {
      const own = theirs.get(definition) ?? "the tool of `resources`";
      const other = names.get(definition.name);
      if (other !== undefined) throw misuse(`two tools of ${this.name} would be named \`${definition.name}\`: \`${other}\` and \`${own}\`; give other names with \`name\`, or leave one out with \`only\``);
      names.set(definition.name, own);
    }
  }

  /** The two tools of the option `resources`. */
  #ofResources() {
    return this.#hasResources() ? this.#resourceTools : [];
  }

  #hasResources() {
    return this.#options.resources === true && this.#offers("resources");
  }

  async #loadResourceTools() {
    if (!this.#hasResources() || this.#resourceTools.length > 0) return;
    const { LIST, listResources, READ, readResource } = await import("./resources.js");
    this.#resourceTools = [
      this.#define(LIST, (args, call) => call.run((options) => listResources(this.client, args, options))),
      this.#define(READ, (args, call) => call.run((options) => readResource(this.client, args, options))),
    ].map((definition) => checked(definition));
  }

  /** The tool, unless it cannot be one here: its schema is none, or cannot be checked in a time that has an end. The others stay. @param {McpTool} tool */
  #acceptable(tool) {
    try {
      return checked(this.#define(tool, (args, call) => call.tool(this.client, tool, args, this.elicitor)));
    } catch (error) {
      this.report(new Error(`${this.name}: its tool \`${tool.name}\` is left out: ${textOf(error)}`, { cause: error }), "a tool of a server cannot be used");
    }
  }

  /** @param {McpTool} tool as the server describes it @param {(args: any, call: Call) => Promise<any>} execute @returns {ToolDefinition} */
  #define(tool, execute) {
    const { approval = "destructive", maxResultBytes } = this.#options;
    const annotations = tool.annotations ?? {};
    const { $schema, ...parameters } = JSON.parse(JSON.stringify(tool.inputSchema), dropForeignPatterns);
    return {
      name: this.#nameOf(tool),
      description: cut(tool.description ?? tool.title ?? annotations.title ?? "", MAX_DESCRIPTION),
      parameters,
      // A missing answer is not permission.
      requiresApproval: typeof approval === "function" ? approval(tool) !== false : APPROVAL[approval](annotations),
      // A read-only call can be repeated.
      idempotent: annotations.readOnlyHint === true || annotations.idempotentHint === true,
      ...(maxResultBytes !== undefined && { maxResultBytes }),
      execute: (args, context) => this.#call(tool, context, (call) => execute(args, call)),
    };
  }

  /** @param {McpTool} tool */
  #nameOf(tool) {
    const { prefix, name } = this.#options;
    const own = name?.(tool) ?? tool.name;
    // A server that calls itself `a__b` must not be able to name its tools as those of the server `a`.
    const server = prefix === true ? sendable(this.name).replace(/_{2,}/g, "_").replace(/^_+|_+$/g, "") || "server" : prefix;
    return `${server ? `${server}__` : ""}${sendable(own)}`.slice(0, MAX_NAME_LENGTH);
  }

  /** @template T @param {McpTool} tool @param {ToolContext} context @param {(call: Call) => Promise<T>} execute */
  async #call(tool, context, execute) {
    const { timeoutMs = TIMEOUT_MS, totalTimeoutMs = Infinity } = this.#options;
    /** @type {Call | undefined} */
    let call;
    try {
      return await this.#inSession(() => execute((call = new Call(Watch.of(this.client), context, { timeoutMs, totalTimeoutMs }))));
    } catch (error) {
      if (call?.isOverdue) throw new Error(`${this.name}: \`${tool.name}\` did not answer within ${Math.min(timeoutMs, totalTimeoutMs)} ms`);
      throw this.#explain(error);
    }
  }

  /**
   * Rewords an error of the SDK: names the server, and what to do.
   * @param {unknown} thrown @param {string} [doing] what it was about
   */
  #explain(thrown, doing) {
    const error = /** @type {{ code?: unknown, message?: unknown, name?: unknown } | null} */ (thrown);
    const isGone = CLOSED.includes(/** @type {any} */ (error?.code)) || this.#isClosed || error?.message === "Not connected";
    if (isGone) return new Error(`${this.name} is gone: its connection is closed; connect to it again and call mcpTools again`, { cause: error });
    const { authProvider } = this.#options;
    const refused = unauthorized(this.name, error, authProvider && { authProvider });
    if (refused) return refused;
    if (error instanceof TypeError || UNREACHED.includes(/** @type {any} */ (error?.name))) {
      const status = /** @type {number} */ (statusOf(error));
      // A server that refuses this request may take another.
      this.#isOut = !(status >= 400 && status < 500 && status !== 404);
      return new Error(`${this.name} cannot be reached: ${textOf(error)}`, { cause: error });
    }
    if (error instanceof EvalError) return new Error(`${this.name}: the Client compiles code to check results, which is forbidden here; make it with \`jsonSchemaValidator\` of turnwheel/mcp: new Client(info, { jsonSchemaValidator })`, { cause: error });
    return new Error(`${this.name}: ${doing ? `${doing}: ` : ""}${textOf(error)}`, { cause: error });
  }

  /** Stops listening to the server. Closes the connection if it was opened here. */
  async dispose() {
    if (!this.close()) return;
    for (const undo of this.#undo.splice(0)) undo();
    if (this.#isOwn) await this.client.close();
  }

  [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    return this.dispose();
  }
}

/** Whether a server says that it does not know the session: then it has done nothing. @param {any} client @param {any} error */
const hasForgotten = (client, error) => statusOf(error) === 404 && client.transport?.sessionId !== undefined;

/** @param {string} text @param {number} most */
const cut = (text, most) => (text.length > most ? `${text.slice(0, most)}\n[cut]` : text);

/** A name as every provider accepts it. @param {string} name */
const sendable = (name) => name.replace(/[^a-zA-Z0-9_-]/g, "_");
