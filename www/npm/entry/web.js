// Browsers, web workers, Deno and bundlers: the file is fetched when the first run begins.
import { address } from "../address.js";
import { use } from "../core.js";

/** @param {string} place @returns {Promise<WebAssembly.Module>} */
async function compiled(place) {
  const response = await fetch(place).catch((cause) => {
    throw new Error(`turnwheel.wasm cannot be fetched from ${place}`, { cause });
  });
  // The server of a single-page app answers any unknown address with that page.
  const isPage = response.headers.get("content-type")?.includes("html");
  if (response.ok && !isPage) return WebAssembly.compile(await response.arrayBuffer());
  // Before version 8, Vite's dev server pre-bundles dependencies and leaves the wasm file where it was.
  const before = place.replace("/.vite/deps/", "/turnwheel/");
  if (before !== place) return compiled(before);
  throw new Error(`turnwheel.wasm is not at ${response.url}; copy it there`);
}

use(() => compiled(String(address)), true);

export * from "../index.js";
