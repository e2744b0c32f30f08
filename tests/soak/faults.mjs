// @ts-check
// What the server does with an answer: each fault is a function that is given the exchange and the rendered answer, and
// resolves when it has done its worst. `WHOLE` lists oddities of an answer that must be read all the same.

import { errorFrame, refusal } from "./wires.mjs";

/**
 * One request and its response.
 * @typedef {object} Exchange
 * @property {import("node:http").ServerResponse} response
 * @property {string} wire
 * @property {string} key what the client sent as its key
 * @property {string} elsewhere the address of another origin
 * @property {(sides: number) => number} roll
 * @property {Promise<void>} left resolves when the connection is closed
 */

const sleep = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @param {Exchange} exchange @param {Record<string, string | string[]>} [headers] */
const begin = ({ response }, headers = {}) => {
  response.writeHead(200, { "content-type": "text/event-stream", ...headers });
  response.flushHeaders();
};

/** Part of the answer, never its end. @param {Exchange} exchange @param {import("./wires.mjs").Rendered} rendered @param {number} [at] */
function part({ roll }, { frames, end }, at) {
  const bytes = Buffer.from(frames.slice(0, end).join(""));
  return bytes.subarray(0, at ?? roll(bytes.length));
}

/**
 * Repeats a piece until nobody reads any more, at most 64 MB of it.
 * @param {Exchange} exchange @param {string} piece @param {number} [pause] milliseconds between two
 */
async function repeat({ response, left }, piece, pause = 0) {
  for (let sent = 0; !response.destroyed && sent < 64e6; sent += piece.length) {
    if (!response.write(piece)) await Promise.race([left, new Promise((resolve) => response.once("drain", resolve))]);
    if (pause > 0) await Promise.race([left, sleep(pause)]);
  }
  response.destroy();
}

/** Filler in the words of each wire: text, a piece of arguments, a call. @param {string} wire @param {string} text */
const says = (wire, text) => `data: ${JSON.stringify({
  chat: { choices: [{ index: 0, delta: { content: text } }] },
  responses: { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: text },
  anthropic: { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
  gemini: { candidates: [{ content: { parts: [{ text }] } }] },
}[wire])}\n\n`;

/** @typedef {(exchange: Exchange, rendered: import("./wires.mjs").Rendered, more: any) => Promise<unknown> | unknown} Play */

