// @ts-check
// The commands as a user calls them: processes of their own, in an empty folder, with an empty environment.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
export const CLI = join(ROOT, "pkg/cli.mjs");
/** @typedef {{ cwd?: string, env?: Record<string, string>, input?: string, script?: string }} Place */
/** @typedef {{ code: number, stdout: string, stderr: string }} Ended */

/** @type {string[]} */
const folders = [];
process.once("exit", () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A folder that is removed when the tests have ended. */
export function emptyFolder() {
  const folder = mkdtempSync(join(tmpdir(), "turnwheel-cli-"));
  folders.push(folder);
  return folder;
}

const { PATH = "" } = process.env;

/** @param {string[]} words @param {Place} [place] @returns {Promise<Ended>} */
export const run = (words, { cwd = emptyFolder(), env = {}, input = "", script = CLI } = {}) => new Promise((resolve) => {
  const child = execFile(process.execPath, [script, ...words], { cwd, env: { PATH, ...env }, timeout: 60_000 }, (error, stdout, stderr) => {
    resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
  });
  child.stdin?.end(input);
});

/** Starts one that a test talks to. @param {{ after(end: () => void): void }} t @param {string[]} words @param {Place} [place] */
export function start(t, words, { cwd = emptyFolder(), env = {} } = {}) {
  const child = spawn(process.execPath, [CLI, ...words], { cwd, env: { PATH, ...env } });
  t.after(() => void child.kill("SIGKILL"));
  let said = "";
  /** @type {(() => void)[]} */
  let waiting = [];
  const wake = () => waiting.splice(0).forEach((go) => go());
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (piece) => {
    said += piece;
    wake();
  });
  /** @type {Promise<number | null>} */
  const ended = new Promise((resolve) => child.once("close", (code) => (resolve(code), wake())));
  return {
    child, ended,
    /** Waits for this text, and returns what was said since the last call. @param {RegExp} what */
    async until(what) {
      while (!what.test(said)) {
        assert.ok(child.exitCode === null && child.signalCode === null, `it ended: ${said}`);
        await new Promise((resolve) => waiting.push(() => resolve(undefined)));
      }
      const all = said;
      said = "";
      return all;
    },
    type: (/** @type {string} */ line) => void child.stdin.write(`${line}\n`),
    interrupt: () => void child.kill("SIGINT"),
  };
}
