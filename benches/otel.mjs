// What it costs to observe an agent with turnwheel/otel: W2 without it and with it, one directly after the other, in one process,
// and in every other round the other way round. Each pair gives one ratio of CPU times; the table has the median of the ratios and
// an interval that holds the true median with 95 %.   node benches/otel.mjs [--rounds N] [--only ROW]... [CELL...]
// "no SDK" is observed without any, "spans" has a tracer of the SDK that exports nothing, "metrics" a meter too, "and active" makes the
// spans active around models. "SDK alone" and "SDK, metrics" are what the SDK takes for the same spans and measurements, made by hand with
// the fewest words and the spans of the tools active inside them; "above the SDK" compares observing with these directly.
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { context, trace } from '@opentelemetry/api';
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Agent, openaiCompatible } from '../pkg/entry/node.js';
import { observe } from '../pkg/otel.js';
import { engineOf } from './engines/turnwheel.mjs';
import { driveOnce } from './lib/drive.mjs';
import { CELLS } from './lib/workloads.mjs';

const at = process.argv.indexOf('--rounds');
const rounds = at < 0 ? 40 : Number(process.argv[at + 1]);
const cells = process.argv.slice(2).filter((word) => Object.hasOwn(CELLS, word));
if (cells.length === 0) cells.push('W2-50', 'W2-400');
const only = process.argv.flatMap((word, i) => (process.argv[i - 1] === '--only' ? [word] : []));

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const exporter = { export: (_, done) => done({ code: 0 }), shutdown: async () => {} };
const tracer = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 100_000 })] }).getTracer('bench');
const meter = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter: new InMemoryMetricExporter(AggregationTemporality.DELTA), exportIntervalMillis: 1e9 })] }).getMeter('bench');

/** Instruments like those of `observe`, made once. */
const seconds = { unit: 's', advice: { explicitBucketBoundaries: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92] } };
const [chatTook, toolTook, runTook, firstChunk] = ['chat', 'tool', 'run', 'first'].map((name) => meter.createHistogram(`by.hand.${name}`, seconds));
const tokens = meter.createHistogram('by.hand.tokens', { unit: '{token}', advice: { explicitBucketBoundaries: Array.from({ length: 14 }, (_, i) => 4 ** i) } });

/** The same spans by hand, active inside the tools: what is left of the cost if observing costs nothing. */
function byHand(agent, open, measures) {
  const start = (id, name, attributes) => open.set(id, tracer.startSpan(name, { attributes }, open.has('run') ? open.get('around') : context.active()));
  const end = (id, attributes) => {
    const span = open.get(id);
    if (attributes) span.setAttributes(attributes);
    span.end();
    open.delete(id);
  };
  const CHAT = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'm', 'gen_ai.request.stream': true, 'gen_ai.conversation.id': 'c', 'gen_ai.output.type': 'text' };
  const TOOL = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 't', 'gen_ai.tool.type': 'function', 'gen_ai.tool.description': 'd' };
  const since = {};
  const OF_CHAT = { 'gen_ai.operation.name': 'chat', 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'm' };
  const OF_TOOL = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 't' };
  const [INPUT, OUTPUT] = ['input', 'output'].map((type) => ({ ...OF_CHAT, 'gen_ai.token.type': type }));
  if (measures) agent.subscribe((event) => {
    switch (event.type) {
      case 'message_start': return (since.first = since.chat = performance.now());
      case 'message_update':
        if (since.first) firstChunk.record((performance.now() - since.first) / 1000, OF_CHAT);
        return (since.first = 0);
      case 'message_end':
        tokens.record(event.message.usage.input, INPUT);
        tokens.record(event.message.usage.output, OUTPUT);
        return chatTook.record((performance.now() - since.chat) / 1000, OF_CHAT);
      case 'tool_execution_start': return (since.tool = performance.now());
      case 'tool_execution_end': return toolTook.record((performance.now() - since.tool) / 1000, OF_TOOL);
      case 'agent_end': return runTook.record(1, OF_TOOL);
    }
  }, { keep: true });
  agent.subscribe((event) => {
    switch (event.type) {
      case 'agent_start': start('run', 'invoke_agent', {}); return open.set('around', trace.setSpan(context.active(), open.get('run')));
      case 'message_start': return start('chat', 'chat m', CHAT);
      case 'message_end': return end('chat', { 'gen_ai.response.model': 'm', 'gen_ai.response.finish_reasons': ['stop'], 'gen_ai.usage.input_tokens': event.message.usage.input, 'gen_ai.usage.output_tokens': event.message.usage.output, 'gen_ai.response.time_to_first_chunk': 0.1 });
      case 'tool_execution_start': return start(event.callId, 'execute_tool t', TOOL);
      case 'tool_execution_end': return end(event.callId, { 'gen_ai.tool.call.id': event.callId });
      case 'agent_end': return end('run');
    }
  }, { keep: true });
}

