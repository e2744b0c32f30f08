// @ts-check
// turnwheel/remote and the store behind it need no WebAssembly: phones (React Native, Hermes) have none.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

const PKG = new URL("../../../pkg/", import.meta.url);
const CODE = `delete globalThis.WebAssembly;
  const { RemoteAgent } = await import("${PKG}remote.js");
  const { AgentStore } = await import("${PKG}react-store.js");
  const said = { type: "state", data: JSON.stringify({ messages: [{ role: "user", content: [{ type: "text", text: "Hello" }], timestamp: 1 }], pendingApprovals: [], usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }, openLetters: [] }) };
  const fetch = async () => new Response("id: 5\\nevent: " + said.type + "\\ndata: " + said.data + "\\n\\nevent: ready\\ndata: {}\\n\\n", { headers: { "content-type": "text/event-stream" } });
  const agent = new RemoteAgent({ url: "http://agents.localhost/7", fetch });
  await agent.ready();
  console.log(typeof WebAssembly, typeof AgentStore, agent.messages.length);
  process.exit();`;

test("a RemoteAgent works where there is no WebAssembly", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", CODE], { timeout: 20_000 });
  assert.equal(stdout.trim(), "undefined function 1");
});
