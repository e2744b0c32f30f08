// @ts-check
// The crate's own tests, compiled to wasm with the flags of the package, in Node's WASI. A compiler bug shows
// in its output, not in the source; there was one (docs/internals/build.md). A panic ends the process there, so tests in
// which the host panics are left out.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TARGET = "wasm32-wasip1";
/** Tests whose hosts panic on purpose. */
const PANICKING = ["attempts", "conformance", "hostile", "seeds", "worlds"];
/** Words in the names of single tests that do. @type {Record<string, string[]>} */
const PANICKING_TESTS = { tape: ["every_recorded_scenario", "every_random_world", "of_every_version"] };

const cargo = (/** @type {string[]} */ ...words) => spawnSync("cargo", words, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 28, env: { ...process.env, RUSTC_BOOTSTRAP: "1", CARGO_TARGET_DIR: join(ROOT, "target/wasi") } });

/** A list in the manifest. @param {string} name */
function listOf(name) {
  const manifest = readFileSync(join(ROOT, "wasm-pack.toml"), "utf8");
  const found = new RegExp(`^\\[std\\][^]*?^${name} = (\\[.*\\])$`, "m").exec(manifest);
  assert.ok(found, `wasm-pack.toml has no \`${name}\` under [std]`);
  return /** @type {string[]} */ (JSON.parse(String(found[1])));
}

// Tests must be able to report what went wrong, and their stack frames are larger.
const rustflags = [...listOf("rustflags").filter((flag) => !/panic|stack-size/.test(flag)), "-Zpanic_abort_tests", "-Clink-arg=-zstack-size=8388608"];
const flags = listOf("flags").map((flag) => flag.replace("panic_abort", "panic_abort,test"));

const added = spawnSync("rustup", ["target", "add", TARGET], { cwd: ROOT, encoding: "utf8" });
if (added.status !== 0) test(TARGET, { skip: `rustup cannot add ${TARGET}: ${added.error?.message ?? added.stderr.trim().split("\n").at(-1)}` });
else {
  const built = cargo(
    "test", "--no-run", "--lib", "--tests", "--features", "tracing", "--profile", "npm", "--target", TARGET, "-Zpanic-abort-tests", ...flags, "--message-format", "json-render-diagnostics",
    "--config", 'profile.npm.lto="off"', "--config", 'profile.npm.strip="none"', "--config", `target.${TARGET}.rustflags=${JSON.stringify(rustflags)}`,
  );
  test("the tests can be built", () => assert.equal(built.status, 0, built.stderr.slice(-4000)));
  const made = built.stdout.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line)).filter(({ executable, profile }) => executable && profile?.test);
  for (const { executable, target } of made) {
    if (PANICKING.includes(target.name)) continue;
    test(target.name, { timeout: 300_000 }, () => {
      const { stdout, stderr, status } = spawnSync(process.execPath, ["--no-warnings", "--stack-size=30000", fileURLToPath(new URL("wasi-run.mjs", import.meta.url)), ROOT, executable, ...(PANICKING_TESTS[target.name] ?? [])], { encoding: "utf8", maxBuffer: 1 << 26 });
      assert.equal(status, 0, `${stdout.slice(-3000)}\n${stderr.slice(-3000)}`);
      assert.match(stdout, /^test result: ok\. [1-9]/m);
    });
  }
  test("there are enough of them", () => assert.ok(made.length >= 20, `only ${made.length} were built`));
}
