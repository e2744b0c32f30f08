// @ts-check
// Models that run in this page: the browser's own, and weights that llama.cpp runs as WebAssembly. Nothing of them is loaded
// before somebody has chosen one.

import { loadLocal, loadWllama } from "./engine.js";
import { fetchWeights, megabytes } from "./weights.js";

/** @typedef {import("../npm/local.js").LocalModel} LocalModel */
/** @typedef {import("./site.js").Weights} Weights */
/** How far loading is. @typedef {{ what: string, loaded: number, total?: number, bytesPerSecond?: number }} Progress */
/** A model that is there. Tools are left to those that can use them; one that is not kept is fetched again at the next visit. @typedef {{ model: LocalModel, name: string, takesTools: boolean, isKept: boolean, streamOptions: import("../npm/index.js").StreamOptions }} OnDevice */
/** Where weights come from: an address, or a file of the person's. @typedef {{ weights: Weights } | { file: File }} Source */

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

/** Loads the browser's own model. @param {(progress: Progress) => void} onProgress @param {AbortSignal} signal @returns {Promise<OnDevice>} */
export async function loadBrowsersOwn(onProgress, signal) {
  const { promptApi } = await loadLocal();
  const model = promptApi({ id: "browser", languages: ["en"], onProgress: ({ loaded, total = 1 }) => onProgress({ what: "The browser fetches its model", loaded, total }) });
  await model.prepare({ signal });
  return { model, name: "The browser's own model", takesTools: true, isKept: true, streamOptions: {} };
}

/** Loads weights, from the cache if they are there. @param {Source} source @param {(progress: Progress) => void} onProgress @param {AbortSignal} signal @returns {Promise<OnDevice>} */
export async function loadSmall(source, onProgress, signal) {
  const name = "file" in source ? source.file.name.replace(/\.gguf$/i, "") : source.weights.name;
  const { blob, isKept } = "file" in source ? { blob: source.file, isKept: true } : await fetchWeights(source.weights, { onProgress, signal });
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
  return { model: wllama(engine, { id: name, maxCalls: takesTools ? 4 : 1 }), name, takesTools, isKept, streamOptions: { maxTokens: 300, temperature: 0.2 } };
}

/** Says what is wrong with a file that is no GGUF, before megabytes of it are read. @param {Blob} blob @param {string} name */
async function checkGguf(blob, name) {
  const magic = new TextDecoder().decode(await blob.slice(0, 4).arrayBuffer());
  if (magic !== "GGUF") throw new Error(`${name} is no GGUF file`);
  if (blob.size > MOST_BYTES) throw new Error(`${name} has ${megabytes(blob.size)}; a page can run files of up to ${megabytes(MOST_BYTES)}`);
}
