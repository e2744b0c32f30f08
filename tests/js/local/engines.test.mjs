// @ts-check
// turnwheel/local over doubles of its engines: a real agent, tools, aborts, errors, what is read again and what not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { promptApi, wllama } from "../../../pkg/local.js";
import { localModel } from "../../../www/npm/local/model.js";
import { Agent, isOpen, misused, readRun, scripted, settle, tool } from "../kit.mjs";
import { languageModel, wllamaEngine } from "./doubles.mjs";

/** @typedef {import("./doubles.mjs").Mind} Mind */

const weather = (/** @type {string[]} */ asked = []) => tool({
  name: "get_weather", description: "The weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  execute: ({ city }) => (asked.push(city), `rain in ${city}`),
});

/** Asks for the weather once, and then says what came. @type {Mind} */
const sensible = (messages) => {
  const last = messages.at(-1)?.content ?? "";
  const found = /get_weather\(.*\) = (.*)/.exec(last);
  return found ? `{"say": "It says: ${found[1]}."}` : `{"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}`;
};

/** Asks for the same for ever, unless it may only speak. @type {Mind} */
const stubborn = (messages, constraint) => {
  const isFree = constraint === undefined || JSON.stringify(constraint).includes("calls");
  return isFree ? '{"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}' : '{"say": "Enough."}';
};

/** The engines with a mind, as models. @param {Mind} mind @returns {[string, any][]} */
function engines(mind) {
  const browser = languageModel(mind);
  const llama = wllamaEngine(mind);
  return [["promptApi", promptApi({ api: browser.api })], ["wllama", wllama(llama)]];
}

for (const [name, model] of engines(sensible)) {
  test(`${name}: a turn with a tool, streamed, held to its form`, async () => {
    /** @type {string[]} */
    const asked = [];
    const agent = new Agent({ model, tools: [weather(asked)], systemPrompt: "Be brief." });
    const outcome = await readRun(agent.prompt("Weather in Oslo?"));
    assert.equal(outcome.result.stopReason, "completed", outcome.result.error?.message);
    assert.equal(outcome.result.text, "It says: rain in Oslo.");
    assert.deepEqual(asked, ["Oslo"]);
    assert.ok(outcome.all("message_update").length > 5, "it came in one piece");
    assert.ok(outcome.result.usage.output > 0 && outcome.result.usage.input > 0);
    assert.equal((await agent.prompt("And again?")).text, "It says: rain in Oslo.");
  });
}

for (const [name, model] of engines(stubborn)) {
  test(`${name}: the same call for ever is not made for ever`, async () => {
    const agent = new Agent({ model, tools: [weather()], maxTurns: 6 });
    const { stopReason, text, turns, usage } = await agent.prompt("Weather in Oslo?");
    assert.deepEqual([stopReason, text, turns], ["completed", "Enough.", 2]);
    assert.ok(usage.output > 10);
  });
}

for (const [name, model] of engines(() => "A long story. ".repeat(100))) {
  test(`${name}: an abort keeps what had come, and the next answer works`, async () => {
    const agent = new Agent({ model });
    const run = agent.prompt("Tell a story.");
    let count = 0;
    for await (const event of run) if (event.type === "message_update" && ++count === 5) run.abort();
    const { stopReason, text } = await run;
    assert.equal(stopReason, "aborted");
    assert.ok(text.startsWith("A long"));
    const next = await agent.prompt("Another one.");
    assert.equal(next.stopReason, "completed", next.error?.message);
  });

  test(`${name}: two agents wait for each other, and one that stops waiting takes nothing away`, async () => {
    const [one, two, three] = [1, 2, 3].map(() => new Agent({ model }).prompt("Go."));
    two?.abort();
    assert.deepEqual((await Promise.all([one, two, three])).map((result) => result?.stopReason), ["completed", "aborted", "completed"]);
  });
}

test("structured output and forced calls are held to as well", async () => {
  const schema = { type: "object", properties: { city: { type: "string" }, people: { type: "integer" } }, required: ["city", "people"] };
  /** @type {Mind} */
  const mind = (messages, constraint) => {
    assert.ok(!JSON.stringify(constraint).includes('\\"say'), "it could have talked instead");
    const name = /"name\W+(__?\w+)/.exec(JSON.stringify(constraint))?.[1];
    return `{"calls": [{"name": "${name}", "arguments": {"city": "Oslo", "people": 717710}}]}`;
  };
  const model = wllama(wllamaEngine(mind));
  const { output, error } = await new Agent({ model, output: schema, streamOptions: { toolChoice: "required" } }).prompt("Oslo");
  assert.deepEqual(output, { city: "Oslo", people: 717710 }, error?.message);
});

