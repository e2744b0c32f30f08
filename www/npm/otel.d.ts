/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { Attributes, Meter, SpanKind, SpanStatus, Tracer } from "@opentelemetry/api";
import type { Agent, AgentEvent, JsonValue } from "./index.js";

/**
 * Makes OpenTelemetry spans and metrics of an agent's runs, by the GenAI conventions of `@opentelemetry/semantic-conventions` 1.45.0
 * (all in development): `invoke_agent`, under it `chat` for each answer and `execute_tool` for each call, and under that the agent
 * inside it. A tool's span is active while it runs. Returns a function that ends it.
 *
 * @example
 * const stop = observe(agent, { name: "support" });
 */
export function observe(agent: Agent<any>, options?: ObserveOptions): () => void;

/**
 * The same spans of runs that are over, from events that were written down: those of `agent.subscribe`, which mostly say when they
 * were, or the entries of a tape. With a `tracer` they also become spans there, at the times at which they were.
 *
 * @example
 * const events: AgentEvent[] = [];
 * agent.subscribe((event) => void events.push(event));
 * await agent.prompt("Hello");
 * for (const { name, startTime, endTime } of spansOf(events)) console.log(name, endTime - startTime, "ms");
 */
export function spansOf(events: Iterable<AgentEvent | TimedEvent>, options?: SpansOfOptions): SpanRecord[];

/**
 * Options of `observe`.
 *
 * @example
 * const options: ObserveOptions = { name: "support", attributes: { "deployment.environment.name": "test" }, content: true };
 */
export interface ObserveOptions {
  /** The name of the agent, for its spans. */
  name?: string;
  /** Default: that of the SDK that is registered, named `turnwheel`. */
  tracer?: Tracer;
  /** Default: that of the SDK that is registered, named `turnwheel`. */
  meter?: Meter;
  /**
   * Whether what was said is recorded: instructions, messages, arguments and results. A function is given each value, and returns
   * what is recorded of it. Default: none of it.
   */
  content?: boolean | ((value: JsonValue) => JsonValue);
  /** Added to every span. */
  attributes?: Attributes;
  /** Make the span of an answer active while the model is called, so that spans of `fetch` are under it. Default false: it costs a little in every turn. */
  activeInModels?: boolean;
  /** Record the metric `gen_ai.client.operation.time_per_output_chunk`, once for each piece of an answer. Default false: it costs as much as all the rest. */
  chunkTimes?: boolean;
}

/**
 * Options of `spansOf`.
 *
 * @example
 * const options: SpansOfOptions = { name: "support", content: true };
 */
export interface SpansOfOptions {
  name?: string;
  content?: boolean | ((value: JsonValue) => JsonValue);
  attributes?: Attributes;
  /** Where the spans also go. */
  tracer?: Tracer;
}

/**
 * An event with its time, in milliseconds since 1970. Entries without an event are skipped.
 *
 * @example
 * const heard: TimedEvent[] = [];
 * agent.subscribe((event) => void heard.push({ at: Date.now(), event }));
 */
export interface TimedEvent { at: number; event?: AgentEvent }

/**
 * A span that is over. Times are in milliseconds since 1970; `parent` is the `id` of another one.
 *
 * @example
 * const roots = (spans: SpanRecord[]) => spans.filter(({ parent }) => parent === undefined);
 */
export interface SpanRecord {
  id: number;
  parent: number | undefined;
  name: string;
  kind: SpanKind;
  startTime: number;
  endTime: number;
  attributes: Attributes;
  events: { name: string; attributes: Attributes; at: number }[];
  status: SpanStatus;
}
