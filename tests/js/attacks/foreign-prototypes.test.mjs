// @ts-check
// A page or a library with members of its own on `Object.prototype`: the package can be imported there, and runs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const pkg = new URL("../../../pkg/", import.meta.url);
/** Those that Node can import; the others are of the same files. */
const { exports } = JSON.parse(readFileSync(new URL("package.json", pkg), "utf8"));
const names = Object.keys(exports).filter((name) => !/json|wasm|cloudflare|workerd/.test(name));

const MEMBERS = { "an object": "{ a: { b: 1 } }", "a function": "() => 1", "a text": '"x"' };

for (const [kind, member] of Object.entries(MEMBERS)) {
  test(`${kind} on Object.prototype ends no import and no run`, () => {
    const code = `Object.prototype.extra = ${member};
const failed = [];
for (const name of ${JSON.stringify(names)}) await import(name.replace(".", "turnwheel")).catch((error) => failed.push(\`\${name}: \${error.message}\`));
for (const name of ["turnwheel", "turnwheel/inline"]) {
  const { Agent, scripted, tool } = await import(name);
  const parameters = { type: "object", properties: { city: { type: "string" }, days: { type: "array", items: { type: "number" } } }, required: ["city"], additionalProperties: false };
  const weather = tool({ name: "weather", description: "", parameters, execute: ({ city }) => ({ city, is: "sunny" }) });
  const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "weather", arguments: { city: "Rome", days: [1] } }] }, "Sunny."]), tools: [weather] });
  const { text, messages } = await agent.prompt("Go.");
  const restored = await Agent.restore(JSON.stringify(agent.checkpoint()), { model: scripted(["Still."]), tools: [weather] });
  console.log(name, text, messages.find(({ role }) => role === "tool_result").content[0].text, (await restored.prompt("And now?")).text);
}
console.log(JSON.stringify(failed));`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8", cwd: pkg });
    assert.deepEqual(stdout.trim().split("\n"), ["turnwheel", "turnwheel/inline"].map((name) => `${name} Sunny. {"city":"Rome","is":"sunny"} Still.`).concat("[]"), stderr);
  });
}

test("no script of the package goes over inherited members of what it exports", () => {
  const scripts = readdirSync(pkg, { recursive: true, encoding: "utf8" }).filter((name) => /\.c?js$/.test(name));
  for (const name of scripts) assert.doesNotMatch(readFileSync(new URL(name, pkg), "utf8"), /for ?\(var \w+ in \w+\)\s*\w+\(\w+, ?\w+, ?\{ ?get:/, name);
});
