// @ts-check
// The implementation of an agent, behind the public class `Agent`: it puts the parts together, begins and ends
// runs, and writes checkpoints.

import { allQuestions } from "../checkpoint/questions.js";
import { fromCheckpoint, reading, withChildren } from "../checkpoint/read.js";
import { toCheckpoint } from "../checkpoint/write.js";
import { Registration } from "../boundary/registration.js";
import { needStack } from "../boundary/stack.js";
import { complain, fromEngine, hostWithDefaults, jsonOf, misuse, others, shownOf, Subscribers, toMessage, VERSION } from "../shared.js";
import { checkBudget, checkOptions, checkRunOptions, checkStreamOptions } from "../options/options.js";
import { handled } from "../rules/host-call.js";
import { abortText } from "../run/abortion.js";
import { Driver } from "../run/driver.js";
import { INSIDE } from "../tools/subagent.js";
import { History } from "./history.js";
import { Questions } from "./questions.js";
import { Receipts } from "./receipts.js";
import { Runs } from "./runs.js";
import { Session } from "./session.js";
import { loadAnswers, Settings } from "./settings.js";
import { Thrown } from "./thrown.js";

/** @import { AgentError } from "../shared.js" */
/** @import { AgentMessage, Input, JsonSchema, Model, Question, RunOptions, StandardSchema, SteerOptions, StreamOptions, Answer } from "../index.js" */
/** @import { EngineState } from "../checkpoint/format.js" */
/** @import { Read } from "../checkpoint/read.js" */
/** @import { Written } from "../checkpoint/write.js" */
/** @import { Inside } from "../tools/subagent.js" */

export class Core {
  /**
   * @param {unknown} given the options
   * @param {boolean} once whether the agent does a single run; if so, the engine forgets it when that is over
   * @param {unknown} messages used in place of those in the options
   */
  constructor(given, once, messages) {
    const options = checkOptions(given);
    this.version = VERSION;
    this.once = once;
    // Where there is a durable engine, `host.sleep` is a port of it.
    this.host = hostWithDefaults(options.host.step ? { ...options.host, sleep: undefined } : options.host, () => this.runs.current);
    /** What its durable engine does for its runs, if there is one. @type {import("../steps.js").DurablePorts | undefined} */
    this.durable = undefined;
    this.history = new History(messages ?? options.messages ?? []);
    this.settings = new Settings(options, once);
    this.session = new Session(options);
    this.subscribers = new Subscribers((error, runId) => this.#report(error, runId));
    this.approvals = new Questions((question) => this.isForPeople(question));
    this.receipts = new Receipts();
    this.runs = new Runs();
    this.thrown = new Thrown();
    this.registration = new Registration(this);
    /** Answers to questions of a checkpoint, asked by agents inside calls that have not gone on yet, each with whether a client gave it. @type {[string, [string, Answer][], boolean][]} */
    this.earlyAnswers = [];
    this.disposed = false;
    // Fails here if they are no JSON.
    this.settings.toJson();
  }

  get options() {
    return this.settings.options;
  }

  /** Tells the hooks of a failure outside of the loop. @param {AgentError} error @param {string} runId */
  #report({ info }, runId) {
    let isTold = false;
    for (const hooks of [this.options.hooks ?? []].flat()) {
      if (typeof hooks.onError !== "function") continue;
      isTold = true;
      try {
        handled(hooks.onError({ ...(this.runs.current?.about() ?? { sessionId: this.session.id ?? "", turnIndex: 0 }), runId, error: info }));
      } catch (error) {
        complain("turnwheel: onError threw", error);
      }
    }
    return isTold;
  }

  // ---- runs

