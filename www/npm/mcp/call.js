// @ts-check
// One call of a tool at its server.

import { resultOf, updateOf } from "./content.js";
import { Clock } from "./clock.js";

/** @import { ToolContext } from "../index.js" */
/** @import { McpClient, McpTool } from "../mcp.js" */
/** @import { Progress } from "./content.js" */
/** @import { Elicitors } from "./offers.js" */
/** @import { Watch } from "./watch.js" */

/** The SDK's own timers are as good as off; `Clock` is in their place. */
const NO_TIMEOUT = 2 ** 31 - 1;
/** The protocol's code for "something must be done at an address first". */
const URL_REQUIRED = -32042;
/** How often a server may say that something must be done first. */
const MAX_PREREQUISITES = 5;

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
   * @template T @param {(options: object) => Promise<T>} request @returns {Promise<T>}
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
    const params = { name: tool.name, arguments: args };
    // Some tools only run as tasks, whose result is fetched once it is there.
    const isTask = /** @type {{ execution?: { taskSupport?: string } }} */ (tool).execution?.taskSupport === "required";
    return this.run(async (options) => {
      for (let tries = 0; ; tries++) {
        try {
          return resultOf(isTask ? await this.#task(client, params, options) : await callTool(client, params, options));
        } catch (error) {
          const required = prerequisitesOf(error);
          if (!required || !elicitor || tries >= MAX_PREREQUISITES || !(await this.#settle(required, elicitor))) throw error;
        }
      }
    });
  }

  /** Asks for all that must be done before a call can be made. Returns whether it was. @param {unknown[]} required @param {Elicitors} elicitor */
  async #settle(required, elicitor) {
    this.clock.stop();
    try {
      const asking = await elicitor();
      for (const one of required) if ((await asking.ask(one, this.#controller.signal, this)).action !== "accept") return false;
      return !this.#controller.signal.aborted;
    } finally {
      this.clock.go();
    }
  }

  /** @param {McpClient} client @param {object} params @param {object} options */
  async #task(client, params, options) {
    const { tasks } = /** @type {any} */ (client).experimental ?? {};
    if (!tasks) throw new Error("this tool only runs as a task, which this version of the Client cannot do");
    let taskId;
    let isOver = false;
    try {
      for await (const status of tasks.callToolStream(params, undefined, options)) {
        this.clock.restart();
        if (status.type === "result" || status.type === "error") isOver = true;
        if (status.type === "result") return status.result;
        if (status.type === "error") throw status.error;
        if (status.type === "taskCreated") taskId = status.task.taskId;
        if (status.type === "taskStatus") this.context.update(status.task.statusMessage ?? status.task.status);
      }
      throw new Error("the task ended without a result");
    } finally {
      if (taskId !== undefined && !isOver && this.#controller.signal.aborted) tasks.cancelTask(taskId).catch(() => {});
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

/** The successor of the SDK has no second argument for the schema of a result. @param {any} client @param {object} params @param {object} options */
const callTool = (client, params, options) => (isSuccessor(client) ? client.callTool(params, options) : client.callTool(params, undefined, options));

/** Whether a client is that of `@modelcontextprotocol/client`, not of `@modelcontextprotocol/sdk`. @param {any} client */
export const isSuccessor = (client) => typeof client.getProtocolEra === "function";

/** What a server wants done first, by its error. @param {any} error @returns {unknown[] | undefined} */
function prerequisitesOf(error) {
  const required = error?.code === URL_REQUIRED ? error.data?.elicitations : undefined;
  return Array.isArray(required) && required.length > 0 ? required.slice(0, MAX_PREREQUISITES) : undefined;
}
