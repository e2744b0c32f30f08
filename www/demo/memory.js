// @ts-check
// What the page has shown, for its next life and for other tabs, stored in IndexedDB. What the agent knows is stored by
// turnwheel/tabs. No keys: neither has any.

/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").Checkpoint} Checkpoint */
/** @typedef {import("./engine.js").Stores} Stores */

/**
 * Something that was shown, and when: a message of the user, its fate, or an event.
 * @typedef {{ at: number, said?: string, sent?: string, kind?: "steer" | "follow_up", heard?: [number, number], event?: AgentEvent }} Shown
 */
/** Who answered, without the key. @typedef {{ row: string, model: string, baseUrl: string }} Who */

const ID = "conversation";
export class Memory {
  /** @param {Stores} stores */
  constructor(stores) {
    this.store = stores.indexedDBStore({ name: "turnwheel-demo" });
    /** @type {Shown[]} */
    this.shown = [];
    /** Whether this tab is the one that stores: the tab that owns the agent. */
    this.isOwner = true;
  }

  /**
   * Loads what was stored before the reload.
   * @param {number} now
   * @returns {Promise<{ checkpoint: Checkpoint, who: Who, conversation?: string } | undefined>}
   */
  async recall(now) {
    try {
      const found = /** @type {any} */ (await this.store.load(ID));
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

  /** Who answered last, as the tab that owned the agent has stored it. @returns {Promise<Who | undefined>} */
  async who() {
    const found = /** @type {any} */ (await this.store.load(ID).catch(() => undefined));
    return found?.who;
  }

  /** Whether something was said that no run has ended. */
  get isOpen() {
    const lastPrompt = this.shown.findLastIndex((entry) => entry.said !== undefined);
    return lastPrompt >= 0 && !this.shown.slice(lastPrompt).some(({ event }) => event?.type === "agent_end");
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
    const { isOpen } = this;
    const lastPrompt = this.shown.findLastIndex((entry) => entry.said !== undefined);
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
}

/** Drops what is not needed to show an event again. @param {AgentEvent} event @returns {AgentEvent} */
function withoutHistory(event) {
  if (event.type === "agent_end") return { ...event, messages: [] };
  return event.type === "turn_end" ? { ...event, toolResults: [] } : event;
}
