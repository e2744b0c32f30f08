// @ts-check
// npx turnwheel verify: the wasm files of the package against the manifest of their hashes, and what each of them imports.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { complain, parsed, refuse, say, textOf } from "./terminal.mjs";
import { usageOf } from "./usage.mjs";

/** What is listed by name. */
const MOST = 40;
const FOLDER = fileURLToPath(new URL("..", import.meta.url));

/** @param {string[]} args @returns {Promise<number>} the exit code */
export async function verify(args) {
  let given;
  try {
    given = parsed(args, ["sums"]);
  } catch (error) {
    return refuse(`${textOf(error)}\n\n${usageOf("verify")}`);
  }
  const { values: { help, sums = `${FOLDER}SHA256SUMS` }, positionals } = given;
  if (help) return say(usageOf("verify"));
  if (positionals.length > 0) return refuse(`verify takes no file; another manifest is --sums FILE\n\n${usageOf("verify")}`);
  try {
    return await compared(sumsOf(readFileSync(sums, "utf8")), sums);
  } catch (error) {
    return complain(`the manifest ${sums} cannot be used: ${textOf(error)}; install the package again, or name another with --sums FILE`);
  }
}

/** Hashes by name, from lines as sha256sum writes them. Those of other files than modules are passed over. @param {string} text */
function sumsOf(text) {
  const sums = new Map([...text.matchAll(/^([0-9a-f]{64}) [ *](\S+\.wasm)$/gm)].map(([, hash = "", name = ""]) => [name, hash]));
  if (sums.size === 0) throw new Error("it has no line with the hash of a wasm file");
  return sums;
}

/** @param {Map<string, string>} sums @param {string} manifest */
async function compared(sums, manifest) {
  const there = readdirSync(FOLDER).filter((name) => name.endsWith(".wasm"));
  let wrong = 0;
  for (const name of new Set([...sums.keys(), ...there].sort())) {
    const bytes = there.includes(name) ? readFileSync(`${FOLDER}${name}`) : undefined;
    const hash = bytes && createHash("sha256").update(bytes).digest("hex");
    const verdict = hash === undefined ? "MISSING" : !sums.has(name) ? "UNKNOWN" : hash === sums.get(name) ? "ok" : "DIFFERS";
    if (verdict !== "ok") wrong += 1;
    say(`${verdict.padEnd(8)} ${name}  ${hash ?? sums.get(name)}`);
    if (verdict === "DIFFERS") say(`         expected ${" ".repeat(Math.max(name.length - 7, 1))}${sums.get(name)}`);
    if (bytes) say(`         imports ${await importsOf(bytes)}`);
  }
  if (wrong === 0) return say(`\n${sums.size} wasm files are those of the manifest`);
  return complain(`\n${wrong} of the wasm files ${wrong === 1 ? "is" : "are"} not as ${manifest} says: do not run this package; install it again with npm install turnwheel`);
}

/** What a module can do is what it imports. @param {Buffer} bytes */
async function importsOf(bytes) {
  try {
    const imports = WebAssembly.Module.imports(await WebAssembly.compile(/** @type {BufferSource} */ (bytes)));
    const modules = [...new Set(imports.map(({ module }) => module))];
    return modules.map((module) => listed(module, imports.filter((one) => one.module === module))).join("; ") || "nothing";
  } catch {
    return "cannot be read: it is no wasm module";
  }
}

/** @param {string} module @param {WebAssembly.ModuleImportDescriptor[]} imports */
function listed(module, imports) {
  // A part shares the functions and the memory of the one before it: they are hundreds, without names.
  if (imports.length > MOST) return `from another part (${module}): ${imports.length} functions, tables, globals and the memory`;
  // The names of functions in JavaScript end in a hash, which says nothing to a reader.
  return `from ${module}: ${imports.map(({ name }) => name.replace(/^(__wbg_|__wbindgen_)+/, "").replace(/_[0-9a-f]{16}$/, "")).join(", ")}`;
}
