// @ts-check
// Real HTTP for the attacks: an agent served as docs/remote.md shows it, and a client that sends what no `fetch` would.

import { once } from "node:events";
import { createServer, request } from "node:http";
import { Readable } from "node:stream";

/** Serves at a port of its own until the test ends. @param {any} t @param {import("node:http").RequestListener} listener @returns {Promise<number>} */
export async function listen(t, listener) {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return /** @type {any} */ (server.address()).port;
}

/** @param {any} t @param {(request: Request) => Promise<Response>} handler */
export const serve = (t, handler) => listen(t, (incoming, outgoing) => void pass(handler, incoming, outgoing).catch(() => outgoing.destroy()));

/** @param {(request: Request) => Promise<Response>} handler @param {import("node:http").IncomingMessage} incoming @param {import("node:http").ServerResponse} outgoing */
async function pass(handler, incoming, outgoing) {
  const { method = "GET", headers } = incoming;
  const body = method === "POST" ? Readable.toWeb(incoming) : undefined;
  const answer = await handler(new Request(`http://${headers.host}${incoming.url}`, /** @type {any} */ ({ method, headers, body, duplex: "half" })));
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
  outgoing.flushHeaders();
  if (!answer.body) return void outgoing.end();
  const stream = Readable.fromWeb(/** @type {any} */ (answer.body)).on("error", () => {});
  outgoing.on("close", () => stream.destroy());
  stream.pipe(outgoing);
}

/**
 * Sends a request with exactly these headers, and reads the whole answer.
 * @param {number} port @param {string} path @param {{ method?: string, headers?: Record<string, string>, body?: string }} [init]
 * @returns {Promise<{ status: number, headers: any, text: string }>}
 */
export function send(port, path, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const asked = request({ port, host: "127.0.0.1", path, method, headers, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece) => (text += piece)).on("end", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text })).on("error", reject);
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** Posts a command. @param {number} port @param {string} path @param {any} value @param {Record<string, string>} [headers] */
export const post = (port, path, value, headers = {}) => send(port, path, { method: "POST", body: typeof value === "string" ? value : JSON.stringify(value), headers: { "content-type": "application/json", ...headers } });

/** Reads an event stream until what has come contains a text. @param {ReadableStream<Uint8Array> | null} body @param {string} until */
export async function readUntil(body, until) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (body).getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (!text.includes(until)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text;
}
