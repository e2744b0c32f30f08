// @ts-check
// Bodies without end, over real HTTP: they are not read to their end, whatever their headers announce, and the client is
// told why.

import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, scripted } from "../kit.mjs";
import { post, send, serve } from "./http.mjs";

const MB = 1_000_000;

/**
 * Sends pieces until an answer comes or the connection ends.
 * @param {number} port @param {Record<string, string>} headers @param {number} most bytes
 * @returns {Promise<{ status: number | undefined, sent: number, text: string }>}
 */
function flood(port, headers, most) {
  return new Promise((resolve) => {
    let sent = 0;
    let text = "";
    /** @type {number | undefined} */
    let status;
    const asked = request({ port, host: "127.0.0.1", path: "/prompt", method: "POST", headers: { host: "localhost", "content-type": "application/json", ...headers }, agent: false });
    const done = () => (asked.destroy(), resolve({ status, sent, text }));
    asked.on("response", (answer) => {
      status = answer.statusCode;
      answer.setEncoding("utf8").on("data", (piece) => (text += piece)).on("end", done).on("error", done);
    }).on("error", () => setImmediate(done));
    const piece = Buffer.alloc(65_536, 32);
    const write = () => {
      if (status !== undefined || asked.destroyed || sent >= most) return sent >= most && asked.end();
      sent += piece.length;
      if (asked.write(piece)) setImmediate(write);
      else asked.once("drain", write);
    };
    write();
  });
}

test("a body is read up to its limit, in pieces or all at once, announced or not", { timeout: 60_000 }, async (t) => {
  const agent = new Agent({ model: scripted(["a"]) });
  const port = await serve(t, agentHandler(agent));
  for (const headers of [{ "transfer-encoding": "chunked" }, { "content-length": String(200 * MB) }]) {
    const { status, sent, text } = await flood(port, headers, 200 * MB);
    assert.ok(sent < 30 * MB, `${sent} bytes were taken`);
    assert.equal(status, 413, JSON.stringify(headers));
    assert.match(text, /a command may have 1000000 bytes/);
  }
  assert.equal((await post(port, "/prompt", JSON.stringify({ input: "x".repeat(MB) }), { host: "localhost" })).status, 413);
  assert.equal(agent.messages.length, 0);
  assert.equal((await send(port, "/state", { headers: { host: "localhost" } })).status, 200);
});

test("a body without end is left, from whatever it comes", async () => {
  const handler = agentHandler(new Agent({ model: scripted(["a"]) }));
  let pieces = 0;
  const body = new ReadableStream({ pull: (controller) => (++pieces > 1000 ? controller.close() : controller.enqueue(new Uint8Array(65_536).fill(32))) });
  const answer = await handler(new Request("http://localhost/prompt", /** @type {any} */ ({ method: "POST", body, duplex: "half", headers: { "content-type": "application/json", "content-length": "5" } })));
  assert.equal(answer.status, 413);
  assert.ok(pieces < 40, `${pieces} pieces were read`);
});
