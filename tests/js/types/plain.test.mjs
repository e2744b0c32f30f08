// @ts-check
// The types of every entry, with ES2022 alone: no DOM, and no types of a host.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
/** These name what other packages declare, or are an element of a page. */
const OTHERS = ["./cloudflare", "./otel", "./inspector"];

test("every entry compiles with `lib: [\"ES2022\"]` and no DOM", async () => {
  const { exports } = JSON.parse(readFileSync(here("../../../www/npm/package.json"), "utf8"));
  const entries = Object.keys(exports).filter((name) => exports[name].types?.endsWith(".d.ts") && !OTHERS.includes(name));
  assert.ok(entries.length > 15);
  mkdirSync(here("../../out/types"), { recursive: true });
  writeFileSync(here("../../out/types/plain.ts"), entries.map((name, i) => `import type * as e${i} from "../../../www/npm/${exports[name].types.slice(2)}";`).join("\n"));
  const options = ["--noEmit", "--strict", "--skipLibCheck", "false", "--target", "es2022", "--lib", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--types", "", "--allowImportingTsExtensions"];
  const { stdout } = await promisify(execFile)(process.execPath, [here("../../../node_modules/typescript/bin/tsc"), ...options, here("../../out/types/plain.ts")]).catch((error) => error);
  assert.equal(stdout, "");
});
