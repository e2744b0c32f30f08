// @ts-check
// `npx turnwheel chat` against a server that plays a model.

import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deferred } from "../kit.mjs";
import { calls, serve, sse, textAnswer } from "../server.mjs";
import { emptyFolder, run, start } from "./kit.mjs";

const KEY = "sk-this-must-never-be-seen-0123456789";
const at = (/** @type {string} */ baseUrl, /** @type {string[]} */ ...more) => ["chat", "--server", "llama.cpp", "--base-url", baseUrl, "--model", "small", ...more];
const delta = (/** @type {any} */ more) => ({ choices: [{ index: 0, delta: more }] });

/** A server that has one model, and gives these answers to the requests of chats. @param {any} t @param {any[]} answers */
async function playing(t, answers) {
  let n = 0;
  const server = await serve(t, ({ path }) => (path.endsWith("/models") ? { headers: { "content-type": "application/json" }, body: '{"data":[{"id":"small"}]}' } : answers[n++] ?? ""));
  return { ...server, asked: () => server.requests.filter(({ method }) => method === "POST") };
}

test("an answer is shown while it streams, and the next prompt continues the conversation", async (t) => {
  const seen = deferred();
  const server = await playing(t, [{ body: `data: ${JSON.stringify(delta({ content: "It rains" }))}\n\n`, until: () => seen.promise, rest: textAnswer(" in Oslo.") }, textAnswer("Yes.")]);
  const chat = start(t, at(server.baseUrl, "--system", "Be brief."));
  assert.match(await chat.until(/is\.\n/), /^llama\.cpp, small, at http:\/\/127\.0\.0\.1:\d+\/v1\. \/help says what there is\.$/m);
  chat.type("Rain in Oslo?");
  await chat.until(/It rains$/);
  seen.resolve();
  await chat.until(/ in Oslo\.\n\[7 tokens in, 3 out\]\n$/);
  chat.type("Sure?");
  await chat.until(/Yes\.\n\[7 tokens in, 3 out\]\n$/);
  chat.type("/quit");
  assert.equal(await chat.ended, 0);
  assert.deepEqual(server.asked()[1]?.body.messages.map((/** @type {any} */ { role, content }) => [role, content]), [["system", "Be brief."], ["user", "Rain in Oslo?"], ["assistant", "It rains in Oslo."], ["user", "Sure?"]]);
});

test("the only model of a server need not be named, and lines of a pipe are prompts in turn", async (t) => {
  const server = await playing(t, [textAnswer("One."), textAnswer("Two.")]);
  const { code, stdout, stderr } = await run(["chat", "--server", "ollama", "--base-url", server.baseUrl], { input: "a\n\n/help\n/nope\nb\n" });
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /^ollama, small, at [^]*One\.[^]*\/quit   leaves[^]*There is no \/nope; \/help says what there is\.\nTwo\./);
});

test("the key comes from the environment, goes to the server and is shown nowhere", async (t) => {
  const server = await playing(t, [textAnswer("Hello."), { status: 401, body: JSON.stringify({ error: { message: `bad key ${KEY}` } }) }]);
  const folder = emptyFolder();
  const { code, stdout, stderr } = await run(at(server.baseUrl, "--key-env", "MY_KEY", "--save", "c.json", "--tape", "c.tape"), { cwd: folder, env: { MY_KEY: KEY }, input: "Hi\nAgain\n" });
  assert.equal(code, 1, "the last answer failed");
  assert.ok(server.asked().every(({ headers }) => headers.authorization === `Bearer ${KEY}`));
  assert.match(stdout, /\[auth: .*\]\nllama\.cpp, small, at .*: the key is refused\. Set another in the environment, or name its variable with --key-env NAME\./);
  for (const text of [stdout, stderr, ...["c.json", "c.tape"].map((name) => readFileSync(join(folder, name), "utf8"))]) assert.ok(!text.includes(KEY));
});

