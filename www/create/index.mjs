#!/usr/bin/env node
// @ts-check
// npm create turnwheel FOLDER TEMPLATE: copies a template into a new folder. Nothing runs, and nothing is asked of a network.

import { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const json = (/** @type {string} */ file) => JSON.parse(readFileSync(file, "utf8"));

/** @type {Record<string, { about: string, start: string }>} */
const TEMPLATES = json(here("templates.json"));
const NAMES = Object.keys(TEMPLATES);
const LIST = Object.entries(TEMPLATES).map(([name, { about }]) => `  ${name.padEnd(8)}${about}`).join("\n");
const USAGE = `Usage: npm create turnwheel FOLDER TEMPLATE

Templates:
${LIST}`;

/** npm leaves these names out of a package, so they are written here. */
const IGNORED = ["node_modules", ".env", ".env.local", ".dev.vars", ".wrangler", ".next", "dist", ".chat.json"];

/** Something that the user can mend. */
class Refusal extends Error {
  /** @param {string} message @param {number} [code] */
  constructor(message, code = 1) {
    super(message);
    this.code = code;
  }
}

/** @param {string[]} args @returns {Promise<number>} the exit code */
async function main(args) {
  try {
    const { folder, template } = await wanted(args);
    copy(folder, template);
    const { start } = /** @type {{ start: string }} */ (TEMPLATES[template]);
    const steps = [`cd ${/^[\w./-]+$/.test(folder) ? folder : JSON.stringify(folder)}`, "npm install", start];
    console.log(`The template ${template} is in ${folder}. Next:\n\n${steps.map((step) => `  ${step}`).join("\n")}\n`);
    console.log("Its README.md says which model it asks, and where a key goes.");
    return 0;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.error(error.message);
    return error.code;
  }
}

/** @param {string[]} args */
async function wanted(args) {
  let parsed;
  try {
    const options = /** @type {const} */ ({ template: { type: "string", short: "t" }, help: { type: "boolean", short: "h" } });
    parsed = parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    throw new Refusal(`${/** @type {Error} */ (error).message}\n\n${USAGE}`, 2);
  }
  const { values, positionals: [folder, named, ...more] } = parsed;
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  if (more.length > 0 || (named !== undefined && values.template !== undefined)) throw new Refusal(USAGE, 2);
  const given = { folder, template: named ?? values.template };
  const { folder: place, template } = process.stdin.isTTY ? await asked(given) : given;
  if (!place) throw new Refusal(`The folder is missing: npm create turnwheel FOLDER TEMPLATE\n\n${USAGE}`, 2);
  if (!template) throw new Refusal(`The template is missing: npm create turnwheel ${place} TEMPLATE\n\n${USAGE}`, 2);
  if (!Object.hasOwn(TEMPLATES, template)) throw new Refusal(`There is no template ${JSON.stringify(template)}; there are ${NAMES.join(", ")}`, 2);
  return { folder: place, template };
}

/** What is missing is asked for. @param {{ folder: string | undefined, template: string | undefined }} given */
async function asked({ folder, template }) {
  if (folder && template) return { folder, template };
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    folder ||= (await terminal.question("Folder: ")).trim();
    if (!template) console.log(LIST);
    template ||= (await terminal.question("Template: ")).trim();
    return { folder, template };
  } finally {
    terminal.close();
  }
}

/** @param {string} folder @param {string} template */
function copy(folder, template) {
  const entries = entriesOf(folder);
  const some = `${entries.slice(0, 3).join(", ")}${entries.length > 3 ? ", …" : ""}`;
  if (entries.length > 0) throw new Refusal(`${folder} is not empty: it has ${some}. Name a folder that is new or empty`);
  const from = here(`templates/${template}`);
  const { version } = json(here("package.json"));
  const { name: _, ...rest } = json(`${from}/package.json`);
  mkdirSync(folder, { recursive: true });
  cpSync(from, folder, { recursive: true });
  const made = { name: nameOf(folder), version: "0.0.0", ...rest, dependencies: { ...rest.dependencies, turnwheel: `^${version}` } };
  writeFileSync(`${folder}/package.json`, `${JSON.stringify(made, undefined, 2)}\n`);
  writeFileSync(`${folder}/.gitignore`, `${IGNORED.join("\n")}\n`);
}

/** @param {string} folder @returns {string[]} */
function entriesOf(folder) {
  try {
    return readdirSync(folder);
  } catch (error) {
    const { code } = /** @type {{ code?: string }} */ (error);
    if (code === "ENOENT") return [];
    throw new Refusal(`${folder} ${code === "ENOTDIR" ? "is a file" : `cannot be read (${code})`}. Name a folder that is new or empty`);
  }
}

/** A name that npm takes. @param {string} folder */
function nameOf(folder) {
  const name = basename(resolve(folder)).toLowerCase().replace(/[^a-z0-9._-]+/g, "-").replace(/^[._-]+|-+$/g, "");
  return ["", "node_modules", "turnwheel"].includes(name) ? "my-agent" : name.slice(0, 200);
}

process.exitCode = await main(process.argv.slice(2));
