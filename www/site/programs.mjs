// @ts-check
// The code of the pages as scripts that run in a page: the same programs, with the same hidden lines around them, that CI runs in
// Node (tests/js/docs/blocks.mjs). The block with a button runs with those that it continues.

import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { blocksOf, programsOf } from "../../tests/js/docs/blocks.mjs";
import { prepare, write } from "../../tests/js/docs/program.mjs";
import { ROOT } from "./pages.mjs";

const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

/** What a program may import of Node: what stands in for it in a page. Any other module of Node takes its button away. */
const STAND_INS = { "node:assert/strict": "stand-ins/assert.js" };
/** Packages that only Node has: they start processes, or follow its asynchronous calls. */
const OF_NODE = /^node:|\/stdio$|^@opentelemetry\/context-async-hooks$/;

/**
 * @typedef {object} Program a block with the blocks that it continues
 * @property {string} name of its script
 * @property {string} page
 * @property {number} line of the block
 * @property {string} source
 * @property {string[]} prints
 * @property {string | undefined} missing why it has no button
 */

/** The programs of a page, one for each block of JavaScript, by the block's line. @param {string} page @param {string} [text] */
export function programsAt(page, text) {
  const blocks = blocksOf(page, text).filter(({ language }) => language === "js");
  return new Map(blocks.map((block, at) => {
    const last = programsOf(blocks.slice(0, at + 1)).at(-1);
    const name = `run-${page.replace(/\.md$/, "").replaceAll("/", "-")}-${block.line}`;
    /** @type {Program} */
    const program = { name, page, line: block.line, source: last?.source ?? "", prints: last?.prints ?? [], missing: missingOf(block, last?.source ?? "") };
    return [block.line, program];
  }));
}

/** Why a block cannot run in a page; nothing if it can. @param {import("../../tests/js/docs/blocks.mjs").Block} block @param {string} source */
function missingOf({ notRun, inE2e }, source) {
  if (notRun !== undefined) return "it is not run";
  if (inE2e) return "its packages are fetched by e2e";
  const imports = [...source.matchAll(/(?:from|import\(?) ?"([^"]+)"/g)].map(([, name = ""]) => name);
  return imports.find((name) => OF_NODE.test(name) && !STAND_INS[/** @type {keyof typeof STAND_INS} */ (name)]);
}

/**
 * Makes the scripts of the site: its own, and one for each program. All share one copy of the package.
 * @param {string} pkg @param {Program[]} programs @returns {Promise<Map<string, Buffer>>} by name
 */
export async function scriptsOf(pkg, programs) {
  mkdirSync(join(ROOT, "tests/out"), { recursive: true });
  // In the repository: the programs import packages of its node_modules.
  const folder = prepare(mkdtempSync(join(ROOT, "tests/out/site-")), { turnwheel: pkg });
  try {
    const files = programs.map((program) => ({ in: write(folder, { ...program, source: withProcess(program.source) }), out: program.name }));
    const own = ["page", "worker", "tape"].map((name) => ({ in: here(`${name}.js`), out: name }));
    const { outputFiles } = await build({
      entryPoints: [...own, ...files], bundle: true, splitting: true, format: "esm", minify: true, write: false, target: "es2022", platform: "browser",
      outdir: "/", chunkNames: "part-[hash]", legalComments: "none", logLevel: "error", absWorkingDir: folder, plugins: [standIns(pkg)],
    });
    const scripts = new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]));
    const text = outputFiles.map((file) => file.text).join("\n");
    for (const name of readdirSync(pkg)) {
      if (name.endsWith(".wasm") && text.includes(`"./${name}"`)) scripts.set(name, readFileSync(join(pkg, name)));
    }
    return scripts;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Gives a program that names `process` a small one. The package does not see it: it would take the page for Node. @param {string} source */
const withProcess = (source) => (/\bprocess\./.test(source) ? `import { process } from "site:process";\n${source}` : source);

/** @param {string} pkg @returns {import("esbuild").Plugin} */
const standIns = (pkg) => ({
  name: "stand-ins",
  setup(builder) {
    builder.onResolve({ filter: /^node:/ }, ({ path }) => {
      const file = STAND_INS[/** @type {keyof typeof STAND_INS} */ (path)];
      return file ? { path: here(file) } : undefined;
    });
    builder.onResolve({ filter: /^site:process$/ }, () => ({ path: here("stand-ins/process.js") }));
    builder.onResolve({ filter: /^package:/ }, ({ path }) => ({ path: join(pkg, path.slice("package:".length)) }));
  },
});
