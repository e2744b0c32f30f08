// @ts-check
// One call of a tool at its server.

import { traceContext } from "../shared.js";
import { Clock } from "./clock.js";
import { resultOf, updateOf } from "./content.js";
import { jsonSchemaValidator } from "./json-schema.js";

/** @import { ToolContext } from "../index.js" */
/** @import { McpClient, McpTool } from "../mcp.js" */
/** @import { Progress } from "./content.js" */
/** @import { Elicitor } from "./elicit.js" */
/** @import { Elicitors } from "./offers.js" */
/** @import { Watch } from "./watch.js" */

/** The SDK's own timers are as good as off; `Clock` is in their place. */
const NO_TIMEOUT = 2 ** 31 - 1;
/** The protocol's code for "something must be done at an address first". */
const URL_REQUIRED = -32042;
/** How often a server may say that something must be done first. */
const MAX_PREREQUISITES = 5;
/** How often a server may answer a call with what it needs to know, in place of a result. */
const MAX_ROUNDS = 50;

export class Call {
  #controller = new AbortController();
  /** @type {() => void} */
  #end = () => {};
  /** Settles when the call has ended, and asks nothing any more. @type {Promise<void>} */
  ended = new Promise((resolve) => (this.#end = resolve));
  isOverdue = false;

  /** @param {Watch} watch @param {ToolContext} context @param {{ timeoutMs: number, totalTimeoutMs: number }} limits */
  constructor(watch, context, { timeoutMs, totalTimeoutMs }) {
    this.watch = watch;
    this.context = context;
    this.clock = new Clock(timeoutMs, totalTimeoutMs, () => {
      this.isOverdue = true;
      this.#controller.abort(new Error(`no answer within ${Math.min(timeoutMs, totalTimeoutMs)} ms`));
    });
  }

  /**
   * Does something at the server, within the limits and until the run is aborted.
   * @template T @param {(options: { signal: AbortSignal }) => Promise<T>} request @returns {Promise<T>}
   */
  async run(request) {
    const { watch, context: { signal, update } } = this;
    const onAbort = () => this.#controller.abort(signal.reason);
    const options = {
      signal: this.#controller.signal, timeout: NO_TIMEOUT, resetTimeoutOnProgress: true,
      onprogress: (/** @type {Progress} */ progress) => {
        this.clock.restart();
        update(updateOf(progress));
      },
    };
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    watch.attach();
    watch.calls.add(this);
    try {
      return await request(options);
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.clock.end();
      watch.end(this, this.#controller.signal.aborted);
      this.#end();
      forgetTimers(watch.client);
    }
  }

  /** @param {McpClient} client @param {McpTool} tool @param {unknown} args @param {Elicitors | undefined} elicitor */
  async tool(client, tool, args, elicitor) {
    const trace = traceContext();
    const given = { name: tool.name, arguments: args, ...(trace && { _meta: trace }) };
    // Some tools only run as tasks.
    const isTask = /** @type {{ execution?: { taskSupport?: string } }} */ (tool).execution?.taskSupport === "required";
    return this.run(async (options) => {
      let params = given;
      for (let tries = 0, rounds = 0; ; ) {
        try {
          const result = isTask ? await (await import("./tasks.js")).runTask(client, params, options, this) : await callTool(client, tool, params, options, elicitor !== undefined);
          if (result.resultType !== "input_required" || !elicitor) return resultOf(result);
          if (++rounds > MAX_ROUNDS) throw new Error(`it asked ${MAX_ROUNDS} times for more, and gave no result`);
          params = { ...given, ...(await this.#asking(elicitor, (asking) => asking.inputs(result, options.signal, this))) };
        } catch (error) {
          const required = prerequisitesOf(error);
          if (!required || !elicitor || tries++ >= MAX_PREREQUISITES || !(await this.#settle(required, elicitor))) throw error;
        }
      }
    });
  }

  /** Asks for all that must be done before a call can be made. Returns whether it was. @param {unknown[]} required @param {Elicitors} elicitor */
  async #settle(required, elicitor) {
    const { signal } = this.#controller;
    return this.#asking(elicitor, async (asking) => {
      for (const one of required) if ((await asking.ask(one, signal, this)).action !== "accept") return false;
      return !signal.aborted;
    });
  }

  /** While a person is asked, the server is not silent. @template T @param {Elicitors} elicitor @param {(asking: Elicitor) => Promise<T>} work */
  async #asking(elicitor, work) {
    this.clock.stop();
    try {
      return await work(await elicitor());
    } finally {
      this.clock.go();
    }
  }
}

/**
 * Older versions of the SDK (1.20 does) keep the timer of a call that was cut off, and Node would not end until it fires.
 * @param {any} client
 */
function forgetTimers(client) {
  const { _timeoutInfo: timers, _responseHandlers: waiting } = client;
  if (!(timers instanceof Map) || !(waiting instanceof Map)) return;
  for (const [id, { timeout, timeoutId }] of timers) {
    if (timeout !== NO_TIMEOUT || waiting.has(id)) continue;
    clearTimeout(timeoutId);
    timers.delete(id);
  }
}

/**
 * @param {any} client @param {McpTool} tool @param {object} params @param {object} options
 * @param {boolean} asks whether what the server needs to know comes back, to be asked here
 */
async function callTool(client, tool, params, options, asks) {
  // The successor of the SDK has no second argument for the schema of a result.
  if (!isSuccessor(client)) return client.callTool(params, undefined, options);
  if (!asks || !isModern(client)) return client.callTool(params, options);
  // It would check what is no result yet against the schema of results.
  const { outputSchema, ...toolDefinition } = tool;
  const result = await client.callTool(params, { ...options, allowInputRequired: true, toolDefinition });
  if (result.resultType !== "input_required") checkOutput(tool, result);
  return result;
}

/** Checks a result as the Client does. @param {McpTool} tool @param {any} result */
function checkOutput({ name, outputSchema }, { isError, structuredContent }) {
  if (!outputSchema || isError) return;
  if (structuredContent === undefined) throw new Error(`Tool ${name} has an output schema but did not return structured content`);
  const { errorMessage } = jsonSchemaValidator.getValidator(outputSchema)(structuredContent);
  if (errorMessage !== undefined) throw new Error(`Structured content does not match the tool's output schema: ${errorMessage}`);
}

/** Whether a client is that of `@modelcontextprotocol/client`, not of `@modelcontextprotocol/sdk`. @param {any} client */
export const isSuccessor = (client) => typeof client.getProtocolEra === "function";

/** Whether it speaks the protocol of July 2026, without sessions, with its server. @param {any} client */
export const isModern = (client) => client.getProtocolEra?.() === "modern";

/** What a server wants done first, by its error. @param {any} error @returns {unknown[] | undefined} */
function prerequisitesOf(error) {
  const required = error?.code === URL_REQUIRED ? error.data?.elicitations : undefined;
  return Array.isArray(required) && required.length > 0 ? required.slice(0, MAX_PREREQUISITES) : undefined;
}
