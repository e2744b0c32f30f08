// @ts-check
// The rehearsal model on its own: what it asks for and what it says, in conversations
// played with the real tools.

import assert from "node:assert/strict";
import { test } from "node:test";
import { LABEL, planOf, rehearsal } from "../../../www/demo/rehearsal.js";
import { demoTools } from "../../../www/demo/tools.js";

const NOW = Date.UTC(2026, 0, 15, 12, 0);
const signal = new AbortController().signal;
const atOnce = async () => {};
const tools = demoTools({ sleep: atOnce, now: () => NOW });
const offered = tools.map(({ name, description, parameters }) => ({ name, description, parameters }));
const user = (/** @type {string} */ text) => ({ role: "user", content: [{ type: "text", text }], timestamp: 0 });
/** @param {any[]} messages @param {object} [more] @returns {any} */
const request = (messages, more = {}) => ({ model: "rehearsal", systemPrompt: "", messages, tools: offered, options: {}, ...more });

/** All events of one answer. @param {any} modelRequest */
async function eventsOf(modelRequest) {
  const events = [];
  for await (const event of rehearsal({ sleep: atOnce })(modelRequest, { signal })) events.push(event);
  return /** @type {any[]} */ (events);
}

/** The message that the events make, as an engine would store it. @param {any[]} events @returns {any} */
function assembled(events) {
  /** @type {any[]} */
  const content = [];
  for (const event of events) {
    if (event.type === "text_start") content.push({ type: "text", text: "" });
    if (event.type === "thinking_start") content.push({ type: "thinking", thinking: "" });
    if (event.type === "tool_call_start") content.push({ type: "tool_call", callId: event.callId, toolName: event.toolName, arguments: "" });
    const block = content[event.contentIndex];
    if (event.type === "text_delta") block.text += event.delta;
    if (event.type === "thinking_delta") block.thinking += event.delta;
    if (event.type === "tool_call_delta") block.arguments += event.delta;
    if (event.type === "tool_call_end") block.arguments = JSON.parse(block.arguments);
  }
  return { role: "assistant", content, stopReason: events.at(-1).stopReason, usage: events.at(-1).usage, timestamp: 0 };
}

const callsOf = (/** @type {any} */ message) => message.content.filter((/** @type {any} */ block) => block.type === "tool_call");
const textOf = (/** @type {any} */ message) => message.content.filter((/** @type {any} */ block) => block.type === "text").map((/** @type {any} */ block) => block.text).join("");

/** @param {any} call @param {object} [result] */
async function resultOf({ callId, toolName, arguments: given }, result) {
  const head = { role: "tool_result", callId, toolName, timestamp: 0 };
  if (result) return { ...head, isError: false, ...result };
  const tool = tools.find(({ name }) => name === toolName);
  if (!tool) return { ...head, isError: true, cause: "unknown_tool", content: [{ type: "text", text: `error: no tool named \`${toolName}\`` }] };
  try {
    const output = /** @type {any} */ (await tool.execute(given, /** @type {any} */ ({ signal, update: () => {} })));
    return { ...head, isError: false, content: output.content };
  } catch (error) {
    return { ...head, isError: true, cause: "threw", content: [{ type: "text", text: `error: ${/** @type {Error} */ (error).message}` }] };
  }
}

/**
 * Plays until an answer makes no more calls.
 * @param {any[]} messages grows @param {string} text @param {object} [more]
 */
async function play(messages, text, more) {
  messages.push(user(text));
  const calls = [];
  for (let turn = 0; turn < 12; turn += 1) {
    const message = assembled(await eventsOf(request(structuredClone(messages), more)));
    messages.push(message);
    calls.push(callsOf(message));
    if (callsOf(message).length === 0) return { answer: textOf(message), calls: calls.slice(0, -1) };
    messages.push(...(await Promise.all(callsOf(message).map((/** @type {any} */ call) => resultOf(call)))));
  }
  throw new Error("the rehearsal does not come to an end");
}

const names = (/** @type {any[][]} */ calls) => calls.map((turn) => turn.map(({ toolName }) => toolName));
const cut = { isError: true, cause: "steering", content: [{ type: "text", text: "tool call cancelled: user requested steering interrupt" }] };

test("a question of two parts gives two calls in one answer and an answer with both results", async () => {
  const { answer, calls } = await play([], "What is 17*23, and what time is it in Oslo?");
  assert.deepEqual(names(calls), [["calculator", "clock"]]);
  assert.deepEqual(calls[0]?.map((/** @type {any} */ call) => call.arguments), [{ expression: "17*23" }, { place: "Oslo" }]);
  assert.match(answer, /391/);
  assert.match(answer, /13:00/);
});

