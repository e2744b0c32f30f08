// W1 and W2 in Chromium and in workerd: floor and package on the same work, each in one page and one isolate.
//   node benches/hosts.mjs [--reps 5]
// In Chromium the page's own clock is used. A Worker's clock stands still while it works, so there the CPU
// time of the process counts.
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { chromium } from 'playwright-core';

const here = fileURLToPath(new URL('.', import.meta.url));
const at = process.argv.indexOf('--reps');
const reps = at < 0 ? 5 : Number(process.argv[at + 1]);
const CELLS = ['W1-event', 'W1-16k', 'W2-50', 'W2-400'];
const ENGINES = ['floor', 'turnwheel'];

/**
 * The work as a single script. All that it needs of Node is a clock and hashing, which only
 * has to tell texts apart.
 */
async function script(entry) {
  const { outputFiles: [file] } = await build({
    stdin: { resolveDir: here, contents: `
      import * as floor from './engines/floor.mjs';
      import { engineOf } from './engines/turnwheel.mjs';
      import * as turnwheel from '../pkg/entry/${entry}.js';
      import { driveOnce } from './lib/drive.mjs';
      import { CELLS } from './lib/workloads.mjs';
      const engines = { floor: await floor.load(), turnwheel: engineOf(turnwheel) };
      const made = {};
      export async function play(engine, cell, times) {
        const work = (made[cell] ??= CELLS[cell].make());
        const walls = [];
        for (let i = 0; i < times; i++) {
          const { wall, errors } = await driveOnce(engines[engine], work);
          if (errors.length) throw new Error(errors.join());
          walls.push(wall);
        }
        return walls;
      }` },
    bundle: true, format: 'esm', write: false, target: 'es2022', logLevel: 'error', external: ['*.wasm', '../../pkg/entry/node.js'],
    banner: { js: 'globalThis.process ??= {}; globalThis.process.cpuUsage ??= () => ({ user: 0, system: 0 });' },
    plugins: [{ name: 'hash', setup({ onResolve, onLoad }) {
      onResolve({ filter: /^node:crypto$/ }, () => ({ path: 'crypto', namespace: 'hash' }));
      onResolve({ filter: /entry\/node\.js$/ }, () => ({ path: 'nothing', external: true }));
      onLoad({ filter: /.*/, namespace: 'hash' }, () => ({ contents: `export const createHash = () => { let h = 7; const hash = { update(text) { for (let i = 0; i < text.length; i++) h = (Math.imul(h, 31) + text.charCodeAt(i)) | 0; return hash; }, digest: () => String(h).padStart(16, '0') }; return hash; };` }));
    } }],
  });
  return file.text;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

/** @param {(engine: string, cell: string, times: number) => Promise<number>} measure the milliseconds of so many runs */
async function table(host, measure) {
  for (const cell of CELLS) {
    const took = { floor: [], turnwheel: [] };
    for (const engine of ENGINES) await measure(engine, cell, 3);
    for (let rep = 0; rep < reps; rep++) for (const engine of rep % 2 ? [...ENGINES].reverse() : ENGINES) took[engine].push(await measure(engine, cell, 3));
    const [floor, ours] = ENGINES.map((engine) => median(took[engine]) / 3);
    console.log(`${host.padEnd(10)} ${cell.padEnd(9)} floor ${floor.toFixed(1)} ms   turnwheel ${ours.toFixed(1)} ms   ${(ours / floor).toFixed(2)}`);
  }
}

const wasm = readFileSync(`${here}../pkg/turnwheel.wasm`);
const code = await script('web');
const server = createServer((request, response) => {
  if (request.url === '/app/app.js') response.setHeader('content-type', 'text/javascript').end(code);
  else if (request.url.endsWith('.wasm')) response.setHeader('content-type', 'application/wasm').end(wasm);
  else response.setHeader('content-type', 'text/html').end('<!doctype html><title>bench</title>');
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${server.address().port}/`);
await table('Chromium', async (engine, cell, times) => {
  const walls = await page.evaluate(async ([engine, cell, times]) => (await import('/app/app.js')).play(engine, cell, times), [engine, cell, times]);
  return walls.reduce((sum, wall) => sum + wall, 0);
});
await browser.close();
server.close();

const earlierWorkers = new Set(workers());
const miniflare = new Miniflare({
  modules: [
    { type: 'ESModule', path: 'main.js', contents: `import { play } from './app/app.js'; export default { async fetch(request) { const [engine, cell, times] = await request.json(); await play(engine, cell, times); return new Response('done'); } };` },
    { type: 'ESModule', path: 'app/app.js', contents: await script('workerd') },
    { type: 'CompiledWasm', path: 'turnwheel.wasm', contents: wasm },
  ],
  modulesRoot: '.', compatibilityDate: '2026-01-01',
});
await miniflare.ready;
const [worker] = workers().filter((pid) => !earlierWorkers.has(pid));
await table('workerd', async (engine, cell, times) => {
  const before = cpuOf(worker);
  const answer = await miniflare.dispatchFetch('http://x/', { method: 'POST', body: JSON.stringify([engine, cell, times]) });
  if (await answer.text() !== 'done') throw new Error('the Worker failed');
  return cpuOf(worker) - before;
});
await miniflare.dispose();

/** The processes of workerd. */
function workers() {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid)).filter((pid) => {
    try { return readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('workerd'); } catch { return false; }
  });
}

/** The CPU time in milliseconds that a process has used; the kernel counts in hundredths of a second. */
function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
