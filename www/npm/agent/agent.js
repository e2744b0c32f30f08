// @ts-check
// The agent: one conversation, one run at a time. Every method is a line of delegation, after a look at what the
// host passed in.

import { fromCheckpoint, reading } from "../checkpoint/read.js";
import { CORE, coreIn, FOR_PEOPLE, hideCore, isFromClient, kindOf, misuse, NOT_REACTIVE, others, steeringTime, toDecision, toMessages } from "../shared.js";
import { Core } from "./core.js";

/** @import { AgentEvent, AgentMessage, AgentOptions, Checkpoint, Input, JsonSchema, Question, RunOptions, StandardSchema, SteerOptions, Answer, ToolDecision } from "../index.js" */

/**
 * Marks the agent of a single run, as `agentLoop` creates it: the engine forgets it when the run is over,
 * and, as in the loop of the specification, two of its tools may share a name.
 */
const ONCE = Symbol("once");

/** Also known to other copies of the package. */
const AROUND = Symbol.for("turnwheel.around");

/**
 * Outside the class: a class that refers to itself by name gets renamed by the bundler.
 * @param {unknown} options @param {symbol} [mark] @param {readonly AgentMessage[]} [messages]
 */
const make = (options, mark, messages) => new Agent(options, mark, messages);

/** What is behind an agent, for other entries of the package. @type {(agent: import("../index.js").Agent<any>) => Core} */
export const coreOf = (agent) => coreIn(agent, "an agent");

/** An agent: one conversation, one run at a time. */
export class Agent {
  /** @type {Core} */ [CORE];

  /**
   * @param {unknown} options @param {symbol} [mark]
   * @param {readonly AgentMessage[]} [messages] used in place of those in the options
   */
  constructor(options, mark, messages) {
    this[CORE] = new Core(options, mark === ONCE, messages);
    hideCore(this);
    this[CORE].registration.owner = this;
  }

  /** @param {Input | Input[]} input @param {RunOptions} [options] */
  prompt(input, options) {
    return this[CORE].run(toMessages(input), options);
  }

  /** @param {RunOptions} [options] */
  continue(options) {
    return this[CORE].continue(options);
  }

  /** @param {(event: AgentEvent) => void} listener @param {{ keep?: boolean }} [options] */
  subscribe(listener, options) {
    return this[CORE].subscribers.add(listener, options);
  }

  /** @param {Input} input @param {SteerOptions} [options] */
  steer(input, options) {
    return this[CORE].postMessage(input, false, steeringTime(options));
  }

  /** @param {Input} input */
  followUp(input) {
    return this[CORE].postMessage(input, true);
  }

  clearQueues() {
    this[CORE].clearQueues();
  }

  /** @param {string} id @param {Answer} answer */
  resolve(id, answer) {
    if (typeof id !== "string") throw misuse(`a question's id must be a text, got ${kindOf(id)}`);
    // A checkpoint may have the question of a budget before the rest is loaded; the engine reads what is given.
    const isMore = "raise" in Object(answer) && this[CORE].approvals.questions.get(id)?.kind !== "tool";
    const convert = others.convert ?? (isMore ? (/** @type {Answer} */ given) => given : toDecision);
    return this.#decide([[id, convert(answer)]], true, isFromClient(answer));
  }

  /** @param {string} callId @param {ToolDecision} decision */
  resolveTool(callId, decision) {
    if (typeof callId !== "string") throw misuse(`a call's id must be a text, got ${kindOf(callId)}`);
    return this.#decide([[callId, toDecision(decision, callId)]], false, isFromClient(decision));
  }

  /** @param {{ [callId: string]: ToolDecision }} decisions */
  resolveTools(decisions) {
    if (typeof decisions !== "object" || decisions === null || Symbol.iterator in decisions) throw misuse(`the decisions must be an object, got ${kindOf(decisions)}`);
    return this.#decide(Object.entries(decisions).map(([id, decision]) => [id, toDecision(decision, id)]), false, [decisions, ...Object.values(decisions)].some(isFromClient));
  }

  /** Whether a question waits for a person, and not for a function of the host. @param {Pick<Question, "kind" | "path">} question */
  [FOR_PEOPLE](question) {
    return this[CORE].isForPeople(question);
  }

