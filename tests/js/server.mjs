// @ts-check
// A model server for tests, on loopback: it answers the n-th request with the n-th answer, records the
// requests, and misbehaves when told to.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const FIXTURES = new URL("../data/fixtures/openai-chat/", import.meta.url);

/** A recorded stream, as it was on the wire. @param {string} name without `.sse` */
export const recorded = (name) => readFileSync(new URL(`${name}.sse`, FIXTURES));

/** A recorded refusal, as an answer of this server. @param {string} name without `.http.json` */
export function refusal(name) {
  const { status, headers, body } = JSON.parse(readFileSync(new URL(`${name}.http.json`, FIXTURES), "utf8"));
  return { status, headers, body: typeof body === "string" ? body : JSON.stringify(body) };
}

/** Chunks of Chat Completions as a stream. @param {any[]} chunks */
export const sse = (...chunks) => [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), "data: [DONE]\n\n"].join("");

/** A text answer. @param {string | string[]} text @param {any} [usage] */
export const textAnswer = (text, usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }) =>
  sse(
    ...[text].flat().map((content) => ({ choices: [{ index: 0, delta: { content } }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage },
  );

/** An answer that calls tools: [name, arguments as text, id?]. @param {[string, string, string?][]} calls */
export const calls = (...calls) =>
  sse(
    ...calls.map(([name, args, id], index) => ({
      choices: [{ index: 0, delta: { tool_calls: [{ index, id: id ?? `call_${index}`, type: "function", function: { name, arguments: args } }] } }],
    })),
    { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } },
  );

/**
 * @typedef {object} Answer
 * @property {number} [status]
 * @property {Record<string, string>} [headers]
 * @property {string | Uint8Array} [body]
 * @property {number} [cut] so many bytes at a time, each written on its own
 * @property {number} [after] the connection dies after so many bytes
 * @property {() => Promise<unknown>} [until] but not before this
 * @property {string} [rest] comes after `until`
 * @property {number} [silent] nothing more comes after so many bytes, and the connection stays open
 * @property {string} [again] written after the body, again and again, until nobody reads any more
 * @property {() => Promise<string> | undefined} [stream] the body, when it is known
 */

/**
 * Starts a server. It ends with the test.
 *
 * @param {{ after(end: () => Promise<void>): void }} test
 * @param {(Answer | string | Uint8Array | ((request: any, n: number) => Answer | string | Uint8Array))[] | ((request: any, n: number) => Answer | string | Uint8Array)} answers
 * @param {{ cors?: boolean }} [options] with `cors` pages of any origin may ask
 */
export async function serve(test, answers, { cors = false } = {}) {
  /**
   * The requests, in order.
   * @type {{ method: string, path: string, headers: any, body: any, text: string, closed: Promise<"answered" | "left">, connection: number }[]}
   */
  const requests = [];
  /** @type {Map<import("node:net").Socket, number>} */
  const connections = new Map();
  const allowed = cors ? { "access-control-allow-origin": "*", "access-control-allow-headers": "*", "access-control-expose-headers": "retry-after, retry-after-ms" } : {};

  const server = createServer(async (request, response) => {
    if (request.method === "OPTIONS") return void response.writeHead(cors ? 204 : 403, allowed).end();
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    const n = requests.length;
    const closed = new Promise((resolve) => response.on("close", () => resolve(response.writableFinished ? "answered" : "left")));
    if (!connections.has(request.socket)) connections.set(request.socket, connections.size);
    const received = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body: parse(text), text, closed: /** @type {any} */ (closed), connection: connections.get(request.socket) ?? 0 };
    requests.push(received);
    const made = typeof answers === "function" ? answers(received, n) : answers[n];
    const answer = typeof made === "function" ? made(received, n) : made;
    if (answer === undefined) return void response.writeHead(500, { ...allowed, "content-type": "application/json" }).end('{"error":{"message":"the test has no answer for this request"}}');
    await send(response, typeof answer === "string" || answer instanceof Uint8Array ? { body: answer } : answer, allowed);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  test.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    /** The value for `baseUrl`. */
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    /** How many connections were opened. */
    get connections() {
      return connections.size;
    },
  };
}

/** @param {import("node:http").ServerResponse} response @param {Answer} answer @param {Record<string, string>} allowed */
async function send(response, { status = 200, headers = {}, body = "", cut, after, until, rest, silent, again, stream }, allowed) {
  response.writeHead(status, { "content-type": status === 200 ? "text/event-stream" : "application/json", ...allowed, ...headers });
  response.flushHeaders();
  const bytes = Buffer.from((await stream?.()) ?? body);
  const end = after ?? silent ?? bytes.length;
  const step = cut ?? Math.max(1, end);
  for (let at = 0; at < end && !response.destroyed; at += step) {
    response.write(bytes.subarray(at, Math.min(end, at + step)));
    // One write, one packet: the reader gets the pieces as they were cut, or nearly so.
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until?.();
  if (rest) response.write(rest);
  while (again && !response.destroyed) {
    response.write(again);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  // The connection is closed in the middle of the body.
  if (after !== undefined) return void response.socket?.end();
  if (silent === undefined) response.end();
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
