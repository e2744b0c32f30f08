// Prints sizes, one line of JSON each: uncompressed, after gzip -9, after brotli -11. `node sizes.mjs APP META ALL META FILE...`:
// APP is a folder with an app that esbuild bundled, ALL one with everything that the package exports, META what esbuild says of
// them. The first line is the script that the app loads at once, the second what there is beside it, the third what of that stands
// apart because only durable runs load it (it is not in the second), and then there is a line for each file. Node has both compressors built in; two Rust crates for them would have to be compiled before the first build.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
const [app, appMeta, all, allMeta, ...files] = process.argv.slice(2);

/** Sums up the scripts of a bundle: those that are loaded with its entry, all, and those apart. @param {string} folder @param {string} meta @returns {[number[], number[], number[]]} */
function scripts(folder, meta) {
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
  const sum = (/** @type {string[]} */ names) => names.map((name) => sizes(join(folder, basename(name)))).reduce((a, b) => a.map((size, i) => size + b[i]), [0, 0, 0]);
  // An agent loads this whose host stores its steps, and no other page.
  const isApart = (/** @type {string} */ name) => Object.keys(outputs[name].inputs).some((input) => basename(input) === "steps.js");
  const names = Object.keys(outputs);
  return [sum([...atOnce]), sum(names.filter((name) => !isApart(name))), sum(names.filter(isApart))];
}

const [first] = scripts(app, appMeta);
const [, everything, apart] = scripts(all, allMeta);
console.log(JSON.stringify(first));
console.log(JSON.stringify(everything.map((size, i) => size - first[i])));
console.log(JSON.stringify(apart));
for (const file of files) console.log(JSON.stringify(sizes(file)));

/** @param {string} path @returns {number[]} */
function sizes(path) {
  const bytes = readFileSync(path);
  const params = { [BROTLI_PARAM_QUALITY]: 11, [BROTLI_PARAM_SIZE_HINT]: bytes.length };
  return [bytes.length, gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes, { params }).length];
}
