// @ts-check
// Models that run in this page: the browser's own, and weights that llama.cpp runs as WebAssembly. Nothing of them is loaded
// before somebody has chosen one.

import { loadLocal, loadWllama } from "./engine.js";

/** @typedef {import("../npm/local.js").LocalModel} LocalModel */
/** @typedef {import("./site.js").Weights} Weights */
/** How far loading is. @typedef {{ what: string, loaded: number, total?: number, bytesPerSecond?: number }} Progress */
/** A model that is there. Tools are left to those that can use them. @typedef {{ model: LocalModel, name: string, takesTools: boolean, streamOptions: import("../npm/index.js").StreamOptions }} OnDevice */
/** Where weights come from: an address, or a file of the person's. @typedef {{ weights: Weights } | { file: File }} Source */

/** Where weights are kept that were fetched, beside what the page itself keeps to work offline. */
export const WEIGHTS_CACHE = "turnwheel-demo-weights";
/** Weights smaller than this have less than 0.3 billion parameters: they talk, and choose the wrong tools. */
const TALKS_ONLY_BYTES = 250_000_000;
/** What WebAssembly can hold of a file. */
const MOST_BYTES = 2 ** 31;

/** Whether the browser has a model of its own. Downloads nothing. */
export async function browsersOwn() {
  if (!("LanguageModel" in globalThis)) return "unavailable";
  const { promptApi } = await loadLocal();
  return promptApi({ languages: ["en"] }).availability();
}

/** Why a model would be slow here, in words; nothing if nothing speaks for it. */
export function slowness() {
  const cores = navigator.hardwareConcurrency ?? 1;
  if (cores <= 2) return `Slow on this machine: it has ${cores === 1 ? "one core" : `${cores} cores`}. Expect a few words a second.`;
  if (!("gpu" in navigator)) return "This browser has no WebGPU: expect some words a second.";
  return undefined;
}

/** @param {number} bytes */
export function megabytes(bytes) {
  return `${Math.max(1, Math.round(bytes / 1e6))} MB`;
}

/** Loads the browser's own model. @param {(progress: Progress) => void} onProgress @param {AbortSignal} signal @returns {Promise<OnDevice>} */
export async function loadBrowsersOwn(onProgress, signal) {
  const { promptApi } = await loadLocal();
  const model = promptApi({ id: "browser", languages: ["en"], onProgress: ({ loaded, total = 1 }) => onProgress({ what: "The browser fetches its model", loaded, total }) });
  await model.prepare({ signal });
  return { model, name: "The browser's own model", takesTools: true, streamOptions: {} };
}

/** Loads weights, from the cache if they are there. @param {Source} source @param {(progress: Progress) => void} onProgress @param {AbortSignal} signal @returns {Promise<OnDevice>} */
export async function loadSmall(source, onProgress, signal) {
  const name = "file" in source ? source.file.name.replace(/\.gguf$/i, "") : source.weights.name;
  const blob = "file" in source ? source.file : await fetched(source.weights, onProgress, signal);
  await checkGguf(blob, name);
  signal.throwIfAborted();
  onProgress({ what: `Starting ${name}`, loaded: 0 });
  const [{ wllama }, { Wllama }] = await Promise.all([loadLocal(), loadWllama()]);
  const takesTools = blob.size >= TALKS_ONLY_BYTES;
  const engine = new Wllama({ default: new URL("./wllama/wasm/wllama.wasm", document.baseURI).href }, { suppressNativeLog: true });
  const whenAborted = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
  try {
    await Promise.race([engine.loadModel([blob], { n_ctx: 4096, ...(globalThis.crossOriginIsolated ? {} : { n_threads: 1 }) }), whenAborted]);
  } catch (error) {
    void Promise.resolve(engine.exit?.()).catch(() => {});
    // A worker that is refused says so with an Event.
    if (error instanceof Error) throw error;
    throw new Error(`${name} could not be started: the browser let the page start no worker for it`);
  }
  return { model: wllama(engine, { id: name, maxCalls: takesTools ? 4 : 1 }), name, takesTools, streamOptions: { maxTokens: 300, temperature: 0.2 } };
}

