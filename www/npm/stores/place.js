// @ts-check
// What all stores do: check what they are given, and write one checkpoint after the other.

import { AgentError, isSealed, kindOf, misuse, textOf } from "../shared.js";

/** @import { Checkpoint } from "../index.js" */
/** @import { Query } from "./list.js" */
/** @import { SealedCheckpoint, StoredAgent } from "../stores.js" */
/**
 * Where checkpoints are kept: each is written and removed as a whole.
 * @typedef {object} Place
 * @property {string} place its name in errors
 * @property {(id: string, checkpoint: Checkpoint | SealedCheckpoint) => unknown} write
 * @property {(id: string) => any} read gives a checkpoint, or nothing
 * @property {(id: string) => unknown} remove
 */
/** An agent whose events are followed. @typedef {{ subscribe(listener: () => unknown, options: { keep: boolean }): () => void, checkpoint(): Checkpoint }} Followed */
/**
 * What is being done for an id, and what waits for it.
 * @typedef {{ done: Promise<void>, waiting?: { work: () => Promise<void>, done: Promise<void> } }} Writes
 */

/**
 * Does the work for each id one after the other; of what queues up meanwhile only the newest is done.
 */
export class WriteQueue {
  /** @param {string} place */
  constructor(place) {
    this.place = place;
    /** @type {Map<string, Writes>} */
    this.writes = new Map();
  }

  /** Names what failed, and where. @template T @param {string} what @param {string} id @param {() => T | Promise<T>} work @returns {Promise<T>} */
  async attempt(what, id, work) {
    try {
      return await work();
    } catch (error) {
      if (AgentError.isInstance(error) || /** @type {any} */ (error)?.code === "lost_lease") throw error;
      throw new AgentError({ code: "unknown", message: `the checkpoint \`${id}\` could not be ${what} ${this.place}: ${nameOf(error)}${textOf(error)}`, retryable: false }, error);
    }
  }

  /** @param {string} what @param {string} id @param {() => unknown} work @returns {Promise<void>} */
  put(what, id, work) {
    const run = async () => void (await this.attempt(what, id, work));
    const writes = this.writes.get(id);
    if (!writes) return this.#begin(id, run);
    if (writes.waiting) {
      // The older checkpoint need not be written any more: it counts as stored when this one is.
      writes.waiting.work = run;
      return writes.waiting.done;
    }
    // What is done then is the newest, not this.
    const next = () => this.#begin(id, writes.waiting?.work ?? run);
    writes.waiting = { work: run, done: writes.done.catch(() => {}).then(next) };
    return writes.waiting.done;
  }

  /** @param {string} id @param {() => Promise<void>} work */
  #begin(id, work) {
    const done = work();
    /** @type {Writes} */
    const writes = { done };
    this.writes.set(id, writes);
    const forget = () => void (this.writes.get(id) === writes && !writes.waiting && this.writes.delete(id));
    done.then(forget, forget);
    return done;
  }

  /**
   * Replaces the write that waits for an id: it is older than what was written meanwhile.
   * @param {string} id @param {() => unknown} work what remains to be done
   */
  replaceWaiting(id, work) {
    const waiting = this.writes.get(id)?.waiting;
    if (waiting) waiting.work = async () => void (await this.attempt("saved in", id, work));
  }

  /** Resolves when what was asked for so far is done. @param {string} id */
  async settled(id) {
    const writes = this.writes.get(id);
    await (writes?.waiting ?? writes)?.done.catch(() => {});
  }

  /** @param {(query: Query) => StoredAgent[] | Promise<StoredAgent[]>} work reads the part that is asked for */
  lister(work) {
    return {
      /** @param {unknown} [options] @returns {Promise<StoredAgent[]>} */
      list: async (options) => {
        const query = (await import("./list.js")).queryOf(options);
        await Promise.all([...this.writes.keys()].map((id) => this.settled(id)));
        return this.attempt("listed in", "*", () => work(query));
      },
    };
  }
}

/** The name of an error and a colon, for messages. @param {unknown} error */
function nameOf(error) {
  try {
    const { name } = /** @type {{ name?: unknown }} */ (error);
    return typeof name === "string" && name !== "" ? `${name}: ` : "";
  } catch {
    return "";
  }
}

/** The methods of a store. @param {Place} place @param {WriteQueue} queue */
export function store({ write, read, remove }, queue) {
  /** @param {string} id @param {Checkpoint | SealedCheckpoint} checkpoint @returns {Promise<void>} */
  const save = async (id, checkpoint) => {
    checkSave("save", id, checkpoint);
    return queue.put("saved in", id, () => write(id, checkpoint));
  };
  return {
    save,
    /** @param {string} id @param {Followed} agent */
    follow: (id, agent) => (checkId(id), follow(agent, (checkpoint) => save(id, checkpoint))),
    /** @param {string} id @returns {Promise<any>} */
    async load(id) {
      checkId(id);
      await queue.settled(id);
      return queue.attempt("loaded from", id, () => read(id));
    },
    /** @param {string} id @returns {Promise<void>} */
    async delete(id) {
      checkId(id);
      return queue.put("deleted from", id, () => remove(id));
    },
  };
}

/**
 * Saves an agent at its events: one checkpoint is made for each write, however many events come meanwhile.
 * @param {Followed} agent @param {(checkpoint: Checkpoint) => Promise<void>} save
 */
function follow(agent, save) {
  if (typeof agent?.subscribe !== "function" || typeof agent.checkpoint !== "function") throw misuse(`\`follow\` takes an agent, got ${kindOf(agent)}`);
  let isDue = false;
  /** @type {Promise<void> | undefined} */
  let writing;
  const write = async () => {
    try {
      while (isDue) {
        isDue = false;
        await save(agent.checkpoint());
      }
    } finally {
      writing = undefined;
    }
  };
  const unsubscribe = agent.subscribe(() => {
    isDue = true;
    // A write that fails is reported once, as what a subscriber throws; the next event tries again.
    if (!writing) return (writing = write());
  }, { keep: true });
  return async () => {
    unsubscribe();
    await writing?.catch(() => {});
    await save(agent.checkpoint());
  };
}

/** @param {string} id */
function checkId(id) {
  if (typeof id !== "string" || id === "") throw misuse(`the id of a checkpoint must be a text, got ${id === "" ? "an empty one" : kindOf(id)}`);
}

/** @param {string} how @param {string} id @param {Checkpoint | SealedCheckpoint} checkpoint */
export function checkSave(how, id, checkpoint) {
  checkId(id);
  // A sealed one is stored as it is; whoever loads it unseals it.
  if (isSealed(checkpoint) || Array.isArray(/** @type {{ messages?: unknown }} */ (checkpoint)?.messages)) return;
  const awaited = checkpoint instanceof Promise ? "; await it first" : "";
  throw misuse(`${how}(\`${id}\`, …) takes what checkpoint() gives, got ${kindOf(checkpoint)}${awaited}`);
}
