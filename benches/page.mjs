// From navigation to the first piece of an answer, in a page on a slow network: `node page.mjs [--rounds=N] [--think=MS,MS]
// [--pages=NAME,…] [--write]`, with Chromium in CHROMIUM. Prints a Markdown table, which `--write` puts into PAGE.md; with
// TIMELINE=1 also when each file was asked for.
//
// The same page for each engine: its script, bundled and minified, starts an agent with a tool that asks for approval and
// listens to the text. Files are sent with brotli, as any host for pages does; the cache is empty. The model's server waits
// as long as a model thinks before its first token. Chromium throttles to 1.6 Mbit/s down, 750 kbit/s up, and 150 ms.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { median } from "./lib/stats.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PACKAGE = join(HERE, "../pkg");
const NETWORK = { offline: false, latency: 150, downloadThroughput: 1_600_000 / 8, uploadThroughput: 750_000 / 8 };
const option = (name, fallback) => process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback;
const ROUNDS = Number(option("rounds", "7"));
const THINKING = option("think", "0,300,1000").split(",").map(Number);
const PAGES = option("pages", "turnwheel,pi,tanstack,ai-sdk").split(",");
/** What a page asks the browser to fetch at once, so that the wasm files do not wait for the script; they are no more urgent than it. */
const PRELOADED = { turnwheel: ["turnwheel-first.wasm"] };

const sse = (delta, finish = null) => `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const brotli = (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
const TYPES = { js: "text/javascript", wasm: "application/wasm", html: "text/html" };

/** The files of a page, compressed, by name, and which scripts its script imports by name. */
async function bundle(name) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: `import { start } from "./${name}.mjs"; globalThis.start(start);`, resolveDir: join(HERE, "pages") },
    bundle: true, splitting: true, minify: true, format: "esm", platform: "browser", target: "es2022", outdir: "/", write: false, metafile: true, legalComments: "none", logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' }, alias: { turnwheel: join(PACKAGE, "entry/web.js") },
  });
  const files = new Map(outputFiles.map(({ path, contents }) => [path.slice(1).replace("stdin", "page"), brotli(contents)]));
  if (name === "turnwheel") for (const file of readdirSync(PACKAGE).filter((file) => /^turnwheel-.*\.wasm$/.test(file))) files.set(file, brotli(readFileSync(join(PACKAGE, file))));
  return { files, imported: imported(metafile.outputs) };
}

/** The chunks that come with the entry. @param {import("esbuild").Metafile["outputs"]} outputs */
function imported(outputs) {
  const found = new Set();
  const visit = (name) => {
    for (const { path, kind } of outputs[name].imports) {
      if (kind !== "import-statement" || found.has(path)) continue;
      found.add(path);
      visit(path);
    }
  };
  // What is loaded by `import()` is an entry point to esbuild, too.
  visit(Object.keys(outputs).find((name) => outputs[name].entryPoint === "<stdin>"));
  return [...found].map((path) => path.split("/").pop());
}

// Chunks that the script imports are named in the page, as Vite and others write it for each app.
const html = (name) => `<!doctype html><title>${name}</title>
${(PRELOADED[name] ?? []).map((file) => `<link rel="preload" href="/${name}/assets/${file}" as="fetch" crossorigin fetchpriority="low">`).join("")}
${pages.get(name).imported.map((file) => `<link rel="modulepreload" href="/${name}/assets/${file}">`).join("")}
<script>
  const errors = [];
  globalThis.start = (begin) => begin(location.origin + "/v1", () => (globalThis.first ??= performance.now())).catch((error) => errors.push(String(error)));
