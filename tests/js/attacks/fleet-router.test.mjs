// @ts-check
// The router of the fleet's example: it asks nobody but the processes that it was told of, and what it asks is what it has looked at.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { listen } from "../../../www/examples/fleet/http.js";

/** What a process was asked. @type {{ url: string, headers: any, body: string }[]} */
let asked = [];
/** What it says next. @type {Record<string, string>} */
let answerHeaders = {};
/** What somebody was asked that is no process. @type {string[]} */
const elsewhere = [];

/** @param {(url: string, headers: any, body: string) => [number, Record<string, string>, string]} answer */
async function server(answer) {
  const made = createServer(async (incoming, outgoing) => {
    let body = "";
    for await (const piece of incoming) body += piece;
    const [status, headers, text] = answer(String(incoming.url), incoming.headers, body);
    outgoing.writeHead(status, headers).end(text);
  });
  made.listen(0, "127.0.0.1");
  await once(made, "listening");
  return { made, port: /** @type {any} */ (made.address()).port };
}

/** @type {any} */
let process_, twin, stranger, router;
let port = 0;

before(async () => {
  process_ = await server((url, headers, body) => (asked.push({ url, headers, body }), answerHeaders["turnwheel-owner"] ? [409, answerHeaders, "{}"] : [200, {}, "mine"]));
  twin = await server((url, headers, body) => (asked.push({ url, headers, body }), [409, { "turnwheel-owner": `http://127.0.0.1:${process_.port}` }, "{}"]));
  stranger = await server((url) => (elsewhere.push(url), [200, {}, "theirs"]));
  router = spawn(process.execPath, [fileURLToPath(new URL("../../../www/examples/fleet/router.js", import.meta.url))], { env: { ...process.env, PORT: "0", SERVERS: `http://127.0.0.1:${process_.port}/,http://127.0.0.1:${twin.port}` } });
  const [said] = await once(router.stdout, "data");
  port = Number(/:(\d+)/.exec(String(said))?.[1]);
});
after(async () => {
  router.kill();
  process_.made.close();
  twin.made.close();
  stranger.made.close();
});

/** Sends bytes as they are, and gives the status of what comes back. @param {string} text @returns {Promise<number>} */
async function raw(text) {
  asked = [];
  const socket = connect(port, "127.0.0.1");
  socket.setTimeout(5_000, () => socket.destroy());
  socket.write(text);
  let all = "";
  for await (const piece of socket) all += piece;
  return Number(/^HTTP\/1.1 (\d+)/.exec(all)?.[1]);
}

const get = (/** @type {string} */ path, more = "") => raw(`GET ${path} HTTP/1.1\r\nhost: fleet\r\nauthorization: Bearer t\r\nconnection: close\r\n${more}\r\n`);

test("a request for an agent is passed on as it was read", async () => {
  assert.equal(await get("/agents/ada/state?x=1"), 200);
  assert.equal(asked.at(-1)?.url, "/agents/ada/state?x=1");
});

test("a path leads to the agent that was looked for, or nowhere", async () => {
  for (const path of ["/agents/a/../../metrics", "/agents/a/%2e%2e/%2e%2e/metrics", "/agents/a\\..\\..\\metrics", "/agents/../metrics", "//evil.example/agents/a", "http://evil.example/agents/a/state", "/metrics", "/agents/", "/agents"]) {
    assert.equal(await get(path), 404, path);
    assert.deepEqual(asked, [], path);
  }
  for (const path of ["/agents/mine/../yours/state", "/agents/mine/%2e%2e/yours/state", "/agents/mine\\..\\yours\\state"]) {
    assert.equal(await get(path), 200, path);
    assert.equal(asked.at(-1)?.url, "/agents/yours/state", "the process and the router speak of the same agent");
  }
});

test("an owner that is none of the processes is asked nothing", async () => {
  for (const owner of [`http://127.0.0.1:${stranger.port}`, "http://169.254.169.254", "file:///etc/passwd", "nonsense", `http://127.0.0.1:${process_.port}@127.0.0.1:${stranger.port}`]) {
    answerHeaders = { "turnwheel-owner": owner };
    assert.equal(await get("/agents/ada/state"), 503, owner);
  }
  assert.deepEqual(elsewhere, []);
});

test("two processes that each name another end in a refusal, soon", async () => {
  answerHeaders = { "turnwheel-owner": `http://127.0.0.1:${twin.port}` };
  assert.equal(await get("/agents/ada/state"), 503);
  assert.ok(asked.length > 2 && asked.length <= 8, String(asked.length));
  answerHeaders = {};
});

test("no header of a client says where a request begins or ends, or who the owner is", async () => {
  assert.equal(await get("/agents/ada/state", "content-length: 0\r\nte: trailers\r\nturnwheel-owner: http://evil.example\r\nproxy-connection: keep-alive\r\n"), 200);
  const { headers } = /** @type {any} */ (asked.at(-1));
  for (const name of ["te", "turnwheel-owner", "proxy-connection", "content-length"]) assert.equal(headers[name], undefined, name);
  assert.equal(await raw("POST /agents/ada/prompt HTTP/1.1\r\nhost: fleet\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), 200);
  assert.deepEqual([asked.at(-1)?.body, asked.at(-1)?.headers["content-length"], asked.at(-1)?.headers["transfer-encoding"]], ["{}", "2", undefined]);
  assert.equal(await raw("DELETE /agents/ada/state HTTP/1.1\r\nhost: fleet\r\nconnection: close\r\n\r\n"), 405);
});

test("a process takes its path from the path", async () => {
  /** @type {string[]} */
  const paths = [];
  const made = await listen(async (/** @type {Request} */ request) => (paths.push(new URL(request.url).pathname), new Response("")), 0, "127.0.0.1");
  const { port: own } = /** @type {any} */ (made.address());
  for (const [host, path] of [["localhost/agents/yours/state?", "/agents/mine/state"], ["localhost#", "/agents/mine/state"], ["a@b", "/x"], ["localhost", "//evil.example/x"], ["localhost", "http://evil.example/x"]]) {
    const socket = connect(own, "127.0.0.1");
    socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
    let all = "";
    for await (const piece of socket) all += piece;
    assert.match(all, /^HTTP\/1.1 400/, `${host} ${path}`);
  }
  assert.equal((await fetch(`http://127.0.0.1:${own}/agents/mine/state`)).status, 200);
  assert.deepEqual(paths, ["/agents/mine/state"]);
  made.close();
});