  /** @param {AgentMessage[] | null} prompts @param {RunOptions} [options] */
  run(prompts, options = {}) {
    const { runs, session, registration } = this;
    checkRunOptions(options, this.settings.tools);
    if (this.disposed) throw misuse("the agent was disposed of");
    if (runs.current) throw misuse("the agent is already running; steer it, queue a follow-up, or wait for it");
    if (prompts && runs.restored) throw misuse("a run waits to go on from its checkpoint; continue() it first, or reset() the agent");
    if (registration.handle !== 0 && this.history.isChanged) throw misuse("`agent.messages` was changed, and the engine has its own; make a new Agent({ messages }), or reset() this one");
    const { budget = this.settings.budget } = options;
    const unpriced = budget?.usd !== undefined && this.settings.models.withoutPrice();
    if (unpriced) throw misuse(`\`budget.usd\` needs the price of model \`${unpriced}\`: give it as \`price\` with the model`);
    const { runId } = options;
    // A run that goes on from a checkpoint is the same run.
    if (runId !== undefined && !(runs.restored?.run && runs.restored.runId === runId) && runs.isRepeated(runId)) throw misuse(`there was a run with the id ${JSON.stringify(runId)} already; every run needs its own`);
    runs.unread?.drop();
    const inside = insideOf(options);
    registration.join(inside?.scope);
    if (inside) {
      inside.around.run?.core.registration.calls?.(this, inside.around.path);
      this.settings.inherit(inside.around);
      registration.configure();
      // Agents inside a durable run go by one clock.
      if (inside.around.run?.ports && !this.options.host.step) this.host = inside.around.run.core.host;
    }
    this.settings.loadAnswers(budget)?.catch(() => {});
    this.thrown.clear();
    // What an agent inside a durable run says of itself is the same in every process.
    session.id ??= inside?.around.run?.ports ? `${inside.around.run.core.session.id}/${inside.around.path.at(-1)}` : this.host.id();
    const driver = (runs.current = new Driver(this, prompts, options));
    inside?.adopt(driver);
    return driver.run;
  }

  /** Starts a run without a prompt. @param {RunOptions} [options] */
  continue(options) {
    const inside = insideOf(options);
    if (inside?.checkpoint && !this.runs.current) this.#takeOver(inside);
    const reason = this.runs.current ? undefined : this.whyCannotContinue();
    if (reason) throw misuse(reason);
    return this.run(null, options);
  }