test("promptApi: what the session knows is not read again, and anything else is", async () => {
  const { api, log } = languageModel(sensible);
  const agent = new Agent({ model: promptApi({ api }), tools: [weather()], systemPrompt: "Be brief." });
  await agent.prompt("Weather in Oslo?");
  await agent.prompt("And again?");
  assert.deepEqual([log.opened.length, log.prompted.length], [1, 4]);
  assert.deepEqual(log.prompted.map((messages) => messages.length), [1, 1, 1, 1]);
  assert.match(String(log.prompted[1]?.[0]?.content), /^Tool results:\nget_weather\(city: "Oslo"\) = rain in Oslo\nIf this answers/);
  agent.systemPrompt = "Be long.";
  await agent.prompt("A third time?");
  assert.deepEqual([log.opened.length, log.destroyed], [2, 1]);
  assert.equal(log.opened[1]?.[0]?.role, "system");
});

test("promptApi: old versions, that send the whole text so far and count by other names", async () => {
  const { api, log } = languageModel(sensible, { whole: true, old: true });
  const { text } = await new Agent({ model: promptApi({ api }), tools: [weather()] }).prompt("Weather?");
  assert.equal(text, "It says: rain in Oslo.");
  assert.equal(log.dropped, 0);
});

test("promptApi: nothing is dropped in silence; what is too long is told, and the next model takes it", async () => {
  for (const old of [false, true]) {
    const { api, log } = languageModel(() => '{"say": "short"}', { window: 300, old });
    const model = promptApi({ api });
    const agent = new Agent({ model, tools: [weather()] });
    assert.equal((await agent.prompt("Hello.")).text, "short");
    const failed = await agent.prompt("word ".repeat(200));
    assert.equal(failed.error?.code, "context_overflow");
    const both = new Agent({ model, fallback: [scripted(["from the cloud"])] });
    const run = await readRun(both.prompt("word ".repeat(400)));
    assert.equal(run.result.text, "from the cloud", run.result.error?.message);
    assert.equal(run.all("model_fallback").length, 1);
    assert.equal(log.dropped, 0);
  }
});

test("promptApi: a constraint that is not supported is asked for in words, once with a warning", async (t) => {
  const { api, log } = languageModel(sensible, { refuses: true });
  const warned = t.mock.method(console, "warn", () => {});
  const agent = new Agent({ model: promptApi({ api }), tools: [weather()] });
  assert.equal((await agent.prompt("Weather?")).text, "It says: rain in Oslo.");
  assert.equal((await agent.prompt("Weather?")).text, "It says: rain in Oslo.");
  assert.equal(warned.mock.callCount(), 1);
  assert.match(String(warned.mock.calls[0]?.arguments[0]), /promptApi refuses the constraint .* `tools: "prompted"`/);
  assert.ok(log.constraints.every((constraint) => constraint === undefined));
});

test("a browser without a model: availability says so, and the next model answers at once", async () => {
  const gone = languageModel(sensible, { state: "unavailable" });
  assert.equal(await promptApi({ api: gone.api }).availability(), "unavailable");
  assert.equal(await promptApi({ api: { availability: () => Promise.reject(new Error("no")) } }).availability(), "unavailable");
  for (const model of [promptApi(), promptApi({ api: gone.api }), wllama(async () => Promise.reject(new Event("error"))), wllama(async () => { throw new Error("no such file"); })]) {
    const outcome = await readRun(new Agent({ model, fallback: [scripted(["from the cloud"])] }).prompt("Hello."));
    assert.equal(outcome.result.text, "from the cloud");
    assert.deepEqual([outcome.all("retry_attempt").length, outcome.all("model_fallback").length], [0, 1]);
    const alone = await new Agent({ model }).prompt("Hello.");
    assert.equal(alone.stopReason, "error");
    assert.match(String(alone.error?.message), /LanguageModel|not eligible|worker could not be started|no such file/);
    await assert.rejects(/** @type {any} */ (model).prepare(), /promptApi|wllama/);
  }
});

test("loading is told, and done once", async () => {
  /** @type {any[]} */
  const progress = [];
  const { api } = languageModel(sensible);
  const model = promptApi({ api, onProgress: (step) => progress.push(step) });
  assert.equal(await model.availability(), "available");
  await model.prepare();
  assert.deepEqual(progress, [0, 0.5, 1].map((loaded) => ({ phase: "download", loaded, total: 1 })));

  let made = 0;
  const lazy = wllama(async ({ onProgress }) => {
    made++;
    onProgress({ loaded: 10, total: 20 });
    return wllamaEngine(sensible);
  }, { onProgress: (step) => progress.push(step) });
  assert.equal(await lazy.availability(), "downloadable");
  const both = await Promise.all([1, 2].map(() => new Agent({ model: lazy, tools: [weather()] }).prompt("Weather?")));
  assert.deepEqual(both.map(({ text }) => text), ["It says: rain in Oslo.", "It says: rain in Oslo."]);
  assert.deepEqual([made, await lazy.availability(), progress.at(-1)], [1, "available", { phase: "download", loaded: 10, total: 20 }]);
});

