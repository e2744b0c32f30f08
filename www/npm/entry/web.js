// Browsers, web workers, Deno and bundlers: the file is fetched when the first run begins.
import { address } from "../address.js";
import { use } from "../core.js";

use(async () => {
  const response = await fetch(address).catch((cause) => {
    throw new Error(`turnwheel.wasm cannot be fetched from ${address}`, { cause });
  });
  // A server for apps of one page answers with that page.
  const isPage = response.headers.get("content-type")?.includes("html");
  if (!response.ok || isPage) throw new Error(`turnwheel.wasm is not at ${response.url}; copy it there`);
  return WebAssembly.compile(await response.arrayBuffer());
}, true);

export * from "../index.js";