test("with --files the model reads files of the folder, each time after a yes", async (t) => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "notes.txt"), "Buy milk.");
  symlinkSync("/etc", join(folder, "out"));
  const server = await playing(t, [
    calls(["read_file", '{"path":"notes.txt"}'], ["read_file", '{"path":"out/passwd"}'], ["list_files", "{}"]),
    textAnswer("Milk."),
  ]);
  const chat = start(t, at(server.baseUrl, "--files"), { cwd: folder });
  chat.type("What do I buy?");
  await chat.until(/May it read_file \{"path":"notes\.txt"\}\? \[y\/N\] $/);
  chat.type("y");
  await chat.until(/May it read_file \{"path":"out\/passwd"\}\? \[y\/N\] $/);
  chat.type("yes");
  await chat.until(/May it list_files \{\}\? \[y\/N\] $/);
  chat.type("n");
  const said = await chat.until(/tokens in, \d+ out\]\n$/);
  assert.match(said, /\[read_file ends: Buy milk\.\]/);
  assert.match(said, /\[read_file fails: .*out\/passwd is not in this folder.*\]/);
  assert.match(said, /\[list_files fails: .*the user said no\]/);
  assert.match(said, /Milk\./);
  chat.child.stdin.end();
  assert.equal(await chat.ended, 0);
  assert.deepEqual(server.asked()[1]?.body.messages.filter((/** @type {any} */ { role }) => role === "tool").map((/** @type {any} */ { content }) => content)[0], "Buy milk.");
});

test("without --files the model has no tools", async (t) => {
  const server = await playing(t, [textAnswer("Hello.")]);
  await run(at(server.baseUrl), { input: "Hi\n" });
  assert.equal(server.asked()[0]?.body.tools, undefined);
});

test("Ctrl-C stops the answer, the conversation goes on, and a second one leaves", async (t) => {
  const endless = { body: `data: ${JSON.stringify(delta({ content: "one " }))}\n\n`, again: `data: ${JSON.stringify(delta({ content: "two " }))}\n\n` };
  const server = await playing(t, [endless, textAnswer("Again."), endless]);
  const chat = start(t, at(server.baseUrl));
  chat.type("Count.");
  await chat.until(/one two/);
  chat.interrupt();
  await chat.until(/\n\[stopped\]\n$/);
  assert.equal(await server.asked()[0]?.closed, "left", "the server is not read any more");
  chat.type("Hello");
  await chat.until(/Again\.\n\[7 tokens in, 3 out\]\n$/);
  chat.interrupt();
  await chat.until(/\n\[Ctrl-C again, or \/quit, leaves\]\n$/);
  chat.type("Count.");
  await chat.until(/one two/);
  chat.interrupt();
  await chat.until(/\[stopped\]/);
  chat.interrupt();
  assert.equal(await chat.ended, 130);
});

test("a conversation that was killed while it asks goes on with the same question", async (t) => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "a.txt"), "alpha");
  const server = await playing(t, [calls(["read_file", '{"path":"a.txt"}']), textAnswer("It says alpha."), textAnswer("Still alpha.")]);
  const first = start(t, at(server.baseUrl, "--files", "--save", "c.json"), { cwd: folder });
  first.type("Read a.txt");
  await first.until(/\[y\/N\] $/);
  first.child.kill("SIGKILL");
  await first.ended;
  const second = start(t, at(server.baseUrl, "--files", "--resume", "c.json"), { cwd: folder });
  await second.until(/May it read_file \{"path":"a\.txt"\}\? \[y\/N\] $/);
  second.type("y");
  await second.until(/It says alpha\.\n\[.*\]\n$/);
  second.type("/quit");
  assert.match(await second.until(/c\.json has the conversation; go on with --resume c\.json\n$/), /c\.json/);
  assert.equal(await second.ended, 0);
  const { stdout } = await run(at(server.baseUrl, "--resume", "c.json"), { cwd: folder, input: "Sure?\n" });
  assert.match(stdout, /The conversation has 4 messages\.\nStill alpha\./);
  assert.equal(server.asked()[2]?.body.messages.length, 5);
  // The conversation is nobody else's.
  if (process.platform !== "win32") assert.equal(statSync(join(folder, "c.json")).mode & 0o077, 0);
  assert.equal(existsSync(join(folder, "c.json.new")), false);
});

test("--scripted needs no key and no network: it streams, calls a tool and asks", async () => {
  const folder = emptyFolder();
  const { code, stdout, stderr } = await run(["chat", "--scripted", "--save", "c.json", "--tape", "c.tape"], { cwd: folder, input: "Hello\nWhat time is it?\nShow the files\ny\n" });
  assert.deepEqual([code, stderr], [0, ""]);
  for (const said of [/^You said: Hello /m, /^\[clock \{"zone":"UTC"\}\]$/m, /^\[clock ends: .+\]$/m, /^May it list_files \{\}\? \[y\/N\]/m, /^\[list_files ends: c\.json c\.tape\]$/m]) assert.match(stdout, said);
  const shown = await run(["tape", "c.tape"], { cwd: folder });
  assert.deepEqual([shown.code, /asks whether list_files may run/.test(shown.stdout), /cut here/.test(shown.stdout)], [0, true, false], shown.stderr);
});

