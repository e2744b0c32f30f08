// What a durable run costs per step: runs of 100 turns with a tool each, without `host.step` and with an engine in memory and in a
// file, in turns, in one process.   node --expose-gc benches/durable.mjs [--rounds N]
// What the real engines add was measured by `cargo xtask e2e durable`, which leaves its numbers in target/.
import { closeSync, existsSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from './lib/stats.mjs';
import { Agent, custom, tool } from '../pkg/entry/node.js';

const at = process.argv.indexOf('--rounds');
const rounds = at < 0 ? 15 : Number(process.argv[at + 1]);
const TURNS = 100;
const folder = mkdtempSync(join(tmpdir(), 'turnwheel-durable-'));

const model = custom('m', async function* ({ messages }) {
  const turn = messages.filter(({ role }) => role === 'tool_result').length;
  yield { type: 'start' };
  if (turn === TURNS) {
    yield* [{ type: 'text_start', contentIndex: 0 }, { type: 'text_delta', contentIndex: 0, delta: 'Done.' }, { type: 'text_end', contentIndex: 0 }];
  } else {
    yield* [{ type: 'tool_call_start', contentIndex: 0, callId: `c${turn}`, toolName: 'look' }, { type: 'tool_call_delta', contentIndex: 0, delta: '{"n":1}' }, { type: 'tool_call_end', contentIndex: 0 }];
  }
  yield { type: 'done', stopReason: turn === TURNS ? 'stop' : 'tool_use' };
});
const look = (idempotent) => tool({ name: 'look', description: '', parameters: { type: 'object' }, idempotent, execute: () => 'seen' });

/** A host whose records `keep` stores; without `keep`, none. */
function hostOf(keep, records) {
  return keep && {
    async step(name, work) {
      if (!records.has(name)) {
        const record = await work();
        keep(record);
        records.set(name, record);
      }
      return records.get(name);
    },
  };
}

async function run(keep, { idempotent = true, records = new Map() } = {}) {
  const agent = new Agent({ model, tools: [look(idempotent)], maxTurns: 1000, ...(keep && { host: hostOf(keep, records) }) });
  globalThis.gc?.();
  const [started, busy] = [performance.now(), process.cpuUsage()];
  const { stopReason } = await agent.prompt('Go.');
  if (stopReason !== 'completed') throw new Error(stopReason);
  const { user, system } = process.cpuUsage(busy);
  return { us: (performance.now() - started) * 1000, cpu: user + system, steps: records.size, records };
}

const file = openSync(join(folder, 'journal'), 'w');
const write = (record) => writeSync(file, `${JSON.stringify(record)}\n`);
const WAYS = {
  'no `host.step`': () => run(undefined),
  'records in memory': () => run(() => {}),
  'the same, and no tool is `idempotent`: with markers': () => run(() => {}, { idempotent: false }),
  'records in a file': () => run(write),
  'records in a file, with `fdatasync`': () => run((record) => (write(record), fdatasyncSync(file))),
  'lived again from memory': async () => run(() => {}, { records: (await run(() => {})).records }),
};

const times = Object.fromEntries(Object.keys(WAYS).map((name) => [name, { us: [], cpu: [] }]));
const steps = {};
for (let i = -3; i < rounds; i++) {
  for (const [name, way] of Object.entries(WAYS)) {
    const made = await way();
    if (i >= 0) for (const what of ['us', 'cpu']) times[name][what].push(made[what]);
    steps[name] = made.steps || 2 * TURNS + 2;
  }
}
closeSync(file);
rmSync(folder, { recursive: true });

console.log(`Node ${process.version}, ${rounds} rounds, runs of ${TURNS} turns with a tool each; the median of the whole run by its steps.\n`);
console.log('| | steps | CPU per step | time per step |\n|---|---:|---:|---:|');
for (const name of Object.keys(WAYS)) {
  const per = (what) => `${(median(times[name][what]) / steps[name]).toFixed(0)} µs`;
  console.log(`| ${name} | ${steps[name]} | ${per('cpu')} | ${per('us')} |`);
}

const measured = join(fileURLToPath(new URL('..', import.meta.url)), 'target/e2e-durable.json');
if (existsSync(measured)) {
  console.log('\n| what an engine adds to a step (`cargo xtask e2e durable`) | |\n|---|---:|');
  for (const [engine, ms] of Object.entries(JSON.parse(readFileSync(measured, 'utf8')))) console.log(`| ${engine} | ${ms} ms |`);
}
process.exit(0);
