// @ts-check
// The conversation of this page, in all its tabs: one of them owns the agent, every one shows what it does, and when the owner is
// closed another takes over (turnwheel/tabs).

/** @typedef {import("../npm/index.js").Agent} Agent */
/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {import("../npm/index.js").AgentMessage} AgentMessage */
/** @typedef {import("../npm/index.js").AgentOptions} AgentOptions */
/** @typedef {import("../npm/tabs.js").SharedAgent} SharedAgent */
/** @typedef {import("../npm/tabs.js").TabRole} TabRole */
/** @typedef {import("./memory.js").Who} Who */

/** What a tab asks of the others: the one that owns the agent gives it away. */
const HAND_OVER = "hand over";
/** What a tab that follows asks: who answers? */
const WHO = "who answers";
/** Where the tabs find which conversation is theirs. */
const CURRENT = "turnwheel-demo-conversation";

/**
 * @typedef {object} Callbacks
 * @property {() => AgentOptions} options what the agent is made of, as it is set in this tab
 * @property {(isOpen: boolean) => Promise<void>} mayContinue asked before an agent with a run in progress goes on in this tab
 * @property {(role: TabRole, tookMs: number) => void} onRole
 * @property {(event: AgentEvent) => void} onEvent everything that happens, whoever began it
 * @property {() => void} onOther another tab has begun another conversation
 * @property {() => Who} who who answers when this tab owns the agent
 * @property {(who: Who) => void} onWho who answers in the tab that owns the agent
 * @property {(error: unknown) => void} onError
 */

export class Together {
  /** @param {typeof import("../npm/tabs.js")} tabs @param {typeof import("../npm/stores.js")} stores @param {Callbacks} callbacks */
  constructor(tabs, stores, callbacks) {
    this.tabs = tabs;
    this.stores = stores;
    /** Where this conversation alone has an id, in a browser that stores nothing. @type {string | undefined} */
    this.privateId = undefined;
    /** @type {Pick<ReturnType<typeof stores.indexedDBStore>, "delete">} */
    this.store = stores.indexedDBStore({ name: "turnwheel-demo-agents" });
    this.callbacks = callbacks;
    /** @type {SharedAgent | undefined} */
    this.agent = undefined;
    /** The agent itself, in the tab that owns it. @type {Agent | undefined} */
    this.own = undefined;
    this.leaveEvents = () => {};
    /** Tells what has happened so far, and then all that happens. */
    this.listen = () => {};
    this.channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("turnwheel-demo") : undefined;
    this.channel?.addEventListener("message", ({ data }) => {
      if (data === HAND_OVER) this.agent?.handOver();
      else if (data === WHO) this.#tell();
      else if (typeof data?.who?.row === "string" && !this.own) callbacks.onWho(data.who);
    });
    addEventListener("storage", ({ key }) => void (key === CURRENT && this.callbacks.onOther()));
  }

