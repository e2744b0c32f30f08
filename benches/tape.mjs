// What recording costs: CPU of cells with a recorder and without one, in turns, in the same process.
//   node --expose-gc benches/tape.mjs [ROUNDS] [CELL...]
import { driveOnce } from './lib/drive.mjs';
import { CELLS } from './lib/workloads.mjs';
import * as turnwheel from '../pkg/entry/node.js';
import { ready, recordNow } from '../pkg/tape.js';
import { engineOf } from './engines/turnwheel.mjs';

const rounds = Number(process.argv[2] ?? 40);
const cells = process.argv.length > 3 ? process.argv.slice(3) : ['W1-event', 'W1-16k', 'W2-50', 'W2-200'];
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

await ready();
let length = 0;
/** The same engine, whose agents are recorded. */
class Recorded extends turnwheel.Agent {
  constructor(options) {
    super(options);
    this.recorder = recordNow(this);
    const agent = this;
    this.subscribe((event) => {
      if (event.type === 'agent_end') queueMicrotask(() => { length = agent.recorder.bytes; });
    });
  }
}
const plain = engineOf(turnwheel), recorded = engineOf({ ...turnwheel, Agent: Recorded });

console.log(`${'cell'.padEnd(10)} ${'plain'.padStart(9)} ${'recorded'.padStart(9)}  more   the tape`);
for (const cell of cells) {
  const work = CELLS[cell].make();
  const times = { plain: [], recorded: [] };
  for (let i = 0; i < rounds + 5; i++) {
    const order = i % 2 === 0 ? ['plain', 'recorded'] : ['recorded', 'plain'];
    for (const name of order) {
      globalThis.gc?.();
      const run = await driveOnce(name === 'plain' ? plain : recorded, work);
      if (run.errors.length) throw new Error(`${cell}: ${run.errors[0]}`);
      if (i >= 5) times[name].push(run.cpu);
    }
  }
  const [without, within] = [median(times.plain), median(times.recorded)];
  const share = median(times.plain.map((_, i) => times.recorded[i] / times.plain[i]));
  console.log(`${cell.padEnd(10)} ${without.toFixed(2).padStart(6)} ms ${within.toFixed(2).padStart(6)} ms ${((share - 1) * 100).toFixed(1).padStart(5)} %  ${Math.round(length / 1024)} KB`);
}
