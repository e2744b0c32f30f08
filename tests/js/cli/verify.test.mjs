// @ts-check
// `npx turnwheel verify`: the wasm files of the package against the manifest of their hashes.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { emptyFolder, ROOT, run } from "./kit.mjs";

const PKG = join(ROOT, "pkg");
const MODULES = readdirSync(PKG).filter((name) => name.endsWith(".wasm"));

/** What the command needs of the package, to be changed. */
function copied() {
  const folder = emptyFolder();
  for (const name of ["cli.mjs", "package.json", "SHA256SUMS", ...MODULES]) copyFileSync(join(PKG, name), join(folder, name));
  cpSync(join(PKG, "cli"), join(folder, "cli"), { recursive: true });
  return folder;
}

const verify = (/** @type {string} */ folder, /** @type {string[]} */ ...words) => run(["verify", ...words], { script: join(folder, "cli.mjs"), cwd: folder });

test("the package is as its manifest says, and what each module imports is listed", async () => {
  const { code, stdout, stderr } = await verify(PKG);
  assert.deepEqual([code, stderr], [0, ""]);
  for (const name of MODULES) assert.match(stdout, new RegExp(`^ok       ${name}  ${createHash("sha256").update(readFileSync(join(PKG, name))).digest("hex")}$`, "m"));
  assert.match(stdout, new RegExp(`^${MODULES.length} wasm files are those of the manifest$`, "m"));
  const imports = stdout.split("\n").filter((line) => line.startsWith("         imports "));
  assert.equal(imports.length, MODULES.length);
  for (const line of imports) assert.match(line, /imports from \.\/turnwheel-[0-9a-f]+_bg\.js: (\w+, )*random, validate, id, /);
  assert.match(stdout, /from another part \(0\): \d+ functions/);
});

test("a manifest that sha256sum writes is read", async () => {
  const folder = copied();
  writeFileSync(join(folder, "mine"), MODULES.map((name) => `${createHash("sha256").update(readFileSync(join(folder, name))).digest("hex")} *${name}\n`).join(""));
  assert.equal((await verify(folder, "--sums", "mine")).code, 0);
});

test("a changed byte, a missing module and an unknown one fail, and are named", async () => {
  const folder = copied();
  const bytes = readFileSync(join(folder, "turnwheel.wasm"));
  bytes[bytes.length - 1] ^= 1;
  writeFileSync(join(folder, "turnwheel.wasm"), bytes);
  rmSync(join(folder, "turnwheel-first.wasm"));
  writeFileSync(join(folder, "more.wasm"), "no module");
  const { code, stdout, stderr } = await verify(folder);
  assert.equal(code, 1);
  assert.match(stdout, /^DIFFERS  turnwheel\.wasm  [0-9a-f]{64}\n         expected +[0-9a-f]{64}$/m);
  assert.match(stdout, /^MISSING  turnwheel-first\.wasm /m);
  assert.match(stdout, /^UNKNOWN  more\.wasm .*\n         imports cannot be read: it is no wasm module$/m);
  assert.match(stdout, /^ok       turnwheel-server\.wasm /m);
  assert.match(stderr, /^3 of the wasm files are not as .*SHA256SUMS says: do not run this package; install it again with npm install turnwheel$/m);
});

test("without a manifest nothing is verified", async () => {
  const folder = copied();
  rmSync(join(folder, "SHA256SUMS"));
  const { code, stderr } = await verify(folder);
  assert.equal(code, 1);
  assert.match(stderr, /^the manifest .*SHA256SUMS cannot be used: ENOENT.*; install the package again, or name another with --sums FILE$/m);
  mkdirSync(join(folder, "empty"));
  writeFileSync(join(folder, "empty/sums"), "");
  assert.match((await verify(folder, "--sums", "empty/sums")).stderr, /it has no line with the hash of a wasm file/);
  assert.equal((await verify(folder, "more.wasm")).code, 2);
});
