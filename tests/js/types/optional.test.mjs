// @ts-check
// The types of the optional parts: a file that uses all of them with the types of React and of the MCP
// SDK, and their doc comments.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

test("tsc agrees: React, MCP, WebMCP and shared stores as a user writes them", async () => {
  const output = await promisify(execFile)(process.execPath, [here("../../../node_modules/typescript/bin/tsc"), "--project", here("parts.json")]).catch((error) => error);
  assert.equal(output.stdout, "");
  assert.equal(output.stderr, "");
});

test("tsc agrees: Workers as users write them, the examples too, with Cloudflare's types", async () => {
  for (const compiler of ["typescript", "typescript-oldest"]) {
    const output = await promisify(execFile)(process.execPath, [here(`../../../node_modules/${compiler}/bin/tsc`), "--project", here("tsconfig.cloudflare.json")]).catch((error) => error);
    assert.equal(output.stdout, "", compiler);
    assert.equal(output.stderr, "", compiler);
  }
});

for (const part of ["react", "mcp", "webmcp", "stores-node", "cloudflare"]) {
  test(`${part} is declared as it is, each thing with a word, an example and a use`, async () => {
    const declared = readFileSync(here(`../../../www/npm/${part}.d.ts`), "utf8");
    const usage = readFileSync(here(part === "cloudflare" ? "cloudflare.ts" : "parts.tsx"), "utf8");
    const names = [...declared.matchAll(/^export (?:interface|type|function|const|abstract class) (\w+)/gm)].map(([, name]) => name ?? "");
    const values = [...declared.matchAll(/^export (?:function|const|abstract class) (\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(Object.keys(await import(`../../../pkg/${part === "cloudflare" ? "cloudflare-elsewhere" : part}.js`)).sort(), values.sort());
    assert.equal(declared.match(/@example/g)?.length, names.length);
    for (const name of names) assert.ok(new RegExp(`\\b${name}\\b`).test(usage), `${name} is used`);
  });
}
