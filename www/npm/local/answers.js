// @ts-check
// Asks an on-device model for one answer and reads it: the form that it has, how the engine is held to that, and the guard
// against the same call for ever.

import { uuid } from "../shared.js";
import { explained, loaded } from "./model.js";
import { AFTER_RESULTS, chatOf, hasForm, replayOf } from "./prompt.js";
import { Reader } from "./reader.js";
import { formOf } from "./shape.js";

/** @import { AssistantMessageEvent, LlmMessage, ModelRequest, Usage } from "../index.js" */
/** @import { Adapter, Asked, Asking } from "./model.js" */
/** @import { Form } from "./shape.js" */

/** @param {Asking} asking @param {ModelRequest} request @param {AbortSignal} signal @returns {AsyncGenerator<AssistantMessageEvent>} */
export async function* formed(asking, request, signal) {
  const { adapter, maxCalls, afterResults = AFTER_RESULTS } = asking;
  const form = hasForm(request) ? formOf(request, maxCalls) : undefined;
  const chat = chatOf(request, afterResults);
  const asked = { chat, constraint: undefined, tools: [], options: request.options, signal };
  let isBegun = false;
  try {
    for await (const event of guarded(asking, asked, request, form)) {
      isBegun = true;
      yield event;
    }
  } catch (error) {
    // One that fails in the middle of an answer knew the constraint.
    if (asking.mode !== "constrained" || !form || isBegun || signal.aborted) throw error;
    const known = adapter.failure?.(error);
    if (known !== "constraint") throw explained(adapter, error, known);
    // The engine knows no such constraint, and never will.
    asking.mode = "prompted";
    console.warn(`turnwheel: ${adapter.name} refuses the constraint that keeps answers in form, so the model is only asked to keep to it; \`tools: "prompted"\` says so from the start`, error);
    yield* guarded(asking, asked, request, form);
  }
}

const SAY_ONLY = 'You have this result already. Answer with {"say": "…"}.';

/**
 * Asks, and reads the answer. After results, a call is held back until its arguments are there: if the very same was
 * made before in this exchange, the answer is dropped, and the model is asked again for words alone.
 * @param {Asking} asking @param {Asked} asked @param {ModelRequest} request @param {Form | undefined} form
 * @returns {AsyncGenerator<AssistantMessageEvent>}
 */
async function* guarded({ adapter, mode }, asked, request, form) {
  const constrain = async (/** @type {Form | undefined} */ to) => (to && mode === "constrained" ? loaded(adapter.constrain(to)) : undefined);
  const answer = new Answer(form !== undefined, request.output !== undefined && !request.tools.length, callsOfExchange(request.messages));
  answer.most = form?.calls ?? Infinity;
  yield* answer.read(adapter, { ...asked, constraint: await constrain(form) });
  if (!answer.isRepeated) return;
  const chat = [...asked.chat];
  const last = chat.pop();
  if (last) chat.push({ ...last, suffix: `${last.suffix ?? ""}\n${SAY_ONLY}` });
  const constraint = await constrain(form && { ...form, tools: [], mustCall: false });
  yield* new Answer(true, false, undefined, answer.index, answer.usage).read(adapter, { ...asked, chat, constraint });
}

/** The calls since the user last spoke, if there are results already. @param {LlmMessage[]} messages */
function callsOfExchange(messages) {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  if (!since.some(({ role }) => role === "tool_result")) return;
  return new Set(since.flatMap((message) => (message.role === "assistant" ? message.content : []).flatMap((block) => (block.type === "tool_call" ? [callKey(block.toolName, block.arguments)] : []))));
}

/** @param {string} name @param {unknown} given */
const callKey = (name, given) => JSON.stringify([name, sorted(given)]);
/** @param {unknown} value @returns {unknown} */
const sorted = (value) => (Array.isArray(value) ? value.map(sorted) : typeof value === "object" && value !== null ? Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, sorted(inner)]) : value);

/** An answer as it comes, turned into events. */
class Answer {
  /**
   * @param {boolean} isFormed @param {boolean} isData @param {Set<string> | undefined} made calls that must not be made again
   * @param {number} [index] of the next block @param {Partial<Usage>} [usedBefore]
   */
  constructor(isFormed, isData, made, index = 0, usedBefore) {
    this.reader = isFormed ? new Reader(isData) : undefined;
    this.made = made;
    this.index = index;
    this.usedBefore = usedBefore;
    this.hasText = false;
    /** What a held call was to tell. @type {AssistantMessageEvent[]} */
    this.held = [];
    this.isRepeated = false;
    /** How many calls it may make; one that nothing holds to that is not heard any further. */
    this.most = Infinity;
    this.isOver = false;
    this.said = "";
    /** @type {{ name: string, arguments: any }[]} */
    this.calls = [];
    /** @type {Partial<Usage> | undefined} */
    this.usage = undefined;
  }

