// @ts-check
// User interfaces that speak AG-UI, in Chromium, with a server in Node: questions, an agent inside a call, stop.
//   node --test tests/e2e/ag-ui.mjs

import assert from "node:assert/strict";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { Agent, call, deferred, scripted, subagent, testTool } from "../js/kit.mjs";
import { serveAgents } from "../js/ag-ui/serve.mjs";
import { packagesOf } from "./npm.mjs";

const REACT = ["react@19.3.1", "react-dom@19.3.1"];
const SHELL = '<!doctype html><html lang="en"><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/page.js"></script></html>';

/**
 * A page of this folder, bundled where its packages are; they have one React among them.
 * @param {string} name @param {string} folder
 */
async function bundle(name, folder) {
  const page = join(folder, `${name}.jsx`);
  await copyFile(fileURLToPath(new URL(`ag-ui/${name}.jsx`, import.meta.url)), page);
  const { outputFiles } = await build({
    entryPoints: [page], bundle: true, format: "esm", outdir: folder, write: false, jsx: "transform", logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' }, loader: { ".css": "empty", ".woff": "empty", ".woff2": "empty", ".ttf": "empty" },
  });
  return /** @type {Uint8Array} */ (outputFiles.find(({ path }) => path.endsWith(".js"))?.contents);
}

/**
 * Two questions, an agent inside a call, and stop, in the page of a client.
 * @param {import("node:test").TestContext} t @param {string} name @param {string[]} packages
 * @param {{ send(page: import("playwright-core").Page, words: string): Promise<void>, stop(page: import("playwright-core").Page): Promise<void> }} ways
 */
async function drive(t, name, packages, { send, stop }) {
  const { folder, missing } = packagesOf(name, [...REACT, ...packages]);
  if (folder === undefined) return t.skip(missing);
  const code = await bundle(name, folder);
  /** @type {number[]} */
  const paid = [];
  const started = deferred();
  const pay = testTool("pay", (/** @type {any} */ { n }) => (paid.push(n), `paid ${n}`), { requiresApproval: true });
  const pays = (/** @type {number[]} */ ...amounts) => ({ toolCalls: amounts.map((n) => ({ callId: `p${n}`, toolName: "pay", arguments: { n } })) });
  const clerk = subagent({ name: "clerk", description: "", agent: () => new Agent({ model: scripted([pays(3), "The clerk has paid."]), tools: [pay] }) });
  const never = testTool("never", () => (started.resolve(), new Promise(() => {})));
  const viaClerk = [{ toolCalls: [{ callId: "c", toolName: "clerk", arguments: { prompt: "Pay three" } }] }, "The clerk says so."];
  const model = scripted([{ text: "I will pay.", ...pays(1, 2) }, "One is paid.", ...viaClerk, call("never")]);
  const { url, threads } = await serveAgents(t, () => new Agent({ model, tools: [pay, clerk, never] }), { abortOnLeave: true }, { "/": [SHELL, "text/html"], "/page.js": [code, "text/javascript"] });
  const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
  t.after(() => browser.close());
  const page = await browser.newPage();
  /** @type {string[]} */
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  await page.goto(url);
  const answer = (/** @type {string} */ call, /** @type {string} */ word) => page.locator(".question", { hasText: `${call}:` }).getByText(word, { exact: true }).click();

  await send(page, "Pay both");
  await answer("p1", "Yes");
  await answer("p2", "No");
  await page.getByText("One is paid.").waitFor();
  assert.deepEqual(paid, [1]);

  await send(page, "And three");
  await answer("c/p3", "Yes");
  await page.getByText("The clerk says so.").waitFor();
  assert.deepEqual(paid, [1, 3]);

  await send(page, "Wait for ever");
  await started.promise;
  await stop(page);
  const [{ run }] = /** @type {any} */ ([...threads.values()]);
  assert.equal((await run).stopReason, "aborted");
  assert.deepEqual(complaints, []);
}

test("CopilotKit: two questions, an agent inside a call, stop", { timeout: 400_000 }, (t) => drive(t, "copilotkit", ["@copilotkit/react-core@1.74.0"], {
  async send(page, words) {
    await page.getByTestId("copilot-chat-textarea").fill(words);
    await page.getByTestId("copilot-chat-textarea").press("Enter");
  },
  stop: (page) => page.getByTestId("copilot-send-button").click(),
}));
