// @ts-check
// The commands for an agent: each is executed once per id, however often it is sent.

import { NotAllowed, readAnswer, readInput } from "../messages/client.js";
import { fromClient, isForPeople, kindOf } from "../shared.js";
import { AskedCalls } from "./asked-calls.js";
import { json, RequestError } from "./errors.js";
import { bytesOf } from "./letters.js";
import { Room, Throttle } from "./limits.js";
import { checkMembers } from "./read-command.js";
import { Replies, URGENT } from "./replies.js";

/** @import { Agent, AgentMessage, AgentRun } from "../index.js" */
/** @import { Host } from "../shared.js" */
/** @import { AgentCommand, AgentHandlerOptions } from "../server.js" */
/** @import { Feed } from "./feed.js" */
/** @import { Executed } from "./replies.js" */
/** @typedef {Record<"bodyBytes" | "historyBytes" | "queueBytes" | "listeners" | "listenersPerCaller" | "backlogBytes" | "commandsPerMinute" | "commandIds" | "events" | "logBytes", number>} Limits */
/** @typedef {Exclude<AgentCommand, "events" | "state">} CommandName */
/**
 * A command as it was sent; of its members only these have been checked.
 * @typedef {{ id?: string, runId?: string, reason?: string, input?: any, when?: any, question?: any, callId?: any, decision?: any, decisions?: any, length?: any, branch?: any, metadata?: any, streamOptions?: any, activeTools?: any, systemPrompt?: any, budget?: any }} Command
 */
/** @typedef {Record<string, unknown>} Reply */

/** How many branches of a conversation are kept to go back to. */
const MOST_BRANCHES = 10;

const ALREADY_RUNNING = "the agent is already running; steer it, queue a follow-up, or wait for it";

export class Commands {
  /** @param {Agent} agent @param {Feed} feed @param {AgentHandlerOptions} options @param {Host} host @param {Limits} limits */
  constructor(agent, feed, options, host, limits) {
    this.agent = agent;
    this.feed = feed;
    this.options = options;
    this.host = host;
    this.asked = new AskedCalls(agent, feed.log.last > feed.log.first);
    this.throttle = new Throttle(limits.commandsPerMinute, host.now);
    /** For commands that end or decide something. */
    this.urgent = new Throttle(limits.commandsPerMinute, host.now);
    this.room = new Room(limits.historyBytes, limits.queueBytes);
    this.replies = new Replies(feed, limits.commandIds, host.now);
    /** What was cut from the history, to go back to: the newest, by their ids. @type {Map<string, AgentMessage[]>} */
    this.branches = new Map();
    /** The run that was started last. */
    this.currentRunId = "";
    feed.onForget = () => this.replies.store();
    // Who repeats the message hears of it, too.
    feed.onSettled = (id, receipt) => this.replies.settle(id, receipt);
  }

  /** Takes over from an earlier instance: the commands it executed, and the messages that wait. */
  restore() {
    const { log, letters } = this.feed;
    for (const { type, data } of log.commands?.() ?? []) {
      const { id, name, letter, from, reply = {}, replies = [], receipt } = JSON.parse(data);
      for (const [id, reply, name] of replies) this.replies.takeOver(id, reply, name);
      if (type === "receipt") {
        letters.remove(id);
        letters.settle(id, receipt);
        this.replies.settle(id, receipt);
      }
      else if (letter !== undefined) {
        letters.add(id, bytesOf(letter), letter, from);
        this.replies.takeOver(id, { id });
      } else if (id !== undefined) this.replies.takeOver(id, reply, name);
    }
    this.feed.settleRead();
  }

