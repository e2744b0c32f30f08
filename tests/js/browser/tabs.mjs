// @ts-check
// A browser tab, as far as these tests need one: Chromium through Playwright, Firefox through WebDriver BiDi,
// WebKit through WebDriver. What runs in it is JavaScript that returns JSON, or a promise of it.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { WebSocket } from "ws";

/**
 * @typedef {object} Tab
 * @property {(address: string) => Promise<void>} open
 * @property {(expression: string) => Promise<any>} run
 * @property {string[]} complaints what the page says in its console, as far as the browser tells
 * @property {() => Promise<void>} close the tab, and its browser
 */

/**
 * Evaluates an expression again and again until it returns something.
 * @param {Tab} tab @param {string} expression @param {number} [ms]
 */
export async function until(tab, expression, ms = 60_000) {
  const end = Date.now() + ms;
  for (;;) {
    // While a page is loading, nothing can run in it.
    const said = await tab.run(expression).catch(() => undefined);
    if (said) return said;
    if (Date.now() > end) throw new Error(`waited too long for: ${expression}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The JSON of an expression's value. @param {string} expression */
const asText = (expression) => `(async () => JSON.stringify(await (${expression})) ?? "null")()`;

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** @returns {Promise<Tab>} */
export async function chromiumTab() {
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: [...FLAGS, "--host-resolver-rules=MAP plain.test 127.0.0.1"] });
  const page = await browser.newPage();
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  return {
    complaints,
    open: async (address) => void (await page.goto(address)),
    run: async (expression) => JSON.parse(await page.evaluate(asText(expression))),
    close: () => browser.close(),
  };
}

/** @param {string} program @returns {Promise<Tab>} */
export async function firefoxTab(program) {
  const { first, close } = await firefox(program);
  return { ...first, close };
}

/**
 * Firefox with any number of tabs; closing one of them leaves the others.
 * @param {string} program @returns {Promise<{ first: Tab, tab(): Promise<Tab>, close(): Promise<void> }>}
 */
export async function firefox(program) {
  const profile = await mkdtemp(join(tmpdir(), "turnwheel-firefox-"));
  const quiet = ["app.update.enabled", "datareporting.policy.dataSubmissionEnabled", "network.captive-portal-service.enabled", "network.connectivity-service.enabled", "browser.aboutwelcome.enabled"];
  await writeFile(join(profile, "user.js"), [...quiet.map((name) => `user_pref("${name}", false);`), 'user_pref("network.dns.localDomains", "plain.test");', 'user_pref("remote.prefs.recommended", true);'].join("\n"));
  const child = spawn(program, ["--headless", "--remote-debugging-port=0", "--profile", profile, "--no-remote"], { env: { ...process.env, HOME: profile }, stdio: ["ignore", "ignore", "pipe"] });
  const address = await said(child, /WebDriver BiDi listening on (ws:\S+)/);
  const socket = new WebSocket(`${address}/session`);
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  let last = 0;
  /** @type {Map<number, (answer: any) => void>} */
  const open = new Map();
  /** @type {string[]} */
  const complaints = [];
  socket.on("message", (data) => {
    const { id, method, params, ...answer } = JSON.parse(String(data));
    if (method === "log.entryAdded" && params.level === "error") complaints.push(params.text);
    open.get(id)?.(answer);
    open.delete(id);
  });
  /** @param {string} method @param {any} params @returns {Promise<any>} */
  const send = async (method, params) => {
    const id = ++last;
    socket.send(JSON.stringify({ id, method, params }));
    const { result, error, message } = await new Promise((resolve) => open.set(id, resolve));
    if (error) throw new Error(`${method}: ${message}`);
    return result;
  };
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["log.entryAdded"] });
  /** @param {string} context @returns {Tab} */
  const tabOf = (context) => ({
    complaints,
    open: (address) => send("browsingContext.navigate", { context, url: address, wait: "complete" }),
    async run(expression) {
      const { result, exceptionDetails } = await send("script.evaluate", { expression: asText(expression), target: { context }, awaitPromise: true, resultOwnership: "none" });
      if (exceptionDetails) throw new Error(exceptionDetails.text);
      return JSON.parse(result.value);
    },
    close: () => send("browsingContext.close", { context }),
  });
  const { contexts: [{ context }] } = await send("browsingContext.getTree", {});
  return {
    first: tabOf(context),
    tab: async () => tabOf((await send("browsingContext.create", { type: "tab" })).context),
    async close() {
      socket.close();
      await ended(child);
      await rm(profile, { recursive: true, force: true });
    },
  };
}

/** @param {{ driver: string, xvfb: string }} programs @returns {Promise<Tab>} */
export async function webkitTab({ driver, xvfb }) {
  const port = await freePort();
  const env = { ...process.env, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1", WEBKIT_FORCE_SANDBOX: "0", WEBKIT_DISABLE_COMPOSITING_MODE: "1", LIBGL_ALWAYS_SOFTWARE: "1", NO_AT_BRIDGE: "1" };
  const display = spawn(xvfb, ["-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp"], { stdio: ["ignore", "ignore", "ignore", "pipe"] });
  const number = await new Promise((resolve, reject) => {
    /** @type {any} */ (display.stdio[3]).once("data", (/** @type {Buffer} */ data) => resolve(String(data).trim()));
    display.once("exit", () => reject(new Error("Xvfb did not start")));
  });
  const child = spawn(driver, [`--port=${port}`, "--host=127.0.0.1"], { env: { ...env, DISPLAY: `:${number}` }, stdio: "ignore" });
  /** @param {string} method @param {string} path @param {any} [body] @returns {Promise<any>} */
  const ask = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    const { value } = /** @type {any} */ (await response.json());
    if (!response.ok) throw new Error(`${path}: ${value?.message}`);
    return value;
  };
  for (let tries = 0; ; tries++) {
    if (await ask("GET", "/status").catch(() => undefined)) break;
    if (tries > 200) throw new Error("WebKitWebDriver did not start");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { sessionId } = await ask("POST", "/session", { capabilities: { alwaysMatch: { timeouts: { script: 240_000, pageLoad: 30_000 } } } });
  const session = `/session/${sessionId}`;
  return {
    complaints: [],
    open: (address) => ask("POST", `${session}/url`, { url: address }),
    async run(expression) {
      const script = `const done = arguments[0]; ${asText(expression)}.then((text) => done({ text }), (error) => done({ error: String(error) }));`;
      const { text, error } = await ask("POST", `${session}/execute/async`, { script, args: [] });
      if (error) throw new Error(error);
      return JSON.parse(text);
    },
    async close() {
      await ask("DELETE", session).catch(() => {});
      await ended(child);
      await ended(display);
    },
  };
}

/**
 * Waits for a line in a program's output, and returns the pattern's one group.
 * @param {import("node:child_process").ChildProcess} child @param {RegExp} pattern @returns {Promise<string>}
 */
function said(child, pattern) {
  let text = "";
  return new Promise((resolve, reject) => {
    child.stderr?.on("data", (piece) => {
      const found = pattern.exec((text += piece))?.[1];
      if (found) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`it ended with ${code}: ${text.slice(-500)}`)));
    child.once("error", reject);
  });
}

/** @param {import("node:child_process").ChildProcess} child */
async function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill();
  const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await gone;
  clearTimeout(late);
}

/** @returns {Promise<number>} */
async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {any} */ (server.address());
  await new Promise((resolve) => server.close(resolve));
  return port;
}
