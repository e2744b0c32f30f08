// @ts-check
// Agents in files, for the processes of one machine where Node has no SQLite. There is no lock that a killed process could
// leave behind: each claim is a folder of its own, named by its fence, and making it is what only one process can do. What a
// process writes that lost its lease goes into the folder of an earlier claim, perhaps after the next one has looked there. So each
// claim says whose state it goes on from, and whoever comes later believes it: all tell the same story. What is not needed any more
// is removed by who is still the newest claim after it has said that: of what it removes nobody later goes on. A deletion is a
// claim too, which stores that there is nothing.

import { misuse } from "../../shared.js";
import { pageOf } from "../list.js";

/** @import { Change } from "../lease.js" */
/** @import { Query } from "../list.js" */
/** @import { LogChange } from "../log.js" */
/** @import { StoredAgent } from "../../stores.js" */
/** A row of a log: the number of its last entry, whether it has commands, and its entries. @typedef {[number, boolean, string]} Row */
/**
 * `start` is where the numbers of events begin, `from` the claim whose state this one goes on from, 0 if there is none.
 * @typedef {{ until: number, owner: string, running: boolean, start: number, from?: number }} Terms
 */

/** What the name of a folder ends in that is being removed. */
const GONE = ".gone";
/** How often something is read again that others were just writing. */
const MAX_READINGS = 100;

const fs = () => import("node:fs/promises");

/**
 * What is kept by a claim, as its file `state.json` says it: of the other files so many bytes count, whatever else a killed
 * process has left in them.
 * @typedef {object} Record
 * @property {string | undefined} state
 * @property {boolean} running
 * @property {string | undefined} [title] what the list shows of it
 * @property {number | undefined} [updatedAt]
 * @property {string} messages the name of the file with the messages
 * @property {number} bytes of that
 * @property {number} count of the messages
 * @property {{ first: number, last: number, bytes: number } | undefined} log
 * @property {string} events the name of the file with the log
 * @property {number} eventBytes
 */
/** What this process holds: also where each message begins in its file, and which rows its log has. @typedef {Record & { offsets: number[], rows: number[] }} Held */
/** @typedef {{ fence: number, record: Record, messages: string[], rows: Row[] }} Found */
/**
 * A claim of this process: what was there, until something is stored, and then what is held. What is done is done one after the
 * other: a renewal beside a save would undo what that says.
 * @typedef {{ fence: number, terms: Terms, found: Found | undefined, held: Held | undefined, last: Promise<unknown> }} Claim
 */
/** @type {Record} */
const NOTHING = { state: undefined, running: false, messages: "messages-0.jsonl", bytes: 0, count: 0, log: undefined, events: "events-0.jsonl", eventBytes: 0 };

export class FileShelf {
  /** By id. @type {Map<string, Claim>} */
  #claims = new Map();
  #root;

  /** @param {string} root */
  constructor(root) {
    this.#root = root;
  }

