// Drives one engine through one workload run and verifies the outcome.
import { mockFetch } from './sse.mjs';
import { sha } from './workloads.mjs';

export async function driveOnce(engine, workload) {
  const jobs = [];
  for (let index = 0; index < workload.agents; index++) {
    const totals = { runs: 0, sum: 0, live: 0, maxLive: 0, argHash: undefined, deltas: 0, inputDeltas: 0, parts: [] };
    const mock = mockFetch(workload.script());
    jobs.push({ totals, mock, spec: {
      baseURL: 'http://bench.invalid/v1', apiKey: 'sk-bench', model: 'bench-model', fetch: mock.fetch,
      system: workload.system, prompt: workload.prompt, tools: workload.makeTools(totals), maxTurns: workload.maxTurns, readsPartial: workload.readsPartial,
      onDelta: (text) => { totals.deltas++; totals.parts.push(text); },
      onToolInputDelta: () => { totals.inputDeltas++; },
    } });
  }
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  const outputs = jobs.length === 1 ? [await engine.run(jobs[0].spec)] : await Promise.all(jobs.map((job) => engine.run(job.spec)));
  const wall = performance.now() - startedAt;
  const cpu = process.cpuUsage(cpuBefore);
  const errors = [];
  outputs.forEach((out, i) => {
    const { totals, mock } = jobs[i]; const expected = workload.expect; const state = mock.state;
    errors.push(...state.errors.slice(0, 3));
    const check = (name, got, wanted) => { if (wanted !== undefined && got !== wanted) errors.push(`${name}: got ${got}, wanted ${wanted}`); };
    check('requests', state.requests, expected.requests);
    check('toolRuns', totals.runs, expected.toolRuns);
    check('argSum', totals.runs && expected.argSum !== undefined ? totals.sum : undefined, expected.argSum);
    check('argHash', totals.argHash, expected.argHash);
    check('finalText', sha(out.text), expected.finalHash);
    check('deltaText', sha(totals.parts.join('')), expected.deltaHash);
  });
  const first = jobs[0].totals;
  return { wall, cpu: (cpu.user + cpu.system) / 1000, errors, deltas: first.deltas, inputDeltas: first.inputDeltas, maxLive: first.maxLive };
}
