// @ts-check
// The weights of a model at an address. The browser keeps what has come of them, part by part: a download that is cut off goes
// on where it stopped, and the next visit, with or without a network, has them at once.

/** @typedef {import("./site.js").Weights} Weights */
/** @typedef {import("./device.js").Progress} Progress */
/** @typedef {{ onProgress: (progress: Progress) => void, signal: AbortSignal }} Watch */

/** Where they are kept, beside what the page itself keeps to work offline. */
const WEIGHTS_CACHE = "turnwheel-demo-weights";
/** @param {number} bytes */
export const megabytes = (bytes) => `${Math.max(1, Math.round(bytes / 1e6))} MB`;

/** So much at once is in memory. */
const PART_BYTES = 2 ** 24;
/** How often a connection may break without anything having come of it. */
const MOST_TRIES = 5;
const PAUSE_MS = 1000;

/**
 * Fetches what is not there yet. `isKept` says whether the next visit has them.
 * @param {Weights} weights @param {Watch} watch @returns {Promise<{ blob: Blob, isKept: boolean }>}
 */
export async function fetchWeights(weights, watch) {
  const address = new URL(weights.url, document.baseURI).href;
  const fetched = () => fetchOnce({ ...weights, url: address }, watch);
  if (!navigator.locks) return fetched();
  // Two tabs that fetch the same would do it twice.
  const name = `${WEIGHTS_CACHE} ${address}`;
  const found = await navigator.locks.request(name, { ifAvailable: true }, (lock) => lock && fetched());
  if (found) return found;
  watch.onProgress({ what: `Another tab fetches ${weights.name}`, loaded: 0 });
  return navigator.locks.request(name, { signal: watch.signal }, fetched);
}

/** @param {Weights} weights @param {Watch} watch */
async function fetchOnce({ url, name, bytes, sha256 }, { onProgress, signal }) {
  const kept = await Kept.open(url, bytes);
  if (!kept.isWhole) {
    onProgress({ what: `Fetching ${name}`, loaded: 0 });
    await download(kept, { name, bytes }, { onProgress, signal });
    const { blob } = kept;
    onProgress({ what: `Checking ${name}`, loaded: 0 });
    const flaw = bytes !== undefined && blob.size !== bytes ? `${megabytes(blob.size)} came instead of ${megabytes(bytes)}` : sha256 && (await sha256Of(blob)) !== sha256 ? "what came is something else than what was announced" : undefined;
    if (flaw) {
      await kept.forget();
      throw new Error(`${name} could not be fetched: ${flaw}`);
    }
    await kept.finish();
  }
  return { blob: kept.blob, isKept: kept.isKept };
}

/** Goes on until all is there, also when the connection breaks. @param {Kept} kept @param {Pick<Weights, "name" | "bytes">} what @param {Watch} watch */
async function download(kept, { name, bytes }, { onProgress, signal }) {
  for (let tries = 1; ; tries++) {
    const before = kept.size;
    try {
      return await read(kept, { name, bytes }, { onProgress, signal });
    } catch (error) {
      signal.throwIfAborted();
      // What the server refuses, it refuses again.
      if (!(error instanceof TypeError)) throw error;
      if (kept.size > before) tries = 0;
      if (tries >= MOST_TRIES) throw new Error(`${name} could not be fetched: the connection broke${kept.size > 0 ? ` after ${megabytes(kept.size)}. Load it again, and it goes on from there` : ` (${error.message})`}`);
      onProgress({ what: `The connection broke. Fetching the rest of ${name}`, loaded: kept.size, ...(bytes !== undefined && { total: bytes }) });
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * tries));
    }
  }
}

