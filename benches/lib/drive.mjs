// Drives one engine through one workload run and verifies the outcome.
import { mockFetch } from './sse.mjs';
import { sha } from './workloads.mjs';

export async function driveOnce(engine, wl) {
  const jobs = [];
  for (let a = 0; a < wl.agents; a++) {
    const acc = { runs: 0, sum: 0, live: 0, maxLive: 0, argHash: undefined, deltas: 0, inputDeltas: 0, parts: [] };
    const mock = mockFetch(wl.script());
    jobs.push({ acc, mock, spec: {
      baseURL: 'http://bench.invalid/v1', apiKey: 'sk-bench', model: 'bench-model', fetch: mock.fetch,
      system: wl.system, prompt: wl.prompt, tools: wl.makeTools(acc), maxTurns: wl.maxTurns, readsPartial: wl.readsPartial,
      onDelta: (t) => { acc.deltas++; acc.parts.push(t); },
      onToolInputDelta: () => { acc.inputDeltas++; },
    } });
  }
  const c0 = process.cpuUsage();
  const t0 = performance.now();
  const outs = jobs.length === 1 ? [await engine.run(jobs[0].spec)] : await Promise.all(jobs.map((j) => engine.run(j.spec)));
  const wall = performance.now() - t0;
  const c = process.cpuUsage(c0);
  const errors = [];
  outs.forEach((out, i) => {
    const { acc, mock } = jobs[i]; const e = wl.expect; const st = mock.state;
    errors.push(...st.errors.slice(0, 3));
    const want = (k, got, exp) => { if (exp !== undefined && got !== exp) errors.push(`${k}: got ${got}, wanted ${exp}`); };
    want('requests', st.requests, e.requests);
    want('toolRuns', acc.runs, e.toolRuns);
    want('argSum', acc.runs && e.argSum !== undefined ? acc.sum : undefined, e.argSum);
    want('argHash', acc.argHash, e.argHash);
    want('finalText', sha(out.text), e.finalHash);
    want('deltaText', sha(acc.parts.join('')), e.deltaHash);
  });
  const a0 = jobs[0].acc;
  return { wall, cpu: (c.user + c.system) / 1000, errors, deltas: a0.deltas, inputDeltas: a0.inputDeltas, maxLive: a0.maxLive };
}
