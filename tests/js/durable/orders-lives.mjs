// @ts-check
// Orders in a Workflow whose process is killed, with workerd, by SIGKILL: at the beginning of a step's work, at its end before it
// is stored, or after that. A new process goes on.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** @typedef {{ messages: any[], told: string[], refunds: number, kills: number }} Story */

const HOST = fileURLToPath(new URL("orders-host.mjs", import.meta.url));

/** An office and a folder, for any number of orders one after the other. */
export async function office() {
  const folder = await mkdtemp(join(tmpdir(), "turnwheel-orders-"));
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let host;
  let address = "";
  /** What the current order does, and where it is to be killed. */
  const now = { told: /** @type {string[]} */ ([]), refunds: 0, kills: 0, killAt: "", question: "" };

  const server = createServer(async (request, response) => {
    const [, what = "", id = "", name = ""] = (request.url ?? "").split("/");
    let body = "";
    for await (const piece of request) body += piece;
    if (what === "refund") now.refunds += 1;
    if (what === "question") now.question = JSON.parse(body).type;
    if (!["begin", "end", "stored"].includes(what)) return void response.end(`${what} of ${id}`);
    const point = `${what} ${decodeURIComponent(name)}`;
    now.told.push(point);
    if (point !== now.killAt) return void response.end();
    now.killAt = "";
    now.kills += 1;
    await kill();
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", () => ready(undefined)));
  const port = /** @type {any} */ (server.address()).port;

  /** Ends the host and the workerd that it started. */
  async function kill() {
    const child = host;
    host = undefined;
    if (!child || child.exitCode !== null) return;
    const ended = once(child, "close");
    process.kill(-(/** @type {number} */ (child.pid)), "SIGKILL");
    await ended;
  }

  async function open() {
    const child = spawn(process.execPath, [HOST, folder, `http://127.0.0.1:${port}`], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
    host = child;
    const [line] = await Promise.race([once(child.stdout, "data"), once(child, "exit").then(() => [""])]);
    address = String(line).trim();
    assert.match(address, /^http/, "the host has begun");
  }

  /** @param {string} path @param {unknown} [body] @returns {Promise<any>} nothing if nobody is there */
  async function ask(path, body) {
    try {
      const response = await fetch(new URL(path, address), body === undefined ? {} : { method: "POST", body: JSON.stringify(body) });
      return response.ok ? await response.json() : undefined;
    } catch {
      return undefined;
    }
  }

  /** One order, from its beginning to its end. @param {string} [killAt] a point, such as `end t1/model` @returns {Promise<Story>} */
  async function order(killAt = "") {
    Object.assign(now, { told: [], refunds: 0, kills: 0, killAt, question: "" });
    if (!host) await open();
    const { id } = await ask("/orders", { customer: "Ada" });
    for (let decided = ""; ; ) {
      if (!host) {
        await open();
        decided = "";
        // An instance of before rests until something happens to it.
        await ask(`/orders/${id}/decision`, { type: "wake", decision: "" });
      }
      if (now.question !== decided) {
        decided = now.question;
        await ask(`/orders/${id}/decision`, { type: decided, decision: "approve" });
      }
      const found = await ask(`/orders/${id}`);
      if (found?.status === "complete") {
        assert.equal(found.output.stopReason, "completed");
        return { messages: JSON.parse(found.output.messages), told: now.told, refunds: now.refunds, kills: now.kills };
      }
      assert.notEqual(found?.status, "errored", JSON.stringify(found));
    }
  }

  async function close() {
    await kill();
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true, force: true });
  }

  return { order, close };
}

/** A history without its times. @param {any[]} messages */
export const plain = (messages) => messages.map(({ role, content, callId, isError }) => ({ role, content, callId, isError }));

/**
 * The story of a killed order must be that of an unbroken one. Only a refund that had begun is not repeated, and is told to the
 * model as interrupted.
 * @param {Story} story @param {Story} unbroken @param {string} killAt
 */
export function compare({ messages, told, refunds, kills }, unbroken, killAt) {
  assert.equal(kills, 1, `${killAt}: it was killed`);
  const isCut = /^(begin|end) t1\/tool\/0-refund$/.test(killAt);
  const result = messages.findIndex(({ callId, role }) => role === "tool_result" && callId === "refund");
  assert.equal(messages[result].cause, isCut ? "interrupted" : undefined, killAt);
  const expected = plain(unbroken.messages);
  if (isCut) expected[result] = plain(messages)[result];
  assert.deepEqual(plain(messages), expected, killAt);
  assert.equal(refunds, killAt === "begin t1/tool/0-refund" ? 0 : 1, `${killAt}: paid once`);
  // What was stored is never begun again.
  for (const [i, point] of told.entries()) {
    if (!point.startsWith("stored ")) continue;
    assert.ok(!told.slice(i).includes(point.replace("stored", "begin")), `${killAt}: ${point}, and began again`);
  }
}
