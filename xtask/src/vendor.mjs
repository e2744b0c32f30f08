// Bundles an npm module, minified, with some of its files replaced by our own and one of them edited:
// `node vendor.mjs ENTRY BANNER FILE=EDITS [FILE=OURS...]` writes the code to stdout.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { build } from "esbuild";

const [contents, banner, edited, ...replacements] = process.argv.slice(2);
const [file, list] = edited.split("=");
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
      if (!path.endsWith(file.slice(1))) return;
      replaced.add(file);
      let code = readFileSync(path, "utf8");
      for (const [what, by] of edits) {
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
for (const path of [file, ...ours.keys()]) if (!replaced.has(path)) throw new Error(`the module has no ${path} to replace`);
process.stdout.write(outputFiles[0].text);
