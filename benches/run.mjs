// Drives engines through the same verified work, each cell in fresh processes, the engines interleaved.
// node run.mjs [--engines a,b] [--jobs W1,W2] [--reps 3] [--node PATH] [--write]
import { spawn } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { dirname, join } from 'node:path';
import { JOBS, cellsOf, measure } from './lib/process.mjs';
import { chart, table } from './lib/report.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const args = process.argv.slice(2);
const value = (name, fallback) => (args.includes(name) ? args[args.indexOf(name) + 1] : fallback);
const all = readdirSync(join(here, 'engines')).map((file) => file.slice(0, -4)).sort();
const engines = ['floor', ...value('--engines', all.join(',')).split(',').filter((name) => name !== 'floor')];
const jobs = value('--jobs', Object.keys(JOBS).join(',')).split(',').flatMap((name) => JOBS[name]);
const reps = Number(value('--reps', '3'));
const node = value('--node', process.execPath);

/** Runs by cell and engine. @type {Record<string, Record<string, any[]>>} */
const cells = {};
const keep = (cell, engine, run) => ((cells[cell] ??= {})[engine] ??= []).push(run);
for (const job of jobs) {
  for (let rep = 0; rep < reps; rep++) {
    for (const engine of rep % 2 ? [...engines].reverse() : engines) {
      // Of the peers none shows arguments as they grow for nothing; who is wrong once is wrong, and takes long at it.
      if (job === 'W4-partial' && engine !== 'floor' && engine !== 'turnwheel') continue;
      const names = cellsOf(job);
      if (names.every((name) => cells[name]?.[engine]?.some((run) => run.errors?.length))) continue;
      const runs = await measure(engine, job, { node });
      for (const name of names) keep(name, engine, runs[name]);
      process.stderr.write(`${rep + 1}/${reps} ${job} ${engine} ${runs[names[0]].errors?.[0] ?? ''}\n`);
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
