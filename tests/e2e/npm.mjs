// @ts-check
// npm packages that are too large for the everyday tests: each set in a folder of its own in
// target/, installed once.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Returns a folder whose node_modules has the packages, or why there is none.
 * @param {string} name @param {string[]} packages with their versions
 * @returns {{ folder: string, missing?: undefined } | { folder?: undefined, missing: string }}
 */
export function packagesOf(name, packages) {
  const folder = join(resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target"), "e2e-npm", name);
  const note = join(folder, "installed.json");
  const wanted = JSON.stringify(packages);
  if (existsSync(note) && readFileSync(note, "utf8") === wanted) return { folder };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  const { status, error, stderr } = spawnSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", ...packages], { cwd: folder, encoding: "utf8" });
  if (error || status !== 0) return { missing: `npm cannot install ${packages.join(" ")}: ${error?.message ?? stderr.trim().split("\n").findLast((line) => /npm error (?!A complete log)/.test(line)) ?? status}` };
  writeFileSync(note, wanted);
  return { folder };
}
