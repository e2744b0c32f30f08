// @ts-check
// Runs the programs of the docs against the built package, as it would be in a user's own project.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { format } from "node:util";
import { ROOT } from "./blocks.mjs";

/** A folder for programs, in which `turnwheel` is the package in pkg/. @param {string} folder @param {Record<string, string>} [packages] others, by name */
export function prepare(folder, packages = {}) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  for (const [name, location] of Object.entries({ turnwheel: join(ROOT, "pkg"), ...packages })) {
    mkdirSync(join(folder, "node_modules", name, ".."), { recursive: true });
    symlinkSync(location, join(folder, "node_modules", name), "junction");
  }
  for (const name of ["fake.mjs", "indexed-db.mjs", "tabs-page.mjs", "ai-model.mjs", "web-page.mjs", "login-server.mjs"]) copyFileSync(new URL(name, import.meta.url), join(folder, name));
  return folder;
}

/** The file of a program. @param {string} folder @param {{ name: string, source: string }} program @param {string} [end] */
export function write(folder, { name, source }, end = "mjs") {
  const file = join(folder, `${name.replace(/[/.:]/g, "-")}.${end}`);
  // Nobody imports what a program exports: the code below the block uses it by this name.
  writeFileSync(file, `${source.replace(/^export default /m, "const exported = ")}\nexport {};\n`);
  return file;
}

/**
 * Runs a program; its output must be what the page says.
 * @param {string} folder @param {{ name: string, source: string, prints: string[] }} program
 */
export async function run(folder, program) {
  const { log } = console;
  const { fetch } = globalThis;
  /** @type {string[]} */
  const printed = [];
  console.log = (...words) => void printed.push(...format(...words).split("\n"));
  try {
    await import(pathToFileURL(write(folder, program)).href);
  } finally {
    console.log = log;
    globalThis.fetch = fetch;
  }
  if (program.prints.length > 0) assert.deepEqual(printed.map((line, i) => (fits(program.prints[i] ?? "", line) ? program.prints[i] : line.trimEnd())), program.prints);
}

/** Whether a line is what a page shows of it. @param {string} shown @param {string} line */
export function fits(shown, line) {
  const parts = shown.trimEnd().split("…").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(line.trimEnd());
}
