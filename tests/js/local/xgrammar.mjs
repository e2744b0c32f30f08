// @ts-check
// web-llm's own grammar engine, to ask whether it accepts a text. Its module for Node is broken as it is published:
// bundled as CommonJS it works.

import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const FOLDER = fileURLToPath(new URL("../../out/xgrammar", import.meta.url));

/** @returns {Promise<(grammar: string) => Promise<(text: string) => Promise<boolean>>>} */
export async function xgrammar() {
  mkdirSync(FOLDER, { recursive: true });
  const require = createRequire(import.meta.url);
  const outfile = `${FOLDER}/xgrammar.cjs`;
  await build({ entryPoints: [require.resolve("@mlc-ai/web-xgrammar")], bundle: true, platform: "node", format: "cjs", outfile, logLevel: "error" });
  writeFileSync(`${FOLDER}/package.json`, '{ "type": "commonjs" }');
  const { Grammar, Testings } = require(outfile);
  return async (text) => {
    const grammar = await Grammar.fromEBNF(text);
    return (answer) => Testings.isGrammarAcceptString(grammar, answer);
  };
}