test("wllama: too long is an overflow; a grammar is never sent together with tools", async () => {
  const engine = wllamaEngine(sensible, { window: 200 });
  const agent = new Agent({ model: wllama(engine), tools: [weather()] });
  assert.equal((await agent.prompt("Weather?")).stopReason, "completed");
  assert.equal((await agent.prompt("word ".repeat(300))).error?.code, "context_overflow");
  assert.ok(engine.asked.every(({ grammar, tools }) => grammar && !tools));
  const native = wllamaEngine(() => "hello");
  await new Agent({ model: wllama(native, { tools: "native" }), tools: [weather()] }).prompt("Hello");
  assert.deepEqual(native.asked.map(({ grammar, tools }) => [grammar, tools.length]), [[undefined, 1]]);
});

test("an engine that does not stop keeps the next answer waiting for a minute, and no longer", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const engine = wllamaEngine(() => "Again.");
  const { createChatCompletion } = engine;
  /** @type {(value?: any) => void} */
  let stop = () => {};
  engine.createChatCompletion = /** @type {any} */ (async () => (async function* () {
    yield { choices: [{ delta: { content: '{"say": "It' } }] };
    await new Promise((done) => (stop = done));
  })());
  const model = wllama(engine);
  const retry = { maxAttempts: 1 };
  const run = new Agent({ model }).prompt("Go.");
  for await (const event of run) if (event.type === "message_update") run.abort();
  const second = readRun(new Agent({ model, retry, fallback: [scripted(["From elsewhere."])] }).prompt("And now?"));
  t.mock.timers.tick(59_999);
  assert.ok(await isOpen(second));
  t.mock.timers.tick(1);
  assert.equal((await second).result.text, "From elsewhere.");
  const { error } = await new Agent({ model, retry }).prompt("And now?");
  assert.equal(error?.code, "server");
  assert.match(error?.message ?? "", /wllama: the engine still writes an answer that was stopped a minute ago; make engine and model anew/);
  // It has stopped after all.
  stop();
  await settle();
  engine.createChatCompletion = createChatCompletion;
  assert.equal((await new Agent({ model, retry }).prompt("And now?")).text, "Again.");
});

test("an answer that is cut is cut, and its call does not run", async () => {
  const cut = wllamaEngine(() => '{"calls": [{"name": "get_weather", "arguments": {"city": "Os');
  /** @type {string[]} */
  const asked = [];
  const agent = new Agent({ model: wllama(cut), tools: [weather(asked)], maxTurns: 1 });
  const outcome = await readRun(agent.prompt("Weather?"));
  assert.deepEqual(asked, []);
  assert.equal(outcome.all("message_end")[0].message.stopReason, "length");
});

test("what nothing holds to a form makes no more calls than it may, and the engine is free again", async () => {
  for (const [name, model] of engines((messages) => (JSON.stringify(messages).includes("Tool results") ? '{"say": "Done."}' : `{"calls": [${Array.from({ length: 9 }, (_, i) => `{"name": "get_weather", "arguments": {"city": "${i}"}}`).join(", ")}]}`))) {
    /** @type {string[]} */
    const asked = [];
    const agent = new Agent({ model, tools: [weather(asked)] });
    assert.deepEqual([(await agent.prompt("Weather?")).text, asked], ["Done.", ["0", "1", "2", "3"]], name);
    assert.equal((await agent.prompt("Thanks")).text, "Done.");
  }
});

test("an engine that fails in the middle is not asked again as if it had said nothing", async () => {
  for (const text of ["Unexpected empty grammar stack after accepting piece: x", "the device was lost"]) {
    const engine = wllamaEngine(sensible);
    engine.createChatCompletion = async (request) => {
      engine.asked.push(request);
      return (async function* () {
        yield { choices: [{ delta: { content: '{"say": "It ra' } }] };
        throw new Error(text);
      })();
    };
    const { error, text: said } = await new Agent({ model: wllama(engine), tools: [weather()], retry: { maxAttempts: 1 } }).prompt("Weather?");
    assert.deepEqual([error?.code, said, engine.asked.length], ["server", "It ra", 1]);
  }
});

