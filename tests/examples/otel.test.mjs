// @ts-check
// The example with OpenTelemetry prints its trace.

import assert from "node:assert/strict";
import { cp, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { clean, install, ROOT, run } from "./kit.mjs";

after(clean);
const folder = await install("otel");
// Its other packages, as they are installed here.
await mkdir(join(folder, "node_modules/@opentelemetry"), { recursive: true });
for (const name of await readdir(join(ROOT, "node_modules/@opentelemetry"))) await cp(join(ROOT, "node_modules/@opentelemetry", name), join(folder, "node_modules/@opentelemetry", name), { recursive: true });

test("it answers, and shows the trace: the tool's own span inside its call, the retry as an event", { timeout: 60_000 }, async () => {
  const { stdout } = await run(process.execPath, ["app.js"], { cwd: folder, env: { PATH: process.env.PATH } });
  const [answer, ...lines] = stdout.trimEnd().split("\n");
  assert.equal(answer, "It is 2,469 m high.");
  assert.deepEqual(lines.map((line) => line.replace(/ +\d+ ms.*$/, "")), [
    "invoke_agent guide", "  chat scripted", "  execute_tool geographer", "    invoke_agent geographer", "      chat scripted", "      execute_tool height", "        look up",
    "      chat scripted", "  chat scripted", "    · turnwheel.retry_attempt",
  ]);
  assert.match(stdout, /invoke_agent guide +\d+ ms +\d+ \+ \d+ tokens/);
});
