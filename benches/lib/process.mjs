// Starts worker.mjs: one fresh process for one engine and one job.
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const benches = dirname(dirname(fileURLToPath(import.meta.url)));

/** The jobs of each kind of work. The cells of a job run in one process, in this order; `cold` is W6 and `mem` W7. */
export const JOBS = {
  W1: ['W1-event,W1-16k'], W2: ['W2-50,W2-100,W2-200,W2-400'], W3: ['W3-100', 'W3-200'],
  W4: ['W4-1250,W4-2500,W4-5000', 'W4-10000', 'W4-partial'], W5: ['W5-100x10'], W6: ['cold'], W7: ['mem'],
};

/** The cells that a job measures. @param {string} job */
export const cellsOf = (job) => (job === 'cold' ? ['W6'] : job === 'mem' ? ['W7'] : job.split(','));

/**
 * Runs a job in a process of its own. Returns the result of each of its cells, with `errors` if the work was not done.
 * @param {string} engine @param {string} job @param {{ node?: string, folder?: string, timeoutMs?: number }} [options]
 * `folder` is a package to load in place of pkg/
 * @returns {Promise<Record<string, any>>}
 */
export function measure(engine, job, { node = process.execPath, folder, timeoutMs = 60_000 } = {}) {
  return new Promise((resolve) => {
    const options = JSON.stringify({ warm: 2, reps: 3, folder });
    const flags = ['--expose-gc', '--no-warnings', join(benches, 'worker.mjs'), engine, job, options];
    const child = spawn(node, flags, { cwd: benches, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_ENV: 'production' } });
    let output = '', errorOutput = '';
    child.stdout.on('data', (text) => (output += text));
    child.stderr.on('data', (text) => (errorOutput += text));
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    child.on('close', (code) => {
      clearTimeout(timer);
      const line = output.split('\n').find((text) => text.startsWith('@@'));
      const result = line ? JSON.parse(line.slice(2)) : { errors: [code === null ? 'too long' : `ended with ${code}: ${errorOutput.trim().split('\n').at(-1)?.slice(0, 160)}`] };
      const whole = { ...(result.cold ?? result.mem), errors: result.errors };
      const runs = cellsOf(job).map((cell) => [cell, cell === 'W6' || cell === 'W7' ? whole : (result.cells?.[cell] ?? { errors: result.errors ?? ['no result'] })]);
      resolve(Object.fromEntries(runs));
    });
  });
}
