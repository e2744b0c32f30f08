// @ts-check
// The site of these tests: pages that share agents, a count of the tools that ran, and word of the tabs that end.

import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

/** @param {string} script @returns {Promise<string>} */
async function bundle(script) {
  const { outputFiles } = await build({
    entryPoints: [here(script)], bundle: true, write: false, format: "esm", logLevel: "silent", external: ["*.wasm"],
    plugins: [{ name: "entry", setup: (build) => build.onResolve({ filter: /entry\/node\.js$/ }, () => ({ path: here("../../../../pkg/entry/web.js") })) }],
  });
  return /** @type {any} */ (outputFiles[0]).text;
}

export async function tabsSite() {
  /** How often each call ran, by the id of the agent. @type {Map<string, string[]>} */
  const ran = new Map();
  /** Called when a tab ends, and when that was. @type {(told: { id: string, tab: string, how: string, at: number, go(): void }) => void} */
  let onEnd = () => {};
  /** Called when a page comes back from the cache. @type {(role: string) => void} */
  let onBack = () => {};
  const page = '<!doctype html><title>tab</title><script type="module" src="/app/page.js"></script>';
  /** @type {Record<string, [string, any]>} */
  const files = {
    "/": ["text/html", page], "/elsewhere": ["text/html", "<!doctype html><title>elsewhere</title>"],
    "/app/page.js": ["text/javascript", await bundle("page.mjs")], "/app/worker.js": ["text/javascript", await bundle("worker.mjs")],
  };
  const folder = here("../../../../pkg/");
  for (const name of readdirSync(folder)) if (name.endsWith(".wasm")) files[`/app/${name}`] = ["application/wasm", readFileSync(`${folder}${name}`)];
  const site = createServer((request, response) => {
    const [path = ""] = (request.url ?? "").split("?");
    const [, what, id = "", last = "", how = ""] = path.split("/").map(decodeURIComponent);
    if (what === "ran") {
      ran.set(id, [...(ran.get(id) ?? []), last]);
      return void response.end("{}");
    }
    if (what === "end") {
      // A tab that gets no answer stands still.
      if (how !== "crash" && how !== "stop") response.end();
      return onEnd({ id, tab: last, how, at: Date.now(), go: () => response.end() });
    }
    if (what === "back") {
      onBack(id);
      return void response.end();
    }
    const [type, body] = files[path] ?? [];
    if (body === undefined) return void response.writeHead(404).end();
    response.setHeader("content-type", type ?? "").end(body);
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", () => resolve(undefined)));
  return {
    address: `http://127.0.0.1:${/** @type {any} */ (site.address()).port}/`, ran,
    /** @param {typeof onEnd} listener */
    onEnd: (listener) => void (onEnd = listener),
    /** @param {typeof onBack} listener */
    onBack: (listener) => void (onBack = listener),
    end() {
      site.closeAllConnections();
      site.close();
    },
  };
}
