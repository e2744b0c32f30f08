// Drives engines through the same verified work, each cell in fresh processes, the engines interleaved.
// node run.mjs [--engines a,b] [--jobs W1,W2] [--reps 3] [--node PATH] [--write]
import { spawn } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { dirname, join } from 'node:path';
import { chart, table } from './lib/report.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const args = process.argv.slice(2);
const value = (name, fallback) => (args.includes(name) ? args[args.indexOf(name) + 1] : fallback);
const JOBS = {
  W1: ['W1-event,W1-16k'], W2: ['W2-50,W2-100,W2-200,W2-400'], W3: ['W3-100', 'W3-200'],
  W4: ['W4-1250,W4-2500,W4-5000', 'W4-10000', 'W4-partial'], W5: ['W5-100x10'], W6: ['cold'], W7: ['mem'],
};
const all = readdirSync(join(here, 'engines')).map((file) => file.slice(0, -4)).sort();
const engines = ['floor', ...value('--engines', all.join(',')).split(',').filter((name) => name !== 'floor')];
const jobs = value('--jobs', Object.keys(JOBS).join(',')).split(',').flatMap((name) => JOBS[name]);
const reps = Number(value('--reps', '3'));
const node = value('--node', process.execPath);

/** One process, one engine, one job. */
function measure(engine, job, timeoutMs = 60_000) {
  return new Promise((resolve) => {
    const flags = ['--expose-gc', '--no-warnings', join(here, 'worker.mjs'), engine, job, JSON.stringify({ warm: 2, reps: 3 })];
    const child = spawn(node, flags, { cwd: here, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_ENV: 'production' } });
    let output = '', errorOutput = '';
    child.stdout.on('data', (text) => (output += text));
    child.stderr.on('data', (text) => (errorOutput += text));
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    child.on('close', (code) => {
      clearTimeout(timer);
      const line = output.split('\n').find((text) => text.startsWith('@@'));
      resolve(line ? JSON.parse(line.slice(2)) : { errors: [code === null ? 'too long' : `ended with ${code}: ${errorOutput.trim().split('\n').at(-1)?.slice(0, 160)}`] });
    });
  });
}

/** Runs by cell and engine. @type {Record<string, Record<string, any[]>>} */
const cells = {};
const keep = (cell, engine, run) => ((cells[cell] ??= {})[engine] ??= []).push(run);
for (const job of jobs) {
  for (let rep = 0; rep < reps; rep++) {
    for (const engine of rep % 2 ? [...engines].reverse() : engines) {
      // Of the peers none shows arguments as they grow for nothing; who is wrong once is wrong, and takes long at it.
      if (job === 'W4-partial' && engine !== 'floor' && engine !== 'turnwheel') continue;
      const names = job === 'cold' ? ['W6'] : job === 'mem' ? ['W7'] : job.split(',');
      if (names.every((name) => cells[name]?.[engine]?.some((run) => run.errors?.length))) continue;
      const result = await measure(engine, job);
      for (const name of names) keep(name, engine, name === 'W6' || name === 'W7' ? { ...(result.cold ?? result.mem), errors: result.errors } : (result.cells?.[name] ?? { errors: result.errors ?? ['no result'] }));
      process.stderr.write(`${rep + 1}/${reps} ${job} ${engine} ${result.errors?.[0] ?? ''}\n`);
    }
  }
}
const version = await new Promise((done) => { const child = spawn(node, ['-v']); child.stdout.on('data', (text) => done(String(text).trim())); });
const report = table(cells, version, reps);
process.stdout.write(report);
if (args.includes('--write')) {
  writeFileSync(join(here, 'RESULTS.md'), `# Measured\n\n![CPU time against the floor](RESULTS.svg)\n\n${report}`);
  writeFileSync(join(here, 'RESULTS.svg'), chart(cells));
}
