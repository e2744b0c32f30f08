// @ts-check
// What both runs over the hosts share: the package as npm would deliver it, and pages opened in Chromium.

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

export const run = promisify(execFile);
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const PACKAGE = join(ROOT, "pkg");
/** What every app in these folders says. */
export const SAID = "I add. (42) It is 42.";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const TYPES = { ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };

/** Sets up a folder for everything; `end` removes it, and closes the browser. */
export async function workshop() {
  const home = await mkdtemp(join(tmpdir(), "turnwheel-packaging-"));
  /** @type {import("playwright-core").Browser | undefined} */
  let browser;
  let tarball = "";

  /** Packs the package, or takes the tarball that is to be published, if one is given; returns npm's report. */
  async function pack() {
    const { stdout } = await run("npm", ["pack", process.env["TURNWHEEL_TARBALL"] ?? PACKAGE, "--json", "--pack-destination", home], { cwd: home });
    const [packed] = JSON.parse(stdout);
    tarball = join(home, packed.filename);
    return packed;
  }

  /** A folder with files in it. @param {string} name @param {Record<string, string>} files */
  async function folder(name, files) {
    const made = join(home, name);
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(made, path, ".."), { recursive: true });
      await writeFile(join(made, path), text);
    }
    return made;
  }

  /** An empty project with the packed package installed. */
  async function project() {
    const made = await folder("project", { "package.json": '{ "name": "an-app", "private": true, "type": "module" }' });
    await run("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], { cwd: made });
    return made;
  }

  /** A copy of an app of this folder, with the packed package as its only dependency. @param {string} name */
  async function app(name) {
    const made = join(home, name);
    await cp(fileURLToPath(new URL(name, import.meta.url)), made, { recursive: true });
    // The links in .bin stay as short as npm made them.
    await cp(join(home, "project/node_modules"), join(made, "node_modules"), { recursive: true, verbatimSymlinks: true });
    return made;
  }

  /** The same, with the tools that its package.json names, from the registry. @param {string} name @param {string[]} [more] */
  async function whole(name, more = []) {
    const made = join(home, [name, ...more].join("-"));
    await cp(fileURLToPath(new URL(name, import.meta.url)), made, { recursive: true });
    const text = await readFile(join(made, "package.json"), "utf8");
    await writeFile(join(made, "package.json"), text.replace('"turnwheel": "*"', `"turnwheel": ${JSON.stringify(`file:${tarball}`)}`));
    await run("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", ...more], { cwd: made, timeout: 300_000 });
    return made;
  }

  /**
   * Runs a script of an app, with this project's tools where the app has none.
   * @param {string} at @param {string} script
   */
  async function npm(at, script) {
    const path = `${join(ROOT, "node_modules/.bin")}:${process.env["PATH"]}`;
    return run("npm", ["run", "--silent", script], { cwd: at, env: { ...process.env, PATH: path }, timeout: 300_000 });
  }

  /** Opens a page in Chromium; returns what the app on it said. @param {string} address */
  async function open(address) {
    browser ??= await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS });
    const page = await browser.newPage();
    /** @type {string[]} */
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error" && !/favicon/.test(`${message.text()} ${message.location().url}`)) complaints.push(message.text());
    });
    try {
      await page.goto(address);
      await page.waitForSelector("output[data-done]", { timeout: 60_000, state: "attached" }).catch((error) => complaints.push(error.message));
      return { said: await page.textContent("output"), complaints };
    } finally {
      await page.close();
    }
  }

  /**
   * Loads a folder as an extension and opens its page; returns what the app on it said, and what the extension's
   * service worker answered to a message.
   * @param {string} at
   */
  async function extend(at) {
    const flags = [...FLAGS, `--disable-extensions-except=${at}`, `--load-extension=${at}`, "--headless=new"];
    const context = await chromium.launchPersistentContext(join(home, "profile"), { headless: false, executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: flags });
    try {
      const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
      const page = await context.newPage();
      await page.goto(new URL("index.html", worker.url()).href);
      await page.waitForSelector("output[data-done]", { timeout: 60_000, state: "attached" });
      const answer = await page.evaluate(() => /** @type {any} */ (globalThis).chrome.runtime.sendMessage("What is 17 + 25?"));
      return { said: await page.textContent("output"), answer };
    } finally {
      await context.close();
    }
  }

  /**
   * Serves a folder and opens its page; returns what the app on it said, and what was fetched.
   * @param {string} root
   * @param {Record<string, string>} [options] headers; and what is served where there is no file
   */
  async function serve(root, { fallback = "", ...headers } = {}) {
    /** @type {string[]} */
    const asked = [];
    const site = createServer(async (request, response) => {
      const asks = new URL(request.url ?? "/", "http://x").pathname;
      let file = asks.endsWith("/") ? `${asks}index.html` : asks;
      asked.push(file);
      const read = () => readFile(join(root, file)).catch(() => undefined);
      const bytes = (await read()) ?? (fallback && (await ((file = `/${fallback}`), read())));
      if (!bytes) return void response.writeHead(404).end();
      response.writeHead(200, { ...headers, "content-type": /** @type {any} */ (TYPES)[extname(file)] ?? "text/plain" }).end(bytes);
    });
    await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
    try {
      return { ...(await open(`http://127.0.0.1:${/** @type {any} */ (site.address()).port}/`)), asked };
    } finally {
      site.closeAllConnections();
      site.close();
    }
  }

  async function end() {
    await browser?.close();
    await rm(home, { recursive: true, force: true });
  }

  return { home, pack, folder, project, app, whole, npm, open, extend, serve, end };
}
