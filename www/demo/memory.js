// @ts-check
// What survives a reload, stored in IndexedDB: the checkpoint of the agent, and what the page has shown. No
// keys: a checkpoint has none.

/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").Checkpoint} Checkpoint */
/** @typedef {import("./engine.js").Stores} Stores */

/**
 * Something that was shown, and when: a message of the user, its fate, or an event.
 * @typedef {{ at: number, said?: string, sent?: string, kind?: "steer" | "follow_up", heard?: [number, number], event?: AgentEvent }} Shown
 */
/** Who answered, without the key. @typedef {{ row: string, model: string, baseUrl: string }} Who */

const ID = "conversation";
/** How long another tab may take to close: usually this page before its reload, on a slow machine. */
const CLAIM_TIMEOUT_MS = 2000;

export class Memory {
  /** @param {Stores} stores */
  constructor(stores) {
    this.store = stores.indexedDBStore({ name: "turnwheel-demo" });
    /** @type {Shown[]} */
    this.shown = [];
    /** Whether this tab is the one that stores. */
    this.isOwner = false;
  }

  /**
   * Loads what was stored before the reload.
   * @param {number} now
   * @returns {Promise<{ checkpoint: Checkpoint, who: Who, conversation?: string } | undefined>}
   */
  async recall(now) {
    try {
      await this.#claim();
      const found = /** @type {any} */ (this.isOwner && (await this.store.load(ID)));
      if (!found) return undefined;
      const { shown, who, conversation, ...checkpoint } = found;
      // A page's clock starts with the page, and the time between two pages does not count.
      const gap = now - shown.at(-1).at;
      this.shown = shown.map((/** @type {Shown} */ entry) => ({ ...entry, at: entry.at + gap }));
      return { checkpoint, who, conversation };
    } catch {
      // In a browser that stores nothing, the conversation ends with the page.
      return undefined;
    }
  }

  /** @param {Shown} entry */
  note(entry) {
    const last = this.shown.at(-1);
    const { event } = entry;
    // A request repeats the conversation: it is looked at while the page lives, and not stored.
    if (event?.type === "before_llm_call") return;
    if (event?.type === "message_update" && last?.event?.type === "message_update" && last.event.delta.contentIndex === event.delta.contentIndex) {
      const { delta } = last.event;
      last.event = { ...event, delta: { ...event.delta, delta: delta.delta + event.delta.delta } };
    } else this.shown.push(event ? { ...entry, event: withoutHistory(event) } : entry);
  }

  /**
   * Forgets what was shown of a run that has not ended, because it will be replayed.
   * Returns whether there is one.
   */
  forgetOpenRun() {
    const lastPrompt = this.shown.findLastIndex((entry) => entry.said !== undefined);
    const isOpen = lastPrompt >= 0 && !this.shown.slice(lastPrompt).some(({ event }) => event?.type === "agent_end");
    if (isOpen) this.shown = this.shown.filter((entry, index) => index <= lastPrompt || (entry.event === undefined && entry.heard === undefined));
    return isOpen;
  }

  /** @param {Checkpoint} checkpoint @param {Who} who @param {string} [conversation] the one in the Worker */
  save(checkpoint, { row, model, baseUrl }, conversation) {
    if (!this.isOwner) return;
    const record = /** @type {any} */ ({ ...checkpoint, shown: this.shown, who: { row, model, baseUrl }, conversation });
    this.store.save(ID, record).catch(() => {});
  }

  async forget() {
    this.shown = [];
    if (this.isOwner) await this.store.delete(ID).catch(() => {});
  }

  async #claim() {
    // Pages served over plain HTTP have no locks: every tab stores, and the last one wins.
    if (!navigator.locks) return void (this.isOwner = true);
    const claimLock = () => new Promise((resolve) => {
      navigator.locks.request("turnwheel-demo", { signal: AbortSignal.timeout(CLAIM_TIMEOUT_MS) }, () => {
        resolve(true);
        return new Promise(() => {});
      }).catch(() => resolve(false));
    });
    this.isOwner = await claimLock();
  }
}

/** Drops what is not needed to show an event again. @param {AgentEvent} event @returns {AgentEvent} */
function withoutHistory(event) {
  if (event.type === "agent_end") return { ...event, messages: [] };
  return event.type === "turn_end" ? { ...event, toolResults: [] } : event;
}
