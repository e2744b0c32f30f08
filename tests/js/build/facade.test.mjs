// @ts-check
// The facade's own code: its types agree, its files and functions are short, and an app ships only the rooms that it
// asks for.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const FACADE = here("../../../www/npm");
const MAX_LINES = 500;
const MAX_FUNCTION_LINES = 60;

const files = readdirSync(FACADE, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
const linesOf = (/** @type {string} */ file) => readFileSync(join(FACADE, file), "utf8").trimEnd().split("\n");

test("tsc agrees with the facade's own code", async () => {
  const tsc = here("../../../node_modules/typescript/bin/tsc");
  const output = await promisify(execFile)(process.execPath, [tsc, "--project", here("../../../www/tsconfig.json")]).catch((error) => error);
  assert.equal(output.stdout, "");
  assert.equal(output.stderr, "");
});

test("a file is read at one sitting", () => {
  const long = files.map((file) => ({ file, lines: linesOf(file).length })).filter(({ lines }) => lines > MAX_LINES);
  assert.deepEqual(long, []);
});

/**
 * The functions and methods of a file, with their lengths: what begins in a line that ends with a brace ends with
 * the brace at the same indentation.
 * @param {string[]} lines
 */
function functionsOf(lines) {
  const starts = /^( *)(?:export )?(?:(?:async )?function\b|(?:const|let) \w+ = (?:async )?\(|(?:async |static |get |set |\*|\[)*#?[\w.[\]" ?():-]+\(.*\) \{$|.*=> \{$)/;
  const keywords = /^ *(?:if|for|while|switch|catch|else|do|try|return|\}|\/\/|\*)\b|^ *\}/;
  return lines.flatMap((line, i) => {
    if (!line.endsWith("{") || !starts.test(line) || keywords.test(line)) return [];
    const indentation = /** @type {RegExpExecArray} */ (/^ */.exec(line))[0];
    const end = lines.findIndex((other, j) => j > i && other.startsWith(`${indentation}}`));
    return [{ line: line.trim(), length: end - i + 1 }];
  });
}

test("a function fits on a screen", () => {
  const all = files.flatMap((file) => functionsOf(linesOf(file)).map((found) => ({ file, ...found })));
  assert.ok(all.length > 500, `the functions are found: ${all.length}`);
  assert.deepEqual(all.filter(({ length }) => length > MAX_FUNCTION_LINES), []);
});

// What only an agent here needs: the calls into wasm, and the wires.
for (const door of ["react", "remote", "server", "stores", "local", "ag-ui", "otel", "inspector"]) {
  test(`an app that imports turnwheel/${door} alone ships no agent`, async () => {
    const { outputFiles, metafile } = await build({ entryPoints: [here(`../../../pkg/${door}.js`)], bundle: true, format: "esm", minify: true, packages: "external", write: false, splitting: true, outdir: "out", metafile: true });
    // What is imported with the door; what is loaded when it is asked for, such as tapes in an inspector, comes later.
    const known = new Set(Object.keys(metafile.outputs).filter((file) => metafile.outputs[file]?.entryPoint?.endsWith(`pkg/${door}.js`)));
    for (const file of known) for (const { path, kind } of metafile.outputs[file]?.imports ?? []) if (kind === "import-statement") known.add(path);
    assert.ok(known.size > 0);
    const code = outputFiles.filter(({ path }) => [...known].some((file) => path.endsWith(`/${file}`))).map(({ text }) => text).join("");
    assert.ok(code.length > 0);
    for (const word of ["run_poll", "agent_new", "openai-chat", "__structured_output"]) assert.ok(!code.includes(word), `${word} is not in it`);
  });
}
