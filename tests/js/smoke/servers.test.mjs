// @ts-check
// `npx turnwheel smoke` against servers that play a model: one that does everything right, and for each check one that does it
// wrong. The command is a process of its own, as a user starts it; what is in a table is called here, for a process takes long to
// start.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import "../../../pkg/entry/node.js";
import { smoke as command } from "../../../pkg/smoke.js";
import { calls, serve, sse, textAnswer } from "../server.mjs";

const CLI = fileURLToPath(new URL("../../../pkg/cli.mjs", import.meta.url));
const KEY = "sk-this-must-never-be-seen-0123456789";
const ALL = ["text", "tools", "parallel", "thinking", "abort", "overflow", "image", "structured"];
/** @typedef {import("../server.mjs").Answer | string} Answer */

/**
 * Runs the command in an empty folder.
 * @param {string[]} words @param {Record<string, string>} [env]
 * @returns {Promise<{ code: number, stdout: string, stderr: string, folder: string, told: any, all: string }>} `all` is whatever anybody can see of it
 */
async function smoke(words, env = {}) {
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-smoke-"));
  const { PATH = "" } = process.env;
  const ended = await new Promise((resolve) => {
    execFile(process.execPath, [CLI, "smoke", ...words], { cwd: folder, env: { PATH, ...env }, timeout: 60_000 }, (error, stdout, stderr) => resolve({ code: error ? error.code : 0, stdout, stderr }));
  });
  const [file] = readdirSync(folder).filter((name) => name.endsWith(".json"));
  const text = file ? readFileSync(join(folder, file), "utf8") : "";
  return { ...ended, folder, told: text && JSON.parse(text), all: ended.stdout + ended.stderr + text + file };
}

/**
 * The same in this process, which cli.mjs gives what stands on the command line.
 * @param {string[]} words options and their values in turn @param {Record<string, string>} [env]
 * @returns {Promise<{ code: number, stdout: string, stderr: string, folder: string, told: any }>}
 */
async function called(words, env = {}) {
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-smoke-"));
  const given = Object.fromEntries(words.flatMap((word, i) => (i % 2 === 0 ? [[word.slice(2), words[i + 1]]] : [])));
  let [stdout, stderr] = ["", ""];
  const code = await command({ out: join(folder, "told.json"), ...given }, {
    env, versions: { turnwheel: "0", node: "v0" }, harmless: (text) => text,
    say: (text) => ((stdout += `${text}\n`), 0),
    complain: (text) => ((stderr += `${text}\n`), 1),
  });
  const file = join(folder, "told.json");
  return { code, stdout, stderr, folder, told: existsSync(file) && JSON.parse(readFileSync(file, "utf8")) };
}

const refused = (/** @type {string} */ message, status = 400) => ({ status, body: JSON.stringify({ error: { message, type: "invalid_request_error" } }) });
const delta = (/** @type {any} */ more) => ({ choices: [{ index: 0, delta: more }] });
const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
const lookUp = (/** @type {string[]} */ ...names) => calls(...names.map((name, i) => /** @type {[string, string, string]} */ (["look_up", JSON.stringify({ name }), `call_${name}_${i}`])));
/** A thought, and then a call. */
const thoughtful = sse(delta({ reasoning_content: "Cobalt has " }), delta({ reasoning_content: "six letters." }), delta({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "look_up", arguments: '{"name":"cobalt"}' } }] }), { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }], usage });

/** Which check a request is of, and whether the tool has answered. @param {any} body */
function kindOf(body) {
  const asked = JSON.stringify(body.messages[0].content).slice(0, 500);
  const returned = body.messages.filter((/** @type {any} */ { role }) => role === "tool").map((/** @type {any} */ { content }) => (typeof content === "string" ? content : content[0].text));
  /** @type {[RegExp, string][]} */
  const signs = [[/under amber and under cobalt/, "parallel"], [/more letters/, "thinking"], [/look_up/, "tools"], [/image_url/, "image"], [/one to two hundred/, "abort"], [/capital of Norway/, "structured"], [/ a a a/, "overflow"]];
  return { kind: signs.find(([sign]) => sign.test(asked))?.[1] ?? "text", returned };
}

