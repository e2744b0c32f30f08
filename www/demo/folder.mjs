#!/usr/bin/env node
// @ts-check
// Makes a folder of the demo page that any web host serves, at any path. `cargo xtask demo --out` runs it.
//   node www/demo/folder.mjs OUT PACKAGE [--weights FOLDER | FILE | ADDRESS]

import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { copyFile, mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";

/** @typedef {import("./site.js").Weights} Weights */

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));
/** Where npm has put llama.cpp as WebAssembly. */
const ENGINE = here("../../node_modules/@wllama/wllama/esm");
/** What is taken as it is. */
const AS_IT_IS = ["style.css", "icon.svg", "demo.webmanifest"];
/** How the worker of an earlier folder begins; by it the folder is known. */
const MARK = "const FOLDER = ";

class Misuse extends Error {}

/** @param {string} out @param {string} pkg @param {string | undefined} weights */
async function makeFolder(out, pkg, weights) {
  await clear(out);
  /** The contents of the folder by name: those that are fetched at once, and those that are when they are used. @type {{ files: Map<string, Buffer>, later: Map<string, Buffer> }} */
  const { files, later } = { files: new Map(), later: new Map() };
  for (const name of AS_IT_IS) files.set(name, await readFile(here(name)));
  const { preload } = await addProgram(pkg, files);
  files.set("index.html", Buffer.from(String(await readFile(here("index.html"))).replace("</head>", `${preload.map((name) => `  <link rel="modulepreload" href="./${name}">\n`).join("")}</head>`)));
  await addEngine(later);
  const found = weights === undefined ? null : await addWeights(out, weights);
  files.set("site.json", Buffer.from(`${JSON.stringify({ weights: found, offline: true })}\n`));

  const folder = { version: versionOf(files), files: ["./", ...[...files.keys()].map((name) => `./${name}`)], laterVersion: versionOf(later), later: [...later.keys()].map((name) => `./${name}`) };
  files.set("sw.js", Buffer.from(`${MARK}${JSON.stringify(folder)};\n${await readFile(here("sw.js"))}`));
  for (const name of ["LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY"]) files.set(name, await readFile(join(pkg, name)));
  files.set("wllama/LICENCE", await readFile(join(ENGINE, "../LICENCE")));
  for (const [name, content] of [...files, ...later]) {
    await mkdir(dirname(join(out, name)), { recursive: true });
    await writeFile(join(out, name), content);
  }
  return { version: folder.version, bytes: [...files.values()].reduce((sum, { length }) => sum + length, 0), weights: found };
}

/** Takes away what an earlier run has written; anything else in the folder is not ours to touch. @param {string} out */
async function clear(out) {
  if (!existsSync(out)) return void (await mkdir(out, { recursive: true }));
  const names = (await readdir(out)).filter((name) => name !== ".git");
  if (names.length === 0) return;
  const first = existsSync(join(out, "sw.js")) ? (String(await readFile(join(out, "sw.js"))).split("\n", 1)[0] ?? "") : "";
  if (!first.startsWith(MARK)) throw new Misuse(`${out} has other files in it; give an empty folder, or one that this command has written`);
  const { files, later } = JSON.parse(first.slice(MARK.length).replace(/;$/, ""));
  for (const name of [...files, ...later]) if (!name.endsWith("/")) await rm(join(out, name), { force: true });
  await rm(join(out, "weights"), { recursive: true, force: true });
}

