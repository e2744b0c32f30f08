// @ts-check
// How much of a long test a change plays: a share, which begins at another place every day. TURNWHEEL_WORLDS=all plays everything,
// as for random worlds (tests/rig/src/worlds.rs); run by itself, this plays all of every test that has a share.

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const isAll = process.env.TURNWHEEL_WORLDS === "all";
const day = Math.floor(Date.now() / 86_400_000);

/** Whether a place of many is played: each one of `every`. @param {number} place @param {number} every */
export const isPlayed = (place, every) => isAll || (place + day) % every === 0;

/** How many of all are played. @param {number} all @param {number} every */
export const shareOf = (all, every) => (isAll ? all : Math.ceil(all / every));

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = fileURLToPath(new URL(".", import.meta.url));
  const tests = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".test.mjs"));
  const shared = tests.map((name) => folder + name).filter((file) => readFileSync(file, "utf8").includes("/share.mjs"));
  const { status } = spawnSync(process.execPath, ["--test", "--test-concurrency=2", "--test-reporter=tap", ...shared], { stdio: "inherit", env: { ...process.env, TURNWHEEL_WORLDS: "all" } });
  process.exit(status ?? 1);
}
