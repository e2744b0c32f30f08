// @ts-check
// The trace of what has been: the same spans, from events that were written down with their times.

import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { checkNames, kindOf, misuse } from "../shared.js";
import { checkKinds } from "./observe.js";
import { Trace } from "./trace.js";

/** @import { Attributes, Context, Span, Tracer } from "@opentelemetry/api" */
/** @import { AgentEvent } from "../index.js" */
/** @import { SpanRecord, SpansOfOptions, TimedEvent } from "../otel.js" */
/** @import { Kind, Node, Sink } from "./trace.js" */

const KINDS = { agent: SpanKind.INTERNAL, chat: SpanKind.CLIENT, tool: SpanKind.INTERNAL };

/**
 * @param {Iterable<AgentEvent | TimedEvent>} events @param {SpansOfOptions} [options] @returns {SpanRecord[]}
 */
export function spansOf(events, options = {}) {
  if (typeof (/** @type {any} */ (events)?.[Symbol.iterator]) !== "function") throw misuse(`spansOf takes a list of events, got ${kindOf(events)}`);
  checkNames("unknown option", options, ["name", "content", "attributes", "tracer"]);
  checkKinds(options);
  const { name, attributes = {}, content, tracer } = options;
  const past = new Past(tracer);
  const spans = new Trace(past, { name, attributes, content: typeof content === "function" ? content : content ? (value) => value : undefined, about: undefined });
  for (const entry of events) {
    if (typeof entry !== "object" || entry === null) throw misuse(`an event is an object with \`type\`, as subscribers get it, or { at, event }, got ${kindOf(entry)}`);
    const event = /** @type {AgentEvent | undefined} */ ("type" in entry ? entry : entry.event);
    // A tape has other entries too.
    if (!event) continue;
    const inner = event.type === "subagent_event" ? event.event : event;
    past.at = "type" in entry ? ("at" in inner ? inner.at : past.at) : entry.at;
    spans.take(event, past.at);
  }
  // A recording may end in the middle of a run.
  spans.close();
  return past.records;
}

/** @implements {Node} */
class PastNode {
  /** @param {SpanRecord} record @param {Past} past @param {Span | undefined} span @param {Context} parent */
  constructor(record, past, span, parent) {
    this.isRecording = true;
    this.record = record;
    this.past = past;
    this.span = span;
    this.context = span ? trace.setSpan(parent, span) : parent;
  }

  /** @param {Attributes} attributes */
  set(attributes) {
    Object.assign(this.record.attributes, attributes);
    this.span?.setAttributes(attributes);
  }

  /** @param {string} name @param {string} value */
  put(name, value) {
    this.set({ [name]: value });
  }

  /** @param {string} name */
  rename(name) {
    this.record.name = name;
    this.span?.updateName(name);
  }

  /** @param {string} name @param {Attributes} attributes @param {number} [at] */
  event(name, attributes, at = this.past.at) {
    this.record.events.push({ name, attributes, at });
    this.span?.addEvent(name, attributes, at);
  }

  /** @param {string} problem @param {boolean} isError */
  fail(problem, isError) {
    this.set({ "error.type": problem });
    if (!isError) return;
    this.record.status = { code: SpanStatusCode.ERROR, message: problem };
    this.span?.setStatus(this.record.status);
  }

  /** @param {number} [at] */
  end(at = this.past.at) {
    this.record.endTime = at;
    this.span?.end(at);
  }
}

/** @implements {Sink<PastNode>} */
class Past {
  /** @param {Tracer | undefined} tracer */
  constructor(tracer) {
    this.tracer = tracer;
    this.at = 0;
    this.countsChunks = false;
    this.isMeasuring = false;
    /** @type {SpanRecord[]} */
    this.records = [];
  }

  /** @param {Kind} kind @param {string} name @param {Attributes} attributes @param {PastNode | undefined} parent @param {number} [at] */
  start(kind, name, attributes, parent, at = this.at) {
    const around = parent?.context ?? context.active();
    const span = this.tracer?.startSpan(name, { kind: KINDS[kind], attributes, startTime: at }, around);
    /** @type {SpanRecord} */
    const record = { id: this.records.length + 1, parent: parent?.record.id, name, kind: KINDS[kind], startTime: at, endTime: at, attributes: { ...attributes }, events: [], status: { code: SpanStatusCode.UNSET } };
    this.records.push(record);
    return new PastNode(record, this, span, around);
  }

  isDeaf() {
    return false;
  }

  now() {
    return this.at;
  }

  measured() {}

  chunk() {}

  used() {}
}