test("every block is opened, filled and closed, one after the other, between start and done", async () => {
  const events = await eventsOf(request([user("What is 17*23, and what time is it in Oslo?")]));
  assert.equal(events[0].type, "start");
  assert.equal(events.at(-1).type, "done");
  assert.equal(events.at(-1).stopReason, "tool_use");
  let open = "";
  let next = 0;
  for (const { type, contentIndex } of events.slice(1, -1)) {
    const [, kind, step] = /^(text|thinking|tool_call)_(start|delta|end)$/.exec(type) ?? [];
    assert.equal(contentIndex, next);
    assert.equal(open, step === "start" ? "" : kind);
    if (step === "start") open = kind ?? "";
    if (step === "end") [open, next] = ["", next + 1];
  }
  assert.equal(next, 4);
});

test("arguments arrive in pieces that make JSON together", async () => {
  const events = await eventsOf(request([user("What is 123456*789012?")]));
  const pieces = events.filter(({ type }) => type === "tool_call_delta").map(({ delta }) => delta);
  assert.ok(pieces.length > 2);
  assert.deepEqual(JSON.parse(pieces.join("")), { expression: "123456*789012" });
});

test("calls have ids that no other call of the conversation has", async () => {
  /** @type {any[]} */
  const messages = [];
  await play(messages, "2+2, and time in Oslo");
  await play(messages, "3+3, and time in Lima");
  const ids = messages.filter(({ role }) => role === "assistant").flatMap(callsOf).map(({ callId }) => callId);
  assert.equal(ids.length, 4);
  assert.equal(new Set(ids).size, 4);
});

test("it answers from the results it was given, even from wrong ones", () => {
  const calls = [{ type: "tool_call", callId: "c", toolName: "calculator", arguments: { expression: "17*23" } }];
  const history = [user("What is 17*23?"), { role: "assistant", content: calls, stopReason: "tool_use" }];
  const result = { role: "tool_result", callId: "c", toolName: "calculator", isError: false, content: [{ type: "text", text: "17*23 = 5" }] };
  const { text } = planOf(request([...history, result]));
  assert.match(text, /\b5\b/);
  assert.doesNotMatch(text, /391/);
});

test("a call without a result gets no invented one, and is not made again", () => {
  const call = { type: "tool_call", callId: "c", toolName: "calculator", arguments: { expression: "17*23" } };
  const plan = planOf(request([user("What is 17*23?"), { role: "assistant", content: [call], stopReason: "tool_use" }]));
  assert.deepEqual(plan.calls, []);
  assert.match(plan.text, /no result/);
  assert.doesNotMatch(plan.text, /391/);
});

test("what needs an earlier result waits for it and is asked in the next turn", async () => {
  const { answer, calls } = await play([], "Convert 26.2 miles to km, then divide that by 4.5");
  assert.deepEqual(names(calls), [["convert_units"], ["calculator"]]);
  assert.equal(calls[1]?.[0].arguments.expression, "42.164813/4.5");
  assert.match(answer, /9\.36/);
});

test("a failed tool is reported in its own words, beside the results of the others", async () => {
  const { answer } = await play([], "What is 1/0, and what time is it in Olso, and what is 2+2?");
  assert.match(answer, /division by zero/);
  assert.match(answer, /did you mean Oslo/);
  assert.match(answer, /\*\*4\*\*/);
});

test("what needs a result that failed is not asked for, and the answer says why", async () => {
  const { answer, calls } = await play([], "What is 1/0, and the square root of that?");
  assert.deepEqual(names(calls), [["calculator"]]);
  assert.match(answer, /needs a result that did not come/);
});

test("`that` without anything before it is said to refer to nothing", async () => {
  const { answer, calls } = await play([], "Multiply that by 2");
  assert.deepEqual(calls, []);
  assert.match(answer, /no earlier result/);
});

test("later questions refer to earlier results and earlier questions", async () => {
  /** @type {any[]} */
  const messages = [];
  await play(messages, "What time is it in Oslo?");
  assert.deepEqual((await play(messages, "And in Tokyo?")).calls[0]?.[0].arguments, { place: "Tokyo" });
  await play(messages, "What is 17*23?");
  assert.deepEqual((await play(messages, "Multiply that by 2")).calls[0]?.[0].arguments, { expression: "391*2" });
  assert.deepEqual((await play(messages, "double it")).calls[0]?.[0].arguments, { expression: "782*2" });
  await play(messages, "100 km in miles");
  assert.deepEqual((await play(messages, "and in feet?")).calls[0]?.[0].arguments, { value: 100, from: "km", to: "feet" });
  assert.match((await play(messages, "What did I ask first?")).answer, /What time is it in Oslo\?/);
  assert.match((await play(messages, "What were the results so far?")).answer, /17\*23 = 391/);
});

