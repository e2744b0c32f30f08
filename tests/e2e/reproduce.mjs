// @ts-check
// Whoever builds the same sources gets the same bytes: what would be published is made here, and again from a copy in a
// folder with a longer name, with another home for cargo, flags for other crates, another language, time zone and umask.
// Both have to be equal.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const XTASK = join(resolve(ROOT, process.env["CARGO_TARGET_DIR"] ?? "target"), "debug/xtask");
const home = mkdtempSync(join(tmpdir(), "turnwheel-reproduce-"));
after(() => rmSync(home, { recursive: true, force: true }));

/** A copy of the sources, with the tools that build the package. */
function copy() {
  const at = join(home, "a/folder/with a longer name/than the other");
  const files = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: ROOT, encoding: "utf8" });
  for (const file of files.split("\0").filter((file) => file && existsSync(join(ROOT, file)))) {
    mkdirSync(join(at, dirname(file)), { recursive: true });
    cpSync(join(ROOT, file), join(at, file));
  }
  for (const tool of ["esbuild", "@esbuild", "binaryen", "@cfworker", ".xtask-installed"]) cpSync(join(ROOT, "node_modules", tool), join(at, "node_modules", tool), { recursive: true });
  return at;
}

/** A home for cargo that has unpacked nothing yet, but need not download anything. */
function cargoHome() {
  const [from, to] = [process.env["CARGO_HOME"] ?? join(homedir(), ".cargo"), join(home, "another-home-for-cargo")];
  mkdirSync(join(to, "registry"), { recursive: true });
  for (const part of ["registry/index", "registry/cache", "config.toml"]) {
    if (existsSync(join(from, part))) symlinkSync(join(from, part), join(to, part));
  }
  return to;
}

/** The hash of each file in a folder. @param {string} folder */
function hashes(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const paths = files.map((file) => join(file.parentPath ?? file.path, file.name).slice(folder.length + 1)).sort();
  return Object.fromEntries(paths.map((path) => [path, createHash("sha256").update(readFileSync(join(folder, path))).digest("hex")]));
}

/**
 * The hash of each file in a crate, except the commit, which the copy has none of, and the lock file, which names the hash
 * of the crate before it, its commit included.
 * @param {string} file
 */
function inside(file) {
  const at = mkdtempSync(join(home, "crate-"));
  execFileSync("tar", ["-xzf", file, "-C", at]);
  return Object.fromEntries(Object.entries(hashes(at)).filter(([path]) => !/\/(\.cargo_vcs_info\.json|Cargo\.lock)$/.test(path)));
}

/** @param {string} at @param {string} out @param {{ [name: string]: string }} env @param {string} umask */
function pack(at, out, env, umask) {
  // It asks cargo where the sources are; run by hand, it is told.
  const all = { ...process.env, ...env, CARGO: "cargo", CARGO_MANIFEST_DIR: join(at, "xtask") };
  execFileSync("sh", ["-c", `umask ${umask} && exec "$0" "$@"`, XTASK, "pack", "--unchecked", "--out", out], { cwd: at, env: all, stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 });
}

const [here, there] = [join(home, "here"), join(home, "there")];

test("what would be published is made twice", { timeout: 800_000 }, () => {
  pack(ROOT, here, {}, "022");
  const at = copy();
  pack(at, there, { CARGO_HOME: cargoHome(), CARGO_TARGET_DIR: join(at, "target"), RUSTFLAGS: "-Cdebug-assertions=on", CARGO_PROFILE_NPM_OPT_LEVEL: "1", TZ: "Pacific/Kiritimati", LC_ALL: "C", SOURCE_DATE_EPOCH: "1" }, "077");
  assert.deepEqual(readdirSync(there), readdirSync(here));
  assert.deepEqual(hashes(join(at, "pkg")), hashes(join(ROOT, "pkg")));
});

test("the npm tarballs are the same, byte by byte", () => {
  const names = readdirSync(here).filter((name) => name.endsWith(".tgz"));
  assert.equal(names.length, 2);
  for (const name of names) assert.ok(readFileSync(join(here, name)).equals(readFileSync(join(there, name))), name);
});

test("the crates hold the same", () => {
  const names = readdirSync(here).filter((name) => name.endsWith(".crate"));
  assert.equal(names.length, 2);
  for (const name of names) assert.deepEqual(inside(join(there, name)), inside(join(here, name)));
});
