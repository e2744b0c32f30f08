// @ts-check
// The server of the soak, on loopback: it speaks the four wires for every agent at `/ID/…` as the agent's plan says, and
// another origin beside it, where nobody should ever send anything. The control plane, to which tools and agents report,
// has a port of its own, so that no fault of the other touches it.

import { createServer } from "node:http";
import { dice } from "../js/dice.mjs";
import { FAULTS, whole } from "./faults.mjs";
import { turnsOf } from "./scenarios.mjs";
import { render } from "./wires.mjs";

const WIRE_OF = [["/chat/completions", "chat"], ["/responses", "responses"], ["/messages", "anthropic"], ["/models/", "gemini"]];

/** @param {import("node:http").IncomingMessage} request */
async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** The words of an attempt. Its mark comes first, so that a later request shows which attempt was taken. @param {string} mark @param {number} n */
const wordsOf = (mark, n) => [`@${mark}@`, " Grüße, ", "世界 ", ...Array.from({ length: n }, (_, i) => `word ${i} 🌊 `), "end."];

/** The attempt as an answer, and the calls in it. @param {string} id @param {number} turn @param {number} attempt @param {import("./scenarios.mjs").Turn} plan */
export function answerOf(id, turn, attempt, plan) {
  const mark = `${id}.t${turn}.a${attempt}`;
  /** @type {Record<string, (i: number) => string>} */
  const ids = { same: () => "same", again: (i) => `call_${i}`, none: () => "" };
  const idOf = ids[plan.ids ?? ""] ?? ((i) => `call_${turn}_${attempt}_${i}`);
  const calls = plan.calls.map(({ tool, answer }, i) => {
    const args = { token: tool === "wrong" ? 7 : `${mark}.c${i}`, ...(answer && { answer }) };
    // What is said twice counts as it was said last.
    const text = JSON.stringify(args).replace("{", i % 2 ? '{"token":"said first",' : "{");
    return { id: idOf(i), name: tool === "wrong" ? "note" : tool, args: tool === "wrong" ? JSON.stringify(args) : text };
  });
  const text = wordsOf(mark, (turn * 7 + attempt * 3) % 12);
  return { text, calls, finish: plan.finish ?? /** @type {const} */ ("stop"), ...(plan.open && { open: true }) };
}

/** The turn that a request asks for: the one after the last that it shows. @param {string} id @param {string} body */
export function turnOf(id, body) {
  let turn = 0;
  for (const [, shown] of body.matchAll(new RegExp(`\\b${id}\\.t(\\d+)\\.`, "g"))) turn = Math.max(turn, Number(shown) + 1);
  return turn;
}

/**
 * Answers one request for a model.
 * @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response
 * @param {import("./ledger.mjs").Ledger} ledger @param {string} elsewhere
 */
async function speak(request, response, ledger, elsewhere) {
  const [, id = "", ...rest] = (request.url ?? "").split("/");
  const path = `/${rest.join("/")}`;
  const wire = WIRE_OF.find(([part]) => path.includes(/** @type {string} */ (part)))?.[1] ?? "";
  const body = await bodyOf(request);
  const plan = ledger.planOf(id);
  const { authorization = "", "x-api-key": one = "", "x-goog-api-key": other = "" } = request.headers;
  const key = [authorization.replace("Bearer ", ""), one, other].join("");
  const turn = turnOf(id, body);
  const attempt = ledger.asked(id, turn, body, key);
  const planned = turnsOf(plan, id)[turn] ?? { calls: [] };
  const fault = planned.faults?.[attempt];
  const answer = answerOf(id, turn, attempt, planned);
  const left = new Promise((/** @type {(value: void) => void} */ resolve) => response.once("close", () => resolve()));
  const exchange = { response, wire, key, elsewhere, left, roll: dice(Number(id.replace(/\D/g, "")) * 1000 + turn * 50 + attempt + 3) };
  const close = ledger.opened(id);
  void left.then(close);
  ledger.answered(id, turn, attempt, { text: answer.text.join(""), tools: planned.calls, whole: fault === undefined, forbids: forbidden(planned, wire) });
  if (fault) return FAULTS[fault.kind]?.(exchange, render(wire, answer), fault);
  return whole(exchange, render(wire, answer), planned);
}

/** Which calls of a whole answer may not run either: all where it was filtered, and the one that the limit of tokens cut; Gemini cuts none. @param {import("./scenarios.mjs").Turn} turn @param {string} wire */
const forbidden = ({ finish, open, calls }, wire) => (finish === "filter" ? calls.map((_, i) => i) : open && wire !== "gemini" ? [calls.length - 1] : []);

/** @param {(request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse) => Promise<unknown> | unknown} answer */
async function listen(answer) {
  const server = createServer(async (request, response) => {
    try {
      await answer(request, response);
    } catch (error) {
      console.error("the server of the soak failed:", error);
      response.destroy();
    }
  });
  // A connection that this side closes while the other sends its next request would be a fault that no plan knows of.
  server.keepAliveTimeout = 600_000;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${port}`, close, sockets: () => new Promise((resolve) => server.getConnections((_, count) => resolve(count))) };
}

/** Starts the servers, which tell the ledger what they see. @param {import("./ledger.mjs").Ledger} ledger */
export async function serve(ledger) {
  const thief = await listen(async (request, response) => {
    ledger.fault("leak of a key", "", `a request went to another origin: ${request.method} ${request.url} ${JSON.stringify(request.headers)} ${(await bodyOf(request)).slice(0, 200)}`);
    response.end("thanks");
  });
  const models = await listen((request, response) => speak(request, response, ledger, thief.url));
  const control = await listen(async (request, response) => {
    const told = ledger.told((request.url ?? "").slice(1), JSON.parse(await bodyOf(request)));
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(told ?? {}));
  });
  return {
    models: models.url, control: control.url, sockets: models.sockets,
    close: () => Promise.all([thief.close(), models.close(), control.close()]),
  };
}
