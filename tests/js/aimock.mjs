// @ts-check
// The package against aimock, a third-party provider simulator: whatever the server does, the run ends as
// docs/errors.md says, on each of the four wires. Nothing really waits: the host's sleep records the time and returns.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LLMock } from "@copilotkit/aimock";
import { Agent, anthropic, clock, deferred, gemini, openaiCompatible, openaiResponses, readRun, textOf } from "./kit.mjs";

const mock = new LLMock({ port: 0, logLevel: "silent" });
let root = "";
let models = 0;
before(async () => void (root = await mock.start()));
after(() => mock.stop());

/**
 * Pieces of four characters, each in a packet of its own: when it cuts a stream, aimock
 * discards what is still buffered.
 */
const PIECES = { chunkSize: 4, latency: 1 };
const LONG = "one two three four five six";

/** An answer, and how it is served. @typedef {[any, any?]} Answer */

/** @type {(text: string, more?: any) => any} */
const textAnswer = (content, more) => ({ content, ...more });
/** @type {(status: number, message: string, more?: any, retryAfter?: number) => any} */
const refuses = (status, message, more, retryAfter) => ({ error: { message, ...more }, status, retryAfter });

const add = {
  name: "add",
  description: "Adds two numbers.",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  execute: (/** @type {any} */ { a, b }) => String(a + b),
};

/**
 * The tests that all wires share.
 * @param {string} wire @param {(id: string, options: any) => any} make @param {string} path
 * @param {string} keyHeader
 */
