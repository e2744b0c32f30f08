// @ts-check
// A model of this page while it loads: how far it is, and a way out. Until it is there, the model stays as it is.

import { loadBrowsersOwn, loadSmall } from "./device.js";
import { byId } from "./dom.js";
import { megabytes } from "./weights.js";

/** @typedef {import("./device.js").OnDevice} OnDevice */

/** A private window, a full disk, a page over plain HTTP. */
export const NOT_KEPT = "This browser does not keep it: the next visit fetches it again.";

export class Loading {
  /** @param {{ announce: (text: string) => void, onReady: (ready: { row: string, device: OnDevice }) => void }} callbacks */
  constructor({ announce, onReady }) {
    this.announce = announce;
    this.onReady = onReady;
    /** What is loaded, by row. @type {Map<string, OnDevice>} */
    this.loaded = new Map();
    this.root = byId("loading", HTMLElement);
    this.text = byId("loading-text", HTMLElement);
    this.bar = byId("loading-bar", HTMLProgressElement);
    this.cancel = byId("loading-cancel", HTMLButtonElement);
    this.cancel.addEventListener("click", () => this.#cancel());
    /** @type {AbortController | undefined} */
    this.current = undefined;
  }

  /** The model of a row, if it is loaded. @param {string} row */
  of(row) {
    return this.loaded.get(row);
  }

  /** @param {{ row: string, file: File | undefined, weights: import("./site.js").Weights | null }} wanted */
  async load({ row, file, weights }) {
    this.current?.abort();
    const current = (this.current = new AbortController());
    const { signal } = current;
    this.#show({ what: "Loading", loaded: 0 });
    this.root.dataset["state"] = "loading";
    this.cancel.textContent = "Cancel";
    this.root.hidden = false;
    const onProgress = (/** @type {import("./device.js").Progress} */ progress) => void (this.current === current && this.#show(progress));
    try {
      const device = row === "browser" ? await loadBrowsersOwn(onProgress, signal) : await loadSmall(sourceOf(file, weights), onProgress, signal);
      if (signal.aborted) return;
      const before = this.loaded.get(row)?.model;
      this.loaded.set(row, device);
      void before?.[Symbol.asyncDispose]?.();
      this.root.hidden = true;
      this.announce(`${device.name} is loaded and answers now.${device.isKept ? "" : ` ${NOT_KEPT}`}`);
      this.onReady({ row, device });
    } catch (error) {
      if (!signal.aborted) this.#failed(error);
    } finally {
      if (this.current === current) this.current = undefined;
    }
  }

  #cancel() {
    this.current?.abort(new DOMException("cancelled", "AbortError"));
    this.current = undefined;
    this.root.hidden = true;
  }

  /** @param {unknown} error */
  #failed(error) {
    const text = `${error instanceof Error ? error.message : String(error)}. The model stays as it was.`;
    this.root.dataset["state"] = "failed";
    this.text.textContent = text;
    this.bar.hidden = true;
    this.cancel.textContent = "Close";
    this.announce(text);
  }

  /** @param {import("./device.js").Progress} progress */
  #show({ what, loaded, total, bytesPerSecond }) {
    // The Prompt API tells parts of 1.
    const isBytes = (total ?? loaded) > 1;
    const far = !loaded ? "" : !isBytes ? `: ${Math.round(100 * (loaded / (total ?? 1)))} %` : `: ${megabytes(loaded)}${total ? ` of ${megabytes(total)}` : ""}`;
    const speed = isBytes && bytesPerSecond ? `, ${(bytesPerSecond / 1e6).toFixed(1)} MB/s` : "";
    this.text.textContent = `${what}${far}${speed}. The model stays as it is until then.`;
    this.bar.hidden = false;
    if (loaded && total) this.bar.value = Math.min(1, loaded / total);
    else this.bar.removeAttribute("value");
  }
}

/** @param {File | undefined} file @param {import("./site.js").Weights | null} weights @returns {import("./device.js").Source} */
function sourceOf(file, weights) {
  if (file) return { file };
  if (weights) return { weights };
  throw new Error("there are no weights to load");
}