  /** @param {Adapter} adapter @param {Asked} asked @returns {AsyncGenerator<AssistantMessageEvent>} */
  async *read(adapter, asked) {
    const { reader } = this;
    let reason = "stop";
    for await (const { text = "", usage, reason: said } of adapter.answer(asked)) {
      if (usage) this.usage = summed(this.usedBefore, usage);
      reason = said ?? reason;
      if (text === "") continue;
      const events = reader ? reader.push(text).flatMap((piece) => this.eventsOf(piece)) : this.text(text);
      if (this.isRepeated) return;
      yield* events.length > 0 ? events : [/** @type {AssistantMessageEvent} */ ({ type: "ping" })];
      if (this.isOver) break;
    }
    if (reader && !this.isOver) yield* reader.end().flatMap((piece) => this.eventsOf(piece));
    if (this.isRepeated) return;
    if (reader && !reader.isWhole && !this.isOver) reason = "length";
    // A call that was cut is told as far as it came; the loop does not run it.
    yield* this.held;
    yield* this.endText();
    // As it will stand in the next request, which goes on from what the engine knows.
    if (reason === "stop") adapter.said?.(reader ? replayOf(this.said, this.calls, reader.isData) : this.said);
    const stopReason = reason === "length" ? "length" : reader?.hasCalls ? "tool_use" : "stop";
    yield { type: "done", stopReason, ...(this.usage && { usage: this.usage }) };
  }

  /** @param {import("./reader.js").Piece} piece @returns {AssistantMessageEvent[]} */
  eventsOf(piece) {
    if (this.isRepeated || this.isOver) return [];
    if (piece.kind === "text") return this.text(piece.text);
    this.held.push(...this.eventsOfCall(piece));
    if (this.made && piece.kind !== "call_end") return [];
    const told = this.held;
    this.held = [];
    if (!this.made || piece.kind !== "call_end" || !this.made.has(callKey(piece.name, parsed(piece.json)))) return told;
    this.calls.pop();
    this.index--;
    // If it asked for something new as well, that will do.
    this.isRepeated = this.calls.length === 0;
    return [];
  }

  /** @param {Exclude<import("./reader.js").Piece, { kind: "text" }>} piece @returns {AssistantMessageEvent[]} */
  eventsOfCall(piece) {
    switch (piece.kind) {
      case "call":
        return [...this.endText(), { type: "tool_call_start", contentIndex: this.index, callId: `call_${uuid()}`, toolName: piece.name }];
      case "arguments":
        return [{ type: "tool_call_delta", contentIndex: this.index, delta: piece.json }];
      case "call_end":
        this.calls.push({ name: piece.name, arguments: parsed(piece.json) });
        // Enough, unless it turns out to be one that was made before.
        this.isOver = this.calls.length >= this.most && !this.made?.has(callKey(piece.name, parsed(piece.json)));
        return [{ type: "tool_call_end", contentIndex: this.index++ }];
    }
  }

  /** @param {string} delta @returns {AssistantMessageEvent[]} */
  text(delta) {
    const contentIndex = this.index;
    this.said += delta;
    /** @type {AssistantMessageEvent[]} */
    const start = this.hasText ? [] : [{ type: "text_start", contentIndex }];
    this.hasText = true;
    return [...start, { type: "text_delta", contentIndex, delta }];
  }

  /** @returns {AssistantMessageEvent[]} */
  endText() {
    const wasText = this.hasText;
    this.hasText = false;
    return wasText ? [{ type: "text_end", contentIndex: this.index++ }] : [];
  }
}

/** @param {Partial<Usage> | undefined} before @param {Partial<Usage>} usage */
function summed(before, usage) {
  if (!before) return usage;
  const sum = { ...usage };
  for (const name of /** @type {const} */ (["input", "output", "cacheRead", "total"])) sum[name] = (before[name] ?? 0) + (usage[name] ?? 0);
  return sum;
}

/** @param {string} json */
function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}
