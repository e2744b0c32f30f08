// @ts-check
// Whoever can write in the folder of a store writes agents, and nothing else: no name in it leads out of it.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileStore } from "../../../pkg/stores-node.js";
import { Agent, misused, scripted } from "../kit.mjs";

const folder = () => mkdtempSync(join(tmpdir(), "turnwheel-forged-"));
const checkpoint = () => new Agent({ model: scripted([]) }).checkpoint();

test("a state that names other files is refused, and nothing is read or written there", async () => {
  for (const member of ["messages", "events"]) {
    for (const name of ["../../../secret.txt", "/etc/passwd", "messages-0.jsonl/../../../../secret.txt", "..", "", 5, null, ["messages-0.jsonl"], "messages-0.jsonl\0"]) {
      const root = folder();
      const store = fileStore(join(root, "store"));
      await store.save("a", checkpoint());
      writeFileSync(join(root, "secret.txt"), "a secret\n");
      const [agent = ""] = readdirSync(join(root, "store"));
      const [fence = ""] = readdirSync(join(root, "store", agent));
      const file = join(root, "store", agent, fence, "state.json");
      const record = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify({ ...record, count: 1, bytes: 9, [member]: name }));
      const refused = /was not written by turnwheel: state.json names files that are none of its own/;
      await assert.rejects(store.load("a"), refused, `${member} ${name}`);
      await assert.rejects(store.claim("a"), refused, `${member} ${name}`);
      await assert.rejects(store.save("a", checkpoint()), (error) => error instanceof Error);
      assert.equal(readFileSync(join(root, "secret.txt"), "utf8"), "a secret\n");
      assert.ok(!existsSync(join(root, "secret-1.txt")));
    }
  }
});

test("an owner is something that a header can say", () => {
  for (const owner of ["http://a\r\nset-cookie: x=1", "", " ", "ö", "x".repeat(501), 5, null, {}]) misused(() => fileStore(folder(), /** @type {any} */ ({ owner })), /`owner` must be the address or the name of this process/);
  fileStore(folder(), { owner: "http://10.0.0.7:3000" });
});