  /** @param {string} id @param {string} owner @param {number} ttlMs */
  async claim(id, owner, ttlMs) {
    const before = await this.#newest(id);
    if (before > 0 && (await this.#isTaken(id, before, ttlMs))) return;
    const fence = before + 1;
    if (!(await this.#take(id, fence))) return;
    try {
      // Read after the folder was made: whoever stores something in the one before later than now learns that it is lost.
      const found = await this.#latest(id, before);
      const { record, messages, rows } = found;
      const start = await this.#start(id, before);
      /** @type {Claim} */
      const claim = { fence, terms: { until: Date.now() + ttlMs, owner, running: record.running, start, from: found.fence }, found, held: undefined, last: Promise.resolve() };
      await this.#setTerms(id, claim, {});
      // A deletion may have come between.
      if (!(await this.#replaceBefore(id, fence, found.fence))) return;
      this.#claims.set(id, claim);
      const commands = rows.filter(([at, hasCommands]) => hasCommands && at > (record.log?.first ?? 0)).map(([, , json]) => json);
      const log = record.log ?? { first: start, last: start, bytes: 0 };
      return { fence, state: record.state, messages, ...log, commands };
    } catch (error) {
      if ((await this.#newest(id)) !== fence) return;
      // Otherwise nobody could claim it until the time is over.
      await (await fs()).rm(this.#file(id, fence), { recursive: true, force: true });
      throw error;
    }
  }

  /** Makes the folder of a claim, which only one process can do. @param {string} id @param {number} fence */
  async #take(id, fence) {
    const { mkdir, rm } = await fs();
    await mkdir(this.#folderOf(id), { recursive: true });
    try {
      await mkdir(this.#file(id, fence));
    } catch (error) {
      if (/** @type {any} */ (error)?.code === "EEXIST") return false;
      throw error;
    }
    if ((await this.#newest(id)) === fence) return true;
    // Whoever was stopped for long may have made a folder that was there before, and was removed since.
    await rm(this.#file(id, fence), { recursive: true, force: true });
    return false;
  }

  /** Where the numbers of events begin, as the first claim said. One that was killed may have said nothing. @param {string} id @param {number} upTo */
  async #start(id, upTo) {
    for (const fence of await this.#fences(id, upTo)) {
      const terms = await this.#terms(id, fence);
      if (terms) return terms.start;
    }
    return Date.now() * 1000;
  }

  /** @param {string} id @param {number} fence @param {number} ttlMs @param {Change} change */
  save(id, fence, ttlMs, change) {
    return this.#asHolder(id, fence, async (claim) => {
      const { rm } = await fs();
      const known = claim.held;
      const before = known ?? (await this.#begin(id, claim));
      // A copy: if this fails half-way, the same is tried again from what was.
      const held = { ...before, rows: [...before.rows] };
      if (change.state !== undefined) {
        await this.#say(id, fence, held, change);
        Object.assign(held, { state: change.state, title: change.title, updatedAt: Date.now(), running: change.isRunning });
      }
      if (change.log) await this.#tell(id, fence, held, change.log);
      const { offsets, rows, ...record } = held;
      // Said before it is so: a process that is killed between the two leaves no run that nobody looks for.
      if (held.running && !claim.terms.running) await this.#setTerms(id, claim, { running: true });
      await write(this.#file(id, fence, "state.json"), JSON.stringify(record), true);
      Object.assign(claim, { held, found: undefined });
      await this.#setTerms(id, claim, { until: Date.now() + ttlMs, running: held.running });
      if (!known) {
        await syncFolder(this.#file(id, fence));
        await this.#replaceBefore(id, fence);
      }
      // The one before stays: who claims the agent right now may be reading it.
      for (const name of [held.messages, held.events]) await rm(this.#file(id, fence, follow(name, -2)), { force: true });
    });
  }

  /** Writes messages. @param {string} id @param {number} fence @param {Held} held @param {Change} change */
  async #say(id, fence, held, { from, messages }) {
    const { readFile } = await fs();
    const offsets = held.offsets.slice(0, from + 1);
    const file = this.#file(id, fence, held.messages);
    if (from === held.count) {
      await append(file, held.bytes, linesOf(messages, offsets));
    } else {
      // Into another file: this one counts until the state says otherwise.
      const kept = (await readFile(file)).subarray(0, offsets.at(-1)).toString();
      held.messages = follow(held.messages);
      await append(this.#file(id, fence, held.messages), 0, kept + linesOf(messages, offsets));
    }
    Object.assign(held, { offsets, bytes: offsets.at(-1), count: from + messages.length });
  }

  /** The first time all is written: what an earlier claim stored is in its own folder. @param {string} id @param {Claim} claim @returns {Promise<Held>} */
  async #begin(id, { fence, found }) {
    const { record, messages, rows } = found ?? { record: NOTHING, messages: [], rows: [] };
    const [offsets, ends] = [[0], [0]];
    await append(this.#file(id, fence, record.messages), 0, linesOf(messages, offsets));
    await append(this.#file(id, fence, record.events), 0, linesOf(rows.map((row) => JSON.stringify(row)), ends));
    return { ...record, offsets, bytes: offsets.at(-1) ?? 0, eventBytes: ends.at(-1) ?? 0, rows: rows.map(([at]) => at) };
  }

  /** @param {string} id @param {number} fence @param {Held} held @param {LogChange} change */
  async #tell(id, fence, held, { first, last, bytes, rows }) {
    held.log = { first, last, bytes };
    const gone = held.rows.filter((at) => at <= first).length;
    // Those that are there were written by a save that failed later on, and is tried again.
    const fresh = rows.filter(({ at }) => at > (held.rows.at(-1) ?? 0)).map(({ at, hasCommands, json }) => /** @type {Row} */ ([at, hasCommands, json]));
    const ends = [held.eventBytes];
    if (gone > 0 && 2 * gone >= held.rows.length) {
      // Into another file: this one counts until the state says otherwise.
      const kept = (await this.#rows(id, fence, held)).filter(([at]) => at > first);
      held.events = follow(held.events);
      ends[0] = 0;
      await append(this.#file(id, fence, held.events), 0, linesOf([...kept, ...fresh].map((row) => JSON.stringify(row)), ends));
      held.rows = [...kept, ...fresh].map(([at]) => at);
    } else {
      await append(this.#file(id, fence, held.events), held.eventBytes, linesOf(fresh.map((row) => JSON.stringify(row)), ends));
      held.rows.push(...fresh.map(([at]) => at));
    }
    held.eventBytes = ends.at(-1) ?? 0;
  }

  /** The rows of a log. @param {string} id @param {number} fence @param {Record} record @returns {Promise<Row[]>} */
  async #rows(id, fence, { events, eventBytes }) {
    if (eventBytes === 0) return [];
    const file = await (await fs()).readFile(this.#file(id, fence, events));
    return file.subarray(0, eventBytes).toString().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }

  /** @param {string} id @param {number} fence @param {number} after @param {number} limit */
  async events(id, fence, after, limit) {
    const claim = this.#claims.get(id);
    if (claim?.fence !== fence) return [];
    const rows = claim.held ? ((await orNothing(this.#rows(id, fence, claim.held))) ?? []) : (claim.found?.rows ?? []);
    return rows.filter(([at]) => at > after).slice(0, limit).map(([, , json]) => json);
  }

  /** @param {string} id @param {number} fence @param {number} ttlMs */
  renew(id, fence, ttlMs) {
    return this.#asHolder(id, fence, (claim) => this.#setTerms(id, claim, { until: Date.now() + ttlMs }));
  }

  /** @param {string} id @param {number} fence */
  async release(id, fence) {
    await this.#asHolder(id, fence, (claim) => this.#setTerms(id, claim, { until: 0 }));
    if (this.#claims.get(id)?.fence === fence) this.#claims.delete(id);
  }

  /** @param {string} id */
  async read(id) {
    const fence = await this.#newest(id);
    if (fence === 0) return;
    const { record, messages } = await this.#latest(id, Infinity);
    return { state: record.state, messages };
  }

  /** @param {string} id */
  async remove(id) {
    for (;;) {
      const before = await this.#newest(id);
      if (before === 0) return;
      const fence = before + 1;
      if (!(await this.#take(id, fence))) continue;
      try {
        const { record } = await this.#latest(id, before);
        const last = (record.log?.last ?? (await this.#start(id, before))) + 1;
        // The folder stays, for its fence and for the numbers of events: who still has a lease of before must not write again.
        await write(this.#file(id, fence, "state.json"), JSON.stringify({ ...NOTHING, log: { first: last, last, bytes: 0 } }), true);
        await write(this.#file(id, fence, "lease.json"), JSON.stringify({ until: 0, owner: "", running: false, start: last }));
        await syncFolder(this.#file(id, fence));
        if (await this.#replaceBefore(id, fence)) return;
      } catch (error) {
        if ((await this.#newest(id)) === fence) throw error;
      }
      // Whoever claimed it meanwhile may have read what was there before.
    }
  }

  /** @param {string} id */
  async owner(id) {
    const terms = await this.#terms(id, await this.#newest(id));
    return terms && isOn(terms) ? terms.owner : undefined;
  }

  /** @param {Query} query */
  async list(query) {
    const { readFile } = await fs();
    /** @type {StoredAgent[]} */
    const found = [];
    for await (const id of this.#ids()) {
      if (!id.startsWith(query.prefix)) continue;
      const text = await orNothing(readFile(this.#file(id, await this.#lastStored(id, Infinity), "state.json"), "utf8"));
      const { title = "", updatedAt } = text === undefined ? NOTHING : recordOf(text, id);
      if (updatedAt !== undefined) found.push({ id, title, updatedAt });
    }
    return pageOf(found, query);
  }

  /** @param {number} limit */
  async abandoned(limit) {
    /** @type {string[]} */
    const found = [];
    for await (const id of this.#ids()) {
      const terms = await this.#terms(id, await this.#newest(id));
      if (terms?.running && !isOn(terms)) found.push(id);
      if (found.length >= limit) break;
    }
    return found;
  }

  /** The ids of all agents. */
  async *#ids() {
    for await (const name of this.#agents("")) yield new TextDecoder().decode(Uint8Array.from(name.replace(/\.agent$|\//g, "").match(/../g) ?? [], (byte) => parseInt(byte, 16)));
  }

  /** The folders of all agents. @param {string} inside @returns {AsyncGenerator<string>} */
  async *#agents(inside) {
    const { readdir } = await fs();
    for (const name of (await orNothing(readdir(`${this.#root}/${inside}`))) ?? []) {
      if (name.endsWith(".agent")) yield inside + name;
      else yield* this.#agents(`${inside}${name}/`);
    }
  }

  /** No id can lead out of the folder, or be another's on a file system that knows no capitals. @param {string} id */
  #folderOf(id) {
    const hex = Array.from(new TextEncoder().encode(id), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return `${this.#root}/${hex.replace(/.{200}(?=.)/g, "$&/")}.agent`;
  }

  /** @param {string} id @param {number} fence @param {string} [name] */
  #file(id, fence, name = "") {
    return `${this.#folderOf(id)}/${fence}/${name}`;
  }

  /** The claims whose folders are there, the newest first. @param {string} id @param {number} [upTo] */
  async #fences(id, upTo = Infinity) {
    const names = await orNothing((await fs()).readdir(this.#folderOf(id)));
    return (names ?? []).map(Number).filter((fence) => Number.isInteger(fence) && fence <= upTo).sort((a, b) => b - a);
  }

  /** The newest fence, 0 if there is none. @param {string} id */
  async #newest(id) {
    return (await this.#fences(id))[0] ?? 0;
  }

  /**
   * Does something as the holder. What fails because a later claim has removed the folder is a lost lease, and no other error.
   * @param {string} id @param {number} fence @param {(claim: Claim) => Promise<void>} work @returns {Promise<boolean>}
   */
  async #asHolder(id, fence, work) {
    const claim = this.#claims.get(id);
    if (claim?.fence !== fence) return false;
    const isNewest = async () => (await this.#newest(id)) === fence;
    const done = claim.last.then(async () => {
      if (!(await isNewest())) return false;
      try {
        await work(claim);
      } catch (error) {
        if (await isNewest()) throw error;
      }
      return isNewest();
    });
    claim.last = done.catch(() => {});
    const isHeld = await done;
    if (!isHeld && this.#claims.get(id) === claim) this.#claims.delete(id);
    return isHeld;
  }

  /** What a claim says of itself; one that was cut off by a power failure says nothing. @param {string} id @param {number} fence @returns {Promise<Terms | undefined>} */
  async #terms(id, fence) {
    const text = await orNothing((await fs()).readFile(this.#file(id, fence, "lease.json"), "utf8"));
    try {
      return text === undefined ? undefined : JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  /** @param {string} id @param {Claim} claim @param {Partial<Terms>} change */
  async #setTerms(id, claim, change) {
    Object.assign(claim.terms, change);
    await write(this.#file(id, claim.fence, "lease.json"), JSON.stringify(claim.terms));
  }

  /** Whether a claim holds. A process that was killed before it wrote its terms has only the time of its folder. @param {string} id @param {number} fence @param {number} ttlMs */
  async #isTaken(id, fence, ttlMs) {
    const terms = await this.#terms(id, fence);
    if (terms) return isOn(terms);
    const { stat } = await fs();
    return isOn({ until: ((await orNothing(stat(this.#file(id, fence))))?.mtimeMs ?? 0) + ttlMs });
  }

  /** What was stored last, by a claim up to this one. Read again if a save has put something else in its place meanwhile. @param {string} id @param {number} upTo @returns {Promise<Found>} */
  async #latest(id, upTo) {
    for (let readings = 0; readings < MAX_READINGS; readings++) {
      const fence = await this.#lastStored(id, upTo);
      const found = fence === 0 ? { fence, record: NOTHING, messages: [], rows: [] } : await orNothing(this.#kept(id, fence));
      // What an earlier claim stored is removed only when a later one has stored it.
      if (found && (await this.#lastStored(id, upTo)) === fence) return found;
    }
    throw new Error(`files are missing in ${this.#folderOf(id)}, which \`state.json\` there names`);
  }

  /** The claim whose state counts, 0 if there is none. @param {string} id @param {number} upTo */
  async #lastStored(id, upTo) {
    const { access } = await fs();
    for (const fence of await this.#fences(id, upTo)) {
      if (await orNothing(access(this.#file(id, fence, "state.json")).then(() => true))) return fence;
      // One that says nothing was cut off, and nobody has heard of it.
      const { from } = (await this.#terms(id, fence)) ?? {};
      if (from !== undefined) return from;
    }
    return 0;
  }

  /** @param {string} id @param {number} fence @returns {Promise<Found>} */
  async #kept(id, fence) {
    const { readFile } = await fs();
    const record = recordOf(await readFile(this.#file(id, fence, "state.json"), "utf8"), id);
    const { bytes, count } = record;
    const messages = count === 0 ? [] : (await readFile(this.#file(id, fence, record.messages))).subarray(0, bytes).toString().split("\n").slice(0, count);
    return { fence, record, messages, rows: await this.#rows(id, fence, record) };
  }

  /**
   * Removes what earlier claims left, if this one is still the newest. Returns whether it is, also afterwards.
   * @param {string} id @param {number} fence @param {number} [kept] but not that
   */
  async #replaceBefore(id, fence, kept) {
    if ((await this.#newest(id)) !== fence) return false;
    const { readdir, rename, rm } = await fs();
    for (const earlier of await this.#fences(id, fence - 1)) {
      // As a whole: whose lease is lost may be writing into it, and what it puts where half is removed would be damaged.
      if (earlier !== kept) await rename(this.#file(id, earlier), `${this.#folderOf(id)}/${earlier}${GONE}`).catch(() => {});
    }
    for (const name of await readdir(this.#folderOf(id))) {
      if (name.endsWith(GONE)) await rm(`${this.#folderOf(id)}/${name}`, { recursive: true, force: true }).catch(() => {});
    }
    return (await this.#newest(id)) === fence;
  }
}

/** What `state.json` says. The names in it are those of files beside it: whoever wrote it leads nobody elsewhere. @param {string} text @param {string} id @returns {Record} */
function recordOf(text, id) {
  const record = JSON.parse(text);
  const isOwn = (/** @type {string} */ name) => typeof record?.[name] === "string" && new RegExp(`^${name}-\\d{1,15}\\.jsonl$`).test(record[name]);
  if (!isOwn("messages") || !isOwn("events")) throw misuse(`what is kept of \`${id}\` was not written by turnwheel: state.json names files that are none of its own`);
  return record;
}

/** Whether the time is not over. @param {Pick<Terms, "until">} terms */
const isOn = ({ until }) => until > Date.now();

/** Written beside and renamed: there is never half a file. @param {string} file @param {string} text @param {boolean} [isKept] whether it must outlast a power failure */
async function write(file, text, isKept = false) {
  const { rename, writeFile } = await fs();
  const beside = `${file}.${Math.random().toString(36).slice(2)}`;
  if (isKept) await append(beside, 0, text);
  else await writeFile(beside, text);
  await rename(beside, file);
}

/** Puts something after so many bytes of a file, where it outlasts a power failure. @param {string} file @param {number} bytes @param {string} text */
async function append(file, bytes, text) {
  const handle = await (await fs()).open(file, "a");
  try {
    await handle.truncate(bytes);
    await handle.writeFile(text);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

/** The names in a folder outlast a power failure; some systems see to that by themselves, and open no folder. @param {string} folder */
async function syncFolder(folder) {
  const handle = await (await fs()).open(folder, "r").catch(() => undefined);
  await handle?.sync().catch(() => {});
  await handle?.close();
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
