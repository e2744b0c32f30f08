// @ts-check
// `npm create turnwheel`: each template from the packed package, with the packed turnwheel in place of the published one.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { before, test } from "node:test";
import { promisify } from "node:util";
import { build } from "esbuild";
import { serve, textAnswer } from "../server.mjs";
import { emptyFolder, ROOT, run } from "./kit.mjs";

const home = emptyFolder();
/** Where `cargo xtask build` puts the package. */
const BUILT = join(resolve(ROOT, process.env["CARGO_TARGET_DIR"] ?? "target"), "create-turnwheel");
const NAMES = ["page", "react", "worker", "node", "next"];
const { version } = JSON.parse(readFileSync(join(ROOT, "pkg/package.json"), "utf8"));
const npm = (/** @type {string[]} */ ...words) => promisify(execFile)("npm", words, { cwd: home });
/** The packed turnwheel, and the program as it is installed. */
const packed = { turnwheel: "", create: "" };

before(async () => {
  const { stdout } = await npm("pack", join(ROOT, "pkg"), BUILT, "--json", "--pack-destination", home);
  const [turnwheel, create] = JSON.parse(stdout);
  assert.deepEqual([turnwheel.version, create.version], [version, version]);
  assert.ok(create.files.every((/** @type {any} */ { path }) => /^(index\.mjs|templates\.json|package\.json|README\.md|LICENSE-(MIT|APACHE)|templates\/.+)$/.test(path)));
  packed.turnwheel = join(home, turnwheel.filename);
  writeFileSync(join(home, "package.json"), "{}");
  await npm("install", "--offline", "--no-audit", "--no-fund", "--no-package-lock", packed.turnwheel, join(home, create.filename));
  packed.create = join(home, "node_modules/create-turnwheel/index.mjs");
});

const create = (/** @type {string[]} */ ...words) => run(words, { script: packed.create, cwd: home });
const filesOf = (/** @type {string} */ folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => statSync(join(folder, file)).isFile()).map((file) => file.replaceAll(sep, "/"));

for (const name of NAMES) test(`the template ${name} is complete, parses, and finds all that it imports`, async () => {
  const place = `My ${name}`;
  const { code, stdout, stderr } = await create(place, name);
  assert.deepEqual([code, stderr], [0, ""]);
  const { start } = JSON.parse(readFileSync(join(ROOT, "www/create/templates.json"), "utf8"))[name];
  assert.match(stdout, new RegExp(`Next:\n\n  cd "My ${name}"\n  npm install\n  ${start}\n`));
  const folder = join(home, place);
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  assert.deepEqual([manifest.name, manifest.private, manifest.dependencies.turnwheel], [`my-${name}`, true, `^${version}`]);
  assert.ok(manifest.scripts[start.replace(/^npm (run )?/, "")], `${start} is a script`);
  assert.match(readFileSync(join(folder, ".gitignore"), "utf8"), /^node_modules\n[^]*^\.dev\.vars\n/m);
  const files = filesOf(folder);
  assert.ok(files.includes("README.md") && !files.some((file) => file.includes("node_modules")));
  await bundles(folder, files, [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies ?? {})]);
  stays(folder, files);
});

/** The scripts with all that they import. The packages of others are not installed here. @param {string} folder @param {string[]} files @param {string[]} packages */
async function bundles(folder, files, packages) {
  const scripts = files.filter((file) => /\.[jt]sx?$/.test(file));
  assert.ok(scripts.length > 0);
  const external = packages.filter((name) => name !== "turnwheel").flatMap((name) => [name, `${name}/*`]);
  // A page without a bundler imports from the folder of packages.
  const own = join(folder, "node_modules");
  mkdirSync(own);
  cpSync(join(home, "node_modules/turnwheel"), join(own, "turnwheel"), { recursive: true });
  const { metafile } = await build({
    entryPoints: scripts.map((file) => join(folder, file)), bundle: true, write: false, metafile: true, outdir: "out", format: "esm", platform: "node", logLevel: "silent",
    external, loader: { ".js": "jsx", ".html": "text", ".wasm": "file" }, jsx: "automatic",
  });
  const inputs = Object.keys(metafile.inputs).map((input) => resolve(input));
  assert.ok(inputs.some((input) => input.startsWith(join(own, "turnwheel") + sep)), "it uses turnwheel");
  for (const input of inputs) assert.ok(input.startsWith(folder + sep), `${input} is not in the template`);
}