/** Reads one answer, as far as it comes. @param {Kept} kept @param {Pick<Weights, "name" | "bytes">} what @param {Watch} watch */
async function read(kept, { name, bytes }, { onProgress, signal }) {
  const from = kept.size;
  if (from > 0 && from === bytes) return;
  const response = await fetch(kept.address, { signal, credentials: "omit", ...(from > 0 && { headers: { range: `bytes=${from}-` } }) });
  // The server sends no part of it, or has another file there now.
  if (from > 0 && response.status !== 206) await kept.forget();
  if (response.status === 416) throw new TypeError("there is less of it than there was");
  if (!response.ok || !response.body) throw new Error(`${name} could not be fetched: ${new URL(kept.address).host} answered with ${response.status}`);
  const length = Number(response.headers.get("content-length")) || undefined;
  const total = bytes ?? (length && kept.size + length);
  const startedAt = performance.now();
  let [come, shown] = [0, 0];
  const first = kept.size;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await kept.add(value);
      come += value.length;
      const now = performance.now();
      if (now - shown < 100) continue;
      shown = now;
      onProgress({ what: `Fetching ${name}`, loaded: first + come, ...(total !== undefined && { total }), bytesPerSecond: (1000 * come) / (now - startedAt) });
    }
  } finally {
    await kept.flush();
  }
  // Firefox does not say that a connection broke.
  if (length !== undefined && kept.size < first + length) throw new TypeError("the answer ended too soon");
}

/** What has come of an address: in the browser's cache, or in memory where that has no room. */
class Kept {
  /** @param {string} address @param {Cache | undefined} cache */
  constructor(address, cache) {
    this.address = address;
    this.cache = cache;
    /** @type {Blob[]} */
    this.parts = [];
    this.size = 0;
    this.isWhole = false;
    /** Whether all that has come is in the cache. */
    this.isKept = cache !== undefined;
    /** What has not become a part yet. @type {Uint8Array<ArrayBuffer>[]} */
    this.pieces = [];
    this.waiting = 0;
  }

  /** @param {string} address @param {number | undefined} bytes */
  static async open(address, bytes) {
    const kept = new Kept(address, await openCache(bytes));
    try {
      await kept.#find();
    } catch {
      // What cannot be read is fetched again.
      await kept.forget();
    }
    return kept;
  }

  async #find() {
    const { cache } = this;
    for (let found; (found = await cache?.match(this.#partAt(this.size))); ) {
      const part = await found.blob();
      if (part.size === 0) break;
      this.parts.push(part);
      this.size += part.size;
    }
    const whole = await cache?.match(this.address);
    this.isWhole = whole !== undefined && (await whole.json()).bytes === this.size;
  }

  get blob() {
    return new Blob(this.parts, { type: "application/octet-stream" });
  }

  /** @param {Uint8Array<ArrayBuffer>} piece */
  async add(piece) {
    this.pieces.push(piece);
    this.waiting += piece.length;
    if (this.waiting >= PART_BYTES) await this.flush();
  }

  /** Makes a part of what has come. One that the cache does not take stays in memory, and so do those after it. */
  async flush() {
    if (this.waiting === 0) return;
    let part = new Blob(this.pieces.splice(0));
    this.waiting = 0;
    if (this.isKept) {
      const at = this.#partAt(this.size);
      const stored = await this.#put(at, part).then(() => this.cache?.match(at)).then((response) => response?.blob()).catch(() => undefined);
      // What is stored need not be in memory.
      if (stored?.size === part.size) part = stored;
      else this.isKept = false;
    }
    this.parts.push(part);
    this.size += part.size;
  }

  /** All of it is there. */
  async finish() {
    this.isWhole = true;
    if (this.isKept) await this.#put(this.address, JSON.stringify({ bytes: this.size })).catch(() => void (this.isKept = false));
    if (!this.isKept) await this.#clear();
  }

  async forget() {
    [this.parts, this.size, this.isWhole] = [[], 0, false];
    await this.#clear();
  }

  /** @param {string} at @param {Blob | string} body */
  async #put(at, body) {
    await this.cache?.put(at, new Response(body));
  }

  async #clear() {
    try {
      const keys = (await this.cache?.keys()) ?? [];
      await Promise.all(keys.filter(({ url }) => url.startsWith(this.address)).map((key) => this.cache?.delete(key)));
    } catch {
      // The browser has lost them itself.
    }
  }

  /** @param {number} from */
  #partAt(from) {
    return `${this.address}${this.address.includes("?") ? "&" : "?"}turnwheel-from=${from}`;
  }
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

/** @param {Blob} blob */
async function sha256Of(blob) {
  const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
