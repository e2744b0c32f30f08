// @ts-check
// The body of a refusal that never ends, and refusals that say too much.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, anthropic, clock, gemini, openai, openaiResponses } from "../kit.mjs";

const ONCE = { maxAttempts: 1 };
const WIRES = [openai, openaiResponses, anthropic, gemini];

/** A refusal whose body is pulled piece by piece, for ever. @param {(n: number) => Uint8Array} piece @param {{ read: number, cancelled: boolean }} seen */
const refusal = (piece, seen) => new Response(new ReadableStream({
  pull(controller) {
    if (++seen.read > 100_000) throw new Error("it was read for ever");
    controller.enqueue(piece(seen.read));
  },
  cancel() {
    seen.cancelled = true;
  },
}, { highWaterMark: 0 }), { status: 500 });

for (const wire of WIRES) {
  test(`${wire.name}: a refusal that floods, trickles, or gives nothing`, async () => {
    const time = clock();
    let now = 0;
    /** @type {[string, () => Uint8Array, any][]} */
    const bodies = [
      ["floods", () => new Uint8Array(1 << 20).fill(97), time.host],
      ["trickles", () => ((now += 100), new Uint8Array(1).fill(97)), { ...time.host, now: () => 1_700_000_000_000 + now }],
      ["gives nothing", () => new Uint8Array(1).subarray(0, 1), time.host],
    ];
    for (const [name, piece, host] of bodies) {
      const seen = { read: 0, cancelled: false };
      const { error } = await new Agent({ model: wire("m", { apiKey: "k", fetch: async () => refusal(piece, seen) }), host, retry: ONCE }).prompt("Go");
      assert.equal(error?.info.provider?.status, 500, name);
      assert.ok(seen.read <= 10_001 && seen.cancelled, `${name}: ${seen.read} reads, ${seen.cancelled}`);
      assert.ok((error?.message.length ?? 0) < 5_000);
    }
  });
}

test("a refusal whose body falls silent is read as far as it came", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const fetch = async () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{"error":{"message":"no such model"}}')) }), { status: 404 });
  const run = new Agent({ model: openai("m", { apiKey: "k", fetch }), retry: ONCE }).prompt("Go");
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  t.mock.timers.tick(60_000);
  assert.match((await run).error?.message ?? "", /no such model/);
});

test("the words of a refusal are bounded, wherever they stand", async () => {
  const long = "x".repeat(200_000);
  const bodies = [
    { error: { message: long, type: long, code: long, status: long } },
    { error: { message: "m", type: long, code: long, details: [{ reason: long, retryDelay: long }], innererror: { code: long } } },
    { detail: Array.from({ length: 100 }, () => ({ msg: long.slice(0, 2_000), loc: [long.slice(0, 10)] })) },
    { error: { metadata: { raw: long } } },
  ];
  for (const body of bodies) {
    const responses = [
      () => new Response(JSON.stringify(body), { status: 400 }),
      () => new Response(`data: ${JSON.stringify(body)}\n\n`),
      () => new Response(`event: error\ndata: ${JSON.stringify(body)}\n\n`),
    ];
    for (const wire of WIRES) for (const respond of responses) {
      const { error } = await new Agent({ model: wire("m", { apiKey: "k", fetch: async () => respond() }), retry: ONCE }).prompt("Go");
      assert.ok(JSON.stringify(error?.info).length < 10_000, `${JSON.stringify(error?.info).length} characters of ${wire.name}`);
    }
  }
});
