// @ts-check
// Agents in files, for the processes of one machine where Node has no SQLite. There is no lock that a killed process could
// leave behind: each claim is a folder of its own, named by its fence, and making it is what only one process can do. What a
// process writes that lost its lease goes into a folder that nobody reads any more.

import { kindOf, misuse } from "../../shared.js";
import { fleetStore } from "./fleet.js";

/** @import { StoreOptions } from "../../stores-node.js" */
/** @import { Change, Kept } from "../lease.js" */
/** @typedef {{ until: number, owner: string, running: boolean }} Terms */

/** How many claims that stored nothing may follow each other. */
const MAX_EMPTY_CLAIMS = 1_000;

/** @param {string} folder @param {StoreOptions} [options] */
export function fileStore(folder, options) {
  if (typeof folder !== "string" || folder === "") throw misuse(`fileStore takes the name of a folder, got ${kindOf(folder)}`);
  return fleetStore(new FileShelf(folder), options);
}

const fs = () => import("node:fs/promises");

class FileShelf {
  place = "files";
  /** Where each message of what this process holds begins in its file, by claim. @type {Map<string, number[]>} */
  #offsets = new Map();
  #root;

  /** @param {string} root */
  constructor(root) {
    this.#root = root;
  }

  /** @param {string} id @param {string} owner @param {number} ttlMs */
  async claim(id, owner, ttlMs) {
    const { mkdir } = await fs();
    const before = await this.#newest(id);
    if (before > 0 && (await this.#until(id, before, ttlMs)) > Date.now()) return;
    const fence = before + 1;
    await mkdir(this.#folderOf(id), { recursive: true });
    try {
      await mkdir(`${this.#folderOf(id)}/${fence}`);
    } catch (error) {
      if (/** @type {any} */ (error)?.code === "EEXIST") return;
      throw error;
    }
    // Read after the folder was made: whoever stores something in the one before later than now learns that it is lost.
    const { state, running, messages } = await this.#latest(id, before);
    await this.#setTerms(id, fence, { until: Date.now() + ttlMs, owner, running });
    return { fence, state, messages };
  }

  /** @param {string} id @param {number} fence @param {number} ttlMs @param {Change} change */
  save(id, fence, ttlMs, { state, isRunning, from, messages }) {
    return this.#held(id, fence, async () => {
      const { appendFile, truncate } = await fs();
      const file = this.#file(id, fence, "messages.jsonl");
      const known = this.#offsets.get(`${fence} ${id}`);
      // What an earlier claim stored is in its own folder: the first time all is written.
      const start = known ? from : 0;
      const all = known || from === 0 ? messages : [...(await this.#latest(id, fence - 1)).messages.slice(0, from), ...messages];
      if (known) await truncate(file, known[start] ?? 0);
      const offsets = known?.slice(0, start + 1) ?? [0];
      for (const json of all) offsets.push((offsets.at(-1) ?? 0) + new TextEncoder().encode(json).length + 1);
      await appendFile(file, all.map((json) => `${json}\n`).join(""));
      await write(this.#file(id, fence, "state.json"), JSON.stringify({ state, running: isRunning, bytes: offsets.at(-1), count: start + all.length }));
      await this.#setTerms(id, fence, { until: Date.now() + ttlMs, running: isRunning });
      this.#offsets.set(`${fence} ${id}`, offsets);
      if (!known) await this.#forgetBefore(id, fence);
    });
  }

  /** @param {string} id @param {number} fence @param {number} ttlMs */
  renew(id, fence, ttlMs) {
    return this.#held(id, fence, () => this.#setTerms(id, fence, { until: Date.now() + ttlMs }));
  }

  /** @param {string} id @param {number} fence */
  release(id, fence) {
    this.#offsets.delete(`${fence} ${id}`);
    return this.#held(id, fence, () => this.#setTerms(id, fence, { until: 0 }));
  }

  /** @param {string} id */
  async read(id) {
    for (;;) {
      const fence = await this.#newest(id);
      const found = await this.#latest(id, fence);
      // Otherwise a later claim may have removed what was being read.
      if ((await this.#newest(id)) === fence) return fence === 0 ? undefined : found;
    }
  }

  /** @param {string} id */
  async remove(id) {
    await (await fs()).rm(this.#folderOf(id), { recursive: true, force: true });
  }

  /** @param {string} id */
  async owner(id) {
    const terms = await this.#terms(id, await this.#newest(id));
    return terms && terms.until > Date.now() ? terms.owner : undefined;
  }

  /** @param {number} limit */
  async abandoned(limit) {
    const { readdir } = await fs();
    /** @type {string[]} */
    const found = [];
    for (const name of (await orNothing(readdir(this.#root, { recursive: true }))) ?? []) {
      if (!name.endsWith(".agent") || found.length >= limit) continue;
      const id = new TextDecoder().decode(Uint8Array.from(name.replace(/\.agent$|[/\\]/g, "").match(/../g) ?? [], (byte) => parseInt(byte, 16)));
      const terms = await this.#terms(id, await this.#newest(id));
      if (terms?.running && terms.until <= Date.now()) found.push(id);
    }
    return found;
  }

  /** No id can lead out of the folder, or be another's on a file system that knows no capitals. @param {string} id */
  #folderOf(id) {
    const hex = Array.from(new TextEncoder().encode(id), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return `${this.#root}/${hex.replace(/.{200}(?=.)/g, "$&/")}.agent`;
  }

  /** @param {string} id @param {number} fence @param {string} name */
  #file(id, fence, name) {
    return `${this.#folderOf(id)}/${fence}/${name}`;
  }

  /** The newest fence, 0 if there is none. @param {string} id */
  async #newest(id) {
    const names = await orNothing((await fs()).readdir(this.#folderOf(id)));
    return Math.max(0, ...(names ?? []).map(Number).filter(Number.isInteger));
  }

  /**
   * Does something as the holder. What fails because a later claim has removed the folder is a lost lease, and no other error.
   * @param {string} id @param {number} fence @param {() => Promise<void>} work @returns {Promise<boolean>}
   */
  async #held(id, fence, work) {
    const isNewest = async () => (await this.#newest(id)) === fence;
    if (!(await isNewest())) return false;
    try {
      await work();
    } catch (error) {
      if (await isNewest()) throw error;
    }
    return isNewest();
  }

  /** @param {string} id @param {number} fence @returns {Promise<Terms | undefined>} */
  async #terms(id, fence) {
    const text = await orNothing((await fs()).readFile(this.#file(id, fence, "lease.json"), "utf8"));
    return text === undefined ? undefined : JSON.parse(text);
  }

  /** @param {string} id @param {number} fence @param {Partial<Terms>} change */
  async #setTerms(id, fence, change) {
    await write(this.#file(id, fence, "lease.json"), JSON.stringify({ ...(await this.#terms(id, fence)), ...change }));
  }

  /** Until when a claim holds. A process that was killed before it wrote so has only the time of its folder. @param {string} id @param {number} fence @param {number} ttlMs */
  async #until(id, fence, ttlMs) {
    const terms = await this.#terms(id, fence);
    if (terms) return terms.until;
    const { stat } = await fs();
    return ((await orNothing(stat(`${this.#folderOf(id)}/${fence}`)))?.mtimeMs ?? 0) + ttlMs;
  }

  /** What was stored last: by the newest claim that stored anything. @param {string} id @param {number} fence @returns {Promise<Kept & { running: boolean }>} */
  async #latest(id, fence) {
    for (let at = fence; at > 0 && at > fence - MAX_EMPTY_CLAIMS; at--) {
      const found = await this.#kept(id, at);
      if (found) return found;
    }
    return { state: undefined, running: false, messages: [] };
  }

  /** @param {string} id @param {number} fence @returns {Promise<(Kept & { running: boolean }) | undefined>} */
  async #kept(id, fence) {
    const { readFile } = await fs();
    const text = await orNothing(readFile(this.#file(id, fence, "state.json"), "utf8"));
    const file = text === undefined ? undefined : await orNothing(readFile(this.#file(id, fence, "messages.jsonl")));
    if (text === undefined || file === undefined) return;
    const { state, running, bytes, count } = JSON.parse(text);
    return { state, running, messages: new TextDecoder().decode(file.subarray(0, bytes)).split("\n").slice(0, count) };
  }

  /** Removes what earlier claims left. @param {string} id @param {number} fence */
  async #forgetBefore(id, fence) {
    const { readdir, rm } = await fs();
    const folder = this.#folderOf(id);
    for (const name of await readdir(folder)) if (Number(name) < fence) await rm(`${folder}/${name}`, { recursive: true, force: true });
  }
}

/** Written beside and renamed: there is never half a file. @param {string} file @param {string} text */
async function write(file, text) {
  const { rename, writeFile } = await fs();
  const beside = `${file}.${Math.random().toString(36).slice(2)}`;
  await writeFile(beside, text);
  await rename(beside, file);
}

/** What is there, or nothing. @template T @param {Promise<T>} reading @returns {Promise<T | undefined>} */
async function orNothing(reading) {
  try {
    return await reading;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(/** @type {any} */ (error)?.code)) return undefined;
    throw error;
  }
}
