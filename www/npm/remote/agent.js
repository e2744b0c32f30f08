// @ts-check
// An agent that lives elsewhere, in a Worker or on a server, with the interface of a local one. The server half is
// server/; the protocol between them is docs/remote.md.

import { checkFunctions, checkNames, kindOf, misuse, NOT_REACTIVE, shownOf, steeringTime, textOf, toDecision, toMessage, toMessages } from "../shared.js";
import { checkAnswer, toAnswer } from "../messages/answer.js";
import { Link } from "./link.js";

/** @import { AgentEvent, AgentMessage, Answer, Input, SteerOptions, ToolDecision } from "../index.js" */
/** @import { RemoteAgentOptions, RemoteRunOptions } from "../remote.js" */

const OPTIONS = ["url", "fetch", "headers", "reconnects", "limits", "stallMs", "host", "onConnection", "onError"];

/** @param {RemoteAgentOptions} options */
function checkOptions(options) {
  if (typeof options !== "object" || options === null) throw misuse(`RemoteAgent takes { url }, got ${kindOf(options)}`);
  checkNames("unknown option", options, OPTIONS);
  checkFunctions(options, ["fetch", "onConnection", "onError"]);
  const { url, headers } = options;
  if (headers !== undefined && typeof headers !== "function" && (typeof headers !== "object" || headers === null)) throw misuse(`\`headers\` must be an object of texts, or a function that gives one, got ${kindOf(headers)}`);
  if (typeof url !== "string" && !(url instanceof URL)) throw misuse(`\`url\` must be the address of an agent, got ${kindOf(url)}`);
  const address = String(url);
  // The address is shown in errors.
  if (/^[a-z+.-]+:\/\/[^/?#]*@/i.test(address)) throw misuse("`url` may have no name and no password in it: send them in `headers`");
  if (/[?#]/.test(address)) throw misuse(`\`url\` is followed by the name of a command, so it may have no query: send that in \`headers\`, got ${JSON.stringify(address.replace(/[?#].*/s, (query) => `${query[0]}…`))}`);
}

/** An agent that lives elsewhere. */
export class RemoteAgent {
  /** @type {Link} */ #link;
  /** What was cut, by the names that the server has for it. @type {WeakMap<object, string>} */ #branches = new WeakMap();

  /** @param {RemoteAgentOptions} options */
  constructor(options) {
    checkOptions(options);
    this.#link = new Link(options);
  }

  get [NOT_REACTIVE]() {
    return true;
  }

  /** @param {Input | Input[]} input @param {RemoteRunOptions} [options] */
  prompt(input, options) {
    return this.#link.run("prompt", { input: toMessages(input) }, options);
  }

  /** @param {RemoteRunOptions} [options] */
  continue(options) {
    return this.#link.run("continue", {}, options);
  }

  /** @param {(event: AgentEvent) => void} listener @param {{ keep?: boolean }} [options] */
  subscribe(listener, options) {
    return this.#link.subscribe(listener, options);
  }

  /** @param {Input} input @param {SteerOptions} [options] */
  steer(input, options) {
    return this.#link.postMessage("steer", toMessage(input), steeringTime(options));
  }

  /** @param {Input} input */
  followUp(input) {
    return this.#link.postMessage("follow-up", toMessage(input));
  }

  clearQueues() {
    return this.#link.command("clear-queues", {});
  }

  /** @param {string} id @param {Answer} answer */
  resolve(id, answer) {
    const decision = toAnswer(answer);
    const question = this.#link.mirror.approvals.questions.get(id);
    if (question) checkAnswer(id, decision, question);
    return this.#link.command("resolve", { question: id, decision });
  }

  /** @param {string} callId @param {ToolDecision} decision */
  resolveTool(callId, decision) {
    // What is shown here is what is decided about, whatever the agent has asked since.
    const question = this.#link.mirror.approvals.idOf(callId);
    return this.#link.command("resolve", { callId, ...(question !== undefined && { question }), decision: toDecision(decision, callId) });
  }

  /** @param {{ [callId: string]: ToolDecision }} decisions */
  resolveTools(decisions) {
    const { approvals } = this.#link.mirror;
    const byQuestion = Object.entries(decisions).map(([id, decision]) => [approvals.idOf(id) ?? id, toDecision(decision, id)]);
    return this.#link.command("resolve", { decisions: Object.fromEntries(byQuestion) });
  }

  /** @param {unknown} [reason] */
  abort(reason) {
    return this.#link.command("abort", reason === undefined ? {} : { reason: textOf(reason) });
  }

  reset() {
    return this.#link.command("reset", {});
  }

  /** @param {number} length @param {readonly AgentMessage[]} [branch] what was cut before, to go back to */
  async rewind(length, branch) {
    const { messages } = this;
    if (!(Number.isInteger(length) && length >= 0 && length <= messages.length)) throw misuse(`\`rewind\` takes how many messages stay, a whole number from 0 to ${messages.length}, got ${shownOf(length)}`);
    const kept = branch && this.#branches.get(branch);
    if (branch && kept === undefined) throw misuse("an agent elsewhere goes back to what its own `rewind` has cut, and to nothing else");
    const reply = /** @type {any} */ (await this.#link.command("rewind", { length, ...(kept !== undefined && { branch: kept }) }));
    const cut = messages.slice(length);
    this.#branches.set(cut, reply.branch);
    return cut;
  }

  /** Resolves when the mirror of the agent is up to date. */
  ready() {
    return this.#link.ready();
  }

  waitForIdle() {
    return this.#link.waitForIdle();
  }

  get messages() {
    return this.#link.mirror.messages;
  }

  get pendingQuestions() {
    return this.#link.mirror.approvals.list();
  }

  get pendingApprovals() {
    return this.#link.mirror.approvals.calls();
  }

  get isRunning() {
    return this.#link.mirror.isRunning;
  }

  get usage() {
    return this.#link.mirror.usage;
  }

  /** The state of the connection: "idle" (nobody listens), "connecting" or "open". */
  get connection() {
    return this.#link.connection.state;
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this.#link.dispose();
  }
}
