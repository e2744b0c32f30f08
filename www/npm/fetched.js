// Fetches a wasm file and compiles it.

/**
 * @param {URL | string} address
 * @param {(() => void)} [begun] called when the file begins to arrive
 * @param {RequestPriority} [priority]
 * @returns {Promise<WebAssembly.Module>}
 */
export async function fetched(address, begun, priority = "auto") {
  const place = String(address);
  const name = place.split("/").pop();
  const response = await fetch(place, { priority }).catch((cause) => {
    throw new Error(`${name} cannot be fetched from ${place}`, { cause });
  });
  const type = response.headers.get("content-type") ?? "";
  // The server of a single-page app answers any unknown address with that page.
  if (response.ok && !type.includes("html")) {
    begun?.();
    const compiling = type.startsWith("application/wasm") ? WebAssembly.compileStreaming(response) : response.arrayBuffer().then((bytes) => WebAssembly.compile(bytes));
    return compiling.catch((cause) => {
      throw new Error(`${name} from ${place} is not whole, or cannot be compiled: ${cause.message}`, { cause });
    });
  }
  // Before version 8, Vite's dev server pre-bundles dependencies and leaves the wasm file where it was.
  const before = place.replace("/.vite/deps/", "/turnwheel/");
  if (before !== place) return fetched(before, begun, priority);
  throw new Error(`${name} is not at ${response.url}; copy it there`);
}