/** The page's modules and the package, joined and made small. Returns what the page needs first. @param {string} pkg @param {Map<string, Buffer>} files */
async function addProgram(pkg, files) {
  const { outputFiles, metafile } = await build({
    entryPoints: [here("page.js"), here("payer.js")], bundle: true, splitting: true, format: "esm", minify: true, write: false, metafile: true, target: "es2022", outdir: "/", entryNames: "[name]", chunkNames: "part-[hash]", logLevel: "error",
    absWorkingDir: here("."), external: ["./wllama/*"], legalComments: "none",
    plugins: [{ name: "package", setup: (builder) => builder.onResolve({ filter: /^\.\/pkg\// }, ({ path }) => ({ path: resolve(pkg, path.slice("./pkg/".length)) })) }],
  });
  for (const { path, contents } of outputFiles) files.set(basename(path), Buffer.from(contents));
  const text = outputFiles.map((file) => file.text).join("\n");
  for (const name of await readdir(pkg)) {
    if (!name.endsWith(".wasm") || !text.includes(`"./${name}"`)) continue;
    // The agent keeps a journal and a tape, so it runs in the server engine. The parts of the other one are not used here.
    if (name === "turnwheel-server.wasm") files.set(name, await readFile(join(pkg, name)));
  }
  const outputs = Object.fromEntries(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
  const first = new Set(["page.js"]);
  // What page.js imports, and what it loads by name as it begins.
  const atOnce = new Set(["inspector.js"].map((name) => resolve(pkg, name)));
  const visit = (/** @type {string} */ name) => {
    for (const { path, kind } of outputs[name]?.imports ?? []) {
      const entry = outputs[basename(path)]?.entryPoint;
      const isFirst = kind === "import-statement" || (entry !== undefined && atOnce.has(resolve(here("."), entry)));
      if (!isFirst || first.has(basename(path)) || !outputs[basename(path)]) continue;
      first.add(basename(path));
      visit(basename(path));
    }
  };
  visit("page.js");
  return { preload: [...first].filter((name) => name !== "page.js") };
}

/** llama.cpp as WebAssembly, for weights that run in the page. @param {Map<string, Buffer>} later */
async function addEngine(later) {
  for (const name of ["index.min.js", "wasm/wllama.wasm"]) later.set(`wllama/${name}`, await readFile(join(ENGINE, name)));
}

/** @param {string} out @param {string} given an address, a file, or a folder with one @returns {Promise<Weights>} */
async function addWeights(out, given) {
  // Without how it was made smaller, which is of no interest here.
  const nameOf = (/** @type {string} */ path) => basename(path).replace(/\.gguf$/i, "").replace(/[.-](?:i?q\d\w*|b?f(?:16|32))$/i, "");
  if (/^https?:\/\//.test(given)) return { url: given, name: nameOf(decodeURIComponent(new URL(given).pathname)) };
  const file = await weightsFile(given);
  const url = `./weights/${basename(file)}`;
  await mkdir(join(out, "weights"), { recursive: true });
  await copyFile(file, join(out, url));
  const hash = createHash("sha256");
  for await (const piece of createReadStream(file)) hash.update(piece);
  return { url, name: nameOf(file), bytes: (await stat(file)).size, sha256: hash.digest("hex") };
}

/** @param {string} given @returns {Promise<string>} */
async function weightsFile(given) {
  if (!existsSync(given)) throw new Misuse(`${given} is not there; --weights wants a GGUF file, a folder with one, or an address that begins with https://`);
  if (!(await stat(given)).isDirectory()) return given;
  const found = (await readdir(given)).filter((name) => /\.gguf$/i.test(name));
  if (found.length !== 1) throw new Misuse(found.length === 0 ? `${given} has no file that ends in .gguf` : `${given} has ${found.length} GGUF files; name the one: --weights ${join(given, String(found[0]))}`);
  return join(given, String(found[0]));
}

/** @param {Map<string, Buffer>} files */
function versionOf(files) {
  const hash = createHash("sha256");
  for (const [name, content] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) hash.update(`${name} ${content.length}\n`).update(content);
  return hash.digest("hex").slice(0, 16);
}

const { positionals: [out, pkg], values: { weights } } = parseArgs({ allowPositionals: true, options: { weights: { type: "string" } } });
if (out === undefined || pkg === undefined) {
  console.error("Usage: node folder.mjs OUT PACKAGE [--weights FOLDER | FILE | ADDRESS]");
  process.exitCode = 2;
} else {
  try {
    const made = await makeFolder(resolve(out), resolve(pkg), weights);
    const size = `${Math.round(made.bytes / 1024)} KB before compression`;
    console.log(`${resolve(out)}: version ${made.version}, ${size}, ${made.weights ? `weights: ${made.weights.name}` : "without weights: the page asks for a file"}`);
  } catch (error) {
    if (!(error instanceof Misuse)) throw error;
    console.error(`error: ${error.message}`);
    process.exitCode = 1;
  }
}
