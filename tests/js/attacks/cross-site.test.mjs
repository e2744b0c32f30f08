// @ts-check
// Pages of other sites, with all that a browser lets them send without asking first: forms, text/plain, beacons, images.

import assert from "node:assert/strict";
import { test } from "node:test";
import { agentHandler } from "../../../pkg/server.js";
import { Agent, scripted, settle } from "../kit.mjs";
import { send, serve } from "./http.mjs";

const COMMAND = JSON.stringify({ input: "Delete everything" });

test("no page of another site moves the agent, whatever its browser says of it", async (t) => {
  const agent = new Agent({ model: scripted(["a", "b"]) });
  const port = await serve(t, agentHandler(agent));
  const host = `localhost:${port}`;
  const senders = [
    { origin: "https://evil.example" }, { origin: "null" }, { origin: "http://localhost:1" }, { origin: `https://evil.example/${host}` },
    { "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }, { "sec-fetch-site": "same-site", origin: "http://localhost:1" },
    // The page of a name that leads here, in a browser that says only half of it.
    { "sec-fetch-site": "cross-site", origin: `http://${host}` }, { "sec-fetch-site": "none", origin: "https://evil.example" }, { origin: `http://${host}.evil.example` }, { origin: `http://${host}@evil.example` },
  ];
  for (const sender of senders) {
    for (const type of ["text/plain", "application/json", "application/x-www-form-urlencoded"]) {
      for (const path of ["/prompt", "/steer", "/follow-up", "/reset"]) {
        const answer = await send(port, path, { method: "POST", body: path === "/reset" ? "{}" : COMMAND, headers: { host, "content-type": type, ...sender } });
        assert.equal(answer.status, 403, JSON.stringify([sender, type, path]));
        assert.match(answer.text, /`cors`/);
      }
    }
    for (const path of ["/state", "/events"]) assert.equal((await send(port, path, { headers: { host, ...sender } })).status, 403, `${path} ${JSON.stringify(sender)}`);
  }
  await settle();
  assert.deepEqual([agent.messages.length, agent.isRunning], [0, false]);
});

test("a command is JSON and says so: every type that needs no preflight is refused", async (t) => {
  const agent = new Agent({ model: scripted(["a"]) });
  const port = await serve(t, agentHandler(agent));
  for (const type of ["", "text/plain", "text/plain;charset=UTF-8", "text/plain; application/json", "multipart/form-data; boundary=application/json", "application/x-www-form-urlencoded", "application/json-p", "application/jsonx", "text/json", "application/json, text/plain"]) {
    assert.equal((await send(port, "/prompt", { method: "POST", body: COMMAND, headers: { host: "localhost", ...(type && { "content-type": type }) } })).status, 415, type);
  }
  assert.equal(agent.messages.length, 0);
  assert.equal((await send(port, "/prompt", { method: "POST", body: COMMAND, headers: { host: "localhost", origin: "http://localhost", "content-type": "Application/JSON ; charset=utf-8" } })).status, 202);
  await agent.waitForIdle();
});