</script>
<script type="module" src="/${name}/assets/page.js"></script>`;

const pages = new Map();
for (const name of PAGES) pages.set(name, await bundle(name));

let began = 0;
const log = (what) => process.env.TIMELINE && console.log(String(Math.round(performance.now() - began)).padStart(6), what);
let thinking = 0;
/** What was sent before the request for the model, and in all, of the visit in progress. */
let visit = { before: 0, all: 0, asked: false };
const server = createServer(async (request, response) => {
  const [, name, , file] = (request.url ?? "").split("/");
  if (name === "v1") {
    visit.asked = true;
    log("model");
    for await (const _ of request);
    response.writeHead(200, { "content-type": "text/event-stream" });
    await new Promise((resolve) => setTimeout(resolve, thinking));
    return void response.end(sse({ role: "assistant", content: "Hello" }) + sse({}, "stop") + "data: [DONE]\n\n");
  }
  if (!pages.has(name)) return void response.writeHead(404).end(); // The icon.
  if (file === undefined) return void response.writeHead(200, { "content-type": "text/html" }).end(html(name));
  // As the package says: esbuild leaves the wasm files where a page finds them beside its script.
  const body = pages.get(name)?.files.get(file);
  if (!body) return void response.writeHead(404).end();
  visit.all += body.length;
  log(file);
  if (!visit.asked) visit.before += body.length;
  response.writeHead(200, { "content-type": TYPES[file.split(".").pop()], "content-encoding": "br", "content-length": body.length, "cache-control": "public, max-age=3600" }).end(body);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

/** Milliseconds from navigation to the first text. */
async function visited(browser, name) {
  visit = { before: 0, all: 0, asked: false };
  const context = await browser.newContext();
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.emulateNetworkConditions", NETWORK);
  began = performance.now();
  await page.goto(`${origin}/${name}/`);
  try {
    await page.waitForFunction(() => globalThis.first !== undefined, undefined, { timeout: 20_000 });
  } catch {
    throw new Error(`${name}: no text came: ${await page.evaluate(() => errors.join("; "))}`);
  }
  const first = await page.evaluate(() => globalThis.first);
  await page.waitForTimeout(500);
  await context.close();
  return { first, ...visit };
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const rows = [];
for (const think of THINKING) {
  thinking = think;
  const times = new Map(PAGES.map((name) => [name, []]));
  // Interleaved: what else the machine does meets all alike.
  for (let round = 0; round < ROUNDS; round++) for (const name of PAGES) times.get(name).push(await visited(browser, name));
  rows.push([think, new Map([...times].map(([name, all]) => [name, { first: median(all.map((one) => one.first)), before: all[0].before, all: all[0].all }]))]);
}
const browserVersion = browser.version();
await browser.close();
server.close();

const kb = (bytes) => (bytes / 1000).toFixed(1);
const table = [
  `| page | KB asked for before the request | KB in all | ${THINKING.map((ms) => `first text, ms, if the model thinks ${ms} ms`).join(" | ")} |`,
  `|---|--:|--:|${THINKING.map(() => "--:|").join("")}`,
  ...PAGES.map((name) => {
    const { before, all } = rows[0][1].get(name);
    return `| ${name} | ${kb(before)} | ${kb(all)} | ${rows.map(([, times]) => Math.round(times.get(name).first)).join(" | ")} |`;
  }),
].join("\n");
console.log(table);

if (process.argv.includes("--write")) {
  const load = loadavg()[0].toFixed(1);
  const reading = pages.get("turnwheel")?.files.get("turnwheel-answer.wasm")?.length ?? 0;
  const versions = JSON.parse(readFileSync(join(HERE, "package.json"), "utf8")).dependencies;
  const peers = { pi: "@earendil-works/pi-ai", tanstack: "@tanstack/ai", "ai-sdk": "ai" };
  const named = PAGES.filter((name) => peers[name]).map((name) => `${peers[name]} ${versions[peers[name]]}`).join(", ");
  writeFileSync(join(HERE, "PAGE.md"), `# The first text in a page on a slow network

Written by \`cargo xtask bench --page\`. From navigation to the first text that streams in, with an empty cache: Chromium
${browserVersion}, throttled to 1.6 Mbit/s down, 750 kbit/s up and 150 ms. Every page has one wire and one tool that asks for
approval, and the same server, which sends files with brotli. The median of ${ROUNDS} visits, in turns. Beside this
package: ${named}. The machine's load was ${load}.

What turnwheel's page asks for before its request is more than the request waits for: ${kb(reading)} KB of it read the answer, and
come while the request is on its way.

${table}
`);
}
