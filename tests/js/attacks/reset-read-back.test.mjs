// @ts-check
// A conversation that was reset, by a client or by the host: nothing of it can be read afterwards, from any place in the
// log, by those who come later or by those who were listening slowly.

import assert from "node:assert/strict";
import { test } from "node:test";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, call, scripted, settle, testTool } from "../kit.mjs";
import { post, readUntil, serve } from "./http.mjs";

const SECRET = "the-secret-word";
const host = { host: "localhost" };

/** How a conversation is reset. @type {Record<string, (agent: Agent, port: number) => unknown>} */
const WAYS = {
  "by a client": (_, port) => post(port, "/reset", {}, host),
  "by its host": (agent) => agent.reset(),
};
for (const [way, reset] of Object.entries(WAYS)) {
  for (const state of ["over", "running", "waiting for a person"]) {
    test(`reset ${way} while its run is ${state}`, async (t) => {
      const tools = [testTool("wait", () => new Promise(() => {})), testTool("pay", () => SECRET, { requiresApproval: true })];
      const steps = state === "over" ? [`I know ${SECRET}`] : state === "running" ? [{ text: SECRET, ...call(["wait", { word: SECRET }]) }] : [{ text: SECRET, ...call(["pay", { word: SECRET }]) }];
      const agent = new Agent({ model: scripted([...steps, "fresh", "fresh"]), tools });
      const port = await serve(t, agentHandler(agent));
      const at = `http://localhost:${port}`;
      const before = (await (await fetch(`${at}/state`)).json()).lastEventId;
      // Listens, and reads nothing for now.
      const slow = await fetch(`${at}/events?lastEventId=${before}`);
      assert.equal((await post(port, "/prompt", { id: "p", input: `Remember ${SECRET}`, runId: "r1" }, host)).status, 202);
      await post(port, "/follow-up", { id: "f", input: `And ${SECRET}` }, host);
      if (state === "over") await agent.waitForIdle();
      while (state !== "over" && !agent.messages.some(({ role }) => role === "assistant")) await settle();
      for (let i = 0; i < 20; i++) await settle();
      const middle = (await (await fetch(`${at}/state`)).json()).lastEventId;
      await reset(agent, port);
      for (let i = 0; i < 20; i++) await settle();
      const { messages, lastEventId } = await (await fetch(`${at}/state`)).json();
      assert.deepEqual(messages, []);
      for (let id = Number(before) - 1; id <= Number(lastEventId); id++) {
        const told = await readUntil((await fetch(`${at}/events`, { headers: { "last-event-id": String(id) } })).body, "event: ready");
        assert.ok(!told.includes(SECRET), `after ${id}: ${told}`);
      }
      assert.ok(!(await readUntil((await fetch(`${at}/events`)).body, "event: ready")).includes(SECRET));
      assert.equal(JSON.stringify(await (await post(port, "/prompt", { id: "p", input: "x" }, host)).text).includes(SECRET), false);
      assert.ok(Number(middle) <= Number(lastEventId));
      // A new conversation is heard by everybody, and brings nothing back.
      assert.equal((await post(port, "/prompt", { input: "Hello", runId: "r2" }, host)).status, 202);
      await agent.waitForIdle();
      const told = await readUntil((await fetch(`${at}/events?lastEventId=${before}`)).body, "event: ready");
      assert.ok(told.includes("Hello") && !told.includes(SECRET), told);
      await slow.body?.cancel();
    });
  }
}

test("a listener in the middle of a long text of before hears no more of it", async () => {
  const agent = new Agent({ model: scripted(["x"]), messages: [{ role: "user", content: [{ type: "text", text: `${"a".repeat(500_000)}${SECRET}` }], timestamp: 1 }] });
  const handler = agentHandler(agent);
  const reader = /** @type {any} */ ((await handler(new Request("http://localhost/events"))).body).getReader();
  const first = await reader.read();
  assert.ok(first.value.length < 200_000, `${first.value.length} bytes at once`);
  agent.reset();
  let text = "";
  for (let i = 0; i < 20; i++) {
    const { done, value } = await reader.read();
    if (done) break;
    text += new TextDecoder().decode(value);
  }
  assert.ok(!text.includes(SECRET));
});
