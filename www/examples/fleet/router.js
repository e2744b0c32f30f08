// The one address of the fleet:   SERVERS=http://127.0.0.1:3001,http://127.0.0.1:3002 node router.js
// Passes every request on to the process that has the agent. Where that is, a process says, from the store: 409 with the header
// `turnwheel-owner`. Nothing that a client sends is taken for an address, and nobody is asked but SERVERS: whoever can write the
// store sends no request, and no token in it, elsewhere. It keeps nothing, so there may be several.

import { createServer, request as send } from "node:http";

const { env } = process;
const SERVERS = (env.SERVERS ?? "http://127.0.0.1:3001").split(",").map((one) => new URL(one).origin);
/** How often a request is passed on, to look for the owner. */
const MAX_HOPS = 8;
/** A process that says nothing for so long is left alone. */
const SILENCE_MS = Number(env.SILENCE_MS ?? 10_000);
const MAX_BODY = 1_000_000;
const MAX_KNOWN = 100_000;
const METHODS = ["GET", "HEAD", "POST", "OPTIONS"];
// The length is that of the body that is sent on.
const NOT_PASSED_ON = ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "content-length", "expect", "upgrade", "turnwheel-owner"];

/** Who had each agent when it was last asked for; a guess that the processes correct. */
const owners = new Map();

/** Agents that nobody has are spread over the processes. */
function pick(id, left) {
  let sum = 0;
  for (const letter of id) sum = (Math.imul(sum, 31) + letter.charCodeAt(0)) >>> 0;
  return left[sum % left.length];
}

function note(id, owner) {
  owners.delete(id);
  owners.set(id, owner);
  if (owners.size > MAX_KNOWN) owners.delete(owners.keys().next().value);
}

async function read(incoming) {
  const pieces = [];
  let size = 0;
  for await (const piece of incoming) {
    size += piece.length;
    if (size > MAX_BODY) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Sends the request to a process; resolves when its answer begins. */
function ask(server, { method, path, headers }, body, left) {
  return new Promise((resolve, reject) => {
    const outgoing = send(new URL(path, server), { method, headers: { ...headers, ...(body && { "content-length": body.length }) }, signal: left }, resolve);
    outgoing.setTimeout(SILENCE_MS, () => outgoing.destroy(new Error("no answer")));
    outgoing.once("response", () => outgoing.setTimeout(0));
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

async function pass(incoming, outgoing) {
  if (incoming.url === "/health") return outgoing.end("ok");
  // What the process will make of it: a path with dots in it would be another agent's there, or none.
  const { pathname, search } = new URL(incoming.url, "http://router");
  const id = /^\/agents\/([^/]+)/.exec(pathname)?.[1];
  const body = incoming.method === "POST" ? await read(incoming) : undefined;
  if (id === undefined || !incoming.url.startsWith("/agents/")) return refuse(outgoing, 404, "invalid_request", "ask for /agents/ID/state");
  if (!METHODS.includes(incoming.method)) return refuse(outgoing, 405, "invalid_request", `a request is one of ${METHODS.join(", ")}`);
  if (incoming.method === "POST" && !body) return refuse(outgoing, 413, "invalid_request", `a command has ${MAX_BODY} bytes at most`);
  const left = new AbortController();
  outgoing.on("close", () => left.abort());
  const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !NOT_PASSED_ON.includes(name)));
  const tried = new Set();
  for (let hop = 0, server = owners.get(id); hop < MAX_HOPS; hop++) {
    const others = SERVERS.filter((one) => !tried.has(one));
    server ??= pick(id, others.length > 0 ? others : SERVERS);
    let answer;
    try {
      answer = await ask(server, { method: incoming.method, path: pathname + search, headers }, body, left.signal);
    } catch {
      if (left.signal.aborted) return;
      // It is gone. Until its lease is over nobody else can have what it had.
      if (tried.has(server)) break;
      tried.add(server);
      owners.delete(id);
      server = undefined;
      continue;
    }
    const owner = answer.headers["turnwheel-owner"];
    const isFull = answer.statusCode === 503 && others.length > 1;
    if (owner === undefined && !isFull) {
      note(id, server);
      outgoing.writeHead(answer.statusCode, Object.fromEntries(Object.entries(answer.headers).filter(([name]) => name === "content-length" || !NOT_PASSED_ON.includes(name))));
      outgoing.flushHeaders();
      answer.on("error", () => outgoing.destroy()).on("aborted", () => outgoing.destroy());
      return void answer.pipe(outgoing);
    }
    answer.resume();
    if (owner === undefined) tried.add(server);
    // The owner is gone, or gives the agent back this moment; or it is none of ours.
    else if (tried.has(owner) || !SERVERS.includes(owner)) break;
    else if (owner === server) await new Promise((resolve) => setTimeout(resolve, 20 * 2 ** hop));
    server = owner;
  }
  owners.delete(id);
  refuse(outgoing, 503, "overloaded", "the agent is about to move to another process", { "retry-after": "1" });
}

function refuse(outgoing, status, code, message, headers) {
  outgoing.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify({ error: { code, message } }));
}

const router = createServer((incoming, outgoing) => void pass(incoming, outgoing).catch(() => outgoing.destroy()));
router.listen(Number(env.PORT ?? 3000), env.HOST ?? "127.0.0.1", () => console.log(`the fleet is at http://localhost:${router.address().port}`));