/** A conversation whose first call was cut short by a message. @param {string} text */
async function steered(text) {
  /** @type {any[]} */
  const messages = [user("Count the primes below 5 million")];
  const first = assembled(await eventsOf(request(messages)));
  messages.push(first, await resultOf(callsOf(first)[0], cut));
  return { messages, ...(await play(messages, text)) };
}

test("steering that says stop drops the work in hand and does the new thing", async () => {
  const { answer, calls } = await steered("Stop that. What time is it in Lima?");
  assert.deepEqual(names(calls), [["clock"]]);
  assert.match(answer, /dropped/);
  assert.match(answer, /In Lima it is \*\*07:00\*\*/);
});

test("steering that says also asks again for what it cut short", async () => {
  const { calls } = await steered("Also: what is 2^16?");
  assert.deepEqual(names(calls).flat().sort(), ["calculator", "count_primes"]);
});

test("other steering leaves the cut call alone, says so, and takes it up on `go on`", async () => {
  const { messages, answer, calls } = await steered("What time is it in Lima?");
  assert.deepEqual(names(calls), [["clock"]]);
  assert.match(answer, /cut short.*go on/s);
  assert.deepEqual(names((await play(messages, "Go on")).calls), [["count_primes"]]);
});

test("after an aborted answer the next question stands alone, and `go on` brings the old one back", async () => {
  const aborted = { role: "assistant", content: [{ type: "text", text: "I ask" }], stopReason: "aborted" };
  const messages = [user("What is 17*23?"), aborted];
  assert.deepEqual(names((await play([...messages], "time in Oslo")).calls), [["clock"]]);
  assert.deepEqual(names((await play([...messages], "go on")).calls), [["calculator"]]);
});

test("a question that no rule fits gets no call and an honest answer", async () => {
  for (const question of ["Why is the sky blue?", "Write a poem", "What is the weather in Oslo?", "fjdkls fjkdls"]) {
    const { answer, calls } = await play([], question);
    assert.deepEqual(calls, [], question);
    assert.ok(answer.includes(LABEL), question);
  }
});

test("a part that no rule fits does not keep the others from being done", async () => {
  const { answer, calls } = await play([], "Write a poem, and what is 17*23?");
  assert.deepEqual(names(calls), [["calculator"]]);
  assert.match(answer, /nothing of “Write a poem”/);
  assert.match(answer, /391/);
});

test("it promises only what it was offered, and says which tool is missing", () => {
  const only = offered.filter(({ name }) => name === "clock");
  assert.match(planOf(request([user("What is 17*23?")], { tools: only })).text, /`calculator`, which I was not offered/);
  const { text } = planOf(request([user("What can you do?")], { tools: only }));
  assert.match(text, /tell the time/);
  assert.doesNotMatch(text, /calculate/);
});

test("a tool it does not know is called when it is named, with the arguments that were given", () => {
  const modelRequest = request([user('call get_weather {"city":"Oslo","days":2}')], { tools: [...offered, { name: "get_weather", description: "", parameters: {} }] });
  assert.deepEqual(planOf(modelRequest).calls.map(({ toolName, arguments: given }) => [toolName, given]), [["get_weather", { city: "Oslo", days: 2 }]]);
});

test("options are kept: no tools, one call at a time, no thinking", () => {
  const question = [user("What is 17*23, and what time is it in Oslo?")];
  assert.deepEqual(planOf(request(question, { options: { toolChoice: "none" } })).calls, []);
  assert.equal(planOf(request(question, { options: { parallelToolCalls: false } })).calls.length, 1);
  assert.equal(planOf(request(question, { options: { reasoning: "off" } })).thinking, "");
});

test("it keeps it short when asked to", async () => {
  assert.equal((await play([], "Just the number: what is 12*12")).answer, "144");
});

test("it says what it is when asked", async () => {
  assert.ok((await play([], "Are you a language model?")).answer.includes(LABEL));
});

test("usage grows with the conversation and counts thinking as output", async () => {
  const short = (await eventsOf(request([user("2+2")]))).at(-1).usage;
  const long = (await eventsOf(request([user("2+2"), user("x".repeat(400))]))).at(-1).usage;
  assert.ok(short.input > 0 && short.output > 0);
  assert.ok(long.input >= short.input + 100);
  assert.ok(short.reasoning > 0 && short.reasoning < short.output);
  assert.equal(short.total, short.input + short.output);
});