/** What a good server answers. @type {Record<string, (returned: string[], body: any) => Answer>} */
const GOOD = {
  text: () => textAnswer(["Hel", "lo."]),
  tools: ([number]) => (number ? textAnswer(`It is ${number}.`) : lookUp("amber")),
  parallel: (numbers) => (numbers.length > 0 ? textAnswer(`They are ${numbers.join(" and ")}.`) : lookUp("amber", "cobalt")),
  thinking: ([number]) => (number ? textAnswer(`It is ${number}.`) : thoughtful),
  abort: () => ({ body: `data: ${JSON.stringify(delta({ content: "one\n" }))}\n\n`, again: `data: ${JSON.stringify(delta({ content: "two\n" }))}\n\n` }),
  overflow: () => refused("This model's maximum context length is 8192 tokens. However, your messages resulted in 300004 tokens."),
  image: () => textAnswer("Yellow."),
  structured: () => textAnswer('{"city":"Oslo","letters":4}'),
};

/** A server that answers as it should, but for one check. @param {any} t @param {Partial<typeof GOOD>} [otherwise] */
const playing = (t, otherwise = {}) => serve(t, ({ body, path }) => {
  if (path.endsWith("/models")) return { headers: { "content-type": "application/json" }, body: JSON.stringify({ data: [{ id: "small" }] }) };
  const { kind, returned } = kindOf(body);
  return ({ ...GOOD, ...otherwise })[kind]?.(returned, body) ?? "";
});

const at = (/** @type {string} */ baseUrl, /** @type {string[]} */ ...more) => ["--server", "llama.cpp", "--base-url", baseUrl, "--model", "small", ...more];

test("a good server passes all eight, and the file says so", async (t) => {
  const server = await playing(t);
  const { code, stdout, stderr, told, all } = await smoke(at(server.baseUrl, "--key-env", "MY_KEY"), { MY_KEY: KEY });
  assert.deepEqual([code, stderr], [0, ""], stdout);
  assert.deepEqual(told.checks.map((/** @type {any} */ { name, result }) => [name, result]), ALL.map((name) => [name, "passed"]));
  assert.match(stdout, /^ok +text +[\d.]+ s +"Hello\."$/m);
  assert.match(stdout, /^ok +parallel .*both calls in one answer; "They are 7241 and 9038\."$/m);
  assert.match(stdout, /^8 passed, 0 failed, 0 skipped; \d+ tokens in, \d+ out$/m);
  const { version } = JSON.parse(readFileSync(new URL("../../../pkg/package.json", import.meta.url), "utf8"));
  assert.deepEqual(Object.keys(told), ["date", "turnwheel", "server", "baseUrl", "model", "node", "checks"]);
  assert.deepEqual([told.turnwheel, told.server, told.baseUrl, told.model, told.node], [version, "llama.cpp", server.baseUrl, "small", process.version]);
  assert.equal(new Date(told.date).toISOString(), told.date);
  assert.deepEqual(Object.keys(told.checks[0]), ["name", "result", "ms", "detail", "usage"]);
  assert.deepEqual([told.checks[0].usage.input, told.checks[0].usage.output], [7, 3]);
  // The key went to the server, and nowhere else.
  assert.ok(server.requests.every(({ headers }) => headers.authorization === `Bearer ${KEY}`));
  assert.ok(!all.includes(KEY));
});

test("two calls in two answers count too, and numbers may be grouped", async (t) => {
  const server = await playing(t, { parallel: (numbers) => [lookUp("amber"), lookUp("Cobalt"), textAnswer("7,241 and 9 038")][numbers.length] ?? "" });
  const { code, stdout } = await called(at(server.baseUrl, "--only", "parallel"));
  assert.equal(code, 0, stdout);
  assert.match(stdout, /one call in each of two answers/);
});

