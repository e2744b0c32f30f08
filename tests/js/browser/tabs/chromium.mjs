// @ts-check
// Chromium with any number of tabs that share what is stored, and what can happen to each.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { WebSocket } from "ws";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** The JSON of an expression's value. @param {string} expression */
const asText = (expression) => `(async () => JSON.stringify(await (${expression})) ?? "null")()`;

/** @param {{ hasCache?: boolean }} [options] whether pages that are left may come back as they were */
export async function chromiumTabs({ hasCache = false } = {}) {
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: FLAGS, ...(hasCache && { ignoreDefaultArgs: ["--disable-back-forward-cache"] }) });
  const context = await browser.newContext();
  /** @type {string[]} */
  const said = [];
  return {
    hows: ["crash", "navigate", "close"], said,
    async tab() {
      const page = await context.newPage();
      // Connected before: a tab that stands still answers no new connection.
      const devtools = await context.newCDPSession(page);
      await devtools.send("Page.enable");
      page.on("pageerror", (error) => void said.push(error.message));
      page.on("console", (message) => void (["error", "warning"].includes(message.type()) && said.push(message.text())));
      return {
        complaints: said, page,
        open: async (/** @type {string} */ address) => void (await page.goto(address)),
        run: async (/** @type {string} */ expression) => JSON.parse(await page.evaluate(asText(expression))),
        crash: () => devtools.send("Page.crash"),
        close: () => page.close(),
      };
    },
    close: () => browser.close(),
  };
}

/** Chromium whose tabs in the background know that they are: only those can be frozen. Playwright has all believe that they are seen. */
export async function plainChromium() {
  const profile = await mkdtemp(join(tmpdir(), "turnwheel-chromium-"));
  const child = spawn(process.env["CHROMIUM"] ?? "/usr/bin/chromium", ["--headless=new", "--remote-debugging-port=0", `--user-data-dir=${profile}`, ...FLAGS, "about:blank"], { stdio: ["ignore", "ignore", "pipe"] });
  const address = await new Promise((/** @type {(address: string) => void} */ resolve) => {
    let text = "";
    child.stderr.on("data", (piece) => {
      const found = /DevTools listening on (ws:\S+)/.exec((text += piece))?.[1];
      if (found) resolve(found);
    });
  });
  const socket = new WebSocket(address);
  await new Promise((resolve) => socket.once("open", resolve));
  let last = 0;
  /** @type {Map<number, (answer: any) => void>} */
  const open = new Map();
  socket.on("message", (data) => {
    const { id, ...answer } = JSON.parse(String(data));
    open.get(id)?.(answer);
    open.delete(id);
  });
  /** @param {string} method @param {any} params @param {string} [sessionId] @returns {Promise<any>} */
  const send = async (method, params, sessionId) => {
    const id = ++last;
    socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }));
    const { result, error } = await new Promise((resolve) => open.set(id, resolve));
    if (error) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  return {
    hows: [],
    async tab() {
      const { targetId } = await send("Target.createTarget", { url: "about:blank" });
      const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
      return {
        complaints: [],
        open: (/** @type {string} */ url) => send("Page.navigate", { url }, sessionId),
        async run(/** @type {string} */ expression) {
          const { result, exceptionDetails } = await send("Runtime.evaluate", { expression: asText(expression), awaitPromise: true, returnByValue: true }, sessionId);
          if (exceptionDetails) throw new Error(exceptionDetails.text);
          return JSON.parse(result.value);
        },
        /** @param {"frozen" | "active"} state */
        life: (state) => send("Page.setWebLifecycleState", { state }, sessionId),
        show: () => send("Target.activateTarget", { targetId }),
        close: () => send("Target.closeTarget", { targetId }),
      };
    },
    async close() {
      socket.close();
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await gone;
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