test("an abort is noticed at every wait: the signal's reason is thrown and nothing more is said", async () => {
  const modelRequest = request([user("What is 17*23, and what time is it in Oslo?")]);
  let waits = 0;
  for await (const _ of rehearsal({ sleep: async () => void (waits += 1) })(modelRequest, { signal })) continue;
  for (let last = 1; last <= waits; last += 1) {
    const controller = new AbortController();
    const reason = new Error(`at wait ${last}`);
    let waited = 0;
    let late = 0;
    const sleep = async () => {
      waited += 1;
      if (waited === last) controller.abort(reason);
    };
    const listen = async () => {
      for await (const _ of rehearsal({ sleep })(modelRequest, { signal: controller.signal })) if (controller.signal.aborted) late += 1;
    };
    await assert.rejects(listen(), (error) => error === reason);
    assert.equal(late, 0);
  }
});

test("its waits follow the pace, and at pace zero none is longer than nothing", async () => {
  /** @type {number[]} */
  const waits = [];
  const sleep = async (/** @type {number} */ ms) => void waits.push(ms);
  for await (const _ of rehearsal({ sleep, pace: () => 0 })(request([user("2+2")]), { signal })) continue;
  assert.ok(waits.length > 5);
  assert.ok(waits.every((ms) => ms === 0));
});

test("a call that comes back in another shape is not made for ever", () => {
  /** @type {any[]} */
  const messages = [user("What is 2+2?")];
  let answers = 0;
  for (let plan = planOf(request(messages)); plan.calls.length > 0; plan = planOf(request(messages))) {
    answers += 1;
    assert.ok(answers < 15, "it asks in a circle");
    // An engine that loses the name and the arguments of every call.
    messages.push({ role: "assistant", content: plan.calls.map(({ callId }) => ({ type: "tool_call", callId, toolName: "other", arguments: {} })), stopReason: "tool_use" });
  }
  assert.ok(answers > 0);
});

test("whatever is said, an answer comes, and every call fits its tool's schema", async () => {
  const vocabulary = "what is the time in Oslo and Tokyo , then ? . ; ! 17 * 23 ( ) / 0 % of that it convert km miles to feet primes below 5 million count also stop go on instead search for steering coffee how does a { } \" ` ** <b> ½ 😀 -- plus minus half double square root sum average call calculator".split(" ");
  let seed = 7;
  const random = (/** @type {number} */ below) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % below;
  };
  for (let round = 0; round < 400; round += 1) {
    /** @type {any[]} */
    const messages = [];
    for (let count = 0; count <= random(3); count += 1) {
      const text = Array.from({ length: 1 + random(14) }, () => vocabulary[random(vocabulary.length)]).join(random(5) === 0 ? "" : " ");
      messages.push(user(text));
      for (let turn = 0; ; turn += 1) {
        assert.ok(turn < 13, `no end for ${JSON.stringify(text)}`);
        const plan = planOf(request(messages));
        assert.ok(plan.calls.length > 0 || plan.text, `no answer to ${JSON.stringify(text)}`);
        for (const call of plan.calls) assert.equal(misfit(call), undefined, text);
        messages.push({ role: "assistant", content: plan.calls.map((call) => ({ type: "tool_call", ...call })), stopReason: "stop" });
        if (plan.calls.length === 0) break;
        for (const call of plan.calls) messages.push(await resultOf(call, random(4) === 0 ? cut : { content: [{ type: "text", text: "x = 3" }] }));
      }
    }
  }
});

/** @param {{ toolName: string, arguments: any }} call @returns {string | undefined} */
function misfit({ toolName, arguments: given }) {
  const { properties, required } = /** @type {any} */ (offered.find(({ name }) => name === toolName)?.parameters ?? {});
  if (!properties) return `no tool ${toolName}`;
  if (Object.keys(given).length === 0) return undefined; // a tool called by name alone
  const missing = required.find((/** @type {string} */ name) => !(name in given));
  if (missing) return `${toolName} without ${missing}`;
  const wrong = Object.entries(given).find(([name, value]) => !properties[name] || typeof value !== (properties[name].type === "integer" ? "number" : properties[name].type));
  return wrong && `${toolName} with ${JSON.stringify(wrong)}`;
}

test("a very long message is read as far as it goes, and answered", () => {
  for (const text of ["(".repeat(50_000), "17*".repeat(20_000), "5 and ".repeat(20_000), "what is ".repeat(20_000), "9".repeat(50_000)]) {
    const plan = planOf(request([user(text)]));
    assert.ok(plan.text || plan.calls.length > 0);
  }
});
