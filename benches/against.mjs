// Compares two builds of the package, cell by cell, in one run.
// node against.mjs OLD_PKG NEW_PKG [CELL...] [--rounds 20] [--node PATH]
//
// In every round each job runs once with either build, in a process of its own, one directly after the other, and in
// every other round the new one first: what else the machine does meets both. A pair of runs gives one ratio.
//
// Of sixteen cells, chance alone makes one look worse in every third run. A cell that does is therefore measured
// once more, and counts as worse if it is so again.
import { parseArgs } from 'node:util';
import { join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { JOBS, cellsOf, measure } from './lib/process.mjs';
import { FEWEST, median, ratio } from './lib/stats.mjs';
import { CELLS } from './lib/workloads.mjs';

const fail = (message) => { console.error(`error: ${message}`); process.exit(2); };
const { values, positionals: [old, current, ...wanted] } = parseArgs({
  allowPositionals: true, options: { rounds: { type: 'string', default: '20' }, node: { type: 'string' } },
});
if (!current) fail('two packages are needed, each a folder like pkg/');
for (const folder of [old, current]) if (!existsSync(join(folder, 'entry/node.js'))) fail(`${folder} is no package: it has no entry/node.js`);
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < FEWEST) fail(`an interval wants ${FEWEST} rounds or more, not ${values.rounds}`);
const BUILDS = { old: pathToFileURL(resolve(old)).href, new: pathToFileURL(resolve(current)).href };

/** What a cell costs: CPU time, and of W7 the memory that the process had at most. */
const cost = (cell, run) => (cell === 'W6' ? run.cpuMs : cell === 'W7' ? run.peakRssMB : (median(run.cpu) * 1000) / run.units);
const unit = (cell) => (cell === 'W6' ? 'ms' : cell === 'W7' ? 'MB' : `µs/${CELLS[cell].unit}`);

/** The jobs to run: of a kind of work (`W2`), or of one cell (`W2-400`), with the cells asked for. @type {Map<string, string[]>} */
const jobs = new Map();
const all = Object.values(JOBS).flat();
for (const name of wanted.length ? wanted : Object.keys(JOBS)) {
  const found = JOBS[name] ?? all.filter((job) => cellsOf(job).includes(name));
  if (found.length === 0) fail(`no cell \`${name}\`; there are ${[...Object.keys(JOBS), ...all.flatMap(cellsOf)].join(', ')}`);
  for (const job of found) jobs.set(job, [...new Set([...(jobs.get(job) ?? []), ...(JOBS[name] ? cellsOf(job) : [name])])]);
}

/** Runs the jobs in rounds. Returns each cell's costs by build, and what went wrong. */
async function series(jobs, title) {
  /** @type {Record<string, { old: number[], new: number[], errors: Set<string> }>} */
  const cells = {};
  for (const cell of [...jobs.values()].flat()) cells[cell] = { old: [], new: [], errors: new Set() };
  for (let round = 0; round < rounds; round++) {
    for (const [job, names] of jobs) {
      for (const build of round % 2 ? ['new', 'old'] : ['old', 'new']) {
        process.stderr.write(`${title} ${round + 1}/${rounds} ${job} ${build}\n`);
        const runs = await measure('turnwheel', job, { node: values.node, folder: BUILDS[build] });
        for (const cell of names) {
          for (const error of runs[cell].errors ?? []) cells[cell].errors.add(`${build}: ${error}`);
          if (!runs[cell].errors?.length) cells[cell][build].push(cost(cell, runs[cell]));
        }
      }
    }
  }
  return cells;
}

const short = (n) => (n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2));
const line = (...columns) => console.log(columns.map((text, i) => (i === 0 || i > 4 ? text.padEnd(i ? 16 : 12) : text.padStart(9))).join(' ').trimEnd());

/** Prints a line for each cell. Returns the cells that look worse, and those whose work was not done. */
function report(cells) {
  const [worse, wrong] = [[], []];
  line('', 'old', 'new', '', 'new/old', '95 % interval');
  for (const [cell, { errors, ...costs }] of Object.entries(cells)) {
    if (errors.size > 0) {
      wrong.push(cell);
      line(cell, '', '', '', 'wrong', [...errors].slice(0, 2).join('; '));
      continue;
    }
    const { ratio: middle, low, high } = ratio(costs.old, costs.new);
    if (low > 1) worse.push(cell);
    const verdict = low > 1 ? 'WORSE' : high < 1 ? 'better' : '';
    line(cell, short(median(costs.old)), short(median(costs.new)), unit(cell), middle.toFixed(3), `${low.toFixed(3)} to ${high.toFixed(3)}`, verdict);
  }
  return { worse, wrong };
}

console.log(`Node ${values.node ?? process.version}, ${rounds} rounds. CPU time of the process (W7: its memory), medians; new/old is the median of the pairs.\n`);
let { worse, wrong } = report(await series(jobs, 'round'));
if (worse.length > 0) {
  console.log(`\nonce more, what looks worse: ${worse.join(', ')}\n`);
  const again = [...jobs].map(([job, names]) => /** @type {const} */ ([job, names.filter((cell) => worse.includes(cell))]));
  const second = report(await series(new Map(again.filter(([, names]) => names.length > 0)), 'again'));
  worse = second.worse;
  wrong = [...wrong, ...second.wrong];
}
console.log();
if (wrong.length > 0) console.log(`the work was not done in ${wrong.join(', ')}`);
console.log(worse.length > 0 ? `worse by more than the noise, twice: ${worse.join(', ')}` : 'no cell is worse by more than its noise');
process.exit(worse.length + wrong.length > 0 ? 1 : 0);
