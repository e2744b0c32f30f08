// @ts-check
// The agent in the terminal, with our own model server on loopback: it calls tools, asks before it writes, is
// killed while it asks, and continues.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { deferred } from "../js/kit.mjs";
import { calls, serve, textAnswer } from "../js/server.mjs";
import { clean, install } from "./kit.mjs";

after(clean);
const folder = await install("node-agent");

/**
 * Starts the agent; it ends with its test.
 * @param {{ after(end: () => void): void }} t @param {string} baseUrl @param {Record<string, string>} env
 */
function start(t, baseUrl, env) {
  const child = spawn(process.execPath, ["agent.js"], { cwd: folder, env: { PATH: process.env.PATH, BASE_URL: baseUrl, ...env } });
  t.after(() => void child.kill("SIGKILL"));
  let said = "";
  /** @type {(() => void)[]} */
  let waiting = [];
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (piece) => {
    said += piece;
    for (const wake of waiting.splice(0)) wake();
  });
  const ended = new Promise((resolve) => child.once("close", () => (resolve(undefined), waiting.splice(0).forEach((wake) => wake()))));
  return {
    /** Waits for this text, and returns the output since the last call. @param {RegExp} what */
    async until(what) {
      while (!what.test(said)) {
        assert.equal(child.exitCode, null, `it ended: ${said}`);
        await new Promise((resolve) => waiting.push(() => resolve(undefined)));
      }
      const all = said;
      said = "";
      return all;
    },
    type: (/** @type {string} */ line) => void child.stdin.write(`${line}\n`),
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
    async leave() {
      child.stdin.end();
      await ended;
      return child.exitCode;
    },
  };
}

test("it works through files, asks, survives being killed while it asks, and remembers", { timeout: 60_000 }, async (t) => {
  await writeFile(join(folder, "notes.txt"), "Buy milk.");
  const server = await serve(t, [
    calls(["list_files", "{}"], ["read_file", '{"path":"notes.txt"}'], ["read_file", '{"path":"../../../etc/passwd"}']),
    calls(["write_file", '{"path":"list.md","text":"- milk"}']),
    textAnswer("It is written."),
    textAnswer("I wrote list.md."),
  ]);
  let agent = start(t, server.baseUrl, { OPENAI_API_KEY: "sk-test" });
  await agent.until(/> $/);
  agent.type("Make a list of my notes.");
  const asked = await agent.until(/\[y\/N\] $/);
  assert.match(asked, /\[read_file \{"path":"notes.txt"\}\]/);
  assert.match(asked, /is not in this folder/);
  assert.match(asked, /May it write_file \{"path":"list.md","text":"- milk"\}\?/);
  assert.equal(server.requests[0]?.headers.authorization, "Bearer sk-test");
  const results = server.requests[1]?.body.messages.filter((/** @type {any} */ message) => message.role === "tool").map((/** @type {any} */ message) => message.content);
  assert.match(results[0], /notes\.txt/);
  assert.equal(results[1], "Buy milk.");
  await agent.kill();
  await assert.rejects(readFile(join(folder, "list.md")));

  agent = start(t, server.baseUrl, { OPENAI_API_KEY: "sk-test" });
  await agent.until(/May it write_file .*\[y\/N\] $/);
  agent.type("yes");
  assert.match(await agent.until(/tokens\]\n> $/), /It is written\./);
  assert.equal(await readFile(join(folder, "list.md"), "utf8"), "- milk");
  assert.equal(await agent.leave(), 0);

  // A server on this machine, without a key, continues the same conversation.
  agent = start(t, server.baseUrl, { MODEL: "qwen3" });
  await agent.until(/> $/);
  agent.type("What did you do?");
  assert.match(await agent.until(/tokens\]\n> $/), /I wrote list\.md\./);
  const last = server.requests.at(-1);
  assert.deepEqual([last?.body.model, last?.headers.authorization, last?.body.messages.length], ["qwen3", undefined, 10]);
  assert.equal(await agent.leave(), 0);
});

test("no means no, and what is typed while it works is read in the same run", { timeout: 60_000 }, async (t) => {
  const asked = deferred();
  const typed = deferred();
  const server = await serve(t, [
    calls(["write_file", '{"path":"a.txt","text":"a"}']),
    { stream: () => (asked.resolve(), typed.promise.then(() => textAnswer("Then not."))) },
    textAnswer("In French: alors non."),
  ]);
  const agent = start(t, server.baseUrl, { CHAT: "second.json" });
  await agent.until(/> $/);
  agent.type("Write a.txt");
  await agent.until(/\[y\/N\] $/);
  agent.type("n");
  await asked.promise;
  agent.type("In French, please.");
  const noted = await agent.until(/\[it reads that next\]/);
  typed.resolve();
  assert.match(noted + (await agent.until(/tokens\]\n> $/)), /the user said no[^]*Then not\.[^]*alors non/);
  await assert.rejects(readFile(join(folder, "a.txt")));
  assert.equal(await agent.leave(), 0);
});

test("a link that leads out of the folder is not followed", { timeout: 60_000 }, async (t) => {
  await symlink("/etc", join(folder, "out"));
  const server = await serve(t, [calls(["list_files", '{"path":"out"}']), textAnswer("No.")]);
  const agent = start(t, server.baseUrl, { CHAT: "third.json" });
  await agent.until(/> $/);
  agent.type("Look into out.");
  assert.match(await agent.until(/tokens\]\n> $/), /out is not in this folder/);
  assert.equal(await agent.leave(), 0);
});

test("the key in the environment chooses the provider; its refusal is told", { timeout: 60_000 }, async (t) => {
  const server = await serve(t, () => ({ status: 401, body: '{"error":{"message":"the key has expired"}}' }));
  for (const [name, header] of [["ANTHROPIC_API_KEY", "x-api-key"], ["GEMINI_API_KEY", "x-goog-api-key"]]) {
    const agent = start(t, server.url, { [name]: "sk-env", CHAT: `${name}.json` });
    await agent.until(/> $/);
    agent.type("Hello");
    assert.match(await agent.until(/\]\n> $/), /\[error: the key has expired\]/);
    assert.equal(server.requests.at(-1)?.headers[header], "sk-env");
    assert.doesNotMatch(await readFile(join(folder, `${name}.json`), "utf8"), /sk-env/);
    assert.equal(await agent.leave(), 0);
  }
});

test("two calls that ask at once are asked about one after the other", { timeout: 60_000 }, async (t) => {
  const server = await serve(t, [calls(["write_file", '{"path":"yes.txt","text":"1"}'], ["write_file", '{"path":"no.txt","text":"2"}']), textAnswer("One of two.")]);
  const agent = start(t, server.baseUrl, { CHAT: "fourth.json" });
  await agent.until(/> $/);
  agent.type("Write both");
  assert.doesNotMatch(await agent.until(/yes\.txt.*\[y\/N\] $/), /no\.txt/);
  agent.type("y");
  await agent.until(/no\.txt.*\[y\/N\] $/);
  agent.type("n");
  assert.match(await agent.until(/tokens\]\n> $/), /One of two\./);
  assert.equal(await readFile(join(folder, "yes.txt"), "utf8"), "1");
  await assert.rejects(readFile(join(folder, "no.txt")));
  assert.equal(await agent.leave(), 0);
});
