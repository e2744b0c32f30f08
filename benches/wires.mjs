// One long answer on each of the four wires: 10,000 pieces of text, one event per read and in reads of 16
// KiB. Prints the CPU time of the process in µs per piece, and as a multiple of the minimum for that wire
// (fetch, JSON.parse and a loop).   node --expose-gc benches/wires.mjs [--reps N]
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { bodyStream, words } from './lib/sse.mjs';
import { median } from './lib/stats.mjs';

const self = fileURLToPath(import.meta.url);
const PIECES = 10_000, WARM = 2, RUNS = 3;

const event = (data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
const bare = (data) => `data: ${JSON.stringify(data)}\n\n`;

/** The events of an answer as each provider sends them, and where an event holds the text. */
const WIRES = {
  'openai-chat': {
    make: (engine) => engine.openaiCompatible,
    *events(texts) {
      const chunk = (delta, finish_reason = null) => bare({
        id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1700000000, model: 'm', system_fingerprint: 'fp', obfuscation: 'x'.repeat(delta.content?.length ?? 0),
        choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      });
      yield chunk({ role: 'assistant', content: '' });
      for (const content of texts) yield chunk({ content });
      yield chunk({}, 'stop');
      yield 'data: [DONE]\n\n';
    },
    text: (data) => data.choices[0]?.delta.content,
  },
  'openai-responses': {
    make: (engine) => engine.openaiResponses,
    *events(texts) {
      let sequence_number = 0;
      const at = { output_index: 0, content_index: 0, item_id: 'msg_68a0b0d0c0ac8190a1c0e0d0b0a09080' };
      const typedEvent = (type, more) => event({ type: `response.${type}`, sequence_number: sequence_number++, ...more });
      const item = (content) => ({ output_index: 0, item: { id: at.item_id, type: 'message', status: 'completed', role: 'assistant', content } });
      yield typedEvent('output_item.added', item([]));
      for (const delta of texts) yield typedEvent('output_text.delta', { ...at, delta, logprobs: [], obfuscation: 'x'.repeat(16 - delta.length % 16) });
      yield typedEvent('output_item.done', item([{ type: 'output_text', text: texts.join(''), annotations: [] }]));
      yield typedEvent('completed', { response: { id: 'resp_1', object: 'response', status: 'completed', output: [], usage: { input_tokens: 9, output_tokens: PIECES, total_tokens: 9 + PIECES } } });
    },
    text: (data) => (data.type === 'response.output_text.delta' ? data.delta : undefined),
  },
  anthropic: {
    make: (engine) => engine.anthropic,
    *events(texts) {
      yield event({ type: 'message_start', message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 9, output_tokens: 1 } } });
      yield event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } });
      for (const text of texts) yield event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
      yield event({ type: 'content_block_stop', index: 0 });
      yield event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: PIECES } });
      yield event({ type: 'message_stop' });
    },
    text: (data) => (data.type === 'content_block_delta' ? data.delta.text : undefined),
  },
  gemini: {
    make: (engine) => engine.gemini,
    *events(texts) {
      for (const [i, text] of texts.entries()) {
        yield bare({
          candidates: [{ content: { parts: [{ text }], role: 'model' }, ...(i === texts.length - 1 ? { finishReason: 'STOP' } : {}), index: 0 }],
          usageMetadata: { promptTokenCount: 9, candidatesTokenCount: i, totalTokenCount: 9 + i }, modelVersion: 'm', responseId: 'r',
        });
      }
    },
    text: (data) => data.candidates?.[0]?.content?.parts?.[0]?.text,
  },
};

async function floor(fetch, textOf, onText) {
  const reader = (await fetch()).body.getReader();
  const decoder = new TextDecoder();
  let rest = '', text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return text;
    rest += decoder.decode(value, { stream: true });
    let at = 0;
    for (let end = rest.indexOf('\n\n'); end >= 0; end = rest.indexOf('\n\n', at)) {
      const data = rest.slice(rest.indexOf('data: ', at) + 6, end);
      at = end + 2;
      const piece = data === '[DONE]' ? undefined : textOf(JSON.parse(data));
      if (piece) { text += piece; onText(piece); }
    }
    rest = rest.slice(at);
  }
}

async function turnwheel(engine, make, fetch, onText) {
  const agent = new engine.Agent({ model: make(engine)('m', { baseUrl: 'https://model.example/v1', apiKey: 'k', fetch }) });
  agent.subscribe((event) => { if (event.type === 'message_update' && event.delta.type === 'text') onText(event.delta.delta); });
  const { text, error } = await agent.prompt('Do the work.').result;
  if (error) throw error;
  return text;
}

/** Measures in a separate process: the median of several runs. */
async function measure(name, wire, mode) {
  const { make, events, text } = WIRES[wire];
  const wanted = words(PIECES), encoder = new TextEncoder();
  const all = [...events(wanted)];
  const bytes = encoder.encode(all.join(''));
  const reads = mode === 'event' ? all.map((one) => encoder.encode(one))
    : Array.from({ length: Math.ceil(bytes.length / 16384) }, (_, i) => bytes.slice(i * 16384, (i + 1) * 16384));
  const fetch = async () => new Response(bodyStream(reads), { headers: { 'content-type': 'text/event-stream' } });
  const engine = name === 'turnwheel' ? await import('../pkg/entry/node.js') : undefined;
  const times = [];
  for (let run = -WARM; run < RUNS; run++) {
    globalThis.gc?.();
    const received = [];
    const before = process.cpuUsage();
    const onText = (piece) => { received.push(piece); };
    const answer = await (engine ? turnwheel(engine, make, fetch, onText) : floor(fetch, text, onText));
    const { user, system } = process.cpuUsage(before);
    if (answer !== wanted.join('') || received.join('') !== answer) throw new Error(`${name} got ${wire} wrong`);
    if (run >= 0) times.push((user + system) / PIECES);
  }
  console.log(median(times));
}

const args = process.argv.slice(2);
if (args[0] === '--one') await measure(...args.slice(1));
else {
  const reps = args[0] === '--reps' ? Number(args[1]) : 5;
  for (const wire of Object.keys(WIRES)) {
    for (const mode of ['event', '16k']) {
      const times = { floor: [], turnwheel: [] };
      for (let rep = 0; rep < reps; rep++) {
        for (const name of Object.keys(times)) {
          const { status, stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', self, '--one', name, wire, mode], { encoding: 'utf8' });
          if (status !== 0) throw new Error(stderr);
          times[name].push(Number(stdout));
        }
      }
      const [base, ours] = [median(times.floor), median(times.turnwheel)];
      console.log(`${wire.padEnd(17)} ${mode.padEnd(6)} floor ${base.toFixed(2)} µs   turnwheel ${ours.toFixed(2)} µs   ${(ours / base).toFixed(2)}`);
    }
  }
}