/** What is wrong, and the sentence that says so. @type {[string, RegExp, Record<string, string>?][]} */
const WRONG = [
  ["--server openai --model m", /^OPENAI_API_KEY holds no key: set it \(export OPENAI_API_KEY=…\), or name another variable with --key-env NAME$/],
  ["--model claude-x", /^ANTHROPIC_API_KEY holds no key/],
  ["--server olama", /^there is no server "olama"; did you mean `ollama`\?/],
  ["--server vllm --base-url http://127.0.0.1:1/v1 --model m", /^vllm does not answer at http:\/\/127\.0\.0\.1:1\/v1 \(.+\): start it, or say with --base-url where it is, or name another with --server$/],
  ["--base-url http://127.0.0.1:1/v1", /^openai-compatible does not answer at /],
  ["", /^--model is missing: the id of the model to try$/, { GEMINI_API_KEY: KEY }],
  ["--scripted --server openai", /^--scripted plays a script in place of a model: leave it out/],
  ["--scripted --resume nowhere.json", /^nowhere\.json cannot be resumed: ENOENT.*; --resume takes a file that --save has written$/],
  ["--scripted --save nowhere/c.json", /^nowhere\/c\.json cannot be written \(ENOENT\); name another file with --save$/],
];

test("what is missing is named in one sentence, with the way out", async () => {
  for (const [words, why, env = {}] of WRONG) {
    const { code, stdout, stderr } = await run(["chat", ...words.split(" ").filter(Boolean)], { env, input: "Hello\n" });
    assert.deepEqual([code, stdout], [1, ""], words);
    assert.match(stderr.split("\n")[0] ?? "", why);
    assert.doesNotMatch(stderr, /^\s+at |node:internal/m);
  }
});

test("an unknown option and a stray word are misuse, and the word is not repeated", async () => {
  const unknown = await run(["chat", "--sever", "x"]);
  assert.deepEqual([unknown.code, unknown.stderr.split("\n")[0]], [2, "Unknown option '--sever'"]);
  assert.match(unknown.stderr, /^Usage: npx turnwheel chat /m);
  const stray = await run(["chat", KEY]);
  assert.equal(stray.code, 2);
  assert.ok(!stray.stderr.includes(KEY));
});

test("files that are there already are not written over", async () => {
  const folder = emptyFolder();
  writeFileSync(join(folder, "c.json"), "mine");
  for (const option of ["--save", "--tape"]) {
    const { code, stderr } = await run(["chat", "--scripted", option, "c.json"], { cwd: folder, input: "Hello\n" });
    assert.equal(code, 1);
    assert.match(stderr, /^c\.json is there already: /);
  }
  const resumed = await run(["chat", "--scripted", "--resume", "c.json"], { cwd: folder, input: "Hello\n" });
  assert.match(resumed.stderr, /^c\.json cannot be resumed: /);
  assert.equal(readFileSync(join(folder, "c.json"), "utf8"), "mine");
});

test("a server that goes away in the middle of a conversation is named, with the way out", async (t) => {
  const server = await playing(t, [textAnswer("Hello."), { body: "", after: 0 }, { body: "", after: 0 }, { body: "", after: 0 }]);
  const { code, stdout } = await run(at(server.baseUrl), { input: "Hi\nAgain\n" });
  assert.equal(code, 1);
  assert.match(stdout, /\[attempt 1 failed: .*; next in \d+ ms\]/);
  assert.match(stdout, /\[network: .*\]\nllama\.cpp, small, at .*: nothing answers there\. Start it, or leave and name another with --server or --base-url\.\n$/);
});

test("no control character of an answer, a call or a question reaches the terminal", async (t) => {
  const EVIL = "\u001b[2J\u001b]52;c;cm0gLXJm\u0007\u009b31m\u202egpj.exe\u0008\r ok";
  const server = await playing(t, [calls(["list_files", JSON.stringify({ path: EVIL })]), sse(delta({ content: EVIL.slice(0, 1) }), delta({ content: EVIL.slice(1) }), { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })]);
  const { stdout, stderr } = await run(at(server.baseUrl, "--files"), { input: "Hi\ny\n" });
  assert.match(stdout, /\\u001b\[2J/, "it can be seen");
  assert.doesNotMatch(stdout + stderr, /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/);
});
