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
/** The recorder of the last run that was recorded. */
let recorder;
/** An agent that is recorded, or that only lives where recorded ones do. */
const recording = (isOn) => class extends turnwheel.Agent {
  constructor(options) {
    super(options);
    const own = recordNow(this);
    if (isOn) recorder = own;
    else own.stop();
  }
};
const engines = {
  plain: engineOf(turnwheel),
  off: engineOf({ ...turnwheel, Agent: recording(false) }),
  on: engineOf({ ...turnwheel, Agent: recording(true) }),
};
const names = Object.keys(engines);
const settled = () => new Promise((resolve) => { setTimeout(resolve, 15); });

const shown = ({ ratio, low, high }) => `${ratio.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)})`;
console.log(`Node ${process.version}, ${rounds} rounds; at most 1.05 was asked for.\n`);
console.log('| cell | plain | not recorded | recorded | recorded / not | recorded / plain | the tape |\n|---|---:|---:|---:|---:|---:|---:|');
for (const cell of cells) {
  const work = CELLS[cell].make();
  const times = { plain: [], off: [], on: [] };
  let length = 0;
  for (let i = -6; i < rounds; i++) {
    // Each stands in each place, and behind each of the others, equally often.
    const order = names.map((_, k) => names[(k + (i >> 1) + 6) % 3]);
    if (i % 2) order.reverse();
    for (const name of order) {
      // What the run before has left behind is not this one's.
      globalThis.gc?.();
      await settled();
      const run = await driveOnce(engines[name], work);
      if (run.errors.length) throw new Error(`${cell}: ${run.errors[0]}`);
      if (i >= 0) times[name].push(run.cpu);
    }
    // Read when nobody measures, as a host does that writes tapes away when there is time.
    length = recorder.bytes;
  }
  const ms = (name) => `${median(times[name]).toFixed(1)} ms`;
  console.log(`| ${cell} | ${ms('plain')} | ${ms('off')} | ${ms('on')} | ${shown(ratio(times.off, times.on))} | ${shown(ratio(times.plain, times.on))} | ${Math.round(length / 1024)} KB |`);
}
process.exit(0);
