// Browsers, web workers, Deno and bundlers: the file is fetched when the first run begins.
import { address } from "../address.js";
import { use } from "../core.js";

/** @param {string} place @returns {Promise<WebAssembly.Module>} */
async function compiled(place) {
  const response = await fetch(place).catch((cause) => {
    throw new Error(`turnwheel.wasm cannot be fetched from ${place}`, { cause });
  });
  // A server for apps of one page answers with that page.
  const isPage = response.headers.get("content-type")?.includes("html");
  if (response.ok && !isPage) return WebAssembly.compile(await response.arrayBuffer());
  // Vite before 8 bundles what an app needs while the app is written, and leaves the file where it was.
  const before = place.replace("/.vite/deps/", "/turnwheel/");
  if (before !== place) return compiled(before);
  throw new Error(`turnwheel.wasm is not at ${response.url}; copy it there`);
}

use(() => compiled(String(address)), true);

export * from "../index.js";
