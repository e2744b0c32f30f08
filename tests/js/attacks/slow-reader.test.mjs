// @ts-check
// Listeners that open a stream and read nothing, or read one byte now and then: they cost what one piece is, and are sent
// away when too much waits for them; a caller may have a number of streams, and all together have one.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, scripted, settle, testTool } from "../kit.mjs";
import { serve } from "./http.mjs";

const flood = (/** @type {number} */ turns) => new Agent({ model: scripted([...Array.from({ length: turns }, () => call("look")), "done", ...Array.from({ length: turns }, () => call("look")), "done"]), tools: [testTool("look", () => "x".repeat(1_000_000), { maxResultBytes: 1_000_000_000 })], maxTurns: Infinity });

/** Waits for slow readers end quickly, those for silence never. */
const fast = { sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => (ms === 7000 || ms >= 15_000 ? new Promise((/** @type {any} */ resolve) => signal.addEventListener("abort", resolve)) : settle()) };

test("who does not read is sent away, and holds no more than a piece", { timeout: 60_000 }, async (t) => {
  const agent = flood(30);
  let asked = 0;
  const handler = agentHandler(agent, { limits: { listeners: 5 }, host: fast, allowedHosts: ["localhost"], authorize: () => ++asked > 0 });
  const port = await serve(t, handler);
  const sockets = Array.from({ length: 5 }, () => connect(port, "127.0.0.1"));
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  for (const socket of sockets) {
    socket.pause();
    socket.write("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n");
  }
  while (asked < 5) await settle();
  await settle();
  assert.equal((await handler(new Request("http://localhost/events"))).status, 429);
  // The first fills what lies between here and there; the second finds nobody who reads.
  for (let i = 0; i < 2; i++) {
    await agent.prompt("Go");
    for (let j = 0; j < 50; j++) await settle();
  }
  assert.equal((await handler(new Request("http://localhost/events"))).status, 200, "their places are free");
  // What they may still read ends: what the buffers of the system took, of more than 100 MB.
  let bytes = 0;
  for (const socket of sockets) socket.on("data", (data) => (bytes += data.length)).resume();
  await Promise.race([Promise.all(sockets.map((socket) => new Promise((resolve) => socket.on("data", (data) => String(data).endsWith("0\r\n\r\n") && resolve(undefined))))), new Promise((_, reject) => setTimeout(() => reject(new Error("their streams go on")), 10_000).unref())]);
  assert.ok(bytes < 5 * 12_000_000, `${bytes} bytes were held for them`);
});

test("one piece of a long conversation is all that a stream holds", async () => {
  const agent = flood(1);
  const handler = agentHandler(agent);
  await agent.prompt("Go");
  const readers = [];
  for (let i = 0; i < 20; i++) {
    const reader = /** @type {any} */ ((await handler(new Request("http://localhost/events"))).body).getReader();
    const { value } = await reader.read();
    assert.ok(value.length < 200_000, `${value.length} bytes`);
    readers.push(reader);
  }
  // Together, the pieces are the whole state.
  let text = "";
  const reader = /** @type {any} */ ((await handler(new Request("http://localhost/events"))).body).getReader();
  const decoder = new TextDecoder();
  while (!text.includes("event: ready")) text += decoder.decode((await reader.read()).value, { stream: true });
  assert.deepEqual(JSON.parse(/data: (.*)/.exec(text)?.[1] ?? "").messages, JSON.parse(JSON.stringify(agent.messages)));
});

test("letters of two halves are not torn", async () => {
  for (const before of ["", "a"]) {
    const words = `${before}${"\u{1f600}".repeat(200_000)}`;
    const agent = new Agent({ model: scripted([]), messages: [{ role: "user", content: [{ type: "text", text: words }], timestamp: 1 }] });
    const reader = /** @type {any} */ ((await agentHandler(agent)(new Request("http://localhost/events"))).body).getReader();
    const decoder = new TextDecoder();
    let text = "";
    while (!text.includes("event: ready")) text += decoder.decode((await reader.read()).value, { stream: true });
    assert.equal(JSON.parse(/data: (.*)/.exec(text)?.[1] ?? "").messages[0].content[0].text, words);
  }
});

test("a caller may have so many streams, whatever is free", async () => {
  const handler = agentHandler(new Agent({ model: scripted([]) }), { caller: (request) => request.headers.get("x-user") ?? undefined, limits: { listeners: 6, listenersPerCaller: 2 } });
  const open = async (/** @type {string} */ user) => handler(new Request("http://localhost/events", { headers: { "x-user": user } }));
  const streams = [await open("ada"), await open("ada")];
  const third = await open("ada");
  assert.deepEqual([third.status, (await third.json()).error.code], [429, "throttled"]);
  assert.deepEqual([(await open("bob")).status, (await open("bob")).status, (await open("bob")).status], [200, 200, 429]);
  await streams[0]?.body?.cancel();
  assert.equal((await open("ada")).status, 200);
});

test("whoever reads is not sent away, however much there is", async () => {
  const agent = flood(40);
  const handler = agentHandler(agent, { host: fast });
  const reader = /** @type {any} */ ((await handler(new Request("http://localhost/events"))).body).getReader();
  let text = "";
  const decoder = new TextDecoder();
  const reading = (async () => {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return "ended";
      text = (text + decoder.decode(value, { stream: true })).slice(-200_000);
      if (text.includes('"type":"agent_end"') || text.includes('"ended"')) return "heard";
    }
  })();
  await agent.prompt("Go");
  assert.equal(await reading, "heard");
});
