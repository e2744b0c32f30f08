// @ts-check
// Observes an agent while it works: spans and metrics of OpenTelemetry, active where its tools run.

import { context, isSpanContextValid, metrics, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { checkNames, kindOf, misuse, useTraceContext } from "../shared.js";
import * as is from "./names.js";
import { Trace } from "./trace.js";

/** @import { Attributes, Context, Histogram, Meter, Span, Tracer } from "@opentelemetry/api" */
/** @import { Agent, JsonValue, ToolDefinition, Usage } from "../index.js" */
/** @import { ObserveOptions } from "../otel.js" */
/** @import { About, Kind, Node, Sink } from "./trace.js" */
/** @import { Around } from "../tools/subagent.js" */

/** Where an agent has what stands around its execution. */
const AROUND = Symbol.for("turnwheel.around");
const OPTIONS = ["name", "tracer", "meter", "content", "attributes", "activeInModels", "chunkTimes"];
const KINDS = { agent: SpanKind.INTERNAL, chat: SpanKind.CLIENT, tool: SpanKind.INTERNAL };

/**
 * Makes spans and metrics of the runs of an agent, those inside its tools included, until the function that it returns is called.
 * @param {Agent<any>} agent @param {ObserveOptions} [options] @returns {() => void}
 */
export function observe(agent, options = {}) {
  const around = /** @type {{ [AROUND]?: Around } | undefined} */ (/** @type {unknown} */ (agent))?.[AROUND];
  if (!around) throw misuse(`observe takes an Agent, got ${kindOf(agent)}`);
  checkNames("unknown option", options, OPTIONS);
  const { name, attributes = {}, activeInModels = false, chunkTimes = false } = options;
  checkKinds(options);
  const content = contentOf(options);
  const live = new Live(options.tracer ?? trace.getTracer("turnwheel"), options.meter ?? metrics.getMeter("turnwheel"), chunkTimes);
  const spans = new Trace(live, { name, attributes, content, about: aboutOf(agent, content) });
  const unsubscribe = agent.subscribe((event) => spans.take(event), { keep: true });

  useTraceContext(active);
  const { within, wrapModel } = around;
  // Not `wrapTool`, which costs a promise for each call.
  around.within = (runId, call, work) => {
    const inner = within ? () => within(runId, call, work) : work;
    const node = spans.toolOf(runId, call);
    return node?.isThere ? context.with(node.context, inner) : inner();
  };
  if (activeInModels || content) {
    around.wrapModel = (call, next) => {
      const inner = () => (wrapModel ? wrapModel(call, next) : next());
      const node = spans.chatOf(call.runId);
      // The messages as they are sent, of agents inside calls too.
      if (content) spans.request(call.runId, call.path.length === 0 ? agent.systemPrompt : "", call.messages);
      return node?.isThere ? context.with(node.context, inner) : inner();
    };
    // Tells the engine that attempts are to be announced.
    agent.streamOptions = agent.streamOptions;
  }
  return () => {
    unsubscribe();
    spans.close();
    Object.assign(around, { within, wrapModel });
    agent.streamOptions = agent.streamOptions;
  };
}

/** The span that is active, for servers that tools call. */
function active() {
  const span = trace.getSpanContext(context.active());
  if (!span || !isSpanContextValid(span)) return undefined;
  const { traceId, spanId, traceFlags, traceState } = span;
  const tracestate = traceState?.serialize();
  return { traceparent: `00-${traceId}-${spanId}-${(traceFlags & 255).toString(16).padStart(2, "0")}`, ...(tracestate && { tracestate }) };
}

/** @param {ObserveOptions & import("../otel.js").SpansOfOptions} options */
export function checkKinds({ name, tracer, meter, content, attributes }) {
  if (name !== undefined && typeof name !== "string") throw misuse(`\`name\` must be a text, got ${kindOf(name)}`);
  if (tracer !== undefined && typeof tracer?.startSpan !== "function") throw misuse(`\`tracer\` must be a Tracer, such as provider.getTracer("my-app"), got ${kindOf(tracer)}`);
  if (meter !== undefined && typeof meter?.createHistogram !== "function") throw misuse(`\`meter\` must be a Meter, such as provider.getMeter("my-app"), got ${kindOf(meter)}`);
  if (content !== undefined && typeof content !== "boolean" && typeof content !== "function") throw misuse(`\`content\` must be true, false or a function, got ${kindOf(content)}`);
  if (attributes !== undefined && (typeof attributes !== "object" || attributes === null)) throw misuse(`\`attributes\` must be an object of attributes, got ${kindOf(attributes)}`);
}

/** @param {ObserveOptions} options @returns {((value: JsonValue) => JsonValue) | undefined} */
function contentOf({ content }) {
  if (typeof content === "function") return content;
  return content ? (value) => value : undefined;
}

/** @param {Agent<any>} agent @param {((value: JsonValue) => JsonValue) | undefined} content @returns {About} */
function aboutOf(agent, content) {
  return {
    model: () => agent.model,
    settings: () => agent.streamOptions,
    descriptions: () => Object.fromEntries(agent.tools.map(({ name, description }) => [name, description])),
    content: () => ({
      ...(agent.systemPrompt && { [is.SYSTEM_INSTRUCTIONS]: JSON.stringify(content?.([{ type: "text", content: agent.systemPrompt }])) }),
      [is.TOOL_DEFINITIONS]: JSON.stringify(content?.(agent.tools.map(definitionOf))),
    }),
    request() {
      const { maxTokens, temperature, topP, stop } = agent.streamOptions ?? {};
      return {
        [is.CONVERSATION_ID]: agent.sessionId, [is.OUTPUT_TYPE]: agent.output === undefined ? "text" : "json",
        ...(maxTokens !== undefined && { [is.REQUEST_MAX_TOKENS]: maxTokens }), ...(temperature !== undefined && { [is.REQUEST_TEMPERATURE]: temperature }),
        ...(topP !== undefined && { [is.REQUEST_TOP_P]: topP }), ...(stop && { [is.REQUEST_STOP_SEQUENCES]: stop }),
      };
    },
  };
}

/** @param {ToolDefinition} tool @returns {JsonValue} */
const definitionOf = ({ name, description }) => ({ type: "function", name, description });

/** A span of the SDK, and the context in which it is active. @implements {Node} */
class LiveNode {
  /** @param {Span} span @param {Context} parent */
  constructor(span, parent) {
    this.span = span;
    this.parent = parent;
    this.isRecording = span.isRecording();
    /** Whether spans made meanwhile belong to it: without an SDK there are none. */
    this.isThere = this.isRecording || isSpanContextValid(span.spanContext());
    /** @type {Context | undefined} */
    this.own = undefined;
  }

  get context() {
    return (this.own ??= trace.setSpan(this.parent, this.span));
  }

  /** @param {Attributes} attributes */
  set(attributes) {
    this.span.setAttributes(attributes);
  }

  /** @param {string} name @param {string} value */
  put(name, value) {
    this.span.setAttribute(name, value);
  }

  /** @param {string} name */
  rename(name) {
    this.span.updateName(name);
  }

  /** @param {string} name @param {Attributes} attributes */
  event(name, attributes) {
    this.span.addEvent(name, attributes);
  }

  /** @param {string} problem @param {boolean} isError */
  fail(problem, isError) {
    this.span.setAttribute(is.ERROR_TYPE, problem);
    if (isError) this.span.setStatus({ code: SpanStatusCode.ERROR, message: problem });
  }

  end() {
    this.span.end();
  }
}

const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const CHUNK_SECONDS = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const TOKENS = Array.from({ length: 14 }, (_, i) => 4 ** i);

/** The instruments of a meter; those of two agents are the same. @type {WeakMap<Meter, Instruments>} */
const instruments = new WeakMap();

class Instruments {
  /** @param {Meter} meter */
  constructor(meter) {
    /** @param {string} name @param {string} description @param {string} unit @param {number[]} boundaries */
    const histogram = (name, description, unit = "s", boundaries = SECONDS) => meter.createHistogram(name, { description, unit, advice: { explicitBucketBoundaries: boundaries } });
    this.tokens = histogram(is.METRICS.tokens, "Number of input and output tokens used.", "{token}", TOKENS);
    this.firstChunk = histogram(is.METRICS.firstChunk, "Time to receive the first chunk.", "s", CHUNK_SECONDS);
    this.perChunk = histogram(is.METRICS.perChunk, "Time per output chunk after the first.", "s", CHUNK_SECONDS);
    /** @type {Record<Kind, Histogram>} */
    this.durations = {
      agent: histogram(is.METRICS.agent, "Duration of the run of an agent."),
      chat: histogram(is.METRICS.duration, "GenAI operation duration."),
      tool: histogram(is.METRICS.tool, "Duration of the execution of a tool."),
    };
  }

  /** @param {Meter} meter */
  static of(meter) {
    let known = instruments.get(meter);
    if (!known) instruments.set(meter, (known = new Instruments(meter)));
    return known;
  }
}

/** Spans and metrics of the SDK. @implements {Sink<LiveNode>} */
class Live {
  /** @param {Tracer} tracer @param {Meter} meter @param {boolean} countsChunks */
  constructor(tracer, meter, countsChunks) {
    this.tracer = tracer;
    /** What metrics are told apart by, for what spans have in common. @type {WeakMap<Attributes, { own: Attributes, input: Attributes, output: Attributes }>} */
    this.known = new WeakMap();
    this.to = Instruments.of(meter);
    // The meter that is there without an SDK has one instrument for everything.
    this.isMeasuring = this.to.tokens !== this.to.firstChunk;
    this.countsChunks = countsChunks && this.isMeasuring;
  }

  /** @param {Kind} kind @param {string} name @param {Attributes} attributes @param {LiveNode | undefined} parent */
  start(kind, name, attributes, parent) {
    // Without an SDK this span would be none either.
    if (parent?.isThere === false) return parent;
    const around = parent?.context ?? context.active();
    return new LiveNode(this.tracer.startSpan(name, { kind: KINDS[kind], attributes }, around), around);
  }

  /** @param {LiveNode} node */
  isDeaf(node) {
    return !this.isMeasuring && !node.isThere;
  }

  now() {
    return performance.now();
  }

  /** @param {Kind} kind @param {number} ms @param {Attributes} common @param {string | undefined} problem */
  measured(kind, ms, common, problem) {
    const { own } = this.#dimensions(common);
    this.to.durations[kind].record(ms / 1000, problem === undefined ? own : { ...own, [is.ERROR_TYPE]: problem });
  }

  /** @param {number} ms @param {Attributes} common @param {boolean} isFirst */
  chunk(ms, common, isFirst) {
    (isFirst ? this.to.firstChunk : this.to.perChunk).record(ms / 1000, this.#dimensions(common).own);
  }

  /** @param {Usage} usage @param {Attributes} common */
  used({ input, output, cacheRead, cacheWrite }, common) {
    const known = this.#dimensions(common);
    this.to.tokens.record(input + cacheRead + cacheWrite, known.input);
    this.to.tokens.record(output, known.output);
  }

  /** @param {Attributes} common */
  #dimensions(common) {
    let known = this.known.get(common);
    if (known) return known;
    const own = Object.fromEntries(DIMENSIONS.filter((name) => common[name] !== undefined).map((name) => [name, common[name]]));
    known = { own, input: { ...own, [is.TOKEN_TYPE]: "input" }, output: { ...own, [is.TOKEN_TYPE]: "output" } };
    this.known.set(common, known);
    return known;
  }
}

/** What a metric is told apart by: nothing that takes many values. */
const DIMENSIONS = [is.OPERATION_NAME, is.PROVIDER_NAME, is.REQUEST_MODEL, is.AGENT_NAME, is.TOOL_NAME];
