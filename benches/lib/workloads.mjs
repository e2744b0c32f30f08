// Workloads: each makes { script, prompt, system, tools, maxTurns, expect, agents } for one measured run.
import { createHash } from 'node:crypto';
import { encodeTurn, turnEvents, words, byteLength } from './sse.mjs';

export const sha = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16);
const SYSTEM = 'You are a benchmark agent.';
const PROMPT = 'Do the work.';
const splitIntoPieces = (text, n) => { const out = []; const size = Math.ceil(text.length / n); for (let i = 0; i < text.length; i += size) out.push(text.slice(i, i + size)); return out; };

/** W1 / W6 / W7: one text turn of n deltas. */
export function textTurn({ n, chunks = 'event', lazy = false }) {
  const texts = words(n);
  const turn = { text: texts };
  const text = texts.join('');
  const body = lazy ? () => turnEvents(turn) : encodeTurn(turn, chunks);
  return {
    agents: 1, system: SYSTEM, prompt: PROMPT, maxTurns: 4, makeTools: () => [],
    script: () => [{ body, messages: 2 }],
    expect: { requests: 1, toolRuns: 0, finalHash: sha(text), deltaHash: sha(text), deltas: n },
    units: n, bytes: lazy ? 0 : byteLength(body),
  };
}

const addTool = (totals) => ({
  name: 'step', description: 'Records one step.',
  shape: { i: 'integer' },
  parameters: { type: 'object', properties: { i: { type: 'integer' } }, required: ['i'], additionalProperties: false },
  execute: async ({ i }) => {
    totals.runs++; totals.sum += i; totals.live++; if (totals.live > totals.maxLive) totals.maxLive = totals.live;
    await null; totals.live--;
    return `ok ${i}`;
  },
});

/** W2 / W5: T turns, each with 5 text deltas and one tool call, then one final text turn. */
export function toolTurns({ turns, chunks = 'event', agents = 1 }) {
  const texts = words(5 * (turns + 1), 11);
  const script = [];
  for (let turn = 0; turn < turns; turn++) {
    script.push({
      body: encodeTurn({ text: texts.slice(5 * turn, 5 * turn + 5), calls: [{ id: `call_${turn}`, name: 'step', argPieces: splitIntoPieces(JSON.stringify({ i: turn }), 2) }] }, chunks),
      messages: 2 + 2 * turn,
    });
  }
  script.push({ body: encodeTurn({ text: texts.slice(5 * turns) }, chunks), messages: 2 + 2 * turns });
  return {
    agents, system: SYSTEM, prompt: PROMPT, maxTurns: turns + 10, makeTools: (totals) => [addTool(totals)],
    script: () => script,
    expect: {
      requests: turns + 1, toolRuns: turns, argSum: (turns * (turns - 1)) / 2,
      finalHash: sha(texts.slice(5 * turns).join('')), deltaHash: sha(texts.join('')), deltas: texts.length,
    },
    units: turns * agents, bytes: agents * script.reduce((n, s) => n + byteLength(s.body), 0),
  };
}

/** W3: one turn with `calls` parallel tool calls, then one final text turn. */
export function parallelTools({ calls, chunks = 'event' }) {
  const texts = words(5, 13);
  const list = Array.from({ length: calls }, (_, i) => ({ id: `call_${i}`, name: 'step', argPieces: splitIntoPieces(JSON.stringify({ i }), 2) }));
  const script = [
    { body: encodeTurn({ calls: list }, chunks), messages: 2 },
    { body: encodeTurn({ text: texts }, chunks), messages: 3 + calls },
  ];
  return {
    agents: 1, system: SYSTEM, prompt: PROMPT, maxTurns: 6, makeTools: (totals) => [addTool(totals)],
    script: () => script,
    expect: { requests: 2, toolRuns: calls, argSum: (calls * (calls - 1)) / 2, finalHash: sha(texts.join('')), deltaHash: sha(texts.join('')), deltas: texts.length },
    units: calls, bytes: script.reduce((n, s) => n + byteLength(s.body), 0),
  };
}

/** W4: one tool call whose JSON arguments arrive in `pieces` small chunks, then one final text turn. */
export function streamedArgs({ pieces, chunks = 'event', readsPartial = false }) {
  const value = words(pieces, 17).join('');
  const json = JSON.stringify({ text: value });
  const texts = words(5, 19);
  const script = [
    { body: encodeTurn({ calls: [{ id: 'call_0', name: 'write', argPieces: splitIntoPieces(json, pieces) }] }, chunks), messages: 2 },
    { body: encodeTurn({ text: texts }, chunks), messages: 4 },
  ];
  return {
    agents: 1, system: SYSTEM, prompt: PROMPT, maxTurns: 6, readsPartial,
    makeTools: (totals) => [{
      name: 'write', description: 'Writes a text.', shape: { text: 'string' },
      parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'], additionalProperties: false },
      execute: async ({ text }) => { totals.runs++; totals.argHash = sha(text); return 'written'; },
    }],
    script: () => script,
    expect: { requests: 2, toolRuns: 1, argHash: sha(value), finalHash: sha(texts.join('')), deltaHash: sha(texts.join('')), deltas: texts.length },
    units: pieces, bytes: script.reduce((n, s) => n + byteLength(s.body), 0),
  };
}

/** Every cell of the benchmark. `batch` cells run in one process; unit is what the time is divided by. */
export const CELLS = {
  'W1-event': { unit: 'delta', make: () => textTurn({ n: 10_000, chunks: 'event' }) },
  'W1-16k': { unit: 'delta', make: () => textTurn({ n: 10_000, chunks: '16k' }) },
  'W2-50': { unit: 'turn', make: () => toolTurns({ turns: 50 }) },
  'W2-100': { unit: 'turn', make: () => toolTurns({ turns: 100 }) },
  'W2-200': { unit: 'turn', make: () => toolTurns({ turns: 200 }) },
  'W2-400': { unit: 'turn', make: () => toolTurns({ turns: 400 }) },
  'W3-100': { unit: 'call', make: () => parallelTools({ calls: 100 }) },
  'W3-200': { unit: 'call', make: () => parallelTools({ calls: 200 }) },
  'W4-1250': { unit: 'chunk', make: () => streamedArgs({ pieces: 1250 }) },
  'W4-2500': { unit: 'chunk', make: () => streamedArgs({ pieces: 2500 }) },
  'W4-5000': { unit: 'chunk', make: () => streamedArgs({ pieces: 5000 }) },
  'W4-10000': { unit: 'chunk', make: () => streamedArgs({ pieces: 10_000 }) },
  'W4-partial': { unit: 'chunk', make: () => streamedArgs({ pieces: 10_000, readsPartial: true }) },
  'W5-100x10': { unit: 'turn', make: () => toolTurns({ turns: 10, agents: 100 }) },
};