  /** Tells the other tabs who answers here. */
  #tell() {
    if (this.own) this.channel?.postMessage({ who: this.callbacks.who() });
  }

  /** Whether another tab owns the agent. */
  get isFollower() {
    return this.agent?.role === "follower";
  }

  /** Whether a run is in progress. The tab that owns the agent knows it first. */
  get isRunning() {
    return (this.own ?? this.agent)?.isRunning ?? false;
  }

  /** Whether the conversation ends with this tab. */
  get isForgetful() {
    return this.privateId !== undefined || this.agent?.role === "alone";
  }

  /** Joins the conversation of the other tabs. @param {readonly AgentMessage[]} [messages] what a new one begins with */
  async join(messages) {
    try {
      return await this.#join(messages);
    } catch (error) {
      if (this.privateId) throw error;
      // Storage that is full or not allowed: the conversation is this tab's, in its memory.
      console.info("This browser stores nothing:", error);
      this.privateId = randomId();
      this.store = this.stores.extensionStore(inMemory());
      return this.#join(messages);
    }
  }

  /** @param {readonly AgentMessage[]} [messages] */
  async #join(messages) {
    const { openAgent, shared } = this.tabs;
    const { options, mayContinue, onRole, onError, onEvent } = this.callbacks;
    const agent = await shared(this.privateId ?? currentId(), async (lease) => {
      const isOpen = lease.checkpoint !== undefined && isInProgress(lease.checkpoint);
      await mayContinue(isOpen);
      this.own = await openAgent(lease, { ...options(), ...(!lease.checkpoint && messages && { messages: [...messages] }) });
      return this.own;
    }, {
      store: this.store,
      // The person who sits before one tab sits before all.
      answers: ["tool", "arguments", "budget", "elicitation"],
      onError,
      onRole: (role, { tookMs }) => {
        if (role === "follower") this.own = undefined;
        onRole(role, tookMs);
        if (role === "follower") this.channel?.postMessage(WHO);
        else this.#tell();
      },
    });
    this.agent = agent;
    // What happens before the page is ready for it is told when it is.
    /** @type {AgentEvent[] | undefined} */
    let early = [];
    this.leaveEvents = agent.subscribe((event) => (early ? void early.push(event) : onEvent(event)));
    this.listen = () => {
      const events = early ?? [];
      early = undefined;
      for (const event of events) onEvent(event);
    };
    await agent.ready().catch(onError);
    return agent;
  }

  /** Begins another conversation, in all tabs. @param {readonly AgentMessage[]} [messages] what it begins with */
  async begin(messages) {
    const before = this.privateId ?? currentId();
    await this.leave();
    if (this.privateId) this.privateId = randomId();
    else newId();
    // Whatever another tab still stores of it is as old as the rest.
    this.store.delete(before).catch(() => {});
    return this.join(messages);
  }

  /** Another tab has begun another conversation. */
  async follow() {
    await this.leave();
    return this.join();
  }

  async leave() {
    const { agent } = this;
    this.leaveEvents();
    this.agent = this.own = undefined;
    this.listen = () => {};
    await agent?.[Symbol.asyncDispose]?.();
  }

  /** Applies what is set in this tab. A tab that does not own the agent asks for it. */
  apply() {
    const { agent, own } = this;
    if (!agent) return;
    if (!own) return void this.channel?.postMessage(HAND_OVER);
    const { model, systemPrompt = "", tools = [], streamOptions = {}, budget } = this.callbacks.options();
    Object.assign(own, { model, systemPrompt, tools, streamOptions, budget });
    this.#tell();
  }

  /** Makes the agent anew, for what cannot be changed otherwise. */
  async remake() {
    if (this.own) await this.agent?.handOver();
    else this.apply();
  }
}

/** Whether a checkpoint has a run in it that goes on. @param {any} checkpoint */
function isInProgress(checkpoint) {
  return checkpoint.metadata?.turnwheel?.run !== undefined;
}

function currentId() {
  return stored() ?? newId();
}

function stored() {
  try {
    return localStorage.getItem(CURRENT) ?? undefined;
  } catch {
    // A browser that stores nothing has one conversation, and forgets it.
    return "conversation";
  }
}

const randomId = () => crypto.randomUUID?.() ?? String(Math.random());

/** A storage that a page has while it lives. @returns {import("../npm/stores.js").ExtensionStorageArea} */
function inMemory() {
  /** @type {Map<string, any>} */
  const items = new Map();
  return {
    get: async (/** @type {any} */ keys) => Object.fromEntries([keys].flat().filter((key) => items.has(key)).map((key) => [key, structuredClone(items.get(key))])),
    set: async (/** @type {any} */ added) => Object.entries(added).forEach(([key, value]) => items.set(key, structuredClone(value))),
    remove: async (/** @type {any} */ keys) => [keys].flat().forEach((key) => items.delete(key)),
  };
}

function newId() {
  const id = randomId();
  try {
    localStorage.setItem(CURRENT, id);
  } catch {
    return "conversation";
  }
  return id;
}
