// Fetches a wasm file and compiles it.

/**
 * @param {URL | string} address
 * @param {(() => void)} [begun] called when the file begins to arrive
 * @param {RequestPriority} [priority]
 * @returns {Promise<WebAssembly.Module>}
 */
export async function fetched(address, begun, priority = "auto") {
  const place = String(address);
  // What a bundler put into the script has no name, and is long.
  const from = place.slice(0, 200);
  const name = from.split("/").pop();
  const fail = (/** @type {string} */ why, /** @type {unknown} */ cause = undefined) => {
    throw new Error(`${name} ${why}; or import \`turnwheel/inline\``, { cause });
  };
  const response = await fetch(place, { priority }).catch((cause) => fail(`cannot be fetched from ${from}: ${cause.message}. Does \`connect-src\` of the page allow it?`, cause));
  const type = response.headers.get("content-type") ?? "";
  // The server of a single-page app answers any unknown address with that page.
  if (response.ok && !type.includes("html")) {
    begun?.();
    const compiling = type.startsWith("application/wasm") ? WebAssembly.compileStreaming(response) : response.arrayBuffer().then((bytes) => WebAssembly.compile(bytes));
    return compiling.catch((cause) => fail(`from ${from} is not whole, or cannot be compiled: ${cause.message}`, cause));
  }
  // Before version 8, Vite's dev server pre-bundles dependencies into a folder (`cacheDir`) and leaves the wasm file where it was.
  const before = place.replace(/^(\w+:\/\/[^/]*)(.*?(?=\/node_modules\/))?\/.*?\/deps\//, "$1$2/node_modules/turnwheel/");
  if (before !== place) return fetched(before, begun, priority);
  return fail(`is not at ${response.url}; copy it there`);
}
