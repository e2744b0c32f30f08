// @ts-check
// The package as it is published: packed, installed into an empty folder, and run by every host from there.
// The apps are the folders beside this file, each as a user would write it; those whose tools must be
// downloaded are in e2e.mjs.
//   node tests/packaging/run.mjs
// Prints a line per check and `N passed, N failed`; exits with 1 if one failed.

import assert from "node:assert/strict";
import { copyFile, cp, mkdtemp, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { build as esbuild } from "esbuild";
import { Miniflare, Response } from "miniflare";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { createServer as viteServer } from "vite";
import { textAnswer } from "../js/server.mjs";
import { PACKAGE, ROOT, run, SAID, workshop } from "./kit.mjs";

let passed = 0;
let failed = 0;

/** @param {string} name @param {() => Promise<unknown>} body */
async function check(name, body) {
  const from = performance.now();
  try {
    await body();
    passed += 1;
    console.log(`ok      ${name} (${((performance.now() - from) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    const { stack, stdout = "", stderr = "" } = /** @type {any} */ (error) ?? {};
    console.log(`FAILED  ${name}\n        ${`${stack ?? error}\n${stdout}${stderr}`.trim().replaceAll("\n", "\n        ")}`);
  }
}

/** The same agent in a Durable Object of that Worker. @param {(path: string, init?: any) => Promise<any>} ask @param {string} text what it says last */
async function inAnObject(ask, text) {
  const prompted = await ask("/agents/ada/prompt", { method: "POST", body: '{"input":"Go"}', headers: { "content-type": "application/json" } });
  assert.equal(prompted.status, 202);
  let state;
  do state = await (await ask("/agents/ada/state")).json();
  while (state.isRunning);
  assert.equal(state.messages.at(-1).content[0].text, text);
}

/** @param {(path: string, init?: any) => Promise<any>} ask */
async function notInAPlainWorker(ask) {
  const refused = await ask("/shared/state");
  assert.equal(refused.status, 501);
  assert.match((await refused.json()).error.message, /plain Worker.*DurableAgent of turnwheel\/cloudflare/);
}

const shop = await workshop();
/** A folder with the package installed as from a registry. @type {string} */
let project = "";
const installed = (/** @type {string} */ path) => join(project, "node_modules/turnwheel", path);

/**
 * Expects a page to say this and nothing else.
 * @param {{ said: string | null, complaints: string[] }} heard
 */
function says42({ said, complaints }) {
  assert.deepEqual([said, complaints], [SAID, []]);
}

try {
  let tarball = "";
  await check("npm packs it, with everything that is needed and nothing else", async () => {
    const { filename, files } = await shop.pack();
    tarball = filename;
    const paths = files.map((/** @type {any} */ file) => file.path);
    for (const needed of ["package.json", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY", "sbom.cdx.json", "index.d.ts", "slim.js", "slim.d.ts", "inline.js", "inline.cjs", "inline.d.ts", "inline.d.cts", "smoke.js", "stores.js", "stores.d.ts", "stores-node.js", "stores-node.d.ts", "remote.js", "remote.d.ts", "server.js", "server.d.ts", "react.js", "react.d.ts", "mcp.js", "mcp.d.ts", "webmcp.js", "webmcp.d.ts", "local.js", "local.d.ts", "turnwheel.wasm", "turnwheel-first.wasm", "turnwheel-rest.wasm", "entry/web.js", "entry/whole.js", "entry/node.js", "entry/workerd.js", "ai-sdk.js", "ai-sdk.d.ts", "ag-ui.js", "ag-ui.d.ts", "otel.js", "otel.d.ts", "inspector.js", "inspector.d.ts", "tape.js", "tape.d.ts", "durable.js", "durable.d.ts", "cli.mjs", "cli/chat.mjs", "llms.txt", "SHA256SUMS", "docs/README.md", "skills/turnwheel/SKILL.md", "turnwheel-server.wasm", "turnwheel-answer.wasm", "tabs.js", "tabs.d.ts", "cloudflare.js", "cloudflare-elsewhere.js", "cloudflare.d.ts"]) assert.ok(paths.includes(needed), `${needed} is in it`);
    assert.deepEqual(paths.filter((/** @type {string} */ path) => !/^(entry\/)?[\w-]+\.(c?js|d\.c?ts|wasm|json|md)$|^cli(\/[\w-]+)?\.mjs$|^docs\/[\w-]+\.(md|png)$|^skills\/turnwheel\/SKILL\.md$|^(LICENSE-.*|sbom\.cdx\.json|llms\.txt|SHA256SUMS)$/.test(path)), []);
    project = await shop.project();
    assert.deepEqual(await readdir(join(project, "node_modules")).then((names) => names.filter((name) => !name.startsWith("."))), ["turnwheel"], "it depends on nothing");
  });

  await check("nothing in it runs when it is installed, and nothing tells on which machine it was made", async () => {
    const { scripts, dependencies, bin } = JSON.parse(await readFile(installed("package.json"), "utf8"));
    assert.deepEqual([scripts, dependencies, Object.keys(bin)], [undefined, undefined, ["turnwheel"]]);
    const { stdout: sysroot } = await run("rustc", ["--print", "sysroot"], { cwd: ROOT });
    const folders = [ROOT, `${homedir()}/`, process.env["CARGO_HOME"], sysroot.trim(), "/rustlib/", "/registry/src/"];
    for (const entry of await readdir(installed(""), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = join(entry.parentPath ?? entry.path, entry.name);
      const text = await readFile(file, "latin1");
      for (const folder of folders) assert.ok(!folder || !text.includes(folder), `${entry.name} names ${folder}`);
      assert.doesNotMatch(text, /sourceMappingURL=/, entry.name);
      // npm makes what `bin` names executable.
      if (entry.name !== "cli.mjs") assert.equal((await stat(file)).mode & 0o111, 0, `${entry.name} is executable`);
    }
  });

  await check("publint has nothing to say", async () => {
    const { messages, pkg } = await publint({ pkgDir: PACKAGE, strict: true, level: "suggestion" });
    assert.deepEqual(messages.map((message) => formatMessage(message, /** @type {any} */ (pkg), { color: false })), []);
  });

  await check("arethetypeswrong has nothing to say of how modules find the types", async () => {
    const packed = createPackageFromTarballData(await readFile(join(shop.home, tarball)));
    const told = /** @type {any} */ (await checkPackage(packed));
    assert.equal(told.types.kind, "included");
    // `node10` does not know `exports`, and `require` needs a dynamic import, as its message
    // says: the package is ESM.
    const others = told.problems.filter((/** @type {any} */ { kind, resolutionKind }) => resolutionKind !== "node10" && kind !== "CJSResolvesToESM");
    assert.deepEqual(others, []);
    assert.deepEqual(Object.keys(told.entrypoints).sort(), Object.keys(JSON.parse(await readFile(installed("package.json"), "utf8")).exports).sort());
  });

  await check("every file of the exports is there", async () => {
    const { exports, types } = JSON.parse(await readFile(installed("package.json"), "utf8"));
    const paths = [types, ...JSON.stringify(exports).matchAll(/"(\.\/[^"]+\.[\w.]+)"(?!:)/g)].map((match) => (Array.isArray(match) ? match[1] : match));
    assert.ok(paths.length > 8);
    for (const path of paths) await readFile(installed(path));
  });

  await check("Node runs it, and ends when the run has ended", async () => {
    const { stdout, stderr } = await shop.npm(await shop.app("node"), "start");
    assert.deepEqual([stdout.trim(), stderr], [SAID, ""]);
  });

  await check("slim takes the bytes, a module or a promise from its user", async () => {
    const app = await readFile(join(await shop.app("node"), "app.js"), "utf8");
    const source = `import { readFile } from "node:fs/promises";\nimport { use } from "turnwheel/slim";\nconst bytes = readFile(new URL(import.meta.resolve("turnwheel/turnwheel.wasm")));\n${app.replace('"turnwheel"', '"turnwheel/slim"')}`;
    // Some hosts run their guests in another realm, with its own `WebAssembly`.
    const foreign = 'async () => (await import("node:vm")).runInNewContext("new WebAssembly.Module(bytes)", { bytes: await bytes })';
    for (const load of ["() => bytes", "async () => WebAssembly.compile(await bytes)", foreign]) {
      await writeFile(join(project, "slim.mjs"), source.replace("\nconst add", `\nuse(${load});\nconst add`));
      assert.equal((await run(process.execPath, ["slim.mjs"], { cwd: project })).stdout.trim(), SAID);
    }
    await writeFile(join(project, "both.mjs"), 'import { Agent, scripted } from "turnwheel";\nimport { use } from "turnwheel/slim";\nuse(() => { throw new Error("what the user says counts"); });\nconst { error } = await new Agent({ model: scripted([]) }).prompt("Go");\nconsole.log(error.message);\n');
    assert.equal((await run(process.execPath, ["both.mjs"], { cwd: project })).stdout.trim(), "what the user says counts");
    await writeFile(join(project, "bare.mjs"), 'import { Agent, scripted } from "turnwheel/slim";\nconst { error } = await new Agent({ model: scripted([]) }).prompt("Go");\nconsole.log(error.message);\n');
    assert.match((await run(process.execPath, ["bare.mjs"], { cwd: project })).stdout, /call use\(\(\) => bytes\) first/);
  });

  await check("inline is one script that imports nothing and exports what turnwheel does, for import and for require", async () => {
    const codes = await Promise.all(["inline.js", "inline.cjs"].map((name) => readFile(installed(name), "utf8")));
    for (const code of codes) {
      assert.doesNotMatch(code, /\bimport\(|\bimport\.meta|\brequire\(|\beval\(|new Function\b/);
      const { metafile } = await esbuild({ stdin: { contents: code, loader: "js" }, bundle: true, write: false, format: "esm", metafile: true, logLevel: "silent" });
      assert.deepEqual(Object.values(metafile.inputs).flatMap(({ imports }) => imports), []);
    }
    await writeFile(join(project, "inline.mjs"), 'import { createRequire } from "node:module";\nimport * as main from "turnwheel";\nimport * as module from "turnwheel/inline";\nconst required = createRequire(import.meta.url)("turnwheel/inline");\nconst names = (all) => Object.keys(all).sort().join();\nconsole.log(names(module) === names(main), names(required) === names(main));\nconst error = new required.AgentError({ code: "auth", message: "no key", retryable: false });\nconsole.log(module.AgentError.isInstance(error), error instanceof main.AgentError, error.name);\n');
    assert.equal((await run(process.execPath, ["inline.mjs"], { cwd: project })).stdout.trim(), "true true\ntrue true AgentError");
  });

  // A copy elsewhere must not find anything beside it.
  const alone = async (/** @type {string} */ name, /** @type {string} */ code) => {
    const at = await shop.folder(`alone-${name}`, { [name]: code });
    return (await run(process.execPath, [name], { cwd: at })).stdout.trim();
  };
  /** The app of the page for Node, with tools and events, on the package as one script. */
  const inlineApp = async () => (await readFile(join(await shop.app("node"), "app.js"), "utf8")).replace('"turnwheel"', '"turnwheel/inline"');

  await check("inline in one file by esbuild, as a module and in CommonJS, with nothing beside it", async () => {
    const app = await inlineApp();
    // CommonJS has no `await` outside of functions.
    const wrapped = app.replace(/^(import .*\n)/m, "$1(async () => {\n") + "})();\n";
    for (const [format, contents, name] of /** @type {const} */ ([["esm", app, "app.mjs"], ["cjs", wrapped, "app.cjs"], ["iife", wrapped, "script.cjs"]])) {
      const { outputFiles, warnings } = await esbuild({ stdin: { contents, resolveDir: project }, bundle: true, minify: true, write: false, format, platform: "node", logLevel: "silent" });
      assert.deepEqual([outputFiles.length, warnings], [1, []], format);
      assert.equal(await alone(name, outputFiles[0]?.text ?? ""), SAID, format);
    }
  });

  await check("inline checks arguments by patterns, shortens results and does not need DecompressionStream where Node has zlib", async () => {
    await writeFile(join(project, "late.mjs"), 'if (process.argv[2]) delete globalThis.DecompressionStream;\nconst { Agent, scripted, tool } = await import("turnwheel/inline");\nconst look = tool({ name: "look", description: "Looks", parameters: { type: "object", properties: { at: { type: "string", pattern: "^(a|b)+c" } } }, maxResultBytes: 200, execute: () => "x".repeat(5000) });\nconst calls = ["abd", "abc"].map((at) => ({ toolCalls: [{ toolName: "look", arguments: { at } }] }));\nconst { text, error, messages } = await new Agent({ model: scripted([...calls, "done"]), tools: [look] }).prompt("Go");\nconst results = messages.filter(({ role }) => role === "tool_result");\nconsole.log(text, error?.message, results.map(({ isError, content }) => [isError, content[0].text.length < 1000]).join(" "));\n');
    // Node 20.16 and newer have what stands in for it.
    for (const args of "getBuiltinModule" in process ? [[], ["without"]] : [[]]) {
      assert.equal((await run(process.execPath, ["late.mjs", ...args], { cwd: project })).stdout.trim(), "done undefined true,true false,true");
    }
  });

  await check("a bundle for Node whose wasm file was left behind says where it is missed", async () => {
    const { outputFiles } = await esbuild({ stdin: { contents: 'import { Agent, scripted } from "turnwheel";\nconst { error } = await new Agent({ model: scripted([]) }).prompt("Go");\nconsole.log(error.message);', resolveDir: project }, bundle: true, write: false, format: "esm", platform: "node", logLevel: "silent" });
    await writeFile(join(project, "left.mjs"), outputFiles[0]?.text ?? "");
    assert.match((await run(process.execPath, ["left.mjs"], { cwd: project })).stdout, /^turnwheel\.wasm cannot be read from file:.*turnwheel\.wasm; copy it there, or say with `use` of turnwheel\/slim/);
    // As on a page without a network.
    await writeFile(join(project, "gone.mjs"), 'import { Agent, scripted } from "./node_modules/turnwheel/entry/web.js";\nconst { error } = await new Agent({ model: scripted([]) }).prompt("Go");\nconsole.log(error.message);\n');
    assert.match((await run(process.execPath, ["gone.mjs"], { cwd: project })).stdout, /^turnwheel-first\.wasm cannot be fetched from file:/);
  });

  await check("turnwheel/remote and turnwheel/server stand beside the bundle, and a run goes through both", async () => {
    await writeFile(join(project, "remote.mjs"), 'import { Agent, scripted } from "turnwheel";\nimport { RemoteAgent, fromResponse } from "turnwheel/remote";\nimport { agentHandler } from "turnwheel/server";\nconst handler = agentHandler(new Agent({ model: scripted(["there"]) }));\nconst remote = new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) });\nconst { text } = await remote.prompt("Go");\nconst run = new Agent({ model: scripted(["here"]) }).prompt("Go");\nconsole.log(text, (await fromResponse(run.toResponse())).text);\n');
    assert.equal((await run(process.execPath, ["remote.mjs"], { cwd: project })).stdout.trim(), "there here");
  });
  await check("npx turnwheel tape shows a tape, writes it as JSON and as a test that passes, and says how it is called", async () => {
    await writeFile(join(project, "recorded.mjs"), 'import { writeFileSync } from "node:fs";\nimport { Agent, scripted, tool } from "turnwheel";\nimport { record } from "turnwheel/tape";\nconst look = tool({ name: "look", description: "Looks", parameters: { type: "object" }, execute: () => "a tree" });\nconst agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "look" }] }, "I see a tree."]), tools: [look] });\nconst recorder = await record(agent);\nawait agent.prompt("What is there?");\nrecorder.stop();\nwriteFileSync("seen.tape", recorder.toText());\n');
    await run(process.execPath, ["recorded.mjs"], { cwd: project });
    const npx = (/** @type {string[]} */ ...args) => run("npx", ["--no-install", "turnwheel", ...args], { cwd: project });
    const shown = (await npx("tape", "seen.tape")).stdout;
    for (const told of ["asked: What is there?", "look {}", "look ends: a tree", "the model: I see a tree. (stop)", "run ends: completed", "15 events, 4 messages"]) assert.ok(shown.includes(told), `${told} in ${shown}`);
    const lines = (await npx("tape", "seen.tape", "--json")).stdout.trim().split("\n").map((line) => JSON.parse(line));
    assert.ok(lines.some(({ kind, name }) => kind === "start" && name === "t0/tool/0-look"));
    assert.match((await npx("tape", "seen.tape", "--test")).stdout, /seen\.test\.mjs is written/);
    assert.match((await run(process.execPath, ["--test", "seen.test.mjs"], { cwd: project })).stdout, /pass 1\b/);
    await assert.rejects(npx("tape"), (/** @type {any} */ error) => error.code === 1 && /^Usage: npx turnwheel tape FILE/.test(error.stderr));
    await assert.rejects(npx("tape", "package.json"), (/** @type {any} */ error) => error.code === 1 && /the text is no tape/.test(error.stderr));
    await assert.rejects(npx("tape", "nowhere.tape"), (/** @type {any} */ error) => error.code === 1 && /nowhere\.tape/.test(error.stderr));
    await assert.rejects(npx("smoke"), (/** @type {any} */ error) => error.code === 1 && /^--server is missing: one of openai, /.test(error.stderr));
  });

  await check("turnwheel/tabs has an agent for itself where there are no tabs", async () => {
    await writeFile(join(project, "tabs.mjs"), 'import { scripted } from "turnwheel";\nimport { openAgent, shared } from "turnwheel/tabs";\nconst agent = await shared("a", (lease) => openAgent(lease, { model: scripted(["alone"]) }));\nconst { text } = await agent.prompt("Go");\nconsole.log(agent.role, text);\n');
    assert.equal((await run(process.execPath, ["tabs.mjs"], { cwd: project })).stdout.trim(), "alone alone");
  });
  await check("turnwheel/stores stands beside the bundle, not in it", async () => {
    await writeFile(join(project, "stores.mjs"), 'import { durableObjectStore, indexedDBStore } from "turnwheel/stores";\nimport { AgentError } from "turnwheel";\nconst error = await indexedDBStore().load("a").catch((error) => error);\nconsole.log(typeof durableObjectStore, AgentError.isInstance(error), error.message);\n');
    assert.equal((await run(process.execPath, ["stores.mjs"], { cwd: project })).stdout.trim(), "function true there is no IndexedDB here; it is a browser's");
    const { outputFiles } = await esbuild({ stdin: { contents: 'export * from "turnwheel";', resolveDir: project }, bundle: true, write: false, format: "esm", platform: "browser", logLevel: "silent" });
    assert.ok(!outputFiles[0]?.text.includes("turnwheel_checkpoints"));
  });

  await check("a plain script of a page, from static files, under a policy that allows wasm and no more", async () => {
    const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'";
    const heard = await shop.serve(await shop.app("page"), { "content-security-policy": policy });
    says42(heard);
    assert.equal(heard.asked.filter((path) => path.endsWith(".wasm")).length, 3, "all parts, and not the whole");
    assert.ok(!heard.asked.some((path) => /node\.js|workerd\.js/.test(path)));
    const refused = await shop.serve(join(shop.home, "page"), { "content-security-policy": policy.replace(" 'wasm-unsafe-eval'", "") });
    assert.equal(refused.said, "the page's Content-Security-Policy refuses WebAssembly; allow it with: script-src 'wasm-unsafe-eval'");
  });

  await check("a page whose wasm file was forgotten says where it was looked for", async () => {
    const at = join(shop.home, "page");
    const wasm = (/** @type {string} */ part) => join(at, `node_modules/turnwheel/turnwheel${part}.wasm`);
    await rename(wasm("-rest"), wasm("-away"));
    const half = await shop.serve(at);
    assert.match(half.said ?? "", /^turnwheel-rest\.wasm is not at http:\S+\/turnwheel-rest\.wasm; copy it there.*turnwheel\/inline/);
    // Of another build: each module says to which script it belongs.
    await writeFile(wasm("-rest"), Buffer.from((await readFile(wasm("-away"))).toString("latin1").replace(/turnwheel-[0-9a-f]{4}/g, "turnwheel-zzzz"), "latin1"));
    const foreign = await shop.serve(at);
    assert.match(foreign.said ?? "", /another version/);
    await writeFile(wasm("-rest"), (await readFile(wasm("-away"))).subarray(0, 10_000));
    const truncated = await shop.serve(at);
    assert.match(truncated.said ?? "", /^turnwheel-rest\.wasm from http:\S+ is not whole, or cannot be compiled: /);
    await rename(wasm("-away"), wasm("-rest"));
    // The script has parts, too.
    const folder = join(at, "node_modules/turnwheel");
    const texts = await Promise.all((await readdir(folder)).filter((name) => /^core-.*\.js$/.test(name)).map(async (name) => /** @type {const} */ ([join(folder, name), await readFile(join(folder, name), "utf8")])));
    const [script, text] = texts.find(([, text]) => text.includes("// run/rest-entries.js")) ?? ["", ""];
    await rm(script);
    assert.match((await shop.serve(at)).said ?? "", /^the part of turnwheel that runs tools cannot be loaded: .*core-\w+\.js$/);
    await writeFile(script, text.slice(0, text.length / 2));
    assert.match((await shop.serve(at)).said ?? "", /^the part of turnwheel that runs tools cannot be loaded: /);
    await writeFile(script, text);
    // The whole is as good as its parts.
    await rm(wasm("-first"));
    assert.equal((await shop.serve(at)).said, SAID);
    await rm(wasm(""));
    const missing = await shop.serve(at);
    assert.match(missing.said ?? "", /^turnwheel-first\.wasm is not at http:\S+\/turnwheel-first\.wasm; copy it there.*turnwheel\/inline/);
    const fallback = await shop.serve(at, { fallback: "index.html" });
    assert.equal(fallback.said?.replace(/:\d+/, ""), missing.said?.replace(/:\d+/, ""));
  });

  await check("Vite builds it with nothing said, the wasm file beside the rest", async () => {
    const source = await shop.app("vite");
    const { stderr } = await shop.npm(source, "build");
    assert.equal(stderr, "");
    const assets = await readdir(join(source, "dist/assets"));
    assert.ok(assets.some((name) => /^turnwheel-.*\.wasm$/.test(name)), String(assets));
    const heard = await shop.serve(join(source, "dist"));
    says42(heard);
    // The page's hint names the file as it is built, so the first part is fetched once, and before the run asks for it.
    // A hash has eight characters, and may have a hyphen among them.
    const parts = heard.asked.map((path) => /turnwheel-(first|answer|rest)(?=-[\w-]{8}\.wasm)/.exec(path)?.[1]).filter(Boolean);
    assert.deepEqual(parts, ["first", "answer", "rest"]);
  });

  await check("Vite serves it while it is written", async () => {
    const server = await viteServer({ root: join(shop.home, "vite"), configFile: false, logLevel: "silent", server: { port: 0, host: "127.0.0.1" } });
    try {
      await server.listen();
      const { port } = /** @type {any} */ (server.httpServer?.address());
      says42(await shop.open(`http://127.0.0.1:${port}/`));
    } finally {
      await server.close();
    }
  });

  await check("Vite before 8, which bundles it anew while the app is written, and leaves the wasm file where it was", async () => {
    const at = join(shop.home, "page-of-vite-7");
    await cp(await shop.app("page"), at, { recursive: true });
    await esbuild({ entryPoints: [join(at, "node_modules/turnwheel/entry/web.js")], bundle: true, format: "esm", platform: "browser", logLevel: "silent", outfile: join(at, "node_modules/.vite/deps/turnwheel.js") });
    const script = join(at, "app.js");
    await writeFile(script, (await readFile(script, "utf8")).replace(/from "[^"]*turnwheel[^"]*"/, 'from "./node_modules/.vite/deps/turnwheel.js"'));
    says42(await shop.serve(at, { fallback: "index.html" }));
  });

  await check("a web worker, built by Vite", async () => {
    const source = await shop.app("web-worker");
    await shop.npm(source, "build");
    says42(await shop.serve(join(source, "dist")));
  });

  await check("esbuild, the wasm file copied beside the bundle", async () => {
    const source = await shop.app("esbuild");
    await shop.npm(source, "build");
    assert.doesNotMatch(await readFile(join(source, "dist/app.js"), "utf8"), /node:fs|\beval\(/);
    says42(await shop.serve(join(source, "dist")));
  });

  await check("esbuild with turnwheel/slim: nothing to copy", async () => {
    const source = await shop.app("slim");
    await shop.npm(source, "build");
    says42(await shop.serve(join(source, "dist")));
  });

  await check("a service worker answers its page", async () => {
    const source = await shop.app("service-worker");
    await shop.npm(source, "build");
    const heard = await shop.serve(join(source, "dist"));
    says42(heard);
    assert.equal(heard.asked.filter((path) => path.endsWith(".wasm")).length, 3, "all parts, and not the whole");
  });

  await check("an extension: its page, and its service worker", async () => {
    const source = await shop.app("extension");
    await shop.npm(source, "build");
    assert.deepEqual(await shop.extend(join(source, "dist")), { said: SAID, answer: "It is 42." });
  });

  await check("a page that is one file, opened from a disk", async () => {
    const source = await shop.app("single-file");
    await shop.npm(source, "build");
    assert.deepEqual(await readdir(join(source, "dist")), ["index.html"]);
    says42(await shop.open(pathToFileURL(join(source, "dist/index.html")).href));
  });

  await check("Vite with turnwheel/inline: one script, no asset, and a server's build that has all inside", async () => {
    const source = await shop.app("vite");
    const script = join(source, "app.js");
    await writeFile(script, (await readFile(script, "utf8")).replace('"turnwheel"', '"turnwheel/inline"'));
    const page = join(source, "index.html");
    await writeFile(page, (await readFile(page, "utf8")).replace(/^.*rel="preload".*\n/gm, ""));
    await shop.npm(source, "build");
    assert.deepEqual((await readdir(join(source, "dist/assets"))).map((name) => name.replace(/-[\w-]{8}\./, ".")), ["index.js"]);
    const heard = await shop.serve(join(source, "dist"));
    says42(heard);
    assert.deepEqual(heard.asked.filter((path) => path.endsWith(".wasm")), []);
    const refused = await shop.serve(join(source, "dist"), { "content-security-policy": "default-src 'none'; script-src 'self'" });
    assert.equal(refused.said, "the page's Content-Security-Policy refuses WebAssembly; allow it with: script-src 'wasm-unsafe-eval'");
    await writeFile(join(source, "server.js"), await inlineApp());
    await writeFile(join(source, "vite.config.js"), "export default { ssr: { noExternal: true } };");
    await run(process.execPath, [join(ROOT, "node_modules/vite/bin/vite.js"), "build", "--ssr", "server.js", "--outDir", "out", "--logLevel", "warn"], { cwd: source });
    assert.equal(await alone("server.mjs", await readFile(join(source, "out/server.js"), "utf8")), SAID);
  });

  await check("esbuild for Node, the wasm file copied beside the bundle", async () => {
    const out = join(project, "node-bundle");
    await esbuild({ entryPoints: [join(shop.home, "node/app.js")], bundle: true, format: "esm", platform: "node", outfile: join(out, "app.mjs"), logLevel: "silent" });
    await copyFile(installed("turnwheel.wasm"), join(out, "turnwheel.wasm"));
    // It must not find the one in node_modules.
    await rename(join(shop.home, "node"), join(shop.home, "node-away"));
    assert.equal((await run(process.execPath, [join(out, "app.mjs")])).stdout.trim(), SAID);
  });

  await check("a Worker of Cloudflare's, in strict TypeScript, runs it: scripted, over a fetch that goes out, and in a Durable Object", async () => {
    const source = await shop.app("cloudflare");
    const typeRoots = JSON.stringify([join(ROOT, "node_modules")]);
    await writeFile(join(source, "tsconfig.here.json"), `{ "extends": "./tsconfig.json", "compilerOptions": { "typeRoots": ${typeRoots} } }`);
    await run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "--project", "tsconfig.here.json"], { cwd: source });
    const { outputFiles: [bundle] } = await esbuild({ entryPoints: [join(source, "worker.ts")], bundle: true, write: false, format: "esm", conditions: ["workerd", "worker"], external: ["*.wasm", "cloudflare:*"], logLevel: "silent" });
    const script = bundle?.text ?? "";
    const wasm = /from "([^"]+\.wasm)"/.exec(script)?.[1] ?? "";
    const modules = [
      { type: /** @type {const} */ ("ESModule"), path: "worker.js", contents: script.replace(wasm, "./turnwheel.wasm") },
      { type: /** @type {const} */ ("CompiledWasm"), path: "turnwheel.wasm", contents: await readFile(installed("turnwheel.wasm")) },
    ];
    /** @type {any[]} */
    const asked = [];
    const outboundService = async (/** @type {any} */ request) => {
      asked.push([request.url, request.headers.get("authorization"), (await request.json()).model]);
      return new Response(textAnswer(["from ", "outside"]), { headers: { "content-type": "text/event-stream" } });
    };
    for (const [bindings, text] of /** @type {const} */ ([[{}, "I add. It is 42."], [{ OPENAI_API_KEY: "sk-worker" }, "from outside"]])) {
      const miniflare = new Miniflare({ cf: false, compatibilityDate: "2026-07-01", durableObjects: { CHAT: { className: "Chat", useSQLite: true } }, modules, bindings, outboundService });
      const ask = (/** @type {string} */ path, /** @type {any} */ init) => miniflare.dispatchFetch(`http://worker.example${path}`, init);
      try {
        assert.equal(await (await ask("/?q=Go")).text(), text);
        await inAnObject(ask, /** @type {string} */ (text.split(". ").at(-1)));
        await notInAPlainWorker(ask);
      } finally {
        await miniflare.dispose();
      }
    }
    assert.deepEqual(asked, Array.from({ length: 2 }, () => ["https://api.openai.com/v1/chat/completions", "Bearer sk-worker", "gpt-5-mini"]));
  });

  await check("turnwheel/cloudflare outside of Workers says where it lives", async () => {
    await writeFile(join(project, "nowhere.mjs"), 'import { DurableAgent, route, workflowHost } from "turnwheel/cloudflare";\nclass Chat extends DurableAgent {}\ntry { new Chat(); } catch ({ code, message }) { console.log(code, message); }\nconsole.log(route(new Request("http://a/"), { idFromName() {}, get() {} }), typeof workflowHost);\n');
    assert.match((await run(process.execPath, ["nowhere.mjs"], { cwd: project })).stdout, /^misuse DurableAgent of turnwheel\/cloudflare is a Durable Object, which only Cloudflare Workers have\. In Node.*turnwheel\/stores\/node.*"workerd".*\nundefined function\n$/);
  });
} finally {
  await shop.end();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
