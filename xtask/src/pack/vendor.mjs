// Bundles an npm module, minified, with some of its files replaced by our own and others edited: `node
// vendor.mjs ENTRY BANNER EDITS [FILE=OURS...]` writes the code to stdout.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { build } from "esbuild";

const [contents, banner, list, ...replacements] = process.argv.slice(2);
const { edits } = await import(resolve(list));
const ours = new Map(replacements.map((pair) => pair.split("=")));
const replaced = new Set();
const plugin = {
  name: "replace",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\// }, ({ path }) => {
      const own = ours.get(path);
      replaced.add(path);
      return own && { path: resolve(own) };
    });
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      const file = Object.keys(edits).find((name) => path.endsWith(name.slice(1)));
      if (!file) return;
      replaced.add(file);
      let code = readFileSync(path, "utf8");
      for (const [what, by] of edits[file]) {
        if (code.search(what) < 0) throw new Error(`${path} has no ${what} to edit`);
        code = code.replace(what, by);
      }
      return { contents: code };
    });
  },
};
const { outputFiles } = await build({
  stdin: { contents, resolveDir: process.cwd() }, banner: { js: banner }, plugins: [plugin],
  bundle: true, minify: true, write: false, format: "esm", target: "es2022", legalComments: "inline", logLevel: "warning",
});
for (const path of [...Object.keys(edits), ...ours.keys()]) if (!replaced.has(path)) throw new Error(`the module has no ${path} to replace`);
process.stdout.write(outputFiles[0].text);
