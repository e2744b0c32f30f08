// @ts-check
// What the tests that kill processes and pages share: one life of a run, and what must hold when the run has ended.

import { Agent, approve, options } from "./world.mjs";

/**
 * One life: from the beginning or a checkpoint, until the run ends or `die` is called for the event with that number.
 * @param {any} own the world
 * @param {{ from?: any, until?: number, hear(event: any, agent: any): void, die(checkpoint: any): void }} how
 * @returns {Promise<any>} the agent, when the run has ended
 */
export async function runLife(own, { from, until = Infinity, onEvent, die }) {
  const agent = from === undefined ? new Agent(options(own)) : await Agent.restore(from, options(own));
  let count = 0;
  agent.subscribe((/** @type {any} */ event) => {
    if (own.dead) return;
    onEvent(event, agent);
    // Once its end was announced, the run is over: there is nothing to continue.
    if (++count !== until || event.type === "agent_end") return;
    const checkpoint = agent.checkpoint();
    own.dead = true;
    die(checkpoint);
  });
  approve(agent, own);
  const run = from === undefined ? agent.prompt("Go") : agent.continue();
  const { stopReason } = await run.result;
  // A dead agent does not come back, whatever its process still does.
  if (own.dead) return new Promise(() => {});
  if (stopReason !== "completed") throw new Error(`the run ended with ${stopReason}`);
  return agent;
}

/** A history without timestamps. @param {readonly any[]} messages */
export const plain = (messages) => JSON.parse(JSON.stringify(messages, (key, value) => (key === "timestamp" || key === "id" ? undefined : value)));

/**
 * The calls that may only run once, and were running when a life ended.
 * @param {any[]} events of all lives
 */
export function interrupted(events) {
  const running = events.flatMap(({ type, runningTools }) => (type === "run_resumed" ? runningTools : []));
  return running.filter(({ toolName }) => toolName === "pay").map(({ callId }) => callId);
}

/**
 * The expected history: interrupted calls have a result that says so.
 * @param {any[]} undisturbed the undisturbed one @param {string[]} cut
 */
export function expected(undisturbed, cut) {
  const text = "tool call interrupted: the process ended while the tool ran";
  return undisturbed.map((message) => (message.role === "tool_result" && cut.includes(message.callId) ? { ...message, isError: true, cause: "interrupted", content: [{ type: "text", text }] } : message));
}

/**
 * Returns why the tools did not run as often as they should, or nothing.
 * @param {string[]} ran @param {any[]} events of all lives @param {any[]} history
 */
export function tooOften(ran, events, history) {
  const lives = 1 + events.filter(({ type }) => type === "run_resumed").length;
  const cut = interrupted(events);
  for (const { role, callId, toolName } of history) {
    if (role !== "tool_result") continue;
    const times = ran.filter((id) => id === callId).length;
    const once = toolName === "pay";
    if (times > (once ? 1 : lives) || (times === 0 && !cut.includes(callId))) return `${callId} (${toolName}) ran ${times} times in ${lives} lives`;
    // A call whose end was announced is done.
    const end = events.findIndex((event) => event.type === "tool_execution_end" && event.callId === callId);
    const begins = events.filter((event, at) => at > end && event.type === "tool_execution_start" && event.callId === callId);
    if (end >= 0 && begins.length > 0) return `${callId} began again after its end was told`;
  }
}
