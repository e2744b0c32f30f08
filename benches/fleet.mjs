// What a fleet costs: claims and saves per second, memory per sleeping, idle and running agent, and how long runs stand still when
// their process is killed or hands over. With each store that is here.   node --expose-gc benches/fleet.mjs [files|sqlite|postgres]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Agent, scripted, tool } from '../pkg/entry/node.js';
import { agentHandler } from '../pkg/server.js';
import { joinFleet, openAgent } from '../pkg/stores-node.js';
import { folder, hasPostgres, hasSqlite, postgres, storeOf } from '../tests/js/fleet/stores.mjs';

const SLEEPING = Number(process.env.SLEEPING ?? 10_000); const RUNNING = Number(process.env.RUNNING ?? 200); const AT_ONCE = 8; const TTL = 3_000;
const text = (role, i) => ({ role, content: [{ type: 'text', text: `Message ${i}: ${'a word or two '.repeat(8)}` }], timestamp: 1 });
const talk = (count) => Array.from({ length: count }, (_, i) => text('user', i));
const checkpointOf = (count) => new Agent({ model: scripted([]), messages: talk(count) }).checkpoint();

/** Who waits until the tool of an agent has begun: its announcement is stored then. */
const begun = new Map();
/** An agent whose run waits in a tool for ever, with the handler that a page would listen to. */
const open = async (lease) => {
  const wait = tool({ name: 'wait', description: 'Waits', parameters: { type: 'object' }, idempotent: true, execute: (_, { signal }) => new Promise((_, reject) => (begun.get(lease.id)?.(), signal.addEventListener('abort', () => reject(signal.reason)))) });
  const agent = await openAgent(lease, { model: scripted([{ text: 'Waiting. ', toolCalls: [{ toolName: 'wait' }] }]), tools: [wait] });
  return { agent, handler: agentHandler(agent, { events: lease.events }) };
};
const waiting = (fleet, id) => fleet.open(id).then(({ agent }) => new Promise((resolve) => {
  begun.set(id, resolve);
  agent.prompt(text('user', 1));
}));

async function each(count, work, atOnce = AT_ONCE) {
  let next = 0;
  await Promise.all(Array.from({ length: atOnce }, async () => { while (next < count) await work(next++); }));
}
async function rate(count, work, atOnce) {
  const from = performance.now(); await each(count, work, atOnce);
  return Math.round(count / (performance.now() - from) * 1000);
}
const memory = async () => {
  for (let i = 0; i < 3; i++) { await new Promise((resolve) => setTimeout(resolve, 50)); globalThis.gc?.(); }
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return (heapUsed + Math.max(external, arrayBuffers)) / 1024;
};
const until = async (isTrue) => { while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5)); };

/** How long an agent takes to be stored that has so many messages, of which all but two were stored before. */
async function storing(store, count) {
  const lease = await store.claim(`long-${count}`);
  const agent = await openAgent(lease, { model: scripted(Array.from({ length: 40 }, () => 'Good.')), messages: talk(count) });
  const times = [];
  for (let i = 0; i < 25; i++) {
    await agent.prompt('Go on');
    await lease.events.sync();
    lease.events.needsCheckpoint = true;
    const from = performance.now();
    await lease.events.store();
    times.push(performance.now() - from);
  }
  await lease.release();
  return times.slice(5).sort((a, b) => a - b)[10].toFixed(1);
}

/** A process with runs; says when all of them wait, and hands over when it is told to. */
async function hold(kind, place) {
  const { store } = await storeOf(kind, place, { ttlMs: TTL, owner: 'other' });
  const fleet = joinFleet(store, { takeoverMs: Infinity, open });
  await each(RUNNING, (i) => waiting(fleet, `running-${i}`));
  process.on('message', () => fleet.handOver({ graceMs: 0 }).then(() => process.exit()));
  process.send('ready');
}

/** How long it takes until all runs of another process go on here. */
async function takeover(kind, place, how) {
  const child = fork(fileURLToPath(import.meta.url), ['--hold', kind, place], { execArgv: [] });
  await once(child, 'message');
  const { store, end } = await storeOf(kind, place, { ttlMs: 30_000 });
  const fleet = joinFleet(store, { takeoverMs: 200, open });
  const from = performance.now();
  if (how === 'kill') child.kill('SIGKILL'); else child.send('go');
  await until(() => fleet.counts().takenOver === RUNNING);
  const took = performance.now() - from;
  await fleet.handOver({ graceMs: 0 });
  for (let i = 0; i < RUNNING; i++) await store.delete(`running-${i}`);
  await end();
  return took;
}

