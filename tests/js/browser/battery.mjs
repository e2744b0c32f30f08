// @ts-check
// The checks for every browser: the package in a page and in a web worker, over real HTTP from servers of
// other origins, under a strict Content-Security-Policy.

import { POLICY, startSite } from "./site.mjs";
import { until } from "./tabs.mjs";

/** Console messages that are expected: requests that servers refused on purpose. */
const EXPECTED = /CORS|cross-origin|ERR_|status of 4|favicon|NetworkError/i;

/**
 * @param {import("./tabs.mjs").Tab} tab
 * @param {(name: string, check: () => Promise<unknown>) => Promise<void>} check it is given what is wrong, if anything is
 */
export async function battery(tab, check) {
  const site = await startSite();
  const { requestCounts, closed } = site;
  const at = JSON.stringify(site.at);

  /** @param {string} address */
  async function open(address) {
    await tab.open(address);
    await until(tab, "document.documentElement.dataset.ready === ''");
  }

  try {
    await open(`http://127.0.0.1:${site.port}/`);
    await check("importing the package loads no wasm", async () => [...requestCounts.keys()].some((path) => path.endsWith(".wasm")) && "it was loaded");
    for (const [place, call] of [["page", "inPage"], ["worker", "inWorker"]]) {
      site.anew();
      const rows = await tab.run(`${call}(${at})`);
      for (const { name, failure } of rows) await check(`${place}: ${name}`, async () => failure);
    }
    const counts = ["-first", "-answer", "-rest", ""].map((part) => requestCounts.get(`/pkg/turnwheel${part}.wasm`) ?? 0);
    await check("each part of the engine was fetched once by the page and once by its worker, and never the whole", async () => counts.join() !== "2,2,2,0" && `${counts} times`);
    await check("the server that refuses pages was never asked the question itself", async () => closed.requests.length > 0 && "it was");
    await check(`the policy is enough: ${POLICY.split("; ")[1]}`, async () => tab.complaints.filter((text) => !EXPECTED.test(text)).join("\n"));
    await check("without wasm-unsafe-eval the run says what is missing", async () => {
      await open(`http://127.0.0.1:${site.port}/?bare`);
      site.anew();
      const [row] = await tab.run(`inPage(${at}, "timers run on their own")`);
      return !/refuses WebAssembly; allow it with: script-src 'wasm-unsafe-eval'/.test(row.failure) && `it says: ${row.failure}`;
    });
    return { site, open, at };
  } catch (error) {
    await check("the checks ran to their end", async () => /** @type {any} */ (error)?.stack ?? error);
    return { site, open, at };
  }
}

/**
 * The same over plain HTTP, where half of `crypto` is missing.
 * @param {import("./tabs.mjs").Tab} tab @param {Awaited<ReturnType<typeof battery>>} battery
 */
export async function plainHttp(tab, { site, open, at }) {
  await open(`http://plain.test:${site.port}/`);
  const secure = await tab.run("isSecureContext");
  site.anew();
  const rows = await tab.run(`inPage(${at})`);
  const wrong = rows.filter((/** @type {any} */ one) => one.failure).map((/** @type {any} */ one) => `${one.name}: ${one.failure}`);
  return (secure && "the page is a secure one after all") || wrong.join("\n");
}