/** The tools, each with its span active inside. */
function active(tools, open) {
  return tools.map((tool) => ({ ...tool, execute: (args, call) => context.with(trace.setSpan(open.get('around'), open.get(call.callId)), () => tool.execute(args, call)) }));
}

const plain = engineOf({ Agent, openaiCompatible });
const observed = (options) => engineOf({ Agent: class extends Agent { constructor(given) { super(given); observe(this, options); } }, openaiCompatible });
const made = (measures) => engineOf({ Agent: class extends Agent { constructor(given) { const open = new Map(); super({ ...given, tools: active(given.tools, open) }); byHand(this, open, measures); } }, openaiCompatible });
const [spans, all] = [{ tracer }, { tracer, meter }].map(observed);

/** What is measured, and beside what. */
const PAIRS = {
  'no SDK': [observed({}), plain],
  'SDK alone': [made(false), plain], spans: [spans, plain], 'spans, above the SDK': [spans, made(false)],
  'SDK, metrics': [made(true), plain], metrics: [all, plain], 'metrics, above the SDK': [all, made(true)],
  'and chunks': [observed({ tracer, meter, chunkTimes: true }), plain], 'and active': [observed({ tracer, meter, activeInModels: true }), plain],
};

/** The interval of the order statistics that holds the median with 95 %. */
function interval(ratios) {
  const sorted = [...ratios].sort((a, b) => a - b);
  const { length } = sorted;
  const off = Math.floor(length / 2 - 0.98 * Math.sqrt(length));
  return [sorted[Math.max(0, off)], sorted[length >> 1], sorted[Math.min(length - 1, length - 1 - off)]];
}

const times = { 'W2-50': 6, 'W2-100': 4, 'W2-200': 2, 'W2-400': 1 };

async function cpuOf(engine, cell) {
  let cpu = 0;
  const work = (workloads[cell] ??= CELLS[cell].make());
  for (let i = 0; i < (times[cell] ?? 1); i++) {
    const { cpu: took, errors } = await driveOnce(engine, work);
    if (errors.length > 0) throw new Error(errors.join());
    cpu += took;
  }
  await new Promise((resolve) => setImmediate(resolve));
  return cpu;
}
const workloads = {};

for (const cell of cells) {
  for (const [name, [engine, beside]] of Object.entries(PAIRS)) {
    if (only.length > 0 && !only.includes(name)) continue;
    const ratios = [];
    const took = [[], []];
    for (let round = -5; round < rounds; round++) {
      const order = round % 2 ? [beside, engine] : [engine, beside];
      const cpu = new Map();
      for (const one of order) cpu.set(one, await cpuOf(one, cell));
      if (round < 0) continue;
      ratios.push(cpu.get(engine) / cpu.get(beside));
      took[0].push(cpu.get(beside));
      took[1].push(cpu.get(engine));
    }
    const units = (times[cell] ?? 1) * workloads[cell].units;
    const [without, withIt] = took.map((list) => (1000 * list.sort((a, b) => a - b)[list.length >> 1]) / units);
    const [low, middle, high] = interval(ratios);
    console.log(`${cell.padEnd(8)} ${name.padEnd(22)} ${without.toFixed(0)} µs a turn beside, ${withIt.toFixed(0)} observed   ${middle.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`);
  }
}
process.exit(0);
