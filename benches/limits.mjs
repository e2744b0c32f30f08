// The memory, in the engine and in JavaScript, of a long run and of many runs at once; and whether a turn
// gets more expensive the longer the run is.   node --expose-gc benches/limits.mjs
import { Agent, openaiCompatible } from '../pkg/entry/node.js';
import { getEngine } from '../pkg/core.js';
import { mockFetch } from './lib/sse.mjs';
import { toolTurns } from './lib/workloads.mjs';

const MB = 1 << 20;
const memory = () => {
  globalThis.gc?.();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return { engine: getEngine().memory.buffer.byteLength / MB, heap: (heapUsed + Math.max(external, arrayBuffers)) / MB };
};
const cpu = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1000; };

/** 10,000 turns; the history is cut to its last 100 messages whenever it reaches 200. */
async function longRun(turns) {
  const workload = toolTurns({ turns });
  const script = workload.script();
  // A request has as many messages as the shortened history.
  const mock = mockFetch(script.map(({ body }) => ({ body, get messages() { return undefined; } })));
  const totals = { runs: 0, sum: 0, live: 0, maxLive: 0 };
  const agent = new Agent({
    model: openaiCompatible('m', { baseUrl: 'http://bench.invalid/v1', apiKey: 'k', fetch: mock.fetch }),
    systemPrompt: workload.system, maxTurns: Infinity, tools: workload.makeTools(totals).map(({ shape, ...tool }) => tool),
    transformContext: (messages) => messages.length < 200 ? undefined : { messages: [messages[0], ...messages.slice(-99)], report: { text: '', droppedCount: messages.length - 100 } },
  });
  const marks = []; let last = cpu(); let compactions = 0;
  agent.subscribe((event) => {
    if (event.type === 'context_compacted') compactions++;
    if (event.type !== 'turn_end' || (event.turnIndex + 1) % (turns / 5) !== 0) return;
    const now = cpu();
    marks.push({ turn: event.turnIndex + 1, 'ms CPU per turn': ((now - last) / (turns / 5)).toFixed(3), ...round(memory()) });
    last = cpu();
  });
  const { stopReason, turns: done } = await agent.prompt(workload.prompt);
  if (stopReason !== 'completed' || done !== turns + 1 || totals.runs !== turns) throw new Error(`${stopReason} after ${done} turns, ${totals.runs} calls`);
  console.log(`${turns} turns, ${compactions} compactions, ${agent.messages.length} messages at the end`);
  console.table(marks);
}

/** This many runs at once, each waiting for a tool in its second turn. */
async function manyRuns(count) {
  const before = memory();
  let openGate; const gate = new Promise((resolve) => (openGate = resolve));
  let waiting = 0; let all; const arrived = new Promise((resolve) => (all = resolve));
  const workload = toolTurns({ turns: 2 });
  const agents = Array.from({ length: count }, () => new Agent({
    model: openaiCompatible('m', { baseUrl: 'http://bench.invalid/v1', apiKey: 'k', fetch: mockFetch(workload.script()).fetch }), systemPrompt: workload.system,
    tools: [{ name: 'step', description: 'Records one step.', parameters: { type: 'object', properties: { i: { type: 'integer' } } }, execute: async ({ i }) => {
      if (i === 0) return 'ok';
      if (++waiting === count) all();
      return gate;
    } }],
  }));
  const runs = agents.map((agent) => agent.prompt(workload.prompt).result);
  await arrived;
  const during = memory();
  openGate('ok');
  for (const { stopReason } of await Promise.all(runs)) if (stopReason !== 'completed') throw new Error(stopReason);
  console.log(`${count} runs at once, each waiting for a tool in its second turn`);
  console.table({ before: round(before), during: round(during), 'KB per run': { engine: ((during.engine - before.engine) * 1024 / count).toFixed(1), heap: ((during.heap - before.heap) * 1024 / count).toFixed(1) } });
}

const round = ({ engine, heap }) => ({ 'engine MB': engine.toFixed(1), 'JavaScript MB': heap.toFixed(1) });
await new Agent({ model: openaiCompatible('m', { baseUrl: 'http://bench.invalid/v1', fetch: mockFetch(toolTurns({ turns: 0 }).script()).fetch }) }).prompt('Go');
// The many runs come first: the engine never returns memory, and later runs would fit into it.
await manyRuns(Number(process.argv[2] ?? 1_000));
await longRun(Number(process.argv[3] ?? 10_000));
process.exit(0);