test("what is thought is sent back where the server takes it", async (t) => {
  const server = await playing(t);
  const { code, stdout } = await called(["--server", "deepseek", "--base-url", server.baseUrl, "--model", "deepseek-chat", "--only", "thinking"], { DEEPSEEK_API_KEY: KEY });
  assert.equal(code, 0, stdout);
  assert.match(stdout, /1 thought; sent back, and accepted/);
  assert.match(server.requests[1]?.text ?? "", /Cobalt has six letters\./);
});

/** For each check, what a server may do wrong, and the words in which it is told. @type {[string, Partial<typeof GOOD>, RegExp][]} */
const MISCHIEF = [
  ["text", { text: () => textAnswer(" ") }, /the model says nothing/],
  ["text", { text: () => refused("no such model") }, /invalid_request: no such model/],
  ["tools", { tools: () => textAnswer("It is 7241.") }, /the tool gave 0 of 1 numbers, and the model says: "It is 7241\."/],
  ["tools", { tools: ([number]) => (number ? textAnswer("I do not know.") : lookUp("amber")) }, /does not use what the tool gave \(7241\): "I do not know\."/],
  ["tools", { tools: () => lookUp("amber") }, /the run ended with max_turns/],
  ["parallel", { parallel: ([number]) => (number ? textAnswer(`It is ${number}.`) : lookUp("amber")) }, /the tool gave 1 of 2 numbers/],
  ["parallel", { parallel: (numbers) => (numbers.length > 0 ? textAnswer(`It is ${numbers[0]}.`) : lookUp("amber", "cobalt")) }, /does not use what the tool gave/],
  ["thinking", { thinking: ([number]) => (number ? refused("Invalid `signature` in `thinking` block: thinking is not supported here") : thoughtful) }, /after a thought, invalid_request: Invalid `signature`/],
  ["thinking", { thinking: ([number]) => (number ? textAnswer("Hm.") : thoughtful) }, /does not use what the tool gave/],
  ["abort", { abort: () => textAnswer("") }, /no piece of an answer came/],
  ["abort", { abort: () => refused("streams are wrong") }, /invalid_request: streams are wrong/],
  ["overflow", { overflow: () => refused("a strange request") }, /invalid_request: a strange request/],
  ["image", { image: () => textAnswer("Red.") }, /the picture is yellow, and the model says: "Red\."/],
  ["image", { image: () => refused("the image is damaged") }, /invalid_request: the image is damaged/],
  ["structured", { structured: () => textAnswer('{"city":"Oslo","letters":"four"}') }, /letters/],
];

for (const [name, otherwise, why] of MISCHIEF) {
  test(`${name} fails: ${why.source}`, async (t) => {
    const server = await playing(t, otherwise);
    const { code, stdout, told } = await called(at(server.baseUrl, "--only", name));
    assert.equal(code, 1, stdout);
    assert.match(stdout, new RegExp(`^FAILED  ${name} `, "m"));
    assert.deepEqual(told.checks.map((/** @type {any} */ check) => [check.name, check.result]), [[name, "failed"]]);
    assert.match(told.checks[0].detail, why);
    assert.ok(told.checks[0].detail.length <= 200);
  });
}

test("a server that cuts a prompt in silence fails where it is not the user's own", async (t) => {
  const server = await playing(t, { overflow: () => textAnswer("Yes.") });
  const here = await called(at(server.baseUrl, "--only", "overflow"));
  assert.deepEqual([here.code, here.told.checks[0].result], [0, "skipped"]);
  assert.match(here.told.checks[0].detail, /has cut 300000 tokens silently, to 7/);
  const { fetch } = globalThis;
  t.mock.method(globalThis, "fetch", (/** @type {string} */ url, /** @type {any} */ init) => fetch(url.replace("https://llm.example", server.url), init));
  const elsewhere = await called(["--server", "openai", "--base-url", "https://llm.example/v1", "--model", "m", "--only", "overflow"], { OPENAI_API_KEY: KEY });
  assert.deepEqual([elsewhere.code, elsewhere.told.checks[0].result], [1, "failed"]);
  assert.match(elsewhere.told.checks[0].detail, /has cut 2200000 tokens silently, to 7/);
});

