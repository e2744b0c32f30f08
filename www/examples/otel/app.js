#!/usr/bin/env node
// Asks an agent one question, and shows the trace of it.

import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { Agent, openai, scripted, subagent, tool } from "turnwheel";
import { observe } from "turnwheel/otel";

const { env, argv } = process;

// The SDK: what you have already, if your app is traced.
const memory = new InMemorySpanExporter();
const processors = [new SimpleSpanProcessor(memory)];
if (env.OTEL_EXPORTER_OTLP_ENDPOINT) {
  const { OTLPTraceExporter } = await import("@opentelemetry/exporter-trace-otlp-http");
  processors.push(new BatchSpanProcessor(new OTLPTraceExporter()));
}
const provider = new BasicTracerProvider({ resource: resourceFromAttributes({ "service.name": "turnwheel-example" }), spanProcessors: processors });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const tracer = trace.getTracer("example");

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const height = tool({
  name: "height", description: "The height of a mountain in metres",
  parameters: { type: "object", properties: { mountain: { type: "string" } }, required: ["mountain"] },
  // The span of the call is active here, so this one is inside it.
  execute: ({ mountain }) => tracer.startActiveSpan("look up", async (span) => {
    span.setAttribute("mountain", mountain);
    await wait(30);
    span.end();
    return "2469";
  }),
});

const call = (toolName, args) => ({ toolCalls: [{ toolName, arguments: args }], delayMs: 40 });
const inner = env.OPENAI_API_KEY ? openai("gpt-5-mini", { apiKey: env.OPENAI_API_KEY }) : scripted([call("height", { mountain: "Galdhøpiggen" }), { text: ["Galdhøpiggen is ", "2,469 m high."], delayMs: 20 }]);
const outer = env.OPENAI_API_KEY ? inner : scripted([call("geographer", { prompt: "How high is Galdhøpiggen?" }), { error: { code: "overloaded", message: "busy" } }, { text: ["It is ", "2,469 m high."], delayMs: 20 }]);

const geographer = subagent({ name: "geographer", description: "Knows mountains", agent: () => new Agent({ model: inner, tools: [height] }) });
const agent = new Agent({ model: outer, tools: [geographer], retry: { initialBackoffMs: 50 } });
// `content: true` records what was said, too: leave it out where that is nobody's business.
observe(agent, { name: "guide", content: true });

const { text, error } = await agent.prompt(argv[2] ?? "How high is Galdhøpiggen?");
console.log(error ? `failed: ${error.message}` : text);

const spans = memory.getFinishedSpans();
const started = ({ startTime: [seconds, nanos] }) => seconds * 1e3 + nanos / 1e6;
const took = ({ duration: [seconds, nanos] }) => Math.round(seconds * 1e3 + nanos / 1e6);
function show(parent, indent) {
  for (const span of spans.filter((span) => span.parentSpanContext?.spanId === parent).sort((a, b) => started(a) - started(b))) {
    const tokens = span.attributes["gen_ai.usage.output_tokens"];
    console.log(`${`${indent}${span.name}`.padEnd(36)} ${String(took(span)).padStart(4)} ms${tokens === undefined ? "" : `  ${span.attributes["gen_ai.usage.input_tokens"]} + ${tokens} tokens`}`);
    for (const { name } of span.events) console.log(`${indent}  · ${name}`);
    show(span.spanContext().spanId, `${indent}  `);
  }
}
show(undefined, "");
await provider.shutdown();
