// Browsers, web workers, Deno and bundlers: the file beside this one is fetched when the first run begins.
import { use } from "../engine.js";

use(async () => {
  const response = await fetch(new URL("../turnwheel.wasm", import.meta.url));
  if (!response.ok) throw new Error(`turnwheel.wasm could not be loaded: ${response.status} ${response.url}`);
  return WebAssembly.compile(await response.arrayBuffer());
});

export * from "../index.js";
