// @ts-check
// Tools of 2025 that only run as tasks, whose result is fetched once it is there. Loaded with the first one.

import { sleep } from "../shared.js";

/** @import { Call } from "./call.js" */

/** How long to wait before a server is asked again how a task goes, unless it says so. */
const PAUSE_MS = 1_000;
/** What a server may say at most and at least. */
const LONGEST_PAUSE_MS = 60_000;
const SHORTEST_PAUSE_MS = 10;
/** A schema that every result fits. */
const ANY = { "~standard": { version: 1, vendor: "turnwheel", validate: (/** @type {unknown} */ value) => ({ value }) } };

/**
 * @param {any} client @param {object} params @param {{ signal: AbortSignal }} options @param {Call} call
 * @returns {Promise<any>} the result of the call
 */
export async function runTask(client, params, options, call) {
  const { signal } = options;
  const stream = client.experimental?.tasks?.callToolStream(params, undefined, options) ?? (typeof client.getProtocolEra === "function" ? steps(client, params, options) : undefined);
  if (!stream) throw new Error("this tool only runs as a task, which this version of the Client cannot do");
  let taskId;
  let isOver = false;
  try {
    for await (const status of stream) {
      call.clock.restart();
      if (status.type === "result" || status.type === "error") isOver = true;
      if (status.type === "result") return status.result;
      if (status.type === "error") throw status.error;
      if (status.type === "taskCreated") taskId = status.task.taskId;
      if (status.type === "taskStatus") call.context.update(status.task.statusMessage ?? status.task.status);
    }
    throw new Error("the task ended without a result");
  } finally {
    if (taskId !== undefined && !isOver && signal.aborted) cancel(client, taskId).catch(() => {});
  }
}

/** @param {any} client @param {string} taskId @returns {Promise<unknown>} */
const cancel = (client, taskId) => client.experimental?.tasks?.cancelTask(taskId) ?? client.request({ method: "tasks/cancel", params: { taskId } }, ANY);

/** `@modelcontextprotocol/client` knows the messages of tasks, but does not run them: this does, as the SDK before it did. @param {any} client @param {object} params @param {{ signal: AbortSignal }} options */
async function* steps(client, params, options) {
  const request = (/** @type {string} */ method, /** @type {object} */ more) => client.request({ method, params: more }, ANY, options);
  const { task: created } = await request("tools/call", { ...params, task: {} });
  if (!created) throw new Error("the server has made no task of the call");
  yield { type: "taskCreated", task: created };
  const { taskId } = created;
  for (;;) {
    const task = await request("tasks/get", { taskId });
    yield { type: "taskStatus", task };
    // What the task asks a person comes while its result is waited for.
    if (task.status === "completed" || task.status === "input_required") {
      yield { type: "result", result: await request("tasks/result", { taskId }) };
      return;
    }
    if (task.status === "failed" || task.status === "cancelled") {
      yield { type: "error", error: new Error(`the task ${task.status === "failed" ? "failed" : "was cancelled"}${task.statusMessage ? `: ${task.statusMessage}` : ""}`) };
      return;
    }
    const pause = Number(task.pollInterval) || PAUSE_MS;
    await sleep({}, Math.min(Math.max(pause, SHORTEST_PAUSE_MS), LONGEST_PAUSE_MS), options.signal);
    options.signal.throwIfAborted();
  }
}
