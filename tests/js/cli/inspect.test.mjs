// @ts-check
// `npx turnwheel inspect FILE`: a server on loopback that gives the tape to its own page alone.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { record } from "../../../pkg/tape.js";
import { Agent, scripted } from "../kit.mjs";
import { emptyFolder, ROOT, run, start } from "./kit.mjs";

const folder = emptyFolder();
const agent = new Agent({ model: scripted(["It rains."]) });
const recorder = await record(agent);
await agent.prompt("Rain?");
recorder.stop();
const TAPE = recorder.toText();
const NAME = "<b>&a.tape";
writeFileSync(join(folder, NAME), TAPE);

/** @param {any} t */
async function inspecting(t) {
  const command = start(t, ["inspect", NAME], { cwd: folder });
  const [, url = ""] = /^ {2}(http:\S+)$/m.exec(await command.until(/Ctrl-C ends it\.\n/)) ?? [];
  return { command, url: new URL(url) };
}

/** A request as it is written: `fetch` would tidy the path up, and sets the header Host itself. @param {URL} url @param {{ path?: string, method?: string, host?: string }} [options] */
const ask = (url, { path = url.pathname, method = "GET", host = url.host } = {}) => new Promise((/** @type {(answer: { status: number | undefined, headers: any, text: string }) => void} */ resolve, reject) => {
  request({ host: url.hostname, port: url.port, path, method, headers: { host } }, async (response) => {
    let text = "";
    for await (const piece of response.setEncoding("utf8")) text += piece;
    resolve({ status: response.statusCode, headers: response.headers, text });
  }).once("error", reject).end();
});

test("the page, its scripts, the modules and the tape are served, under a strict policy", async (t) => {
  const { url } = await inspecting(t);
  assert.match(url.href, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
  const page = await ask(url);
  assert.equal(page.status, 200);
  assert.match(page.text, /<title>&#60;b&#62;&#38;a\.tape · turnwheel<\/title>/);
  const policy = page.headers["content-security-policy"];
  for (const rule of ["default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) assert.ok(policy.split("; ").includes(rule), rule);
  assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval'|https?:|\*/);
  assert.deepEqual([page.headers["x-content-type-options"], page.headers["referrer-policy"], page.headers["access-control-allow-origin"]], ["nosniff", "no-referrer", undefined]);
  const at = (/** @type {string} */ path) => ask(url, { path: url.pathname + path });
  assert.equal((await at("tape")).text, TAPE);
  // Everything that the page imports is there, at any depth.
  const seen = new Set();
  const visit = async (/** @type {string} */ path) => {
    if (seen.has(path)) return;
    seen.add(path);
    const { status, headers, text } = await at(path);
    assert.deepEqual([status, headers["content-type"]], [200, "text/javascript"], path);
    for (const [, from = ""] of text.matchAll(/(?:^|[;}])\s*(?:import|export)\b[^"';]*?(?:from\s*)?"(\.[^"]+)"/gm)) await visit(new URL(from, `http://x/${path}`).pathname.slice(1));
  };
  await visit("page.js");
  assert.ok(seen.size > 4, [...seen].join());
  assert.deepEqual([(await at("package/turnwheel-server.wasm")).headers["content-type"], (await at("page.css")).status], ["application/wasm", 200]);
  assert.doesNotMatch(readFileSync(join(ROOT, "pkg/cli/inspect-page.mjs"), "utf8"), /https?:/);
});

test("a name that leads to this address is refused, so no other site reads the tape", async (t) => {
  const { url } = await inspecting(t);
  for (const host of ["evil.example", `evil.example:${url.port}`, "127.0.0.1", `127.0.0.1:1`, `127.0.0.1:${url.port}.evil.example`, `[::1]:${url.port}`]) {
    const { status, text } = await ask(url, { path: `${url.pathname}tape`, host });
    assert.equal(status, 403, host);
    assert.ok(!text.includes("rains"));
  }
  assert.equal((await ask(url, { host: `localhost:${url.port}` })).status, 200);
});

test("no path leads out of the package, and none to the tape without the secret part", async (t) => {
  const { url } = await inspecting(t);
  const begin = url.pathname;
  const paths = [
    "/", "/tape", "/package/core.js", `/${"0".repeat(32)}/tape`, `${begin}../tape`, `${begin}package/../tape`, `${begin}package/../../../etc/passwd`, `${begin}package/%2e%2e/package.json`,
    `${begin}package/..%2fpackage.json`, `${begin}package/package.json`, `${begin}package/cli.mjs`, `${begin}package/cli/chat.mjs`, `${begin}package//etc/passwd`, `${begin}package/core.js%00`, `${begin}tape?x`, `${begin}__proto__`, `${begin}constructor`,
  ];
  for (const path of paths) assert.equal((await ask(url, { path })).status, 404, path);
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) assert.equal((await ask(url, { method })).status, 405, method);
  assert.deepEqual(await ask(url, { method: "HEAD", path: `${begin}tape` }).then(({ status, text }) => [status, text]), [200, ""]);
});

test("other machines do not reach it", async (t) => {
  const { url } = await inspecting(t);
  const outside = Object.values(networkInterfaces()).flat().filter((face) => face && !face.internal && face.family === "IPv4").map((face) => face?.address);
  for (const host of outside) {
    const reached = await new Promise((resolve) => connect({ host, port: Number(url.port), timeout: 2_000 }).once("connect", () => resolve(true)).once("error", () => resolve(false)).once("timeout", () => resolve(false)));
    assert.equal(reached, false, host);
  }
});

test("Ctrl-C ends it", async (t) => {
  const { command, url } = await inspecting(t);
  await ask(url);
  command.interrupt();
  assert.equal(await command.ended, 0);
  await assert.rejects(ask(url));
});

test("what is no tape is not served", async () => {
  writeFileSync(join(folder, "no.tape"), "Dear diary");
  for (const [words, code, why] of /** @type {[string[], number, RegExp][]} */ ([
    [["no.tape"], 1, /^no\.tape cannot be shown: the text is no tape/],
    [["nowhere.tape"], 1, /^nowhere\.tape cannot be shown: ENOENT/],
    [[], 2, /^inspect takes one tape: npx turnwheel inspect FILE$/m],
    [["a", "b"], 2, /^inspect takes one tape/],
  ])) {
    const ended = await run(["inspect", ...words], { cwd: folder });
    assert.deepEqual([ended.code, ended.stdout], [code, ""]);
    assert.match(ended.stderr, why);
  }
});
