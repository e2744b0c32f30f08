// @ts-check
// Chromium with any number of tabs that share what is stored, and what can happen to each.

import { chromium } from "playwright-core";

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
        /** @param {"frozen" | "active"} state */
        life: (state) => devtools.send("Page.setWebLifecycleState", { state }),
        close: () => page.close(),
      };
    },
    close: () => browser.close(),
  };
}