/** What a server or a model does not have, by its own words. @type {[string, Answer][]} */
const LACKING = [
  ["tools", refused("registry.ollama.ai/library/small does not support tools")],
  ["parallel", refused("No endpoints found that support tool use", 404)],
  ["thinking", refused("Unsupported parameter: 'reasoning_effort' is not supported with this model.")],
  ["thinking", calls(["look_up", '{"name":"cobalt"}'])],
  ["overflow", { status: 429, body: JSON.stringify({ error: { message: "Request too large on tokens per min (TPM): Limit 30000, Requested 300004" } }) }],
  ["image", refused("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj")],
  ["image", refused("messages[0]: unknown variant `image_url`, expected `text`")],
  ["structured", refused("This model does not support response_format json_schema")],
];

test("what a model does not have is skipped, with the words of the server", async (t) => {
  for (const [name, answer] of LACKING) {
    const server = await playing(t, { [name]: (/** @type {string[]} */ [number]) => (number ? textAnswer(`It is ${number}.`) : answer) });
    const { code, stdout, told } = await called(at(server.baseUrl, "--only", name));
    assert.deepEqual([code, told.checks[0].result], [0, "skipped"], stdout);
    assert.match(stdout, new RegExp(`^skipped ${name} +[\\d.]+ s +\\S`, "m"));
    const { message } = typeof answer === "string" ? { message: "the answers hold no thinking" } : JSON.parse(String(answer.body)).error;
    assert.ok(told.checks[0].detail.includes(message), told.checks[0].detail);
  }
});

test("a server that never answers has its time", async (t) => {
  const server = await playing(t, { text: () => ({ silent: 0 }) });
  const { code, told } = await called(at(server.baseUrl, "--only", "text", "--timeout", "0.2"));
  assert.equal(code, 1);
  assert.match(told.checks[0].detail, /^timeout: /);
});

test("a wrong key is told once, and shown nowhere", async (t) => {
  const server = await serve(t, () => ({ status: 401, body: JSON.stringify({ error: { message: `Incorrect API key provided: ${KEY}` } }) }));
  const { code, stdout, told, all } = await smoke(["--server", "openai", "--base-url", server.baseUrl, "--model", "m", "--skip", "overflow"], { OPENAI_API_KEY: KEY });
  assert.equal(code, 1);
  assert.equal(server.requests.length, 1);
  assert.match(stdout, /^FAILED +text .*auth: Incorrect API key provided: \[key\]$/m);
  assert.deepEqual(told.checks.slice(1).map((/** @type {any} */ { result, detail }) => [result, detail]), ALL.filter((name) => !["text", "overflow"].includes(name)).map(() => ["skipped", "not tried: text failed with auth"]));
  assert.ok(!all.includes(KEY) && !all.includes(KEY.slice(0, 20)));
});

test("a key in the address, in an answer and in the name of a model stays out of sight", async (t) => {
  const server = await serve(t, ({ path }) => (path.includes("/models") ? { headers: { "content-type": "application/json" }, body: JSON.stringify({ data: [{ id: KEY }, { id: "other" }] }) } : textAnswer(`Your key is ${KEY}.`)));
  const env = { MY_KEY: KEY };
  const echoed = await smoke(["--server", "vllm", "--base-url", `${server.baseUrl}?token=${KEY}`, "--key-env", "MY_KEY", "--model", "m", "--only", "text"], env);
  assert.match(echoed.stdout, /Your key is \[key\]/);
  assert.equal(echoed.told.baseUrl, `${server.baseUrl}?…`);
  const listed = await smoke(["--server", "vllm", "--base-url", server.baseUrl, "--key-env", "MY_KEY"], env);
  assert.match(listed.stderr, /the server has \[key\], other/);
  for (const { all } of [echoed, listed]) assert.ok(!all.includes(KEY));
});