  /** @param {CommandName} name @param {Command} command @returns {Promise<Response>} */
  async execute(name, command) {
    checkMembers(name, command);
    const { id } = command;
    const known = id === undefined ? undefined : this.replies.find(id, name);
    if (known?.done) return json(await known.done, 202);
    if (known?.reply) return json(await this.#store(name, known), 202);
    (URGENT.has(name) ? this.urgent : this.throttle).pass();
    if (id === undefined) return json(await this.#store(name, { reply: this.#perform(name, command) }), 202);
    const executed = this.replies.begin(id, name);
    try {
      executed.reply = this.#perform(name, command);
    } catch (error) {
      // A refused command was not executed, so it may be repeated.
      this.replies.forget(id);
      throw error;
    }
    return json(await this.#store(name, executed), 202);
  }

  /**
   * Stores what a command did. If that fails, it is stored when the command is repeated, and not executed again.
   * @param {CommandName} name @param {Pick<Executed, "reply" | "done">} executed @returns {Promise<Reply>}
   */
  async #store(name, executed) {
    const store = async () => {
      await this.options.commit?.(name);
      await this.feed.log.sync?.();
      return executed.reply ?? {};
    };
    executed.done = store();
    try {
      return await executed.done;
    } catch (error) {
      executed.done = undefined;
      throw error;
    }
  }

  /**
   * Executes a command. If it is repeated to another instance, that one must know of it: resetting twice loses what
   * came between.
   * @param {CommandName} name @param {Command} command @returns {Reply}
   */
  #perform(name, command) {
    const reply = COMMANDS[name](this, command) ?? {};
    if (command.id && ["reset", "resolve", "abort", "clear-queues", "rewind"].includes(name)) this.feed.append("command", { id: command.id, ...(URGENT.has(name) && { name }) });
    return reply;
  }

  /**
   * Refuses a run that has the id of another: its events could not be told apart.
   * @param {string | undefined} runId
   */
  checkNewRun(runId) {
    if (runId === undefined || !this.feed.runIds.has(runId)) return;
    throw new RequestError(409, "misuse", `there was a run with the id ${JSON.stringify(runId)} already; every run needs an id of its own`);
  }

  /** The options of a run, of which a client may set those that the host allows. @param {Command} command */
  runOptions({ runId, metadata, streamOptions, activeTools, systemPrompt, budget }) {
    const given = Object.entries({ metadata, streamOptions, activeTools, systemPrompt, budget }).filter(([, value]) => value !== undefined);
    const refused = given.find(([name]) => !this.options.runOptions?.includes(/** @type {any} */ (name)));
    if (refused) throw new RequestError(400, "misuse", `clients may not set \`${refused[0]}\`; see the option \`runOptions\``);
    return runId || given.length > 0 ? { ...Object.fromEntries(given), ...(runId && { runId }) } : undefined;
  }

  /** @param {boolean} isAccepted */
  checkAccepted(isAccepted) {
    if (!isAccepted) throw new RequestError(409, "misuse", "no open question has this id: it was answered, or it belongs to a run that is over");
  }

  checkRoom() {
    this.room.check(this.agent.messages, this.feed.letters.bytes);
  }

  /** Registers a run that a command started. @param {AgentRun} run @param {string} [id] */
  registerRun(run, id) {
    this.currentRunId = run.runId;
    const reply = { runId: run.runId };
    if (id) this.feed.append("command", { id, reply });
    try {
      this.options.waitUntil?.(run.result);
    } catch (error) {
      // The run has started nevertheless, and the client gets a success.
      console.error("turnwheel: waitUntil threw", error);
    }
    return reply;
  }

  /** What a client says, as a fresh value. @param {Command} command @param {string} name of the command, for the error */
  readInput({ input }, name) {
    if (input === undefined) throw new RequestError(400, "misuse", `${name} needs an \`input\``);
    return readInput(input, { custom: this.options.customMessages });
  }

  /**
   * A client's answer, as a fresh value: refused if its door does not allow it, or if the host is deciding about the question.
   * @param {any} answer @param {string} key the id of the question, or of the call that it is about
   */
  readAnswer(answer, key) {
    const asked = this.agent.pendingQuestions?.find(({ id, callId, path }) => id === key || (callId === key && !path?.length));
    if (asked && !isForPeople(this.agent, asked)) throw new NotAllowed("the host decides about this call; clients are not asked");
    // As an object, which can say that it is a client's.
    return readAnswer(answer === "approve" || answer === "reject" ? { action: answer } : answer, this.options.answers);
  }

  /** @param {Command} command @param {"steer" | "followUp"} kind */
  postMessage(command, kind) {
    const { feed } = this;
    const { id = this.host.id(), when } = command;
    const input = this.readInput(command, "a letter");
    this.checkRoom();
    this.room.checkQueue(feed.letters.bytes);
    const from = this.agent.messages.length;
    const receipt = kind === "steer" ? this.agent.steer(input, { when }) : this.agent.followUp(input);
    // A custom message has no content.
    const text = JSON.stringify(contentOf(input) ?? input);
    feed.letters.add(id, bytesOf(text));
    feed.append("command", { id, letter: text, from });
    receipt.then((outcome) => feed.settle(id, outcome));
    return { id };
  }
}

/** @param {any} input */
const contentOf = (input) => (typeof input === "string" ? [{ type: "text", text: input }] : Array.isArray(input) ? input : typeof input.content === "string" ? [{ type: "text", text: input.content }] : input.content);

/** @type {Record<CommandName, (commands: Commands, command: Command) => Reply | void>} */
export const COMMANDS = {
  prompt(commands, command) {
    const { id, runId } = command;
    const { agent } = commands;
    if (agent.isRunning) throw new RequestError(409, "misuse", ALREADY_RUNNING);
    const input = commands.readInput(command, "a prompt");
    commands.checkNewRun(runId);
    commands.checkRoom();
    return commands.registerRun(agent.prompt(input, commands.runOptions(command)), id);
  },
  continue(commands, command) {
    const { id, runId } = command;
    const { agent } = commands;
    if (agent.isRunning) throw new RequestError(409, "misuse", ALREADY_RUNNING);
    commands.checkNewRun(runId);
    return commands.registerRun(agent.continue(commands.runOptions(command)), id);
  },
  steer: (commands, command) => commands.postMessage(command, "steer"),
  "follow-up": (commands, command) => commands.postMessage(command, "followUp"),
  "clear-queues"({ agent, feed }) {
    agent.clearQueues();
    // The others have a receipt of the agent's.
    for (const { id } of feed.letters.foreign()) feed.settle(id, { delivered: false, reason: "cleared" });
  },
  resolve(commands, { question, callId, decision, decisions }) {
    const { agent } = commands;
    if (question !== undefined) {
      if (typeof question !== "string") throw new RequestError(400, "misuse", "`question` must be the id of the question that the decision answers");
      return commands.checkAccepted(agent.resolve(question, commands.readAnswer(decision, question)));
    }
    if (decisions === undefined) {
      if (typeof callId !== "string") throw new RequestError(400, "misuse", "a decision needs the `question` that it answers, or the `callId` that it is about");
      const answer = /** @type {any} */ (commands.readAnswer(decision, callId));
      commands.asked.check([callId]);
      return commands.checkAccepted(agent.resolveTool(callId, answer));
    }
    if (kindOf(decisions) !== "an object (Object)") throw new RequestError(400, "misuse", "`decisions` must be an object, with a decision for each question's id");
    const answers = fromClient(Object.fromEntries(Object.entries(decisions).map(([key, decision]) => [key, /** @type {any} */ (commands.readAnswer(decision, key))])));
    commands.asked.check(Object.keys(answers));
    commands.checkAccepted(agent.resolveTools(answers));
  },
  abort({ agent, currentRunId }, { reason, runId }) {
    // Ignored for a run that is not the current one.
    if (runId === undefined || runId === currentRunId) agent.abort(reason);
  },
  reset(commands) {
    const { agent, feed } = commands;
    agent.reset();
    feed.reset();
    commands.branches.clear();
  },
  rewind(commands, { length, branch }) {
    const { agent, branches, host } = commands;
    if (agent.isRunning) throw new RequestError(409, "misuse", "a run is in progress; abort it, wait for its end, and rewind then");
    const added = branch === undefined ? [] : branches.get(branch);
    if (!added) throw new RequestError(409, "misuse", "there is no such branch any more: the newest that were cut are kept, as long as this server runs");
    const cut = agent.rewind(length, added);
    const id = host.id();
    branches.set(id, cut);
    for (const oldest of branches.keys()) if (branches.size > MOST_BRANCHES) branches.delete(oldest);
    return { branch: id };
  },
};
