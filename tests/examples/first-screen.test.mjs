// @ts-check
// Follows the first screen of the README in an empty folder. The provider is one that answers as it would.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { clean, nothing, run } from "./kit.mjs";

after(clean);

/** What runs before the file of the README: a network in which the model asks for the tool, and then answers with its result. */
const NETWORK = `
const calls = [{ index: 0, id: "c1", type: "function", function: { name: "now", arguments: "{}" } }];
const frame = (delta, finish_reason) => "data: " + JSON.stringify({ choices: [{ index: 0, delta, finish_reason }], usage: { prompt_tokens: 9, completion_tokens: 9 } }) + "\\n\\n";
globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  if (new URL(request.url).host !== "api.openai.com" || request.headers.get("authorization") !== "Bearer sk-of-the-user") return new Response("{}", { status: 401 });
  const { messages } = await request.json();
  const last = messages.at(-1);
  const body = last.role === "tool" ? frame({ content: "It is " }) + frame({ content: last.content.slice(11, 15) + "." }, "stop") : frame({ tool_calls: calls }, "tool_calls");
  return new Response(body + "data: [DONE]\\n\\n", { headers: { "content-type": "text/event-stream" } });
};
`;

test("install, write, run: what the README says comes out, and without a key its error", { timeout: 120_000 }, async () => {
  const { folder, packed } = await nothing();
  // From the packed file instead of a registry: a registry would deliver the same file.
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", packed], { cwd: folder });
  const readme = (await readFile(join(folder, "node_modules/turnwheel/README.md"), "utf8")).replace(/<!--[^]*?-->\n/g, "");
  const [, file, start, key, code] = /^```sh\nnpm install turnwheel\n```\n\nInto a file `([\w.]+)`, then `(node [\w.]+)`, with your key in `(\w+)`:\n\n```js\n([^]*?)^```/m.exec(readme) ?? [];
  assert.ok(file && start && key && code, "the README says what to install, what to write and what to run");
  assert.ok(code.split("\n").filter((line) => line.trim()).length <= 12, "it has no more than 12 lines");
  await writeFile(join(folder, file), code);
  await writeFile(join(folder, "network.mjs"), NETWORK);
  const args = ["--import", "./network.mjs", ...start.split(" ").slice(1)];
  const { stdout, stderr } = await run(process.execPath, args, { cwd: folder, timeout: 60_000, env: { ...process.env, [key]: "sk-of-the-user" } });
  assert.deepEqual([stderr, stdout], ["", `It is ${new Date().getFullYear()}.`]);

  const failed = await run(process.execPath, args, { cwd: folder, timeout: 60_000, env: { ...process.env, [key]: "sk-wrong" } }).catch((error) => error);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /AgentError: /);
});