test("an engine that died is let go, and made anew", async () => {
  /** @type {string[]} */
  const ended = [];
  let made = 0;
  const model = wllama(async () => {
    const name = `engine ${++made}`;
    const engine = Object.assign(wllamaEngine(sensible), { exit: async () => void ended.push(name) });
    if (made === 1) engine.createChatCompletion = () => Promise.reject(new Error("the worker died"));
    return engine;
  });
  const agent = new Agent({ model, tools: [weather()], retry: { maxAttempts: 3, initialBackoffMs: 1 } });
  assert.equal((await agent.prompt("Weather?")).text, "It says: rain in Oslo.");
  assert.deepEqual([made, ended], [2, ["engine 1"]]);
});

test("what engines write in their chunks beside words changes nothing, and what is none is a failure that is told", async () => {
  const chunk = (/** @type {any} */ content, /** @type {any} */ more = {}) => ({ choices: [{ delta: { content, ...more } }] });
  /** @type {[string, () => any, string | undefined][]} */
  const cases = [
    ["no calls", () => [chunk('{"say": "hi"}', { tool_calls: null, reasoning_content: null })], "hi"],
    ["no choices", () => [chunk('{"say": "hi"}'), { choices: null }, { choices: [null] }, { choices: [{ delta: null, finish_reason: null }], usage: null }], "hi"],
    ["numbers that are none", () => [chunk('{"say": "hi"}'), { choices: [], usage: { prompt_tokens: "12", completion_tokens: NaN, total_tokens: -5, prompt_tokens_details: null } }], "hi"],
    ["half a letter", () => [chunk('{"say": "\ud83d'), chunk('\ude42"}')], "🙂"],
    ["nothing at all", () => undefined, undefined], ["a number", () => 7, undefined], ["no chunk", () => [null], undefined], ["no text", () => [chunk(12)], undefined],
    ["an error that is none", () => { throw undefined; }, undefined], ["a rejection that is none", () => Promise.reject(null), undefined],
  ];
  for (const [name, give, said] of cases) {
    const model = wllama(/** @type {any} */ ({ createChatCompletion: give }));
    const { stopReason, error, text } = await new Agent({ model, tools: [weather()], retry: { maxAttempts: 1 } }).prompt("Hello");
    assert.deepEqual([stopReason, error?.code, text], said === undefined ? ["error", "server", ""] : ["completed", undefined, said], `${model.id}: ${name}`);
  }
});

test("promptApi: an answer that fits no constraint is asked for again", async () => {
  const { api } = languageModel(sensible);
  let times = 0;
  const broken = { ...api, create: async (/** @type {any} */ options) => {
    const session = /** @type {any} */ (await api.create(options));
    const { promptStreaming } = session;
    session.promptStreaming = (/** @type {any[]} */ ...given) => {
      if (++times === 1) throw Object.assign(new Error("the answer does not conform"), { name: "SyntaxError" });
      return promptStreaming.apply(session, given);
    };
    return session;
  } };
  const { result, all } = await readRun(new Agent({ model: promptApi({ api: broken }), tools: [weather()], retry: { maxAttempts: 2, initialBackoffMs: 1 } }).prompt("Weather?"));
  assert.deepEqual([result.text, all("retry_attempt").length], ["It says: rain in Oslo.", 1]);
});

test("wrong usages name the way out", async () => {
  await misused(() => wllama(/** @type {any} */ ({})), /createChatCompletion.*version 3/);
  await misused(() => promptApi(/** @type {any} */ ({ tools: "grammar" })), /"constrained", "native" or "prompted"/);
  await misused(() => promptApi({ tools: "native" }), /no tool calls of its own; leave `tools` out/);
  await misused(() => promptApi(/** @type {any} */ ({ maxCall: 3 })), /maxCalls/);
  await misused(() => promptApi({ maxCalls: 0 }), /from 1 to 64/);
  await misused(() => promptApi(/** @type {any} */ ({ languages: "en" })), /\["en", "de"\]/);
});

test("a part that cannot be loaded is a failure of the network: it is tried again, and then the next model answers", async () => {
  const engine = wllamaEngine(() => '{"say": "Hello."}');
  let tries = 0;
  /** @type {any} */
  const adapter = {
    name: "mine", availability: async () => "available", prepare: async () => {}, dispose: async () => {},
    constrain: async () => {
      tries += 1;
      throw new TypeError("Failed to fetch dynamically imported module");
    },
    answer: () => assert.fail("it was asked without what holds it to its form"),
  };
  const agent = new Agent({ model: localModel(adapter, {}), fallback: [wllama(engine)], tools: [weather()], retry: { maxAttempts: 2, initialBackoffMs: 1 } });
  const { result, all } = await readRun(agent.prompt("Hello"));
  assert.deepEqual([result.text, tries], ["Hello.", 2]);
  assert.deepEqual(all("retry_attempt").map(({ error }) => error.code), ["network"]);
  assert.match(all("retry_attempt")[0].error.message, /a part of turnwheel\/local cannot be loaded: Failed to fetch/);
});
