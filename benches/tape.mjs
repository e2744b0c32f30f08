// What recording costs: CPU of cells with a recorder and without one, in turns, in one process. A round gives one ratio; the table
// has the median of the ratios and an interval that holds the true median with 95 %.
//   node --expose-gc benches/tape.mjs [--rounds N] [CELL...]
// "recorded / not" compares two agents in the same module, that of turnwheel/tape, of which one is recorded: what recording itself
// costs. "recorded / plain" compares with an agent in the package's own module, which is compiled for size: what a host pays.
import { driveOnce } from './lib/drive.mjs';
import { median, ratio } from './lib/stats.mjs';
import { CELLS } from './lib/workloads.mjs';
import * as turnwheel from '../pkg/entry/node.js';
import { ready, recordNow } from '../pkg/tape.js';
import { engineOf } from './engines/turnwheel.mjs';

const at = process.argv.indexOf('--rounds');
const rounds = at < 0 ? 40 : Number(process.argv[at + 1]);
const given = process.argv.slice(2).filter((word) => Object.hasOwn(CELLS, word));
const cells = given.length > 0 ? given : ['W1-event', 'W1-16k', 'W2-50', 'W2-200', 'W2-400'];

await ready();
let length = 0;
/** An agent that is recorded, or that only lives where recorded ones do. */
const recording = (isOn) => class extends turnwheel.Agent {
  constructor(options) {
    super(options);
    const recorder = recordNow(this);
    if (!isOn) return void recorder.stop();
    this.subscribe((event) => {
      if (event.type === 'agent_end') queueMicrotask(() => { length = recorder.bytes; });
    });
  }
};
const engines = {
  plain: engineOf(turnwheel),
  off: engineOf({ ...turnwheel, Agent: recording(false) }),
  on: engineOf({ ...turnwheel, Agent: recording(true) }),
};
const names = Object.keys(engines);

const shown = ({ ratio, low, high }) => `${ratio.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
console.log(`Node ${process.version}, ${rounds} rounds; at most 1.05 was asked for.\n`);
console.log('| cell | plain | not recorded | recorded | recorded / not | recorded / plain | the tape |\n|---|---:|---:|---:|---:|---:|---:|');
for (const cell of cells) {
  const work = CELLS[cell].make();
  const times = { plain: [], off: [], on: [] };
  for (let i = -5; i < rounds; i++) {
    // Each stands in each place equally often.
    for (let k = 0; k < 3; k++) {
      const name = names[(k + i + 6) % 3];
      globalThis.gc?.();
      const run = await driveOnce(engines[name], work);
      if (run.errors.length) throw new Error(`${cell}: ${run.errors[0]}`);
      if (i >= 0) times[name].push(run.cpu);
    }
  }
  const ms = (name) => `${median(times[name]).toFixed(1)} ms`;
  console.log(`| ${cell} | ${ms('plain')} | ${ms('off')} | ${ms('on')} | ${shown(ratio(times.off, times.on))} | ${shown(ratio(times.plain, times.on))} | ${Math.round(length / 1024)} KB |`);
}
process.exit(0);
