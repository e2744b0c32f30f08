// @ts-check
// Agents in files, for the processes of one machine where Node has no SQLite. There is no lock that a killed process could
// leave behind: each claim is a folder of its own, named by its fence, and making it is what only one process can do. What a
// process writes that lost its lease goes into a folder that nobody reads any more.

import { kindOf, misuse } from "../../shared.js";
import { fleetStore } from "./fleet.js";

/** @import { StoreOptions } from "../../stores-node.js" */
/** @import { Change } from "./lease.js" */
/** @import { LogChange } from "./log.js" */
/** A row of a log: the number of its last entry, whether it has commands, and its entries. @typedef {[number, boolean, string]} Row */
/** `start` is where the numbers of events begin. @typedef {{ until: number, owner: string, running: boolean, start: number }} Terms */

/** How many claims that stored nothing may follow each other. */
const MAX_EMPTY_CLAIMS = 1_000;

/** @param {string} folder @param {StoreOptions} [options] */
export function fileStore(folder, options) {
  if (typeof folder !== "string" || folder === "") throw misuse(`fileStore takes the name of a folder, got ${kindOf(folder)}`);
  return fleetStore(new FileShelf(folder), options);
}

const fs = () => import("node:fs/promises");

/**
 * What is kept by a claim, as its file `state.json` says it: of the other files so many bytes count, whatever else a killed
 * process has left in them.
 * @typedef {object} Record
 * @property {string | undefined} state
 * @property {boolean} running
 * @property {string} messages the name of the file with the messages
 * @property {number} bytes of that
 * @property {number} count of the messages
 * @property {{ first: number, last: number, bytes: number } | undefined} log
 * @property {string} events the name of the file with the log
 * @property {number} eventBytes
 */
/** What this process holds: also where each message begins in its file, and which rows its log has. @typedef {Record & { offsets: number[], rows: number[] }} Held */
/** @typedef {{ fence: number, record: Record, messages: string[] }} Found */
/** @type {Record} */
const NOTHING = { state: undefined, running: false, messages: "messages-0.jsonl", bytes: 0, count: 0, log: undefined, events: "events-0.jsonl", eventBytes: 0 };