function suite(wire, make, path, keyHeader) {
  /** A model whose n-th call gets the n-th answer; further calls get a 404. @param {...Answer} answers */
  function modelThat(...answers) {
    const id = `model-${++models}`;
    for (const [n, [response, how]] of answers.entries()) mock.on({ model: id, sequenceIndex: n }, response, { ...PIECES, ...how });
    const model = make(id, { baseUrl: root + path, apiKey: "not-a-secret" });
    /** The requests that the server got. */
    const requests = () => mock.getRequests().filter((request) => request.body?.model === id);
    return { model, requests };
  }

  /**
   * Runs a prompt against such a model.
   * @param {Answer[]} answers @param {any} [options] of the agent
   */
  async function ask(answers, options) {
    const { model, requests } = modelThat(...answers);
    const { host, slept } = clock();
    const agent = new Agent({ model, host, ...options });
    const outcome = await readRun(agent.prompt("Go."));
    return { ...outcome, agent, slept, requests: requests(), retries: outcome.all("retry_attempt") };
  }

  // On Responses, an answer begins with events that say nothing yet.
  const CUT = { truncateAfterChunks: wire === "responses" ? 8 : 4 };
  const check = (/** @type {string} */ name, /** @type {() => Promise<void>} */ act) => test(`${wire}: ${name}`, act);

  check("a text comes piece by piece, with its usage", async () => {
    const outcome = await ask([[textAnswer(LONG, { usage: { prompt_tokens: 11, completion_tokens: 6, total_tokens: 17 } })]]);
    assert.deepEqual(outcome.names, ["agent_start", "turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"]);
    assert.equal(outcome.text, LONG);
    assert.equal(outcome.result.text, LONG);
    assert.equal(outcome.all("message_update").length, Math.ceil(LONG.length / 4));
    assert.deepEqual(outcome.result.usage, { input: 11, output: 6, cacheRead: 0, cacheWrite: 0, total: 17 });
    assert.equal(outcome.all("message_end")[0].message.stopReason, "stop");
    assert.equal(outcome.requests[0].headers[keyHeader], "[REDACTED]");
  });

  check("thinking comes before the text, as a block of its own", async () => {
    const outcome = await ask([[textAnswer("391", { reasoning: "17 times 23 is 391." })]]);
    assert.deepEqual(outcome.all("message_end")[0].message.content.map((/** @type {any} */ block) => block.type), ["thinking", "text"]);
    assert.equal(outcome.result.text, "391");
  });

  check("calls of one message run side by side, and their results go back in order", async () => {
    const both = deferred();
    let running = 0;
    const tools = [{
      ...add,
      async execute(/** @type {any} */ { a, b }) {
        if (++running === 2) both.resolve();
        await both.promise;
        return String(a + b);
      },
    }];
    const calls = [{ id: "c1", name: "add", arguments: '{"a":1,"b":2}' }, { id: "c2", name: "add", arguments: '{"a":30,"b":40}' }];
    const outcome = await ask([[{ toolCalls: calls }], [textAnswer("3 and 70")]], { tools });
    assert.equal(outcome.result.text, "3 and 70");
    assert.deepEqual(outcome.all("turn_end").map((turn) => turn.reason), ["tools_executed", "complete"]);
    const [first, second] = outcome.requests.map((request) => /** @type {any} */ (request.body));
    assert.equal(first.tools[0].function.name, "add");
    // aimock reads every request as one of Chat; for Responses it makes each item a message.
    const resultText = (/** @type {string} */ text) => (wire === "gemini" ? JSON.stringify({ result: text }) : text);
    const answers = second.messages.filter((/** @type {any} */ { role }) => role === "assistant");
    assert.deepEqual(second.messages.slice(1 + answers.length).map((/** @type {any} */ { role, tool_call_id, content }) => [role, tool_call_id, content]), [
      ["tool", "c1", resultText("3")], ["tool", "c2", resultText("70")],
    ]);
    assert.deepEqual(answers.flatMap((/** @type {any} */ answer) => answer.tool_calls).map((/** @type {any} */ call) => [call.id, JSON.parse(call.function.arguments)]), [["c1", { a: 1, b: 2 }], ["c2", { a: 30, b: 40 }]]);
  });

  check("a text may stand before the calls, and calls before a text", async () => {
    const blocks = [{ type: "toolCall", id: "c1", name: "add", arguments: '{"a":1,"b":1}' }, { type: "text", text: "Let me see." }];
    const outcome = await ask([[{ blocks }], [textAnswer("2")]], { tools: [add] });
    assert.deepEqual(outcome.all("message_end")[0].message.content.map((/** @type {any} */ block) => block.type).sort(), ["text", "tool_call"]);
    assert.equal(outcome.all("tool_execution_end")[0].result.content[0].text, "2");
  });

  // On the other two, aimock sends only what it can parse of them.
  if (wire === "chat" || wire === "responses") check("arguments that are no JSON go back to the model with what is wrong, and the run goes on", async () => {
    const call = { id: "c1", name: "add", arguments: '{"a": 1, "b"' };
    const outcome = await ask([[{ toolCalls: [call] }], [textAnswer("Sorry.")]], { tools: [add] });
    const { result } = outcome.all("tool_execution_end")[0];
    assert.equal(result.cause, "invalid_arguments");
    assert.match(textOf(result), /no JSON.*\{"a": 1, "b"/);
    assert.equal(outcome.all("tool_execution_start").length, 0);
    assert.equal(outcome.result.stopReason, "completed");
    assert.ok(/** @type {any} */ (outcome.requests[1].body).messages.at(-1).content.endsWith(textOf(result)));
  });

  check("a tool that nobody offered gets an error result that names those there are", async () => {
    const outcome = await ask([[{ toolCalls: [{ id: "c1", name: "subtract", arguments: "{}" }] }], [textAnswer("Sorry.")]], { tools: [add] });
    assert.equal(outcome.all("tool_execution_end")[0].result.cause, "unknown_tool");
    assert.match(textOf(outcome.all("tool_execution_end")[0].result), /`subtract`.*`add`/);
  });

  check("a server that asks to wait is asked again when it said, and not before", async () => {
    const outcome = await ask([[refuses(429, "slow down", { type: "rate_limit_error" }, 7)], [refuses(429, "slow down", {}, 9)], [textAnswer("ok")]]);
    assert.deepEqual(outcome.slept, [7000, 9000]);
    assert.deepEqual(outcome.retries.map(({ attempt, delayMs, error }) => [attempt, delayMs, error.code, error.provider.status]), [[1, 7000, "throttled", 429], [2, 9000, "throttled", 429]]);
    assert.equal(outcome.result.text, "ok");
    assert.deepEqual(outcome.names, ["agent_start", "turn_start", "message_start", "retry_attempt", "retry_attempt", "message_update", "message_end", "turn_end", "agent_end"]);
  });

  check("a server that asks for too long a wait is not asked again, and the error names the wait", async () => {
    const outcome = await ask([[refuses(429, "come back later", {}, 3600)], [textAnswer("too early")]]);
    assert.deepEqual([outcome.slept, outcome.requests.length], [[], 1]);
    assert.equal(outcome.result.error.code, "throttled");
    assert.equal(outcome.result.error.info.retryAfterMs, 3_600_000);
    assert.match(outcome.result.error.message, /come back later.*3600000 ms/);
  });

  check("a spent quota is no rate limit: it is told at once", async () => {
    const outcome = await ask([[refuses(429, "You exceeded your current quota", { code: "insufficient_quota" })], [textAnswer("never")]]);
    assert.equal(outcome.requests.length, 1);
    assert.equal(outcome.result.error.info.retryable, false);
  });

  check("three calls in all, then the error; the message is one, whatever was tried", async () => {
    const outcome = await ask([1, 2, 3, 4].map(() => [refuses(503, "overloaded")]));
    assert.equal(outcome.requests.length, 3);
    assert.deepEqual(outcome.slept, [1000, 2000]);
    assert.equal(outcome.result.error.code, "overloaded");
    assert.deepEqual(outcome.all("message_end").map((event) => event.message.stopReason), ["error"]);
    assert.equal(outcome.all("turn_end")[0].reason, "error");
  });

  /** Failures that a retry may fix. @type {[string, any, any, string][]} */
  const PASSING = [
    ["a server's own fault", textAnswer("never"), { chaos: { dropRate: 1 } }, "server"],
    ["a rate limit without words", textAnswer("never"), { chaos: { rateLimitRate: 1 } }, "throttled"],
    ["a connection closed before any answer", textAnswer("never"), { chaos: { disconnectRate: 1 } }, "network"],
    ["JSON that suffered on its way, in place of a stream", textAnswer("never"), { chaos: { malformedRate: 1 } }, "network"],
    ["a stream that is cut", textAnswer(LONG), CUT, "network"],
    ["a gateway's 502", refuses(502, "bad gateway"), {}, "server"],
    ["an overload", refuses(529, "overloaded_error"), {}, "overloaded"],
  ];
  for (const [name, response, how, code] of PASSING) {
    check(`asked for again: ${name}`, async () => {
      const outcome = await ask([[response, how], [textAnswer("ok")]]);
      assert.equal(outcome.result.stopReason, "completed", outcome.result.error?.message);
      assert.equal(outcome.result.text, "ok");
      assert.deepEqual(outcome.retries.map(({ attempt, error }) => [attempt, error.code]), [[1, code]]);
      assert.deepEqual([outcome.requests.length, outcome.slept], [2, [1000]]);
      assert.equal(outcome.all("message_end").length, 1);
    });
  }

  /** Failures that the same request would meet again. @type {[string, any, string, RegExp][]} */
  const LASTING = [
    ["a wrong key", refuses(401, "Incorrect API key provided", { code: "invalid_api_key" }), "auth", /Incorrect API key provided/],
    ["a key without the right", refuses(403, "no access to this model"), "auth", /no access/],
    ["a model that is not there", refuses(404, "no such model", { code: "model_not_found" }), "invalid_request", /no such model/],
    ["a bad request", refuses(400, "temperature must be below 2"), "invalid_request", /temperature/],
    ["a content filter", refuses(400, "blocked by the content management policy", { code: "content_filter" }), "content_filtered", /blocked/],
    ["an overflow that nothing mends", refuses(400, "This model's maximum context length is 8192 tokens.", { code: "context_length_exceeded" }), "context_overflow", /8192/],
  ];
  for (const [name, response, code, pattern] of LASTING) {
    check(`not asked for again: ${name}`, async () => {
      const outcome = await ask([[response], [textAnswer("never")]]);
      assert.equal(outcome.result.error.code, code);
      assert.match(outcome.result.error.message, pattern);
      assert.deepEqual([outcome.requests.length, outcome.slept, outcome.retries.length], [1, [], 0]);
      assert.deepEqual([outcome.end.stopReason, outcome.all("turn_end")[0].reason], ["error", "error"]);
    });
  }

  check("what a cut stream had shown is taken back, and shown anew", async () => {
    const outcome = await ask([[textAnswer(LONG), CUT], [textAnswer("whole")]]);
    assert.deepEqual(outcome.names, [
      "agent_start", "turn_start", "message_start", "message_update", "message_reset", "retry_attempt", "message_update", "message_end", "turn_end", "agent_end",
    ]);
    assert.match(outcome.text, /^one.*whole$/);
    assert.equal(textOf(outcome.all("message_end")[0].message), "whole");
    assert.deepEqual(outcome.agent.messages.map((message) => message.role), ["user", "assistant"]);
  });

  check("a stream that is cut every time ends in an error, and what had come is kept but not sent", async () => {
    const { model, requests } = modelThat([textAnswer(LONG), CUT], [textAnswer(LONG), CUT], [textAnswer(LONG), CUT], [textAnswer("better now")]);
    const agent = new Agent({ model, host: clock().host });
    const outcome = await readRun(agent.prompt("Go."));
    assert.equal(outcome.result.error.code, "network");
    const { message } = outcome.all("message_end")[0];
    assert.equal(message.stopReason, "error");
    assert.ok(textOf(message).length > 0 && LONG.startsWith(textOf(message)));
    assert.equal(outcome.result.text, textOf(message));
    assert.equal(outcome.all("message_reset").length, 2);

    assert.equal((await agent.prompt("Once more.")).text, "better now");
    const sent = /** @type {any} */ (requests().at(-1)?.body).messages;
    assert.ok(sent.every((/** @type {any} */ { role }) => role === "user"), "the failed message was sent");
  });

  // On Gemini a call arrives in one piece, and then the answer is complete as well.
  if (wire !== "gemini") check("a call in a cut stream never runs", async () => {
    let ran = 0;
    const tools = [{ ...add, execute: () => String(++ran) }];
    const call = { id: "c1", name: "add", arguments: '{"a":1,"b":2}' };
    const outcome = await ask([[{ toolCalls: [call] }, CUT], [textAnswer("without")]], { tools });
    assert.equal(ran, 0);
    assert.equal(outcome.result.text, "without");
    assert.equal(outcome.all("message_reset").length, 1);
    assert.deepEqual(outcome.agent.messages.map((message) => message.role), ["user", "assistant"]);
  });

  check("when a model fails for good, the next one is asked", async () => {
    const first = modelThat(...[1, 2, 3].map(() => /** @type {Answer} */ ([refuses(500, "down")])));
    const second = modelThat([textAnswer("here")]);
    const { host, slept } = clock();
    const outcome = await readRun(new Agent({ model: first.model, fallback: [second.model], host }).prompt("Go."));
    assert.equal(outcome.result.text, "here");
    assert.deepEqual([first.requests().length, second.requests().length, slept], [3, 1, [1000, 2000]]);
    assert.deepEqual(outcome.all("model_fallback").map(({ from, to }) => [from, to]), [[first.model.id, second.model.id]]);
  });

  check("an overflow is mended in the same turn where a transformer can", async () => {
    const overflow = refuses(400, "This model's maximum context length is 8192 tokens.", { code: "context_length_exceeded" });
    const outcome = await ask([[overflow], [textAnswer("short enough")]], {
      messages: [{ role: "user", content: [{ type: "text", text: "old ".repeat(100) }], timestamp: 1 }],
      transformContext: (/** @type {any[]} */ messages, /** @type {boolean} */ overflowed) => (overflowed ? { messages: messages.slice(-1), report: { text: "the oldest left out" } } : undefined),
    });
    assert.equal(outcome.result.text, "short enough");
    assert.deepEqual(outcome.requests.map((request) => JSON.stringify(request.body).includes("old old")), [true, false]);
    assert.equal(outcome.all("context_compacted").length, 1);
    assert.deepEqual([outcome.all("message_start").length, outcome.all("turn_start").length, outcome.slept], [1, 1, []]);
  });

  check("a stop by length keeps the text, and a content filter's stop is told", async () => {
    const cut = await ask([[textAnswer("one two", { finishReason: "length" })]]);
    assert.deepEqual([cut.result.stopReason, cut.all("message_end")[0].message.stopReason, cut.result.text], ["completed", "length", "one two"]);
    // aimock has no such stop reason on the other two.
    if (wire === "responses" || wire === "messages") return;
    const filtered = await ask([[textAnswer("", { finishReason: "content_filter" })]]);
    assert.deepEqual([filtered.result.stopReason, filtered.all("message_end")[0].message.stopReason], ["completed", "content_filter"]);
  });

  check("an abort in mid-stream keeps what had come, and closes the connection", async () => {
    const whole = LONG.repeat(20);
    const { model, requests } = modelThat([textAnswer(whole), { latency: 3 }]);
    const closed = deferred();
    const watching = make(model.id, {
      baseUrl: root + path,
      /** @type {typeof fetch} */
      async fetch(input, init) {
        init?.signal?.addEventListener("abort", () => closed.resolve());
        return fetch(input, init);
      },
    });
    const run = new Agent({ model: watching, host: clock().host }).prompt("Go.");
    const outcome = readRun({ result: run.result, async *[Symbol.asyncIterator]() {
      for await (const event of run) {
        yield event;
        if (event.type === "message_update") run.abort("enough");
      }
    } });
    const { result, all } = await outcome;
    await closed.promise;
    assert.equal(result.stopReason, "aborted");
    const { message } = all("message_end")[0];
    assert.equal(message.stopReason, "aborted");
    assert.ok(whole.startsWith(textOf(message)));
    assert.ok(textOf(message).length > 0 && textOf(message).length < whole.length / 2, `${textOf(message).length} characters came`);
    assert.equal(requests().length, 1);
  });

  check("an abort while the run waits to ask again ends it at once", async () => {
    const { model, requests } = modelThat([refuses(503, "overloaded")], [textAnswer("never")]);
    const waiting = deferred();
    const host = { ...clock().host, sleep: () => (waiting.resolve(), new Promise(() => {})) };
    const run = new Agent({ model, host: /** @type {any} */ (host) }).prompt("Go.");
    await waiting.promise;
    run.abort();
    const result = await run;
    assert.equal(result.stopReason, "aborted");
    assert.equal(requests().length, 1);
  });

  check("a silent server is given up when its time is over, and asked again", async () => {
    const requested = deferred();
    const end = deferred();
    const { model } = modelThat([() => (requested.resolve(), end.promise.then(() => textAnswer("too late")))], [textAnswer("ok")]);
    // The first timeout expires as soon as the server has the request; the second never does.
    let now = 1_000_000;
    let watches = 0;
    const host = {
      now: () => now,
      random: () => 0.5,
      async sleep(/** @type {number} */ ms) {
        if (ms === 5000 && ++watches > 1) return new Promise(() => {});
        if (ms === 5000) await requested.promise;
        now += ms;
      },
    };
    const outcome = await readRun(new Agent({ model, host: /** @type {any} */ (host), timeouts: { firstChunkMs: 5000 } }).prompt("Go."));
    assert.equal(outcome.result.text, "ok");
    const retries = outcome.all("retry_attempt");
    assert.deepEqual(retries.map(({ error }) => error.code), ["network"]);
    assert.match(retries[0].reason, /5000 ms/);
    end.resolve();
  });

  check("what is said during a text turn is heard after it, in the same run", async () => {
    const { model, requests } = modelThat([textAnswer(LONG)], [textAnswer("and now this")]);
    const agent = new Agent({ model, host: clock().host });
    /** @type {any} */
    let receipt;
    agent.subscribe((event) => void (event.type === "message_update" && (receipt ??= agent.steer("Something else, please."))));
    const outcome = await readRun(agent.prompt("Go."));
    assert.deepEqual(await receipt, { delivered: true, turnIndex: 1 });
    assert.deepEqual([outcome.result.turns, outcome.result.text], [2, "and now this"]);
    assert.deepEqual(/** @type {any} */ (requests()[1].body).messages.map((/** @type {any} */ { role }) => role), ["user", "assistant", "user"]);
  });
}

suite("chat", openaiCompatible, "/v1", "authorization");
suite("responses", openaiResponses, "/v1", "authorization");
suite("messages", anthropic, "", "x-api-key");
suite("gemini", gemini, "/v1beta", "x-goog-api-key");

/** @type {[string, (id: string, options: any) => any, string][]} */
const WIRES = [["chat", openaiCompatible, "/v1"], ["responses", openaiResponses, "/v1"], ["messages", anthropic, ""], ["gemini", gemini, "/v1beta"]];
for (const [from, first, firstPath] of WIRES) {
  for (const [to, second, secondPath] of WIRES.filter(([name]) => name !== from)) {
    test(`a conversation goes on from ${from} to ${to}: calls keep their results, and what was said stays`, async () => {
      const id = `model-${++models}`;
      const calls = [{ id: "functions.add:0", name: "add", arguments: '{"a":1,"b":2}' }, { id: "x".repeat(80), name: "add", arguments: '{"a":3,"b":4}' }];
      mock.on({ model: id, sequenceIndex: 0 }, { content: "Let me see.", reasoning: "Hm.", toolCalls: calls }, PIECES);
      mock.on({ model: id, sequenceIndex: 1 }, textAnswer("3 and 7"), PIECES);
      mock.on({ model: id, sequenceIndex: 2 }, textAnswer("as said"), PIECES);
      const picture = { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" };
      const tools = [{ ...add, execute: (/** @type {any} */ { a, b }) => ({ content: [{ type: "text", text: String(a + b) }, picture] }) }];
      const agent = new Agent({ model: first(id, { baseUrl: root + firstPath, apiKey: "not-a-secret" }), tools, host: clock().host });
      assert.equal((await agent.prompt("Go.")).text, "3 and 7");
      agent.model = second(id, { baseUrl: root + secondPath, apiKey: "not-a-secret" });
      const { result } = await readRun(agent.prompt("Again."));
      assert.equal(result.text, "as said", result.error?.message);
      const { messages } = /** @type {any} */ (mock.getRequests().filter((request) => request.body?.model === id).at(-1)?.body);
      const called = messages.flatMap((/** @type {any} */ message) => message.tool_calls ?? []);
      const results = messages.filter((/** @type {any} */ message) => message.role === "tool");
      assert.deepEqual(called.map((/** @type {any} */ call) => JSON.parse(call.function.arguments)), [{ a: 1, b: 2 }, { a: 3, b: 4 }]);
      // On wires with call ids, aimock sees them; on Gemini it makes its own if none was sent.
      if (to !== "gemini") {
        const ids = called.map((/** @type {any} */ call) => call.id);
        assert.deepEqual(results.map((/** @type {any} */ message) => message.tool_call_id), ids);
        const pattern = to === "chat" ? /^[\w.:-]{1,40}$/ : /^[\w-]{1,64}$/;
        assert.ok(ids.every((/** @type {string} */ one) => pattern.test(one)) && ids[0] !== ids[1], ids.join(" "));
      }
      const sent = JSON.stringify(messages);
      assert.ok(["Let me see.", "3 and 7", "Again."].every((text) => sent.includes(text)) && !sent.includes("Hm."), sent);
    });
  }
}
