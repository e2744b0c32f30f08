// @ts-check
// Runs one program of the docs in a Worker of its own: it has the program's name. The page gets what it prints, as it prints it.

import { lineOf } from "./print.js";

const say = (/** @type {object} */ message) => postMessage(message);
for (const level of /** @type {const} */ (["log", "info", "debug", "warn", "error"])) console[level] = (...words) => say({ text: `${lineOf(words)}\n`, line: level });

// A program may put a provider of its own in the place of `fetch`; the engine's files come from the site all the same.
const { fetch } = globalThis;
const folder = new URL("./", import.meta.url).href;
let inUse = fetch;
Object.defineProperty(globalThis, "fetch", {
  configurable: true,
  get: () => inUse,
  set: (given) => void (inUse = (input, init) => (String(input?.url ?? input).startsWith(folder) ? fetch(input, init) : given(input, init))),
});

/** @param {any} error */
const textOf = (error) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error));
addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  say({ failed: textOf(event.reason) });
});

try {
  await import(new URL(`${self.name}.js`, import.meta.url).href);
  say({ done: true });
} catch (error) {
  say({ failed: textOf(error) });
}