  /** Becomes the agent of a checkpoint, in place of what it was. @param {Inside} inside */
  #takeOver({ checkpoint, scope }) {
    const read = fromCheckpoint(checkpoint);
    if (this.registration.handle !== 0 || this.history.messages.length > 0) this.reset();
    // One that was restored is in an engine before its first run.
    this.registration.unregister();
    this.registration.join(scope);
    this.history.messages = read.messages;
    this.#take(read);
  }

  /** Returns why there is nothing to continue, if so. */
  whyCannotContinue() {
    if (this.runs.restored) return;
    const last = this.history.messages.at(-1);
    if (last === undefined) return "cannot continue with an empty message history; use prompt(…)";
    const isWaiting = this.receipts.open.size > 0 || this.registration.hasWaiting();
    if (last.role === "assistant" && !isWaiting) return "cannot continue when the last message is an assistant message; use prompt(…), steer(…) or followUp(…)";
  }

  /**
   * Called right before the end of a run is announced, so that a listener of the end can start the next run.
   * @param {Driver} driver
   */
  beforeRunEnd(driver) {
    if (this.runs.current !== driver) return;
    this.runs.current = undefined;
    this.history.noteSynced();
    this.approvals.replace([]);
    this.settings.tools.endRun();
  }

  /** @param {Driver} driver */
  afterRunEnd(driver) {
    this.beforeRunEnd(driver);
    this.registration.ended?.();
    if (this.runs.current) return;
    const { engine } = this.registration;
    if (this.disposed || this.once) this.#unregister();
    this.runs.wakeIdle();
    // Not in the middle of the end: what runs next may have begun by then.
    if (engine) queueMicrotask(() => engine.replaceIfGrown());
  }

  // ---- commands

  /** @param {Input} input @param {boolean} followUp @param {SteerOptions["when"]} [when] */
  postMessage(input, followUp, when) {
    const message = toMessage(input);
    const text = jsonOf("the message is", message);
    const command = { kind: followUp ? "follow_up" : "steer", letter: { message, posted: true, when } };
    return this.receipts.make((receipt) => this.registration.postMessage(text, command, receipt));
  }

  /**
   * Decides about open questions: all of them or none. Returns whether the decisions were accepted.
   * @param {[string, Answer][]} decisions @param {boolean} byId whether the keys are ids of questions, not of calls
   * @param {boolean} [isClients] whether a client says so: then a question that the host decides is as good as closed
   */
  decide(decisions, byId, isClients = false) {
    const { approvals, registration, runs } = this;
    /** @type {[string, Answer][]} */
    const decided = JSON.parse(jsonOf("the decision is", decisions));
    if (this.disposed) throw misuse("the agent was disposed of");
    const ids = decided.map(([key]) => approvals.idOf(key, byId)).map((id) => (isClients && id !== undefined && !this.isForPeople(approvals.questions.get(id) ?? {}) ? undefined : id));
    const [missing] = decided.find((_, i) => ids[i] === undefined) ?? [];
    if (missing === undefined && new Set(ids).size === ids.length) {
      // A second answer is posted too: the run refuses it, and the listeners hear of it.
      const answers = decided.map(([, answer], i) => /** @type {[string, Answer]} */ ([ids[i], asOutput(answer, approvals.questions.get(ids[i] ?? ""))]));
      for (const [id, answer] of answers) others.check?.(id, answer, approvals.questions.get(id));
      const callOf = (/** @type {string} */ id) => approvals.questions.get(id)?.path[0];
      const own = answers.filter(([id]) => callOf(id) === undefined);
      if (runs.current?.ports?.waits(own.map(([id]) => approvals.questions.get(id)))) throw misuse("`host.wait` waits for this decision: give it to the durable engine, which stores it");
      if (own.length > 0 || answers.length === 0) registration.postDecisions(Object.fromEntries(own), true);
      for (const callId of new Set(answers.map(([id]) => callOf(id)))) if (callId !== undefined) this.#answerInside(callId, answers.filter(([id]) => callOf(id) === callId), isClients);
      const isFirst = approvals.answer(ids);
      if (isFirst) for (const [id, answer] of own) runs.current?.asks?.note(id, answer);
      return isFirst;
    }
    if (!runs.current && !runs.restored?.run) return false;
    const isParked = !byId && !isClients && missing !== undefined && this.options.earlyDecisions === "park";
    const byCall = decided.map(([key, decision]) => [approvals.questions.get(key)?.callId ?? key, decision]);
    const post = () => (isParked ? registration.postDecisions(Object.fromEntries(byCall), false) : registration.refuseDecision(byId ? "id" : "callId", missing ?? String(ids)));
    // The engine must know of the run that it is about.
    if (runs.current?.engineRun.handle === 0) runs.current.early.push(post);
    else post();
    return isParked;
  }

  /** Answers questions of the agent inside a call, or of those inside that. @param {string} callId @param {[string, Answer][]} answers @param {boolean} isClients */
  #answerInside(callId, answers, isClients) {
    if (!this.runs.current?.children?.answer(callId, answers, isClients)) this.earlyAnswers.push([callId, answers, isClients]);
  }

  /** Whether a question waits for a person: one about a call does not where `approveTool` decides. @param {Partial<Pick<Question, "kind" | "path">>} question @returns {boolean} */
  isForPeople({ kind = "tool", path = [] }) {
    if (kind !== "tool") return true;
    const [callId, ...rest] = path;
    if (callId === undefined) return !this.options.approveTool;
    const { current, restored } = this.runs;
    // An agent that is not there yet has left in its checkpoint who decides.
    return current?.children?.isForPeople(callId, { kind, path: rest }) ?? !hostDecides(current?.waitingChildren ?? restored?.children, path);
  }

  /** Ends the run, behind what was posted before. @param {unknown} [reason] */
  cancel(reason) {
    const { current } = this.runs;
    if (!current) return;
    current.abortion.reason ??= reason;
    const post = () => this.registration.postCancel(abortText(reason));
    // The engine must know of the run that it is about.
    if (current.engineRun.handle === 0) current.early.push(post);
    else post();
  }

  clearQueues() {
    this.registration.clearQueues();
    if (!this.runs.current) this.receipts.settleAll({ delivered: false, reason: "cleared" });
  }

  /** @param {Model} model */
  setModel(model) {
    this.settings.models.set(model, this.runs.current !== undefined);
    this.registration.configure();
  }

  /** @param {string} text */
  setSystemPrompt(text) {
    this.settings.systemPrompt = text;
    this.registration.configure();
  }

  /** @param {StreamOptions | undefined} options */
  setStreamOptions(options) {
    checkStreamOptions(options);
    jsonOf("the stream options are", options ?? {});
    this.settings.streamOptions = options;
    this.registration.configure();
  }

  /** @param {import("../index.js").Budget | undefined} budget */
  setBudget(budget) {
    checkBudget(budget);
    this.settings.budget = budget;
    this.settings.loadAnswers()?.catch(() => {});
    this.registration.configure();
  }

  /** @param {JsonSchema | StandardSchema | undefined} schema */
  setOutput(schema) {
    this.settings.output.set(schema);
    this.registration.configure();
  }

  /** @param {unknown} tools */
  setTools(tools) {
    this.settings.tools.set(tools);
    this.registration.configure();
  }

  /** Takes the history back to its first messages; what else the agent has stays. @param {number} length @param {readonly AgentMessage[]} [branch] */
  rewind(length, branch = []) {
    const { runs, registration, history } = this;
    const { messages } = history;
    if (this.disposed) throw misuse("the agent was disposed of");
    if (runs.current) throw misuse("a run is in progress; abort() it, await waitForIdle(), and rewind then");
    if (!(Number.isInteger(length) && length >= 0 && length <= messages.length)) throw misuse(`\`rewind\` takes how many messages stay, a whole number from 0 to ${messages.length}, got ${shownOf(length)}`);
    const added = new History(branch);
    if (registration.handle !== 0 && history.isChanged) throw misuse("`agent.messages` was changed, and the engine has its own; make a new Agent({ messages }), or reset() this one");
    runs.unread?.drop();
    registration.rewind(length, added.toJson());
    runs.restored = undefined;
    this.earlyAnswers = [];
    this.approvals.replace([]);
    history.messages = [...messages.slice(0, length), ...added.messages];
    history.noteSynced();
    const cut = messages.slice(length);
    // No run tells of it.
    this.subscribers.dispatch({ type: "history_rewound", runId: "", length, cut: cut.length, added: added.messages.length });
    return cut;
  }

  reset() {
    needStack();
    const { runs, registration } = this;
    const { current } = runs;
    // The old run ends on a history of its own, when the agent is new already: a listener of its end may begin the next one.
    current?.abort("the agent was reset", true);
    runs.epoch++;
    runs.current = undefined;
    runs.restored = undefined;
    this.history.clear();
    registration.forget();
    runs.unread?.drop();
    this.approvals.replace([]);
    this.earlyAnswers = [];
    this.receipts.settleAll({ delivered: false, reason: "cleared" });
    this.session.reset();
    registration.reset();
    current?.poller.poll();
    if (!runs.current) runs.wakeIdle();
  }

  dispose() {
    if (this.disposed) return;
    needStack();
    this.runs.current?.abort("the agent was disposed of", true);
    this.disposed = true;
    this.runs.epoch++;
    this.runs.unread?.drop();
    this.receipts.settleAll({ delivered: false, reason: "disposed" }, { delivered: false, reason: "aborted" });
    const { engine } = this.registration;
    this.#unregister();
    if (!this.runs.current) engine?.replaceIfGrown();
  }

  /** The engine forgets the agent, once no run has its end to report: not one that was aborted or reset either. */
  #unregister() {
    if (!this.runs.current && this.runs.byHandle.size === 0) this.registration.unregister();
  }

  // ---- checkpoints

  /** Takes over a checkpoint; its messages have been set already. The engine reads all of it. @param {Read} read */
  async restore(read) {
    this.#take(read);
    if (this.approvals.list().some(({ kind }) => kind !== "tool")) await loadAnswers();
    if (this.options.host.step) await (await import("../steps.js")).inServer(this.registration);
    try {
      await this.registration.ready();
    } catch (error) {
      throw fromEngine(error);
    }
  }

  /** @param {Read} read */
  #take({ state, otherFields, runId }) {
    needStack();
    const { registration, runs } = this;
    registration.otherFields = otherFields;
    if (!state) return;
    registration.state = state;
    if (state.run || state.prompts !== undefined) runs.restored = { ...state, runId };
    this.session.restore(state);
    for (const question of reading(() => allQuestions(state, this.history.messages, (name) => this.settings.tools.hasSubAgent(name)))) this.approvals.add(question);
  }

  /** The state from a checkpoint that the engine must take over, as JSON. */
  stateJson() {
    return jsonOf("the checkpoint is", withChildren(this.registration.state));
  }

  /** The state to checkpoint while the engine does not know this agent. @returns {EngineState} */
  unregisteredState() {
    const { state, waiting } = this.registration;
    const own = state ?? { session: Object.fromEntries(this.session.state), changes: {} };
    return { ...own, mail: [...(state?.mail ?? []), ...waiting.map(({ command }) => command)] };
  }

  /** @param {EngineState} state as the engine reports it @param {string} [runId] @param {AgentMessage[]} [messages] */
  envelope(state, runId, messages = this.history.messages) {
    const { session } = this;
    const { appended = [], ...own } = state;
    const decides = this.options.approveTool && { hostDecides: true };
    return toCheckpoint({ sessionId: (session.id ??= this.host.id()), usage: session.usage, ...own, ...decides }, runId, [...messages, ...appended], this.registration.otherFields, this.written);
  }

  /** The agent as it stands, to be continued elsewhere. @param {Written} [written] */
  checkpoint(written) {
    const driver = this.runs.current ?? this.runs.unread;
    this.written = written;
    try {
      return driver ? driver.checkpoint() : this.idleCheckpoint();
    } finally {
      this.written = undefined;
    }
  }

  /** The agent without a run in progress. */
  idleCheckpoint() {
    const state = this.registration.checkpoint(this.host.now()) ?? this.unregisteredState();
    const { runId, options, children, untold } = this.runs.restored ?? {};
    return this.envelope({ ...state, ...(options && { options }), ...(children && { children }), ...(untold && { untold }) }, runId);
  }
}

/** What a call of a tool without `execute` is given by the id of the call, as any decision about calls is. @param {any} answer @param {Question} [question] @returns {Answer} */
const asOutput = (answer, question) => (question?.kind === "tool_call" && answer.action === "result" ? { output: answer.content, isError: answer.isError } : answer);

/** Whether the host decides about the calls of an agent inside these calls. @param {any} children the checkpoints of agents, by their calls @param {readonly string[]} path @returns {boolean} */
function hostDecides(children, [callId = "", ...rest]) {
  const stored = Object.hasOwn(children ?? {}, callId) ? children[callId].metadata?.turnwheel : undefined;
  return rest.length === 0 ? stored?.hostDecides === true : hostDecides(stored?.children, rest);
}

/** @param {object | undefined} options of a run @returns {Inside | undefined} */
const insideOf = (options) => /** @type {{ [INSIDE]?: Inside }} */ (options)?.[INSIDE];
