// @ts-check
// A Worker refuses every redirect of a model call, within the origin, too.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { start } from "../durable/bundle.mjs";

test("a Worker refuses every redirect, and says where it points", { timeout: 60_000 }, async () => {
  /** @type {string[]} */
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    request.resume();
    const [, kind, status] = (request.url ?? "").split("/");
    const location = kind === "within" ? "/taken" : `http://localhost:${/** @type {any} */ (server.address()).port}/taken?key=1`;
    response.writeHead(Number(status) || 200, { location }).end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", () => done(undefined)));
  const origin = `http://127.0.0.1:${/** @type {any} */ (server.address()).port}`;
  const worker = await start("redirects.mjs", { durableObjects: {} });
  try {
    for (const kind of ["within", "away"]) {
      for (const status of [301, 302, 303, 307, 308]) {
        const response = await worker.dispatchFetch("http://worker.example/", { method: "POST", body: `${origin}/${kind}/${status}` });
        const { code, message } = /** @type {any} */ (await response.json());
        assert.equal(code, "invalid_request", message);
        assert.match(message, /redirects.*\/taken;/);
      }
    }
  } finally {
    await worker.dispose();
    server.closeAllConnections();
    server.close();
  }
  assert.equal(asked.length, 10);
  assert.ok(asked.every((url) => !url.startsWith("/taken")), asked.join());
});
