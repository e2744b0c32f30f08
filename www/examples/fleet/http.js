// Joins node:http and functions from a Request to a Response.

import { createServer } from "node:http";
import { Readable } from "node:stream";

async function serve(answer, incoming, outgoing) {
  const { method, headers } = incoming;
  const left = new AbortController();
  outgoing.on("close", () => left.abort());
  const body = method === "POST" ? Readable.toWeb(incoming) : undefined;
  // A path begins with one slash, and a host has none: otherwise the one would say what the other is.
  if (!/^[\w.:[\]-]+$/.test(headers.host ?? "") || !/^\/(?!\/)/.test(incoming.url)) return outgoing.writeHead(400).end();
  const response = await answer(new Request(`http://${headers.host}${incoming.url}`, { method, headers, body, duplex: "half", signal: left.signal }));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  if (!response.body) return outgoing.end();
  // A stream that ends because the agent has moved breaks off; the page asks again where it was.
  const stream = Readable.fromWeb(response.body).on("error", () => outgoing.destroy());
  outgoing.on("close", () => stream.destroy());
  stream.pipe(outgoing);
}

export function listen(answer, port, host) {
  const server = createServer((incoming, outgoing) => void serve(answer, incoming, outgoing).catch(() => outgoing.destroy()));
  return new Promise((resolve, reject) => server.once("error", reject).listen(port, host, () => resolve(server)));
}