class FileShelf {
  place = "files";
  /** By claim. @type {Map<string, Held>} */
  #held = new Map();
  /** What was there when it was claimed, until something is stored. @type {Map<string, Found & { rows: Row[] }>} */
  #claimed = new Map();
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
    // Whoever was stopped for long may have made a folder that was there before, and was removed since.
    if ((await this.#newest(id)) !== fence) {
      await (await fs()).rm(`${this.#folderOf(id)}/${fence}`, { recursive: true, force: true });
      return;
    }
    // Read after the folder was made: whoever stores something in the one before later than now learns that it is lost.
    const found = await this.#latest(id, before);
    const { record, messages } = found;
    const start = await this.#start(id, before);
    await this.#setTerms(id, fence, { until: Date.now() + ttlMs, owner, running: record.running, start });
    const rows = await this.#rows(id, found.fence, record);
    this.#claimed.set(`${fence} ${id}`, { ...found, rows });
    const commands = rows.filter(([at, hasCommands]) => hasCommands && at > (record.log?.first ?? 0)).map(([, , json]) => json);
    const log = record.log ?? { first: start, last: start, bytes: 0 };
    // A later claim may have removed what was being read.
    if ((await this.#newest(id)) !== fence) return;
    return { fence, state: record.state, messages, ...log, commands };
  }

  /** Where the numbers of events begin, as the first claim said. One that was killed may have said nothing. @param {string} id @param {number} before */
  async #start(id, before) {
    for (let at = before; at > 0 && at > before - MAX_EMPTY_CLAIMS; at--) {
      const terms = await this.#terms(id, at);
      if (terms) return terms.start;
    }
    return Date.now() * 1000;
  }

  /** @param {string} id @param {number} fence @param {number} ttlMs @param {Change} change */
  save(id, fence, ttlMs, change) {
    return this.#asHolder(id, fence, async () => {
      const { rm } = await fs();
      const known = this.#held.get(`${fence} ${id}`);
      const before = known ?? (await this.#begin(id, fence));
      // A copy: if this fails half-way, the same is tried again from what was.
      const held = { ...before, rows: [...before.rows] };
      if (change.state !== undefined) {
        await this.#say(id, fence, held, change);
        Object.assign(held, { state: change.state, running: change.isRunning });
      }
      if (change.log) await this.#tell(id, fence, held, change.log);
      const { offsets, rows, ...record } = held;
      await write(this.#file(id, fence, "state.json"), JSON.stringify(record));
      this.#held.set(`${fence} ${id}`, held);
      this.#claimed.delete(`${fence} ${id}`);
      await this.#setTerms(id, fence, { until: Date.now() + ttlMs, running: held.running });
      if (!known) await this.#forgetBefore(id, fence);
      // The one before stays: who claims the agent right now may be reading it.
      for (const name of [held.messages, held.events]) await rm(this.#file(id, fence, follow(name, -2)), { force: true });
    });
  }

  /** Writes messages. @param {string} id @param {number} fence @param {Held} held @param {Change} change */
  async #say(id, fence, held, { from, messages }) {
    const { appendFile, readFile, truncate, writeFile } = await fs();
    const offsets = held.offsets.slice(0, from + 1);
    const file = this.#file(id, fence, held.messages);
    if (from === held.count) {
      await truncate(file, held.bytes);
      await appendFile(file, linesOf(messages, offsets));
    } else {
      // Into another file: this one counts until the state says otherwise.
      const kept = (await readFile(file)).subarray(0, offsets.at(-1)).toString();
      held.messages = follow(held.messages);
      await writeFile(this.#file(id, fence, held.messages), kept + linesOf(messages, offsets));
    }
    Object.assign(held, { offsets, bytes: offsets.at(-1), count: from + messages.length });
  }

  /** The first time all is written: what an earlier claim stored is in its own folder. @param {string} id @param {number} fence @returns {Promise<Held>} */
  async #begin(id, fence) {
    const { writeFile } = await fs();
    const { record, messages, rows } = this.#claimed.get(`${fence} ${id}`) ?? { record: NOTHING, messages: [], rows: [] };
    const [offsets, ends] = [[0], [0]];
    await writeFile(this.#file(id, fence, record.messages), linesOf(messages, offsets));
    await writeFile(this.#file(id, fence, record.events), linesOf(rows.map((row) => JSON.stringify(row)), ends));
    return { ...record, offsets, bytes: offsets.at(-1) ?? 0, eventBytes: ends.at(-1) ?? 0, rows: rows.map(([at]) => at) };
  }

  /** @param {string} id @param {number} fence @param {Held} held @param {LogChange} change */
  async #tell(id, fence, held, { first, last, bytes, rows }) {
    const { appendFile, truncate, writeFile } = await fs();
    held.log = { first, last, bytes };
    const gone = held.rows.filter((at) => at <= first).length;
    const fresh = rows.map(({ at, hasCommands, json }) => /** @type {Row} */ ([at, hasCommands, json]));
    const ends = [held.eventBytes];
    if (gone > 0 && 2 * gone >= held.rows.length) {
      // Into another file: this one counts until the state says otherwise.
      const kept = (await this.#rows(id, fence, held)).filter(([at]) => at > first);
      held.events = follow(held.events);
      ends[0] = 0;
      await writeFile(this.#file(id, fence, held.events), linesOf([...kept, ...fresh].map((row) => JSON.stringify(row)), ends));
      held.rows = [...kept, ...fresh].map(([at]) => at);
    } else {
      const file = this.#file(id, fence, held.events);
      await truncate(file, held.eventBytes);
      await appendFile(file, linesOf(fresh.map((row) => JSON.stringify(row)), ends));
      held.rows.push(...fresh.map(([at]) => at));
    }
    held.eventBytes = ends.at(-1) ?? 0;
  }

  /** The rows of a log. @param {string} id @param {number} fence @param {Record} record @returns {Promise<Row[]>} */
  async #rows(id, fence, { events, eventBytes }) {
    if (eventBytes === 0) return [];
    const file = await orNothing((await fs()).readFile(this.#file(id, fence, events)));
    return (file?.subarray(0, eventBytes).toString().split("\n") ?? []).filter(Boolean).map((line) => JSON.parse(line));
  }

  /** @param {string} id @param {number} fence @param {number} after @param {number} limit */
  async events(id, fence, after, limit) {
    const held = this.#held.get(`${fence} ${id}`);
    const rows = held ? await this.#rows(id, fence, held) : (this.#claimed.get(`${fence} ${id}`)?.rows ?? []);
    return rows.filter(([at]) => at > after).slice(0, limit).map(([, , json]) => json);
  }

  /** @param {string} id @param {number} fence @param {number} ttlMs */
  renew(id, fence, ttlMs) {
    return this.#asHolder(id, fence, () => this.#setTerms(id, fence, { until: Date.now() + ttlMs }));
  }

  /** @param {string} id @param {number} fence */
  release(id, fence) {
    this.#held.delete(`${fence} ${id}`);
    this.#claimed.delete(`${fence} ${id}`);
    return this.#asHolder(id, fence, () => this.#setTerms(id, fence, { until: 0 }));
  }

  /** @param {string} id */
  async read(id) {
    for (;;) {
      const fence = await this.#newest(id);
      const { record, messages } = await this.#latest(id, fence);
      // Otherwise a later claim may have removed what was being read.
      if ((await this.#newest(id)) === fence) return fence === 0 ? undefined : { state: record.state, messages };
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
  async #asHolder(id, fence, work) {
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

  /** What was stored last: by the newest claim that stored anything. @param {string} id @param {number} fence @returns {Promise<Found>} */
  async #latest(id, fence) {
    for (let at = fence; at > 0 && at > fence - MAX_EMPTY_CLAIMS; at--) {
      const found = await this.#kept(id, at);
      if (found) return found;
    }
    return { fence: 0, record: NOTHING, messages: [] };
  }

  /** @param {string} id @param {number} fence @returns {Promise<Found | undefined>} */
  async #kept(id, fence) {
    const { readFile } = await fs();
    const text = await orNothing(readFile(this.#file(id, fence, "state.json"), "utf8"));
    const record = text === undefined ? undefined : recordOf(text, id);
    const file = record && (await orNothing(readFile(this.#file(id, fence, record.messages))));
    if (!record || !file) return;
    return { fence, record, messages: file.subarray(0, record.bytes).toString().split("\n").slice(0, record.count) };
  }

  /** Removes what earlier claims left. @param {string} id @param {number} fence */
  async #forgetBefore(id, fence) {
    const { readdir, rm } = await fs();
    const folder = this.#folderOf(id);
    for (const name of await readdir(folder)) if (Number(name) < fence) await rm(`${folder}/${name}`, { recursive: true, force: true });
  }
}

/** What `state.json` says. The names in it are those of files beside it: whoever wrote it leads nobody elsewhere. @param {string} text @param {string} id @returns {Record} */
function recordOf(text, id) {
  const record = JSON.parse(text);
  const isOwn = (/** @type {string} */ name) => typeof record?.[name] === "string" && new RegExp(`^${name}-\\d{1,15}\\.jsonl$`).test(record[name]);
  if (!isOwn("messages") || !isOwn("events")) throw misuse(`what is kept of \`${id}\` was not written by turnwheel: state.json names files that are none of its own`);
  return record;
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

/** The lines of a file, and in `ends` where each of them ends. @param {string[]} texts @param {number[]} ends that where they begin is in */
function linesOf(texts, ends) {
  const encoder = new TextEncoder();
  for (const text of texts) ends.push((ends.at(-1) ?? 0) + encoder.encode(text).length + 1);
  return texts.map((text) => `${text}\n`).join("");
}

/** The name of the file that takes the place of this one, or of one before it. @param {string} name @param {number} [by] */
const follow = (name, by = 1) => name.replace(/\d+/, (number) => String(Number(number) + by));
