// @ts-check
// A tab of the tests in shared.mjs: it shares agents with the others, notes what it hears, and ends at the events that it is
// told, as an owner. Tools tell the server when they run.

import { options, world } from "../../checkpoint/world.mjs";
import { plain } from "../../checkpoint/lives.mjs";
import { openAgent, shared } from "../../../../pkg/tabs.js";
import { indexedDBStore } from "../../../../pkg/stores.js";

const tab = new URLSearchParams(location.search).get("tab") ?? "";

/** A host that takes its time, but not much. */
const host = {
  sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => new Promise((/** @type {any} */ resolve) => {
    const timer = setTimeout(resolve, ms / 4);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()));
  }),
};

/** The agent of the checkpoint tests, whose tools the server counts. @param {string} id */
function optionsOf(id) {
  const own = world(() => 2);
  Object.defineProperty(own, "failed", { get: () => localStorage.getItem(`failed ${id}`) !== null, set: () => localStorage.setItem(`failed ${id}`, "") });
  const made = options(own);
  const tools = made.tools.map((/** @type {any} */ definition) => ({
    ...definition,
    execute: async (/** @type {any} */ args, /** @type {any} */ context) => {
      await fetch(`/ran/${encodeURIComponent(id)}/${context.callId}`, { method: "POST" });
      return definition.execute(args, context);
    },
  }));
  return { ...made, host, tools };
}

const page = {
  tab,
  /** @type {any} */
  agent: undefined,
  /** @type {any[]} */
  events: [],
  /** When each was heard, by the clock of the machine. @type {number[]} */
  heardAt: [],
  /** @type {any[]} */
  roles: [],
  /** @type {string[]} */
  errors: [],
  /** What became of this tab's decisions. @type {string[]} */
  decisions: [],

  /**
   * Shares an agent. The owner ends at the events with these numbers, the way that is told.
   * @param {string} id @param {{ ends?: number[], how?: "navigate" | "block", approve?: boolean, options?: any }} [how]
   */
  async join(id, { ends = [], how = "block", approve = true, options = {} } = {}) {
    Object.assign(page, { events: [], heardAt: [], roles: [], decisions: [] });
    const agent = await shared(id, (lease) => openAgent(lease, optionsOf(id)), {
      onRole: (role, { tookMs }) => void page.roles.push([role, Math.round(tookMs), Date.now()]), onError: (error) => void page.errors.push(String(error)), ...options,
    });
    page.agent = agent;
    agent.subscribe((event) => {
      page.events.push(event);
      page.heardAt.push(Date.now());
      if (agent.role === "owner" && ends.includes(page.events.length) && event.type !== "agent_end") end(id, how);
      if (approve && event.type === "tool_approval_requested") page.decide(event.id);
    });
    await agent.ready();
    if (approve) for (const question of agent.pendingApprovals) page.decide(question.id);
    return agent.role;
  },

  /** @param {string} id */
  decide(id) {
    page.agent.resolve(id, "approve").then(() => page.decisions.push("accepted"), (/** @type {any} */ error) => page.decisions.push(error.code));
  },

  async leave() {
    await page.agent?.[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
    page.agent = undefined;
  },

  history: () => plain(page.agent.messages),

  /** Two leases of one id, as two tabs ask for them. @param {string} id */
  async lease(id) {
    const lease = await indexedDBStore().claim(id);
    Object.assign(page, { lease: lease ?? undefined });
    return lease && { fence: lease.fence, isHeld: lease.isHeld, messages: lease.checkpoint?.messages.length };
  },
};

/** Ends this tab at once: nothing here runs after this line. @param {string} id @param {string} how */
function end(id, how) {
  const request = new XMLHttpRequest();
  // The server answers when the tab is gone, so never; or at once, for one that goes by itself.
  request.open("POST", `/end/${encodeURIComponent(id)}/${tab}/${how}`, false);
  request.send();
  if (how === "navigate") location.href = "/elsewhere";
}

Object.assign(globalThis, { page });
document.documentElement.dataset["ready"] = "";
