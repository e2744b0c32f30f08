// @ts-check
// What the user of an agent does, by the plan's `drive`: decide, abort, write, go away.

import { dice } from "../js/dice.mjs";
import { distant } from "./distant.mjs";
import { later } from "./tools.mjs";

/**
 * @typedef {object} Drive
 * @property {(event: any) => void} [event] in a subscriber
 * @property {(event: any) => void} [saved] after the checkpoint of this event is stored
 * @property {() => any} [user] who prompts, if it is not the agent
 * @property {(user: any, n: number) => any} [prompt] begins run n
 * @property {(run: any) => Promise<any>} [read]
 * @property {() => Promise<void>} [finish]
 */

/** @param {import("./agents.mjs").Life} life */
const rollOf = (life) => dice(Number(life.id.replace(/\D/g, "")) + 17 * life.saved.deaths + 5);

/** Decisions must not be lost, and those that make no sense must be refused aloud. @param {import("./agents.mjs").Life} life @param {() => any} user */
export function decider(life, user) {
  const decide = (/** @type {string} */ callId, /** @type {any} */ decision) => {
    if (life.dead) return;
    // A remote user answers with a promise, which may reject where a command is refused aloud.
    try { Promise.resolve(user().resolveTool(callId, decision)).catch(() => {}); } catch (error) { refused(error); }
  };
  const refused = (/** @type {any} */ error) => {
    life.saved.refused += 1;
    if (error?.code !== "misuse") life.complain(`resolveTool threw ${error}`);
  };
  /** @type {Record<string, (callId: string, args: any) => void>} */
  const answers = {
    approve: (callId) => decide(callId, "approve"),
    reject: (callId) => decide(callId, { action: "reject", reason: "no" }),
    late: (callId) => void later(10).then(() => decide(callId, "approve")),
    twice: (callId) => { decide(callId, "approve"); decide(callId, "reject"); decide(callId, "approve"); },
    changed: (callId, args) => decide(callId, { action: "approve", arguments: { ...args, changed: true } }),
    result: (callId) => decide(callId, { action: "result", content: "from a person" }),
    unknown: (callId) => { decide("nobody", "approve"); decide(callId, "approve"); decide("", "reject"); },
    never: () => {},
  };
  return (/** @type {any} */ { callId, arguments: args }) => (answers[args.answer] ?? answers["approve"])?.(callId, args);
}

/** @param {import("./agents.mjs").Life} life @returns {Drive} */
function decides(life) {
  if (life.plan.remote) return distant(life);
  const decide = decider(life, () => life.agent);
  const event = (/** @type {any} */ event) => { if (event.type === "tool_approval_requested") decide(event); };
  if (!life.plan.stored) return { event, finish: async () => told(life, "twice", 2) };
  const { deaths, letters } = life.plan.with;
  const roll = rollOf(life);
  let left = life.saved.deaths < deaths ? 1 + roll(40) : Infinity;
  return {
    event(happened) {
      event(happened);
      // In a listener, so that the checkpoint of this very event holds the letter.
      if (happened.type === "turn_start" && life.saved.letters.length < letters) {
        const mark = `f${life.saved.letters.length}`;
        life.posted(mark, life.agent.followUp(`@${life.id}.${mark}@ and this`));
      }
    },
    saved() {
      if (--left > 0) return;
      life.saved.deaths += 1;
      life.storage.save(life.saved);
      life.host.die(life);
    },
  };
}

/** Decisions that decide nothing were refused aloud, each. @param {import("./agents.mjs").Life} life @param {string} answer @param {number} times how many such decisions it has */
function told(life, answer, times) {
  const calls = life.plan.turns.flatMap(({ calls }) => calls).filter((call) => call.answer === answer).length;
  if (life.saved.refused < calls * times) life.complain(`of ${calls * times} decisions that decide nothing ${life.saved.refused} were refused`);
}

/** Decisions about calls that nobody made, and about a call of a run that is over. @param {import("./agents.mjs").Life} life @returns {Drive} */
function misjudges(life) {
  const { event } = decides(life);
  let last = "";
  return {
    event(happened) {
      if (happened.type === "tool_approval_requested") last = happened.callId;
      event?.(happened);
    },
    async finish() {
      told(life, "unknown", 2);
      const before = life.saved.refused;
      try {
        if (life.agent.resolveTool(last, "approve") === false) life.saved.refused += 1;
      } catch { life.saved.refused += 1; }
      await later(0);
      if (life.saved.refused === before) life.complain("a decision about a run that is over was taken without a word");
    },
  };
}

/** The first run is stopped at the n-th event of a kind; it cannot end before, because a tool of its first turn waits for that. @param {import("./agents.mjs").Life} life @returns {Drive} */
function aborts(life) {
  const { at, how, after } = life.plan.with;
  const decide = decider(life, () => life.agent);
  const controller = new AbortController();
  const isFirst = () => life.saved.runs.length === 0;
  let seen = 0;
  /** @type {Record<string, () => void>} */
  const stop = { agent: () => life.agent.abort("enough"), run: () => life.run.abort(new Error("enough")), signal: () => controller.abort(), leave: () => {} };
  return {
    event(event) {
      if (isFirst() && event.type === at && ++seen === after) stop[how]?.();
      else if (event.type === "tool_approval_requested" && !(isFirst() && at === event.type)) decide(event);
    },
    prompt: (user, n) => user.prompt(`@${life.id}.p${n}@ go`, n === 0 ? { signal: controller.signal } : {}),
    async read(run) {
      if (how !== "leave" || !isFirst()) return run.result;
      let n = 0;
      for await (const event of run) if (event.type === at && ++n === after) break;
      return run.result;
    },
  };
}

/** Letters, at moments when the plan says what becomes of them. @param {import("./agents.mjs").Life} life @returns {Drive} */
function posts(life) {
  const { how, letters } = life.plan.with;
  const at = how === "immediate" || how === "steer" || how === "finish" ? "tool_execution_start" : "turn_start";
  const post = (/** @type {number} */ i) => {
    const mark = `${at === "turn_start" ? "f" : "s"}${i}`;
    const text = `@${life.id}.${mark}@ and this`;
    life.posted(mark, at === "turn_start" ? life.agent.followUp(text) : life.agent.steer(text));
  };
  return {
    event(event) {
      if (event.type !== at || life.saved.letters.length > 0) return;
      for (let i = 0; i < letters; i++) post(i);
      if (how === "cleared") life.agent.clearQueues();
    },
    async finish() {
      await later(0);
      for (const { mark, delivered } of life.saved.letters) {
        if (delivered !== (how !== "cleared")) life.complain(`the letter ${mark} was ${delivered === undefined ? "given no receipt" : delivered ? "delivered" : "not delivered"}`);
      }
    },
  };
}

/** @type {Record<string, (life: import("./agents.mjs").Life) => Drive>} */
export const DRIVES = {
  listens: (life) => (life.plan.remote ? distant(life) : {}),
  decides, misjudges, aborts, posts,
};