test("no control character of a server reaches the terminal or the file, and no long answer", async (t) => {
  const evil = "\u001b[2J\u009b31m\u202egpj";
  const server = await playing(t, { text: () => textAnswer(evil + "🦀".repeat(300)), tools: () => refused(evil) });
  const { stdout, told, all } = await smoke(at(server.baseUrl, "--only", "text,tools"));
  assert.doesNotMatch(all, /[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/);
  assert.match(stdout, /\\u009b31m/);
  assert.ok(Array.from(told.checks[0].detail).length <= 200);
  assert.ok(told.checks[0].detail.isWellFormed?.() ?? true);
});

test("the only model of a server need not be named, and --out says where the results go", async (t) => {
  const server = await playing(t);
  const { code, stdout, told, folder } = await called(["--server", "ollama", "--base-url", `${server.baseUrl}/`, "--only", "text"]);
  assert.equal(code, 0, stdout);
  assert.deepEqual([server.requests[0]?.path, told.model], ["/v1/models", "small"]);
  assert.deepEqual(readdirSync(folder), ["told.json"]);
});

test("the name of the file tells server, model and date, without what a name cannot have", async (t) => {
  const server = await playing(t);
  const { folder } = await smoke(["--server", "llama.cpp", "--base-url", server.baseUrl, "--model", "../meta/llama:3 \"x\"", "--only", "text"]);
  assert.match(readdirSync(folder).join(), /^turnwheel-smoke-llama\.cpp-meta-llama-3-x-\d{4}-\d\d-\d\dT\d{6}Z\.json$/);
});

/** One frame each for the other wires. @type {Record<string, [Record<string, string>, any[], RegExp]>} */
const OTHER_WIRES = {
  anthropic: [{ ANTHROPIC_API_KEY: KEY }, [
    { type: "message_start", message: { id: "m", usage: { input_tokens: 6, output_tokens: 1 } } }, { type: "content_block_start", index: 0, content_block: { type: "text", text: "hi" } },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 10 } }, { type: "message_stop" }], /\/v1\/messages$/],
  gemini: [{ GEMINI_API_KEY: KEY }, [{ candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10 } }], /models\/m:streamGenerateContent/],
  "openai-responses": [{ OPENAI_API_KEY: KEY }, [{ type: "response.output_text.delta", output_index: 0, delta: "hi" }, { type: "response.completed", response: { status: "completed", usage: { input_tokens: 10, output_tokens: 10 } } }], /\/responses$/],
  zai: [{ ZAI_API_KEY: KEY }, [delta({ content: "hi" }), { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage }], /\/chat\/completions$/],
};

for (const [name, [env, frames, path]] of Object.entries(OTHER_WIRES)) {
  test(`${name} is asked over its own wire`, async (t) => {
    const server = await serve(t, () => frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(""));
    const { code, stdout } = await called(["--server", name, "--base-url", server.baseUrl, "--model", "m", "--only", "text"], env);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /"hi"/);
    assert.match(server.requests[0]?.path ?? "", path);
    assert.ok(JSON.stringify(server.requests[0]?.headers).includes(KEY));
  });
}

