// Prints sizes, one line of JSON each: uncompressed, after gzip -9, after brotli -11. `node sizes.mjs APP META FILE...`: APP is
// a folder with an app that esbuild bundled, META what esbuild says of it. The first line is the script that a page loads at
// once, the second what it loads later, without what only durable runs need, and then there is a line for each file. Node has both compressors built in; two Rust
// crates for them would have to be compiled before the first build.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
const [app, meta, ...files] = process.argv.slice(2);

const { outputs } = JSON.parse(readFileSync(meta, "utf8"));
/** What is loaded with the entry: it, and what it imports by name. @type {Set<string>} */
const atOnce = new Set();
const visit = (/** @type {string | undefined} */ name) => {
  if (name === undefined || atOnce.has(name) || !outputs[name]) return;
  atOnce.add(name);
  for (const { path, kind } of outputs[name].imports) if (kind === "import-statement") visit(path);
};
// What is loaded by `import()` is an entry point to esbuild, too.
visit(Object.keys(outputs).find((name) => outputs[name].entryPoint === "<stdin>"));

// An agent loads this whose host stores its steps, and no other page.
const isApart = (/** @type {string} */ name) => Object.keys(outputs[name].inputs).some((input) => basename(input) === "steps.js");

const sum = (/** @type {string[]} */ names) => names.map((name) => sizes(join(app, basename(name)))).reduce((a, b) => a.map((size, i) => size + b[i]), [0, 0, 0]);
console.log(JSON.stringify(sum([...atOnce])));
console.log(JSON.stringify(sum(Object.keys(outputs).filter((name) => !atOnce.has(name) && !isApart(name)))));
for (const file of files) console.log(JSON.stringify(sizes(file)));

/** @param {string} path @returns {number[]} */
function sizes(path) {
  const bytes = readFileSync(path);
  const params = { [BROTLI_PARAM_QUALITY]: 11, [BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return [bytes.length, gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes, { params }).length];
}
