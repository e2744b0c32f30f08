// Prints the measurements as a table and as a chart.
import { median } from './stats.mjs';

/** The cells, and how much of `floor` the engine may take at most (issue 6). */
const ROWS = [
  ['W1-event', 'text, one event per read', 1.0], ['W1-16k', 'text, 16 KiB reads', 0.6],
  ['W2-50', '50 tool turns', 1.2], ['W2-100', '100 tool turns'], ['W2-200', '200 tool turns'], ['W2-400', '400 tool turns', 0.8],
  ['W3-100', '100 calls at once', 1.3], ['W3-200', '200 calls at once', 1.3],
  ['W4-1250', 'arguments in 1,250 pieces', 0.8], ['W4-2500', 'in 2,500 pieces'], ['W4-5000', 'in 5,000 pieces'], ['W4-10000', 'arguments in 10,000 pieces', 0.8],
  ['W4-partial', 'the same, read as they grow', 1.2],
  ['W5-100x10', '100 agents', 1.0], ['W6', 'cold start, ms', 1.3], ['W7', 'peak memory, MB', 1.1],
];

/** CPU microseconds per unit, or what the row measures; `undefined` if the work was not done correctly. */
function cpu(cell, runs) {
  if (!runs?.length || runs.some((run) => run.errors?.length)) return;
  if (cell === 'W6') return median(runs.map((run) => run.totalMs));
  if (cell === 'W7') return median(runs.map((run) => run.peakRssMB));
  return median(runs.map((run) => (median(run.cpu) * 1000) / run.units));
}

/** More than a minute for a few runs is too long; anything else is work that was not done correctly. */
const failure = (runs) => (runs.some((run) => run.errors?.[0] === 'too long') ? 'too long' : 'wrong');

const short = (n) => (n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2));

/** @param {Record<string, Record<string, any[]>>} cells @param {string} version @param {number} reps */
export function table(cells, version, reps) {
  const engines = [...new Set(Object.values(cells).flatMap((byEngine) => Object.keys(byEngine)))];
  const peers = engines.filter((name) => name !== 'floor' && name !== 'turnwheel');
  const lines = [
    `Node ${version}, ${reps} process${reps === 1 ? "" : "es"} per cell, the engines interleaved; medians. CPU time of the process (all threads, so garbage`,
    'collection and compilation count) in µs per delta, turn, call or piece, and in brackets how many times `floor` that is.',
    '`floor` is no engine: `fetch`, `JSON.parse` and a loop. "wrong": the work was not done as verified. What each cell does: README.md.', '',
    `| | floor | turnwheel | at most | ${peers.length ? `of the fastest peer | ${peers.join(' | ')} |` : ''}`, `|---|---:|---:|---:|${peers.length ? `---:|${peers.map(() => '---:|').join('')}` : ''}`,
  ];
  for (const [cell, about, limit] of ROWS) {
    const byEngine = cells[cell];
    if (!byEngine) continue;
    const floor = cpu(cell, byEngine.floor);
    const shown = (name) => {
      if (!byEngine[name]) return '';
      const own = cpu(cell, byEngine[name]);
      return own === undefined ? failure(byEngine[name]) : `${short(own)} (${short(own / floor)})`;
    };
    const fastest = Math.min(...peers.map((name) => cpu(cell, byEngine[name]) ?? Infinity));
    const own = cpu(cell, byEngine.turnwheel);
    const ratio = own && fastest < Infinity ? short(own / fastest) : '';
    lines.push(`| ${cell}: ${about} | ${floor ? short(floor) : 'wrong'} | **${shown('turnwheel')}** | ${limit ?? ''} | ${peers.length ? `${ratio} | ${peers.map(shown).join(' | ')} |` : ''}`);
  }
  return `${lines.join('\n')}\n`;
}

/** Bars of CPU time against `floor`, on a logarithmic scale. @param {Record<string, Record<string, any[]>>} cells */
export function chart(cells) {
  const rows = ['W1-event', 'W1-16k', 'W2-50', 'W2-400', 'W3-100', 'W4-10000', 'W5-100x10'].filter((cell) => cells[cell]);
  const engines = Object.keys(cells[rows[0]]).filter((name) => name !== 'floor').sort((a, b) => Number(b === 'turnwheel') - Number(a === 'turnwheel') || a.localeCompare(b));
  const colours = ['#d9480f', '#1c7ed6', '#2f9e44', '#7048e8', '#868e96', '#e8a317', '#c2255c', '#0c8599'];
  const [left, bar, gap, width, top] = [170, 9, 14, 720, 46];
  const scale = (ratio) => (Math.log10(Math.min(300, Math.max(0.25, ratio)) / 0.25) / Math.log10(300 / 0.25)) * (width - left - 60);
  const text = (x, y, content, more = '') => `<text x="${x}" y="${y}" ${more}>${content}</text>`;
  const parts = [];
  let y = top;
  for (const cell of rows) {
    const about = ROWS.find(([name]) => name === cell)?.[1];
    parts.push(text(left - 10, y + (engines.length * bar) / 2 + 4, about, 'text-anchor="end"'));
    const floor = cpu(cell, cells[cell].floor);
    engines.forEach((name, i) => {
      const own = cpu(cell, cells[cell][name]);
      const ratio = own === undefined ? undefined : own / floor;
      const length = ratio === undefined ? 0 : scale(ratio);
      parts.push(`<rect x="${left}" y="${y + i * bar}" width="${length.toFixed(1)}" height="${bar - 2}" fill="${colours[i % colours.length]}"/>`);
      parts.push(text(left + length + 4, y + i * bar + 7, ratio === undefined ? failure(cells[cell][name] ?? []) : short(ratio), 'font-size="8"'));
    });
    y += engines.length * bar + gap;
  }
  let x = left;
  const legend = engines.map((name, i) => {
    const entry = `<rect x="${x}" y="8" width="8" height="8" fill="${colours[i % colours.length]}"/>${text(x + 11, 16, name, 'font-size="9"')}`;
    x += 26 + 5 * name.length;
    return entry;
  });
  const one = left + scale(1);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y + 20}" font-family="system-ui, sans-serif" font-size="11" fill="#888">
<title>CPU time against a plain loop without an engine</title>
${legend.join('\n')}
<line x1="${one}" x2="${one}" y1="${top - 12}" y2="${y}" stroke="#888" stroke-dasharray="3 3"/>
${text(one, top - 16, 'no engine at all = 1', 'text-anchor="middle" font-size="9"')}
${parts.join('\n')}
</svg>
`;
}
