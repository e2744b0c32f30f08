// @ts-check
// Agents in files, for the processes of one machine where Node has no SQLite. There is no lock that a killed process could
// leave behind: each claim is a folder of its own, named by its fence, and making it is what only one process can do. What a
// process writes that lost its lease goes into a folder that nobody reads any more.

import { kindOf, misuse } from "../../shared.js";
import { fleetStore } from "./fleet.js";

/** @import { StoreOptions } from "../../stores-node.js" */
/** @import { Kept, Shelf } from "./lease.js" */
/** @typedef {{ until: number, owner: string, running: boolean }} Terms */

/** @param {string} folder @param {StoreOptions} [options] */
export function fileStore(folder, options) {
  if (typeof folder !== "string" || folder === "") throw misuse(`fileStore takes the name of a folder, got ${kindOf(folder)}`);
  return fleetStore(shelfOf(folder), options);
}

/** @param {string} root @returns {Shelf} */
function shelfOf(root) {
  /** The lengths of the files of messages, by what this process holds: place in the list → bytes before it. @type {Map<string, number[]>} */
  const offsets = new Map();
  const fs = () => import("node:fs/promises");
  // No id can lead out of the folder, or be another's on a file system that knows no capitals.
  const folderOf = (/** @type {string} */ id) => `${root}/${[...new TextEncoder().encode(id)].map((byte) => byte.toString(16).padStart(2, "0")).join("").replace(/.{200}(?=.)/g, "$&/")}.agent`;
  const place = (/** @type {string} */ id, /** @type {number} */ fence, /** @type {string} */ name) => `${folderOf(id)}/${fence}/${name}`;

  /** The newest fence, 0 if there is none. @param {string} id */
  async function newest(id) {
    const names = await orNothing((await fs()).readdir(folderOf(id)));
    return Math.max(0, ...(names ?? []).map(Number).filter(Number.isInteger));
  }
  /** Written beside and renamed: there is never half a file. @param {string} file @param {string} text */
  async function write(file, text) {
    const { rename, writeFile } = await fs();
    const beside = `${file}.${Math.random().toString(36).slice(2)}`;
    await writeFile(beside, text);
    await rename(beside, file);
  }
  /** @param {string} id @param {number} fence @returns {Promise<Terms | undefined>} */
  async function terms(id, fence) {
    const text = await orNothing((await fs()).readFile(place(id, fence, "lease.json"), "utf8"));
    return text === undefined ? undefined : JSON.parse(text);
  }
  /** @param {string} id @param {number} fence @returns {Promise<(Kept & { running: boolean }) | undefined>} */
  async function kept(id, fence) {
    const { readFile } = await fs();
    const text = await orNothing(readFile(place(id, fence, "state.json"), "utf8"));
    if (text === undefined) return;
    const { state, running, bytes, count } = JSON.parse(text);
    const file = await orNothing(readFile(place(id, fence, "messages.jsonl")));
    if (file === undefined) return;
    const lines = new TextDecoder().decode(file.subarray(0, bytes)).split("\n");
    return { state, running, messages: lines.slice(0, count) };
  }
  /** What was stored last: by the newest claim that stored anything. @param {string} id @param {number} fence */
  async function latest(id, fence) {
    for (let at = fence; at > 0 && at > fence - 1_000; at--) {
      const found = await kept(id, at);
      if (found) return found;
    }
    return { state: undefined, running: false, messages: [] };
  }
  /** @param {string} id @param {number} fence @param {Partial<Terms>} change */
  const setTerms = async (id, fence, change) => write(place(id, fence, "lease.json"), JSON.stringify({ ...(await terms(id, fence)), ...change }));
  const isNewest = async (/** @type {string} */ id, /** @type {number} */ fence) => (await newest(id)) === fence;
  /** What fails because a later claim has removed the folder is a lost lease, and no other error. @param {string} id @param {number} fence @param {() => Promise<boolean>} work */
  const held = async (id, fence, work) => {
    try {
      return (await isNewest(id, fence)) && (await work()) && (await isNewest(id, fence));
    } catch (error) {
      if (await isNewest(id, fence)) throw error;
      return false;
    }
  };

  return {
    place: "files",
    async claim(id, owner, ttlMs) {
      const { mkdir } = await fs();
      const before = await newest(id);
      if (before > 0) {
        const held = await terms(id, before);
        // A process that was killed before it wrote its lease has none; the time of its folder stands for it.
        const until = held?.until ?? ((await orNothing((await fs()).stat(`${folderOf(id)}/${before}`)))?.mtimeMs ?? 0) + ttlMs;
        if (until > Date.now()) return;
      }
      const fence = before + 1;
      await mkdir(folderOf(id), { recursive: true });
      try {
        await mkdir(`${folderOf(id)}/${fence}`);
      } catch (error) {
        if (/** @type {any} */ (error)?.code === "EEXIST") return;
        throw error;
      }
      // Read after the folder was made: whoever stores something before this later than now learns that it is lost.
      const { state, running, messages } = await latest(id, before);
      await setTerms(id, fence, { until: Date.now() + ttlMs, owner, running });
      return { fence, state, messages };
    },
    save: (id, fence, ttlMs, { state, isRunning, from, messages }) => held(id, fence, async () => {
      const { appendFile, truncate } = await fs();
      const key = `${fence} ${id}`;
      const file = place(id, fence, "messages.jsonl");
      const isFirst = !offsets.has(key);
      const known = offsets.get(key) ?? [0];
      // What an earlier claim stored is in its own folder: the first time all is written.
      const start = isFirst ? 0 : from;
      const all = isFirst && from > 0 ? [...(await latest(id, fence - 1)).messages.slice(0, from), ...messages] : messages;
      if (!isFirst) await truncate(file, known[start] ?? 0);
      const lengths = known.slice(0, start + 1);
      for (const json of all) lengths.push((lengths.at(-1) ?? 0) + new TextEncoder().encode(json).length + 1);
      await appendFile(file, all.map((json) => `${json}\n`).join(""));
      await write(place(id, fence, "state.json"), JSON.stringify({ state, running: isRunning, bytes: lengths.at(-1), count: start + all.length }));
      if (!(await isNewest(id, fence))) return false;
      await setTerms(id, fence, { until: Date.now() + ttlMs, running: isRunning });
      offsets.set(key, lengths);
      if (isFirst) await forget(folderOf(id), fence);
      return true;
    }),
    renew: (id, fence, ttlMs) => held(id, fence, async () => {
      await setTerms(id, fence, { until: Date.now() + ttlMs });
      return true;
    }),
    release(id, fence) {
      offsets.delete(`${fence} ${id}`);
      return held(id, fence, async () => {
        await setTerms(id, fence, { until: 0 });
        return true;
      });
    },
    async read(id) {
      for (;;) {
        const fence = await newest(id);
        const found = await latest(id, fence);
        // Otherwise a later claim may have removed what was being read.
        if (await isNewest(id, fence)) return fence === 0 ? undefined : found;
      }
    },
    remove: async (id) => (await fs()).rm(folderOf(id), { recursive: true, force: true }),
    async owner(id) {
      const held = await terms(id, await newest(id));
      return held && held.until > Date.now() ? held.owner : undefined;
    },
    async abandoned(limit) {
      const { readdir } = await fs();
      const found = [];
      for (const name of (await orNothing(readdir(root, { recursive: true }))) ?? []) {
        if (!name.endsWith(".agent") || found.length >= limit) continue;
        const id = new TextDecoder().decode(Uint8Array.from(name.replace(/\.agent$|[/\\]/g, "").match(/../g) ?? [], (byte) => parseInt(byte, 16)));
        const held = await terms(id, await newest(id));
        if (held?.running && held.until <= Date.now()) found.push(id);
      }
      return found;
    },
  };

  /** Removes what earlier claims left. @param {string} folder @param {number} fence */
  async function forget(folder, fence) {
    const { readdir, rm } = await fs();
    for (const name of await readdir(folder)) if (Number(name) < fence) await rm(`${folder}/${name}`, { recursive: true, force: true });
  }
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