/** What people write by mistake: the words, the environment, and what the error must say. @type {[string, RegExp, Record<string, string>?][]} */
const WRONG = [
  ["", /--server is missing: one of openai, /],
  ["--server olama", /there is no server "olama"; did you mean `ollama`\?\nKnown: openai, /],
  ["--server ollama --only txt", /--only: there is no check "txt"; did you mean `text`\?\nThere are text, tools, /],
  ["--server ollama --skip nothing", /--skip: there is no check "nothing"/],
  ["--server ollama --only text --skip text", /leave no check/],
  ["--server ollama --timeout soon", /--timeout is a number of seconds, at most 3600/],
  ["--server ollama --timeout 0", /--timeout is a number/],
  ["--server openai --model m", /OPENAI_API_KEY holds no key: .*--key-env NAME/],
  ["--server openai --model m", /OPENAI_API_KEY holds no key/, { OPENAI_API_KEY: " " }],
  ["--server ollama --model m --key-env MY_KEY", /MY_KEY holds no key/],
  [`--server ollama --model m --key-env ${KEY}`, /--key-env takes the name of a variable/],
  ["--server azure --model m", /--base-url https:\/\/RESOURCE\.openai\.azure\.com/, { AZURE_OPENAI_API_KEY: KEY }],
  ["--server openai-compatible --model m", /--base-url/],
  ["--server vllm --model m --base-url localhost:8000", /--base-url must be an address that begins with http/],
  [`--server vllm --model m --base-url https://me:${KEY}@host.example/v1`, /without a name and a password/],
  ["--server anthropic", /--model is missing/, { ANTHROPIC_API_KEY: KEY }],
  ["--server vllm --base-url http://127.0.0.1:1/v1", /^vllm does not answer at http:\/\/127\.0\.0\.1:1\/v1 \(.+\): start it, or say with --base-url where it is/],
  ["--server vllm --model m --out nowhere/x.json", /cannot be written to nowhere\/x\.json \(ENOENT\); name another file with --out/],
  ["--server vllm --model m --out .", /cannot be written to \. \(EISDIR\)/],
];

test("wrong usages end with 1, say the way out, ask nobody and leave nothing", async () => {
  for (const [words, says, env] of WRONG) {
    const { code, stdout, stderr, folder } = await called(words.split(" ").filter((word) => word !== ""), env);
    assert.deepEqual([code, stdout], [1, ""], words);
    assert.match(stderr, says, words);
    assert.ok(!stderr.includes(KEY), words);
    assert.deepEqual(readdirSync(folder), [], words);
  }
});

test("words that are no options of the command are refused, and not repeated", async () => {
  for (const [words, says] of /** @type {[string[], RegExp][]} */ ([[["--server", "ollama", KEY], /a key is read from the environment\n\nUsage: /], [["--server", "ollama", `--key=${KEY}`], /Unknown option '--key'[^]*Usage: /], [["--server", "azur"], /did you mean `azure`/]])) {
    const { code, stderr, all } = await smoke(words);
    assert.equal(code, 1);
    assert.match(stderr, says);
    assert.ok(!all.includes(KEY));
  }
});

test("a file that cannot be written is told before anything is asked, one that is there is replaced", async (t) => {
  const server = await playing(t);
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-smoke-"));
  const file = join(folder, "old.json");
  writeFileSync(file, "x".repeat(100_000));
  const { code } = await called(at(server.baseUrl, "--only", "text", "--out", file));
  assert.equal(code, 0);
  assert.equal(JSON.parse(readFileSync(file, "utf8")).checks.length, 1);
  const asked = server.requests.length;
  assert.equal((await called(at(server.baseUrl, "--out", join(file, "x.json")))).code, 1);
  assert.equal(server.requests.length, asked);
  assert.ok(!existsSync(join(file, "x.json")));
});

test("every server that the package knows can be tried by its name, and the help names every check", async () => {
  const rust = readFileSync(new URL("../../../src/wires/compat/servers.rs", import.meta.url), "utf8");
  const names = (/SERVERS: &str = "\\([^"]*)"/.exec(rust)?.[1] ?? "").replaceAll("\\", "").trim().split(/\s+/);
  assert.ok(names.length > 15);
  const types = readFileSync(new URL("../../../www/npm/index.d.ts", import.meta.url), "utf8");
  const typed = [...(/type ServerName = (.*);/.exec(types)?.[1] ?? "").matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name);
  const { stderr } = await called(["--server", "?"]);
  const known = (/Known: (.*)/.exec(stderr)?.[1] ?? "").split(", ");
  for (const name of [...names, ...typed, "anthropic", "gemini", "openai-responses"]) assert.ok(known.includes(name), name);
  const { code, stdout } = await smoke(["--help"]);
  assert.equal(code, 0);
  for (const name of [...ALL, "--server", "--model", "--base-url", "--key-env", "--only", "--skip", "--timeout", "--out"]) assert.ok(stdout.includes(name), name);
});
