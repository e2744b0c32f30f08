// @ts-check
// The example for Deno, run and type-checked in Deno: it streams while the model answers, and notices a
// client that disconnects.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { clean, install } from "../examples/kit.mjs";
import { calls, serve, textAnswer } from "../js/server.mjs";
import { packagesOf } from "./npm.mjs";

const { folder: peers, missing } = packagesOf("deno", ["deno@2.9.6"]);
after(clean);

test("a server in Deno", { skip: missing, timeout: 180_000 }, async (t) => {
  const folder = await install("deno");
  const piece = textAnswer(["on ", "and "]).split("\n\n")[0] + "\n\n";
  const model = await serve(t, [
    calls(["clock", '{"zone":"Europe/Oslo"}']), textAnswer(["It is ", "late."]),
    { status: 401, body: '{"error":{"message":"no such key"}}' },
    { body: piece, again: piece },
  ]);
  const { scripts } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const [, ...words] = scripts.start.replace("deno run ", "deno run --check ").split(" ");
  const deno = spawn(process.execPath, [join(String(peers), "node_modules/deno/bin.cjs"), ...words], { cwd: folder, env: { ...process.env, BASE_URL: model.baseUrl, API_KEY: "sk-test", PORT: "0", NO_COLOR: "1" }, detached: true });
  // The package's script starts the actual program: both must end, or what the second one holds
  // open keeps this test alive.
  t.after(() => void process.kill(-Number(deno.pid), "SIGKILL"));
  let said = "";
  const address = await new Promise((resolve, reject) => {
    for (const stream of [deno.stdout, deno.stderr]) createInterface({ input: stream }).on("line", (line) => {
      said += `${line}\n`;
      const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(line);
      if (found) resolve(found[0]);
    });
    deno.once("close", (code) => reject(new Error(`deno ended with ${code}: ${said}`)));
  });
  const ask = (/** @type {string} */ q, /** @type {any} */ init) => fetch(`${address}?q=${q}`, init);

  assert.equal(await (await ask("late")).text(), "It is late.\n");
  assert.match(model.requests[1]?.body.messages.at(-1).content, /^\d\d:\d\d:\d\d$/);
  assert.equal(model.requests[0]?.headers.authorization, "Bearer sk-test");
  assert.match(await (await ask("late")).text(), /no such key/);
  assert.equal((await ask("")).status, 400);

  const aborter = new AbortController();
  const reader = (await ask("story", { signal: aborter.signal })).body?.getReader();
  assert.equal(new TextDecoder().decode((await reader?.read())?.value).slice(0, 3), "on ");
  aborter.abort();
  assert.equal(await model.requests[3]?.closed, "left");
});