/** @type {Record<string, Play>} */
export const FAULTS = {
  status({ response, wire, key }, _, { status, headers = {}, type = "error", message = "no" }) {
    const body = status === 503 ? "<html><body>Bad gateway</body></html>" : refusal(wire, type, message.replace("KEY", key));
    response.writeHead(status, { "content-type": status === 503 ? "text/html" : "application/json", ...headers }).end(body);
  },
  /** The connection dies in the middle, or before the first byte. */
  async cut(exchange, rendered) {
    begin(exchange);
    exchange.response.write(part(exchange, rendered));
    await sleep(1);
    exchange.response.destroy();
  },
  /** The body ends in order, but the answer has no end. */
  end(exchange, rendered) {
    begin(exchange);
    exchange.response.end(part(exchange, rendered));
  },
  /** Everything but the end: each call is complete, and may not run all the same. */
  almost(exchange, rendered) {
    begin(exchange);
    exchange.response.end(rendered.frames.slice(0, rendered.end).join(""));
  },
  reset: ({ response }) => void response.destroy(),
  async mute({ left }) {
    await left;
  },
  async stall(exchange, rendered) {
    begin(exchange);
    exchange.response.write(part(exchange, rendered));
    await exchange.left;
  },
  garbage(exchange) {
    begin(exchange);
    // No colon: a line that begins with one would be a comment, and the whole a stream. And no bracket at the beginning: that
    // would be a JSON document that broke off, after which the model is asked again.
    const bytes = Array.from({ length: 2000 }, () => exchange.roll(256)).filter((byte) => byte !== 0x3a);
    exchange.response.end(Buffer.from(bytes.slice(bytes.findIndex((byte) => byte > 0x20 && byte !== 0x5b && byte !== 0x7b))));
  },
  page: ({ response }) => void response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>Welcome</title><p>Sign in to the Wi-Fi"),
  json: ({ response }) => void response.writeHead(200, { "content-type": "application/json" }).end('{"hello":"you"}'),
  empty(exchange) {
    begin(exchange);
    exchange.response.end();
  },
  /** Half a character, and then nothing. */
  character(exchange, { frames, end }) {
    begin(exchange);
    exchange.response.write(frames.slice(0, exchange.roll(end)).join(""));
    exchange.response.end(Buffer.from([...Buffer.from('data: {"x":"'), 0xf0, 0x9f]));
  },
  /** Says that it is compressed, and is not. Node 20's own fetch may never settle then: only a limit of time helps. */
  gzip(exchange, rendered) {
    begin(exchange, { "content-encoding": "gzip" });
    exchange.response.end(rendered.frames.join(""));
  },
  error(exchange, rendered) {
    begin(exchange);
    exchange.response.end(Buffer.concat([part(exchange, rendered, Buffer.byteLength(rendered.frames.slice(0, exchange.roll(rendered.end)).join(""))), Buffer.from(errorFrame(exchange.wire))]));
  },
  async trickle(exchange) {
    begin(exchange);
    await repeat(exchange, ": still there\n\n", 5);
  },
  /** Real text, a letter at a time, for ever. */
  async drip(exchange, rendered) {
    begin(exchange);
    exchange.response.write(rendered.frames.slice(0, Math.min(2, rendered.end)).join(""));
    await repeat(exchange, says(exchange.wire, "."), 5);
  },
  async line(exchange) {
    begin(exchange);
    exchange.response.write("data: {");
    await repeat(exchange, "x".repeat(16_384));
  },
  async flood(exchange, rendered) {
    begin(exchange);
    exchange.response.write(rendered.frames.slice(0, Math.min(2, rendered.end)).join(""));
    await repeat(exchange, says(exchange.wire, "y".repeat(16_384)));
  },
  redirect: ({ response, elsewhere }, _, { status = 307 }) => void response.writeHead(status, { location: `${elsewhere}/collect` }).end(),
};

/** Inserts in front of each frame. @param {string[]} frames @param {string} extra */
const between = (frames, extra) => frames.map((frame) => extra + frame);

/** Oddities: frames to frames. @type {Record<string, (frames: string[], end: number) => string[]>} */
export const ODDITIES = {
  crlf: (frames) => frames.map((frame) => frame.replaceAll("\n", "\r\n")),
  cr: (frames) => frames.map((frame) => frame.replaceAll("\n", "\r")),
  comments: (frames) => between(frames, ": ping\n\n"),
  fields: (frames) => between(frames, "retry: 5\nid: 7\nfoo: bar\n"),
  noSpace: (frames) => frames.map((frame) => frame.replaceAll("data: ", "data:")),
  mark: (frames) => ["\ufeff", ...frames],
  /** Says a member twice that nobody knows. */
  members: (frames) => frames.map((frame) => frame.replace("data: {", 'data: {"zzz":1,"zzz":{"a":[]},')),
  /** Says more after the end. */
  after: (frames) => [...frames, ": and another thing\n\n", "data: {\"late\":true}\n\n"],
};

/** How the bytes of a whole answer are cut into writes. @param {Buffer} bytes @param {number} step */
export function* pieces(bytes, step) {
  for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
}

/**
 * Sends an answer whole. Resolves to whether all of it went out.
 * @param {Exchange} exchange @param {import("./wires.mjs").Rendered} rendered @param {{ odd?: string[] | undefined, step?: number | undefined, type?: string | undefined }} how
 */
export async function whole(exchange, rendered, { odd = [], step = Infinity, type }) {
  const { response } = exchange;
  begin(exchange, type === undefined ? {} : { "content-type": type });
  const frames = odd.reduce((frames, name) => /** @type {any} */ (ODDITIES[name])(frames, rendered.end), rendered.frames);
  for (const piece of pieces(Buffer.from(frames.join("")), step)) {
    if (response.destroyed) return false;
    response.write(piece);
    if (step !== Infinity) await new Promise((resolve) => setImmediate(resolve));
  }
  const isOut = new Promise((resolve) => response.once("finish", () => resolve(true)));
  response.end();
  return Promise.race([isOut, exchange.left.then(() => response.writableFinished)]);
}