async function measure(kind, t) {
  const place = kind === 'postgres' ? await postgres(t) : folder(t);
  const { store, end } = await storeOf(kind, place, { ttlMs: 60_000 });
  const rows = [];
  const row = (name, value) => { rows.push([name, value]); console.error(kind, name, value); };

  const ten = checkpointOf(10);
  row(`agents stored for the first time, 10 messages`, `${await rate(SLEEPING, (i) => store.save(`sleeping-${i}`, ten))} per s`);
  row(`claim and release, beside ${SLEEPING.toLocaleString('en')} that sleep`, `${await rate(2_000, async (i) => { const lease = await store.claim(`sleeping-${i * 4}`); await lease.release(); })} per s`);
  for (const [name, count] of [['10', 10], ['100', 100]]) {
    const states = Array.from({ length: 20 }, (_, i) => checkpointOf(count + i));
    const leases = await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => store.claim(`saving-${name}-${i}`)));
    for (const lease of leases) await lease.save(states[0]);
    row(`saves of one new message after ${name}`, `${await rate(2_000, (i) => leases[i % AT_ONCE].save(states[Math.floor(i / AT_ONCE) % 20]))} per s`);
    for (const lease of leases) await lease.release();
  }
  for (const count of [10, 1_000, 10_000]) row(`an agent with ${count.toLocaleString('en')} messages is stored in`, `${await storing(store, count)} ms`);
  const log = await store.claim('log');
  row('events stored, eight at a time', `${8 * await rate(1_000, async () => { for (let i = 0; i < 8; i++) log.events.append({ id: log.events.last + 1, type: 'message', data: '{"type":"message_update","delta":{"type":"text","contentIndex":0,"delta":"a word "}}' }); await log.events.sync(); }, 1)} per s`);
  await log.release();

  const fleet = joinFleet(store, { agents: 20_000, takeoverMs: Infinity, open });
  const times = [];
  const before = await memory();
  await each(1_000, async (i) => { const from = performance.now(); await fleet.open(`sleeping-${i}`); times.push(performance.now() - from); }, 1);
  const idle = await memory();
  times.sort((a, b) => a - b);
  row('an agent is woken in', `${times[500].toFixed(1)} ms, 99 % within ${times[990].toFixed(1)} ms`);
  row('memory of one that is awake and has nothing to do', `${((idle - before) / 1_000).toFixed(1)} KB`);
  await fleet.handOver({ graceMs: 0 });
  row('memory that stays in the process for one that went back to sleep', `${Math.max(0, (await memory() - before) / 1_000).toFixed(1)} KB`);
  const running = joinFleet(store, { takeoverMs: Infinity, open });
  const empty = await memory();
  await each(RUNNING, (i) => waiting(running, `running-${i}`));
  row(`memory of one of ${RUNNING} that run`, `${((await memory() - empty) / RUNNING).toFixed(1)} KB`);
  await running.handOver({ graceMs: 0 });
  for (let i = 0; i < RUNNING; i++) await store.delete(`running-${i}`);
  row(`${RUNNING} runs of a killed process all go on elsewhere after`, `${((await takeover(kind, place, 'kill')) / 1000).toFixed(1)} s (${TTL / 1000} s of them the lease)`);
  row(`${RUNNING} runs that are handed over`, `${((await takeover(kind, place, 'hand over')) / 1000).toFixed(1)} s`);
  await end();
  return rows;
}

if (process.argv[2] === '--hold') await hold(process.argv[3], process.argv[4]);
else {
  const kinds = [['postgres', hasPostgres], ['sqlite', hasSqlite], ['files', true]].filter(([kind, isHere]) => isHere && (!process.argv[2] || process.argv[2] === kind)).map(([kind]) => kind);
  const ends = [];
  const tables = [];
  try {
    for (const kind of kinds) tables.push(await measure(kind, { after: (end) => void ends.push(end) }));
  } finally {
    for (const end of ends) end();
  }
  console.log(`| Node ${process.version} | ${kinds.join(' | ')} |\n|---|${kinds.map(() => '---|').join('')}`);
  tables[0].forEach(([name], i) => console.log(`| ${name} | ${tables.map((rows) => rows[i][1]).join(' | ')} |`));
  process.exit(0);
}
