// @ts-check
// The trace of a scenario, made from its tape: there is no script here, no model and no tool.

import { outcome } from "./play.mjs";
import { Log, shownMessage, sorted, textOf } from "./trace.mjs";

/** The time that the engine sees when the clock of a scenario shows 0. */
const BEGINNING = 1_700_000_000_000;

/**
 * Returns the trace of the scenario that a tape was made of.
 * @param {any} tape @param {Pick<typeof import("../../../pkg/tape.js"), "replay">} tapes
 */
export function traceOf(tape, { replay }) {
  const again = replay(tape);
  const world = new Replayed();
  const entries = again.entries();
  const isDescription = (/** @type {any} */ { kind, text }) => kind === "note" && text.startsWith('{"scenario"');
  world.describe(JSON.parse(/** @type {any} */ (entries.find(isDescription)).text));
  for (const entry of entries) if (!isDescription(entry)) world.take(entry);
  if (world.hasRun) world.history = again.seek(world.events).messages;
  if (world.wasReset) world.history = [];
  return world.log.trace({ name: world.about.scenario, divergences: world.about.divergences }, world.history);
}

class Replayed {
  log = new Log();
  /** What the host has noted. @type {any} */ about = {};
  /** @type {readonly any[]} */ history = [];
  hasRun = false;
  wasReset = false;
  events = 0;
  /** @type {any} */ #end;
  /** @type {Map<string, string>} */ #tools = new Map();
  /** The policies that one function for all of a slot has asked. @type {{ policy: string, slot: string }[]} */ #asked = [];
  #given = 0;

  /** @param {any} note of the host, before everything else */
  describe(note) {
    this.about = note;
    this.history = note.initial;
  }

  /** @param {any} entry */
  take(entry) {
    const t = Math.floor((entry.at - BEGINNING) / 10) * 10;
    this.events = entry.n;
    switch (entry.kind) {
      case "run":
        this.hasRun = true;
        this.wasReset = false;
        break;
      case "event":
        return this.#event(entry.event, t);
      case "start":
        return this.#start(entry, t);
      case "reply":
        return this.#reply(entry.reply);
      case "rule":
        return this.#rule(entry);
      case "note":
        return this.#note(JSON.parse(entry.text));
    }
  }

  /** @param {any} event @param {number} t */
  #event(event, t) {
    this.log.event(event, this.about.tells_time ? t : undefined, this.about.metrics);
    if (event.type === "tool_execution_start") this.#tools.set(event.callId, event.toolName);
    if (event.type === "agent_end") this.#end = event;
  }

  /** @param {any} entry @param {number} t */
  #start({ effect, messages }, t) {
    const { kind, request } = effect;
    if (kind === "model") {
      this.log.model_calls.push({
        n: this.log.model_calls.length + 1, t, model: request.model, system_prompt: request.systemPrompt,
        messages: request.messages.map(shownMessage), tools: request.tools.map((/** @type {any} */ tool) => tool.name),
      });
    } else if (kind === "tool") {
      const { callId: id, arguments: args } = effect;
      this.log.executions.push({ id, name: this.#tools.get(id) ?? "", arguments: sorted(args), t });
    } else if (kind === "approve") {
      const { callId, toolName, arguments: args, requiresApproval } = request;
      this.log.approvals.push({ id: callId, name: toolName, arguments: args, requires_approval: requiresApproval });
    } else if (kind === "transform" && this.about.async_transform) {
      this.#given = messages;
      this.log.transforms.push({ kind: "async", overflow: effect.overflow, before: messages, after: messages });
    }
  }

  /** @param {any} reply */
  #reply(reply) {
    if (reply.kind !== "prepared" || !this.about.async_transform) return;
    const entry = this.log.transforms.findLast(({ kind }) => kind === "async");
    if (entry) entry.after = after(reply, this.#given);
  }

  /** @param {any} entry */
  #rule({ rule, place, asked, answer }) {
    if (rule === "transformContext") this.log.transforms.push({ kind: "sync", overflow: asked.overflow, before: asked.count, after: after(answer, asked.count) });
    const ofSlot = this.about.policies.filter((/** @type {any} */ policy) => policy.slot === rule);
    const noted = this.#asked.filter(({ slot }) => slot === rule);
    this.#asked = this.#asked.filter(({ slot }) => slot !== rule);
    const policies = noted.length === 0 ? ofSlot.slice(place, place + 1) : noted.map(({ policy }) => ofSlot.find((/** @type {any} */ { name }) => name === policy));
    for (const policy of policies) {
      const entry = policyEntry(policy, asked);
      if (entry) this.log.policy_log.push(entry);
    }
  }

  /** @param {any} note */
  #note(note) {
    const { log } = this;
    if (note.ran !== undefined) {
      if (!this.#end) return void log.outcomes.push({ call: note.ran, error: "no result" });
      const { messages, usage, error, output } = { ...this.#end };
      log.outcomes.push(outcome(note.ran, { messages, usage, error, output: output ?? outputOf(note.ran, this.#end) }));
      this.#end = undefined;
    } else if (note.did !== undefined) {
      if (note.did.call === "reset") this.wasReset = true;
      log.outcomes.push(note.did);
    } else if (note.key !== undefined) log.model_calls[log.model_calls.length - 1].api_key = note.key;
    else if (note.policy !== undefined) this.#asked.push(note);
    else if (note.hangs) log.events.push({ type: "oracle_hang" });
  }
}

/** A structured answer is the text of the last answer, or the arguments of its last call. @param {string} call @param {any} end */
function outputOf(call, end) {
  if (call !== "structured_output" || end.stopReason !== "completed") return undefined;
  const last = end.messages.findLast((/** @type {any} */ { role }) => role === "assistant");
  if (!last) return undefined;
  const asked = last.content.findLast((/** @type {any} */ { type }) => type === "tool_call");
  return asked ? asked.arguments : JSON.parse(textOf(last));
}

/** How many messages there are after a transformer. @param {any} answer @param {number} before @returns {number} */
function after({ messages }, before) {
  if (!messages) return before;
  return messages.reduce((/** @type {number} */ sum, /** @type {any} */ item) => sum + (Array.isArray(item) ? item[1] - item[0] : 1), 0);
}

/** What a policy of a scenario writes down when it is asked. @param {any} policy @param {any} asked */
function policyEntry(policy, asked) {
  const { name, slot, tools } = policy;
  if (slot === "preDispatch") {
    const { callId, toolName, arguments: args } = asked;
    if (tools.length > 0 && !tools.includes(toolName)) return;
    return { tool: toolName, id: callId, arguments: args, policy: name, slot: "pre_dispatch" };
  }
  const { turnIndex, messageCount, usage, newMessages, message, toolResults, contextCount } = asked;
  const turn = slot === "postTurn" && { text: textOf(message), stop_reason: message.stopReason, tool_result_count: toolResults.length, context_count: contextCount };
  return {
    turn_index: turnIndex, message_count: messageCount, usage_total: usage.total, new_messages: newMessages.map(shownMessage), ...turn,
    policy: name, slot: { preTurn: "pre_turn", postTurn: "post_turn" }[/** @type {string} */ (slot)] ?? "post_loop",
  };
}
