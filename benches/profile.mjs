// Where the CPU time of some cells goes, in milliseconds per run: what V8 compiles and collects in other
// threads, and the main thread by the owner of the code.   node --expose-gc benches/profile.mjs [CELL...]
//
// Two processes each: one runs unobserved, timed by the kernel; the other is sampled every 0.2 ms
// and gives the shares. The last two columns are the total again, with JavaScript optimisation turned off in
// V8, and with wasm optimisation turned off as well.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { driveOnce } from './lib/drive.mjs';
import { CELLS } from './lib/workloads.mjs';

const self = fileURLToPath(import.meta.url);
const WARM = 2, RUNS = 3, PROCESSES = 5;
const mean = (numbers) => numbers.reduce((sum, n) => sum + n, 0) / numbers.length;

/** The main thread's processor time, where the system reports it. */
const mainThread = () => { try { return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]) / 1e6; } catch { return NaN; } };

/** The owner of the code that a sample was taken in. */
function owner({ url, functionName }) {
  if (url.startsWith('wasm:')) return 'wasm';
  if (url.includes('/pkg/')) return 'package';
  if (url.startsWith('node:')) return url === 'node:inspector' ? undefined : 'node';
  if (url.startsWith('file:')) return 'harness';
  return functionName === '(garbage collector)' ? 'gc' : undefined;
}

/** Measures in a separate process. */
async function measure(engineName, cell, isSampled) {
  const engine = await (await import(`./engines/${engineName}.mjs`)).load();
  const work = CELLS[cell].make();
  for (let i = 0; i < WARM; i++) await driveOnce(engine, work);
  const session = new Session();
  session.connect();
  const shares = {};
  let cpu = 0, main = 0;
  if (isSampled) { await session.post('Profiler.enable'); await session.post('Profiler.setSamplingInterval', { interval: 200 }); }
  for (let i = 0; i < RUNS; i++) {
    globalThis.gc?.();
    if (isSampled) await session.post('Profiler.start');
    const before = mainThread();
    const run = await driveOnce(engine, work);
    main += (mainThread() - before) / RUNS;
    cpu += run.cpu / RUNS;
    if (run.errors.length) throw new Error(`${engineName} ${cell}: ${run.errors[0]}`);
    if (!isSampled) continue;
    const { profile } = await session.post('Profiler.stop');
    const frames = new Map(profile.nodes.map((node) => [node.id, owner(node.callFrame)]));
    for (const [i, id] of profile.samples.entries()) { const whose = frames.get(id); if (whose) shares[whose] = (shares[whose] ?? 0) + profile.timeDeltas[i]; }
  }
  console.log(JSON.stringify({ cpu, main, shares }));
}

/** Measures several times; returns the means. */
function processes(engine, cell, isSampled, flags = []) {
  const runs = Array.from({ length: PROCESSES }, () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', ...flags, self, '--one', engine, cell, String(isSampled)], { encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  });
  const shares = {};
  for (const run of runs) for (const [whose, time] of Object.entries(run.shares)) shares[whose] = (shares[whose] ?? 0) + time;
  return { cpu: mean(runs.map((run) => run.cpu)), main: mean(runs.map((run) => run.main)), shares };
}

const args = process.argv.slice(2);
if (args[0] === '--one') await measure(args[1], args[2], args[3] === 'true');
else {
  const rows = [];
  for (const cell of args.length ? args : ['W2-50', 'W3-200', 'W4-1250', 'W5-100x10']) {
    for (const engine of ['floor', 'turnwheel']) {
      const { cpu, main } = processes(engine, cell, false);
      const { shares } = processes(engine, cell, true);
      const all = Object.values(shares).reduce((sum, time) => sum + time, 0);
      const part = (whose) => ((main * (shares[whose] ?? 0)) / all).toFixed(1);
      const without = (...flags) => processes(engine, cell, false, flags).cpu.toFixed(1);
      rows.push({
        cell, engine, ms: cpu.toFixed(1), 'other threads': (cpu - main).toFixed(1), wasm: part('wasm'), package: part('package'),
        'Node (streams, fetch)': part('node'), harness: part('harness'), 'collector': part('gc'), '--no-opt': without('--no-opt'), 'and --liftoff-only': without('--no-opt', '--liftoff-only'),
      });
    }
  }
  const names = Object.keys(rows[0]);
  console.log(`${process.version}\n\n| ${names.join(' | ')} |\n|${names.map((_, i) => (i < 2 ? '---|' : '---:|')).join('')}`);
  for (const row of rows) console.log(`| ${Object.values(row).join(' | ')} |`);
}