/** Says what is wrong with a file that is no GGUF, before megabytes of it are read. @param {Blob} blob @param {string} name */
async function checkGguf(blob, name) {
  const magic = new TextDecoder().decode(await blob.slice(0, 4).arrayBuffer());
  if (magic !== "GGUF") throw new Error(`${name} is no GGUF file`);
  if (blob.size > MOST_BYTES) throw new Error(`${name} has ${megabytes(blob.size)}; a page can run files of up to ${megabytes(MOST_BYTES)}`);
}

/**
 * The weights at an address. They are kept by the browser: the next visit, with or without a network, has them at once.
 * @param {Weights} weights @param {(progress: Progress) => void} onProgress @param {AbortSignal} signal @returns {Promise<Blob>}
 */
async function fetched({ url, name, bytes, sha256 }, onProgress, signal) {
  const address = new URL(url, document.baseURI).href;
  const cache = await openCache(bytes);
  const kept = await cache?.match(address);
  if (kept) return kept.blob();
  const load = () => download(address, { name, bytes }, onProgress, signal);
  let blob = cache && (await keep(cache, address, await load()));
  signal.throwIfAborted();
  blob ??= await (await load()).blob();
  const flaw = bytes !== undefined && blob.size !== bytes ? `${megabytes(blob.size)} came instead of ${megabytes(bytes)}` : sha256 && (await sha256Of(blob)) !== sha256 ? "what came is something else than what was announced" : undefined;
  if (flaw) {
    await cache?.delete(address);
    throw new Error(`${name} could not be fetched: ${flaw}`);
  }
  return blob;
}

/** @param {string} address @param {Pick<Weights, "name" | "bytes">} what @param {(progress: Progress) => void} onProgress @param {AbortSignal} signal */
async function download(address, { name, bytes }, onProgress, signal) {
  const response = await fetch(address, { signal, credentials: "omit" });
  if (!response.ok || !response.body) throw new Error(`${name} could not be fetched: ${new URL(address).host} answered with ${response.status}`);
  const total = bytes ?? (Number(response.headers.get("content-length")) || undefined);
  const counted = response.body.pipeThrough(counting(`Fetching ${name}`, total, onProgress));
  return new Response(counted, { headers: { "content-type": "application/octet-stream" } });
}

/** Pages over plain HTTP have no cache, and a full disk has no room. @param {number | undefined} bytes @returns {Promise<Cache | undefined>} */
async function openCache(bytes = 0) {
  try {
    const { quota = Infinity, usage = 0 } = (await navigator.storage?.estimate?.()) ?? {};
    const cache = await globalThis.caches?.open(WEIGHTS_CACHE);
    return quota - usage > bytes || (await cache?.keys())?.length ? cache : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reads an answer into the cache, so that it never is in memory as a whole. Gives nothing if the browser does not keep it: a
 * private window's cache has no room for the larger ones.
 * @param {Cache} cache @param {string} address @param {Response} response
 */
async function keep(cache, address, response) {
  try {
    await cache.put(address, response);
    return await (await cache.match(address))?.blob();
  } catch {
    return undefined;
  }
}

/** @param {string} what @param {number | undefined} total @param {(progress: Progress) => void} onProgress */
function counting(what, total, onProgress) {
  const startedAt = performance.now();
  let loaded = 0;
  let told = 0;
  return new TransformStream({
    /** @param {Uint8Array<ArrayBuffer>} piece @param {TransformStreamDefaultController<Uint8Array<ArrayBuffer>>} controller */
    transform(piece, controller) {
      controller.enqueue(piece);
      loaded += piece.length;
      const now = performance.now();
      if (now - told < 100) return;
      told = now;
      onProgress({ what, loaded, ...(total !== undefined && { total }), bytesPerSecond: (1000 * loaded) / (now - startedAt) });
    },
  });
}

/** @param {Blob} blob */
async function sha256Of(blob) {
  const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