  /** @param {[string, Answer][]} decisions @param {boolean} byId whether the keys are ids of questions, not of calls @param {boolean} isClients whether a client says so */
  #decide(decisions, byId, isClients) {
    // Before the first run there is no engine that could refuse them.
    for (const [id, decision] of decisions) {
      const { action, arguments: given } = /** @type {{ action?: string, arguments?: unknown }} */ (decision);
      const isObject = typeof given === "object" && !Array.isArray(given);
      if (action === "approve" && given !== undefined && !isObject) throw misuse(`the decision about \`${id}\`: the \`arguments\` of a decision must be an object, got ${kindOf(given)}`);
    }
    return this[CORE].decide(decisions, byId, isClients);
  }

  /** @param {WeakMap<AgentMessage, string>} [written] of a lease: what toCheckpoint makes of it */
  checkpoint(written) {
    return this[CORE].checkpoint(written);
  }

  /** @param {Checkpoint | string} checkpoint @param {AgentOptions} options */
  static async restore(checkpoint, options) {
    if (options?.messages !== undefined) throw misuse("the messages of a restored agent are those of its checkpoint; leave `messages` out");
    const parsed = reading(() => fromCheckpoint(checkpoint));
    const agent = make(options, undefined, parsed.messages);
    await agent[CORE].restore(parsed);
    return agent;
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    this[CORE].runs.current?.abort(reason);
  }

  /** @param {unknown} [reason] */
  cancel(reason) {
    this[CORE].cancel(reason);
  }

  async waitForIdle() {
    await this[CORE].runs.idle();
  }

  reset() {
    this[CORE].reset();
  }

  /** @param {number} length @param {readonly AgentMessage[]} [branch] */
  rewind(length, branch) {
    return this[CORE].rewind(length, branch);
  }

  get messages() {
    return this[CORE].history.messages;
  }

  /** In the types, the history is the engine's. */
  set messages(messages) {
    this[CORE].rewind(0, messages);
  }

  get pendingQuestions() {
    return this[CORE].approvals.list();
  }

  get pendingApprovals() {
    return this[CORE].approvals.calls();
  }

  get isRunning() {
    return this[CORE].runs.current !== undefined;
  }

  get canContinue() {
    const { runs, disposed } = this[CORE];
    return !runs.current && !disposed && this[CORE].whyCannotContinue() === undefined;
  }

  get sessionId() {
    const { session, host } = this[CORE];
    return (session.id ??= host.id());
  }

  get usage() {
    return this[CORE].session.usage;
  }

  get model() {
    return this[CORE].settings.models.first;
  }

  set model(model) {
    this[CORE].setModel(model);
  }

  get systemPrompt() {
    return this[CORE].settings.systemPrompt;
  }

  set systemPrompt(text) {
    if (typeof text !== "string") throw misuse(`\`systemPrompt\` must be a text, got ${kindOf(text)}`);
    this[CORE].setSystemPrompt(text);
  }

  get streamOptions() {
    return this[CORE].settings.streamOptions;
  }

  set streamOptions(options) {
    this[CORE].setStreamOptions(options);
  }

  get budget() {
    return this[CORE].settings.budget;
  }

  set budget(budget) {
    this[CORE].setBudget(budget);
  }

  /** @returns {JsonSchema | StandardSchema | undefined} */
  get output() {
    return this[CORE].settings.output.given;
  }

  set output(schema) {
    this[CORE].setOutput(schema);
  }

  get tools() {
    // Frozen: a tool that is pushed into this list would never be registered.
    return Object.freeze(this[CORE].settings.tools.definitions());
  }

  set tools(tools) {
    this[CORE].setTools(tools);
  }

  get [NOT_REACTIVE]() {
    return true;
  }

  /** What stands around execution, for other entries of the package: what they change holds from then on. */
  get [AROUND]() {
    return this[CORE].settings.around;
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this[CORE].dispose();
  }
}

/** @param {Input[]} prompts @param {unknown} config @param {RunOptions} [options] */
export function agentLoop(prompts, config, options) {
  if (!Array.isArray(prompts)) throw misuse(`agentLoop takes an array of inputs, got ${kindOf(prompts)}`);
  return make(config, ONCE).prompt(prompts, options);
}

/** @param {AgentMessage[]} messages @param {unknown} config @param {RunOptions} [options] */
export function agentLoopContinue(messages, config, options) {
  if (!Array.isArray(messages)) throw misuse(`agentLoopContinue takes an array of messages, got ${kindOf(messages)}`);
  return make(config, ONCE, messages).continue(options);
}
