// @ts-check
// The axum example, built as a user builds it, against our own model server on loopback: a run streams, a call is approved
// and another one refused, a run is steered and aborted, and two chats do not meet.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { calls, serve, textAnswer } from "../js/server.mjs";

const cwd = fileURLToPath(new URL("../../www/examples/axum", import.meta.url));
const target = fileURLToPath(new URL("../../target/example", import.meta.url));

/** Reads the events of a response. @param {Response} response @returns {AsyncGenerator<any>} */
async function* eventsOf(response) {
  let text = "";
  for await (const piece of /** @type {any} */ (response.body).pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
    }
  }
}

test("agents behind axum", { timeout: 900_000 }, async (t) => {
  await promisify(execFile)("cargo", ["build", "--locked", "--target-dir", target], { cwd, timeout: 900_000 });
  const model = await serve(t, [
    calls(["delete_note", '{"note":"Oslo"}', "a"]),
    { body: textAnswer(["It is ", "gone."]) },
    calls(["delete_note", '{"note":7}', "b"]),
    { body: textAnswer(["As you wish."]) },
    calls(["delete_note", '{"note":"Voss"}', "c"]),
  ]);
  const env = { ...process.env, OPENAI_BASE_URL: model.baseUrl, OPENAI_API_KEY: "sk-test-1234", PORT: "0" };
  const server = spawn(`${target}/debug/axum-agents`, { env, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => server.kill());
  const { value: address } = await createInterface({ input: server.stdout })[Symbol.asyncIterator]().next();
  const post = (/** @type {string} */ path, /** @type {string} */ body, type = "text/plain") =>
    fetch(address + path, { method: "POST", body, headers: { "content-type": type } });
  const answer = (/** @type {string} */ call, /** @type {any} */ said) => post(`/chats/one/answers/${call}`, JSON.stringify(said), "application/json");
  /** Plays a run; `at` is called with each question. @param {string} prompt @param {(event: any) => Promise<any>} at */
  const run = async (prompt, at) => {
    const response = await post("/chats/one", prompt);
    assert.equal(response.headers.get("content-type"), "text/event-stream");
    const events = [];
    for await (const event of eventsOf(response)) {
      events.push(event);
      if (event.type === "tool_approval_requested") await at(event);
    }
    return events;
  };

  const first = await run("Forget Oslo.", async ({ callId }) => {
    assert.equal((await post("/chats/one", "Again?")).status, 409);
    assert.equal((await answer(callId, { approved: true })).status, 200);
  });
  assert.equal(first.filter((event) => event.delta?.type === "text").map((event) => event.delta.delta).join(""), "It is gone.");
  assert.ok(first.every((event) => event.runId === first[0].runId));
  assert.equal(model.requests[1]?.body.messages.at(-1).content, "The note about Oslo is gone.");

  const second = await run("And the seventh.", async ({ callId }) => answer(callId, { approved: true }));
  assert.match(model.requests[3]?.body.messages.at(-1).content, /note/);
  assert.equal(second.at(-1).stopReason, "completed");

  const third = await run("And Voss.", async () => assert.equal((await post("/chats/one/abort", "enough")).status, 200));
  assert.deepEqual([third.at(-1).type, third.at(-1).stopReason], ["agent_end", "aborted"]);

  assert.equal((await post("/chats/two/steer", "Hello?")).status, 404);
  assert.equal((await fetch(`${address}/chats/one`, { method: "DELETE" })).status, 200);
  assert.equal((await post("/chats/one/abort", "gone")).status, 404);
});