/** Each path that a file names is in the folder, or in the installed package. @param {string} folder @param {string[]} files */
function stays(folder, files) {
  const named = /(?:\]\(|(?:src|href)="|from "|import "|url\(")(?!https?:|#|data:)([^)"#?\s]+)/g;
  for (const file of files.filter((file) => /\.(md|html|css|[jt]sx?|toml|json)$/.test(file))) {
    const text = readFileSync(join(folder, file), "utf8");
    for (const [, path = ""] of text.matchAll(named)) {
      if (!/^[./]/.test(path) && !/\.\w+$/.test(path)) continue;
      const target = path.startsWith("/") ? join(folder, path) : resolve(folder, dirname(file), path);
      assert.ok(!relative(folder, target).startsWith(".."), `${file} leads to ${path}`);
      if (/\.(md|html)$/.test(file)) assert.ok(existsSync(target), `${file} leads to ${path}, and nothing is there`);
    }
    assert.ok(!text.includes("www/examples"), file);
  }
}

test("the project in Node streams an answer", { timeout: 60_000 }, async (t) => {
  assert.equal((await create("talk", "node")).code, 0);
  const folder = join(home, "talk");
  const file = join(folder, "package.json");
  writeFileSync(file, readFileSync(file, "utf8").replace(`^${version}`, `file:${packed.turnwheel}`));
  await promisify(execFile)("npm", ["install", "--offline", "--no-audit", "--no-fund", "--no-package-lock"], { cwd: folder });
  const server = await serve(t, [textAnswer(["It ", "rains."])]);
  const child = spawn("npm", ["start"], { cwd: folder, env: { ...process.env, BASE_URL: server.baseUrl, MODEL: "small" } });
  t.after(() => void child.kill("SIGKILL"));
  let said = "";
  for await (const piece of child.stdout.setEncoding("utf8")) {
    said += piece;
    if (server.requests.length === 0 && /> $/.test(piece)) child.stdin.write("Rain?\n");
    if (/tokens\]/.test(said)) child.stdin.end();
  }
  assert.match(said, /It rains\.\n\[10 tokens\]/);
  assert.equal(server.requests[0]?.body.model, "small");
});

test("a folder that is not empty is refused, and left as it is", async () => {
  mkdirSync(join(home, "full"));
  writeFileSync(join(home, "full/thesis.txt"), "all of it");
  const { code, stdout, stderr } = await create("full", "node");
  assert.deepEqual([code, stdout, stderr], [1, "", "full is not empty: it has thesis.txt. Name a folder that is new or empty\n"]);
  assert.deepEqual(readdirSync(join(home, "full")), ["thesis.txt"]);
  assert.equal((await create("full/thesis.txt", "node")).stderr, "full/thesis.txt is a file. Name a folder that is new or empty\n");
  mkdirSync(join(home, "empty"));
  assert.equal((await create("empty", "--template", "page")).code, 0);
});

test("what is missing or unknown is named, with the templates that there are", async () => {
  for (const [words, why] of /** @type {[string[], RegExp][]} */ ([
    [[], /^The folder is missing: npm create turnwheel FOLDER TEMPLATE\n/],
    [["new"], /^The template is missing: npm create turnwheel new TEMPLATE\n[^]*^  node +an agent in the terminal/m],
    [["new", "vue"], /^There is no template "vue"; there are page, react, worker, node, next\n$/],
    [["new", "constructor"], /^There is no template "constructor"/],
    [["new", "../.."], /^There is no template/],
    [["new", "page", "more"], /^Usage: /],
    [["new", "--tempate", "page"], /^Unknown option '--tempate'/],
  ])) {
    const { code, stdout, stderr } = await create(...words);
    assert.deepEqual([code, stdout], [2, ""], words.join(" "));
    assert.match(stderr, why);
  }
  assert.ok(!existsSync(join(home, "new")));
});
