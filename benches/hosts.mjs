// The cells in Chromium, beside the fastest peers, each engine in a page of its own, in turns; and W1 and W2 in workerd, floor
// and package in one isolate.
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
const PAGE_CELLS = [...CELLS, 'W3-100', 'W4-1250', 'W5-100x10'];
const ENGINES = ['floor', 'turnwheel'];
/** The peers that are the fastest in a cell of the first table. */
const PEERS = ['openai-runtools', 'pi', 'tanstack'];

/**
 * The work for these engines as a single script. All that it needs of Node is a clock and hashing, which only
 * has to tell texts apart. Peers may name modules of Node that a page has not and these runs do not enter.
 */
async function script(entry, names) {
  const of = (name) => (name === 'turnwheel' ? `engineOf(await import('../pkg/entry/${entry}.js'))` : `await (await import('./engines/${name}.mjs')).load()`);
  const { outputFiles: [file] } = await build({
    stdin: { resolveDir: here, contents: `
      import { engineOf } from './engines/turnwheel.mjs';
      import { driveOnce } from './lib/drive.mjs';
      import { CELLS } from './lib/workloads.mjs';
      const engines = { ${names.map((name) => `'${name}': ${of(name)}`).join(', ')} };
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
    ...(entry === 'web' && { platform: 'browser', define: { 'process.env.NODE_ENV': '"production"' } }),
    banner: { js: 'globalThis.process ??= { env: {} }; globalThis.process.cpuUsage ??= () => ({ user: 0, system: 0 });' },
    plugins: [{ name: 'hash', setup({ onResolve, onLoad }) {
      onResolve({ filter: /^node:crypto$/ }, () => ({ path: 'crypto', namespace: 'hash' }));
      onResolve({ filter: /entry\/node\.js$/ }, () => ({ path: 'nothing', external: true }));
      onLoad({ filter: /.*/, namespace: 'hash' }, () => ({ contents: `export const createHash = () => { let h = 7; const hash = { update(text) { for (let i = 0; i < text.length; i++) h = (Math.imul(h, 31) + text.charCodeAt(i)) | 0; return hash; }, digest: () => String(h).padStart(16, '0') }; return hash; };` }));
    } }],
  });
  return file.text;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

/**
 * Prints a line for each cell; a peer that fails at the work has no number.
 * @param {(engine: string, cell: string, times: number) => Promise<number>} measure the milliseconds of so many runs
 */
async function table(host, cells, names, measure) {
  for (const cell of cells) {
    const took = Object.fromEntries(names.map((name) => [name, []]));
    const wrong = new Set();
    const take = async (name) => {
      if (wrong.has(name)) return undefined;
      return measure(name, cell, 3).catch((error) => {
        if (ENGINES.includes(name)) throw error;
        wrong.add(name);
      });
    };
    for (const name of names) await take(name);
    for (let rep = 0; rep < reps; rep++) for (const name of rep % 2 ? [...names].reverse() : names) took[name].push(await take(name));
    const [floor, ours, ...others] = names.map((name) => (wrong.has(name) ? Infinity : median(took[name]) / 3));
    const peers = others.map((ms, i) => `   ${names[i + 2]} ${ms === Infinity ? 'wrong' : ms.toFixed(1)}`).join('');
    const fastest = others.length > 0 ? `   of the fastest peer ${(ours / Math.min(...others)).toFixed(2)}` : '';
    console.log(`${host.padEnd(10)} ${cell.padEnd(9)} floor ${floor.toFixed(1)} ms   turnwheel ${ours.toFixed(1)} ms   ${(ours / floor).toFixed(2)}${fastest}${peers}`);
  }
}

const wasm = readFileSync(`${here}../pkg/turnwheel.wasm`);
const inPage = [...ENGINES, ...PEERS];
const scripts = new Map();
for (const name of inPage) scripts.set(`/${name}/app.js`, await script('web', [name]));
const server = createServer((request, response) => {
  const code = scripts.get(request.url);
  if (code) response.setHeader('content-type', 'text/javascript').end(code);
  else if (request.url.endsWith('turnwheel.wasm')) response.setHeader('content-type', 'application/wasm').end(wasm);
  else if (request.url.endsWith('.wasm')) response.writeHead(404).end();
  else response.setHeader('content-type', 'text/html').end('<!doctype html><title>bench</title>');
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const pages = new Map();
for (const name of inPage) {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  pages.set(name, page);
}
await table('Chromium', PAGE_CELLS, inPage, async (name, cell, times) => {
  // A page that is behind another is slowed down.
  await pages.get(name).bringToFront();
  const walls = await pages.get(name).evaluate(async ([engine, cell, times]) => (await import(`/${engine}/app.js`)).play(engine, cell, times), [name, cell, times]);
  return walls.reduce((sum, wall) => sum + wall, 0);
});
await browser.close();
server.close();

const earlierWorkers = new Set(workers());
const miniflare = new Miniflare({
  modules: [
    { type: 'ESModule', path: 'main.js', contents: `import { play } from './app/app.js'; export default { async fetch(request) { const [engine, cell, times] = await request.json(); await play(engine, cell, times); return new Response('done'); } };` },
    { type: 'ESModule', path: 'app/app.js', contents: await script('workerd', ENGINES) },
    { type: 'CompiledWasm', path: 'turnwheel.wasm', contents: wasm },
  ],
  modulesRoot: '.', compatibilityDate: '2026-01-01',
});
await miniflare.ready;
const [worker] = workers().filter((pid) => !earlierWorkers.has(pid));
await table('workerd', CELLS, ENGINES, async (engine, cell, times) => {
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
