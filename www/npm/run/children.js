// @ts-check
// The agents that run inside the tools of a run. It is loaded when the first of them begins.

/** @import { AgentEvent, Checkpoint, Answer, Question } from "../index.js" */
/** @import { Driver } from "./driver.js" */
/**
 * An agent inside a call: the call, its effect, and the run of the agent. `late` is where its events go while it is ended
 * for an effect that is gone.
 * @typedef {{ callId: string, slot: number, driver: Driver, keepsQuestions: boolean, late: [string, string][] | undefined }} Child
 */

/** How many agents may run inside the calls of one run, however deep: each of them may cost as much as a run. */
const MOST_AGENTS = 1_000;
/** How many have begun, by the outermost run. @type {WeakMap<Driver, number>} */
const begun = new WeakMap();

export class Children {
  /** Counts an agent that is about to begin inside a call of a run. @param {Driver} run */
  static count(run) {
    let outermost = run;
    while (outermost.around.run) outermost = outermost.around.run;
    const count = (begun.get(outermost) ?? 0) + 1;
    if (count > MOST_AGENTS) throw new Error(`${MOST_AGENTS} sub-agents have run inside this run`);
    begun.set(outermost, count);
  }

  /** @param {Driver} run */
  constructor(run) {
    this.run = run;
    /** @type {Map<number, Child>} */
    this.bySlot = new Map();
  }

  /**
   * An agent begins inside a call: from here on its events are events of this run.
   * @param {number} slot @param {string} callId @param {Driver} driver @param {boolean} keepsQuestions
   */
  adopt(slot, callId, driver, keepsQuestions) {
    const { run } = this;
    /** @type {Child} */
    const child = { callId, slot, driver, keepsQuestions, late: undefined };
    this.bySlot.set(slot, child);
    delete run.waitingChildren[callId];
    driver.isInside = true;
    // Before all other listeners: what they see of this run has this event in it.
    driver.core.subscribers.around = (event) => this.#report(child, event);
    const { core } = run;
    const early = core.earlyAnswers.filter(([of]) => of === callId);
    core.earlyAnswers = core.earlyAnswers.filter(([of]) => of !== callId);
    for (const [, answers, isClients] of early) driver.core.decide(answers, true, isClients);
  }

  /** @param {Child} child @param {AgentEvent} event */
  #report(child, event) {
    const { slot, late } = child;
    const [path, inner] = event.type === "subagent_event" ? [JSON.stringify(event.path), event.event] : ["", event];
    const text = JSON.stringify(inner);
    if (late) late.push([path, text]);
    else this.run.engineRun.subagentEvent(slot, path, text, flagsOf(child));
  }

  /** Whether the events of an agent inside this effect are being delivered right now. @param {number} slot */
  isDelivering(slot) {
    return this.bySlot.get(slot)?.driver.poller.isDelivering === true;
  }

  /** Passes answers to questions on. @param {string} callId @param {[string, Answer][]} answers @param {boolean} isClients @returns {boolean} whether the agent is there */
  answer(callId, answers, isClients) {
    const child = this.#of(callId);
    child?.driver.core.decide(answers, true, isClients);
    return child !== undefined;
  }

  /** Whether a question of the agent inside a call waits for a person, if the agent is there. @param {string} callId @param {Pick<Question, "kind" | "path">} question */
  isForPeople(callId, question) {
    const child = this.#of(callId);
    return child && !child.keepsQuestions && child.driver.core.isForPeople(question);
  }

  /** The agent inside a call. @param {string} callId */
  #of(callId) {
    return [...this.bySlot.values()].find((child) => child.callId === callId);
  }

  /** The agents as they stand, by the ids of their calls. @returns {{ [callId: string]: Checkpoint }} */
  checkpoints() {
    return Object.fromEntries([...this.bySlot.values()].map(({ callId, driver }) => [callId, driver.checkpoint()]));
  }

  /**
   * What is left to tell when a run goes on: not the end of an agent whose call has no result yet, for that agent goes on too,
   * and tells its end again.
   * @param {AgentEvent[]} untold @param {{ [callId: string]: Checkpoint } | undefined} open the checkpoints of those inside @returns {AgentEvent[]}
   */
  untold(untold, open) {
    return untold.filter((event) => event.type !== "subagent_event" || event.event.type !== "agent_end" || !isOpen(open, event.path));
  }

  /** The call has its result. @param {number} slot */
  end(slot) {
    const child = this.bySlot.get(slot);
    if (!child) return;
    this.bySlot.delete(slot);
    const { driver } = child;
    driver.core.subscribers.around = undefined;
    driver.isInside = false;
    if (!driver.isOver) driver.abort(this.run.abortion.effectReason());
    else if (!driver.outlet.queue.hasUnread) driver.drop();
  }

  /** Ends all, before the run around them ends. @param {unknown} reason */
  closeAll(reason) {
    for (const { driver } of this.bySlot.values()) close(driver, reason);
  }

  /**
   * Nobody wants the result of a call any more: the agent inside ends before the listeners hear of the end of the call.
   * @param {number} slot
   */
  cancel(slot) {
    const events = this.endEarly(slot);
    if (events.length > 0) this.run.batches.deliverFirst(events);
  }

  /** Ends the agent inside a call that has its result already. Returns what is to be told of it before that. @param {number} slot @returns {AgentEvent[]} */
  endEarly(slot) {
    const { run } = this;
    const { engineRun } = run;
    const child = this.bySlot.get(slot);
    if (!child) return [];
    /** @type {[string, string][]} */
    const late = (child.late = []);
    close(child.driver, run.abortion.effectReason());
    this.end(slot);
    if (run.isOver || engineRun.isGone) return [];
    const events = late.flatMap(([path, event]) => engineRun.lateSubagentEvent(child.callId, path, event, flagsOf(child)));
    for (const event of events) run.mark(event);
    return events;
  }
}

/** Whether a call inside these agents is open. @param {{ [callId: string]: Checkpoint } | undefined} children @param {string[]} path @returns {boolean} */
function isOpen(children, [callId = "", ...rest]) {
  if (!children || !Object.hasOwn(children, callId)) return false;
  return rest.length === 0 || isOpen(/** @type {any} */ (children[callId]).metadata.turnwheel?.children, rest);
}

/** What the engine must know of an agent inside a call. @param {Child} child */
const flagsOf = ({ keepsQuestions, driver }) => (keepsQuestions ? 1 : 0) + (driver.core.registration.engine === driver.around.run?.engineRun.engine ? 2 : 0);

/** Ends a run now. @param {Driver} driver @param {unknown} reason */
function close(driver, reason) {
  driver.abort(reason);
  driver.poller.poll();
}
