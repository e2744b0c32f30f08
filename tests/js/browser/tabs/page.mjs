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

/** The tabs tell each other who owns an agent: one that took over is gone before anybody can ask it. */
function tell(/** @type {{ tab: string, from: number }} */ owner) {
  page.owners.push(owner);
  const channel = new BroadcastChannel("owners");
  channel.postMessage(owner);
  channel.close();
}
// A message on a channel that a page has open drops it from the back/forward cache, so no other tab has this one.
if (tab === "observer") new BroadcastChannel("owners").onmessage = ({ data }) => void page.owners.push(data);

const now = () => performance.timeOrigin + performance.now();

const page = {
  tab,
  /** Who took over an agent, from when on it could, by the clock of the machine. @type {{ tab: string, from: number }[]} */
  owners: [],
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
   * @param {string} id @param {{ ends?: number[], how?: "navigate" | "close" | "crash", approve?: boolean, options?: any }} [how]
   */
  async join(id, { ends = [], how = "crash", approve = true, options = {} } = {}) {
    Object.assign(page, { events: [], heardAt: [], roles: [], errors: [], decisions: [], stopReason: undefined });
    const agent = await shared(id, (lease) => openAgent(lease, optionsOf(id)), {
      onRole(role, { tookMs }) {
        page.roles.push([role, Math.round(tookMs), Date.now()]);
        if (role === "owner") tell({ tab, from: now() - tookMs });
      },
       onError: (error) => void (/no open question/.test(String(error)) || page.errors.push(String(error))), ...options,
    });
    page.agent = agent;
    agent.subscribe((event) => {
      page.events.push(event);
      page.heardAt.push(now());
      if (agent.role === "owner" && ends.includes(page.events.length) && event.type !== "agent_end") end(id, how);
      if (approve && event.type === "tool_approval_requested") page.decide(event.id);
      // What was decided and had led to nothing yet is asked again.
      if (approve && event.type === "run_resumed") for (const { id } of event.pendingApprovals) page.decide(id);
    });
    await agent.ready();
    if (approve) for (const question of agent.pendingApprovals) page.decide(question.id);
    return agent.role;
  },

  /** @param {string} id */
  decide(id) {
    Promise.resolve(page.agent.resolve(id, "approve")).then(() => page.decisions.push("accepted"), (/** @type {any} */ error) => page.decisions.push(error.code));
  },

  async leave() {
    await page.agent?.[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
    page.agent = undefined;
  },

  history: () => plain(page.agent.messages),

  /** How the run of `prompt` ended. @type {string | undefined} */
  stopReason: undefined,
  /** @type {any} */
  lease: undefined,

  /** Claims an agent without sharing it. @param {string} id @param {any} [options] */
  async claim(id, options) {
    const lease = (page.lease = await indexedDBStore().claim(id, options));
    return lease && { fence: lease.fence, isHeld: lease.isHeld, messages: lease.checkpoint?.messages.length ?? 0 };
  },

  /** Runs what was claimed, to its end or to the first question. @param {string} id */
  async open(id) {
    const agent = await openAgent(page.lease, optionsOf(id));
    page.agent = agent;
    const run = agent.canContinue ? agent.continue() : agent.prompt("Go");
    for await (const event of run) {
      page.events.push(event);
      if (event.type === "tool_approval_requested") page.decide(event.id);
    }
    return (await run).stopReason;
  },

  /** Stands still until the server answers. @param {string} id */
  block: (id) => end(id, "stop"),
};

/** Ends this tab: it goes by itself, is closed a moment later, or stands still until it is killed. @param {string} id @param {string} how */
function end(id, how) {
  const address = `/end/${encodeURIComponent(id)}/${tab}/${how}`;
  if (how === "navigate" || how === "close") {
    navigator.sendBeacon(address);
    if (how === "navigate") location.href = "/elsewhere";
    return;
  }
  const request = new XMLHttpRequest();
  request.open("POST", address, false);
  request.send();
}

addEventListener("pageshow", async ({ persisted }) => {
  if (!persisted) return;
  await page.agent.ready();
  await fetch(`/back/${page.agent.role}`, { method: "POST" });
});
Object.assign(globalThis, { page });
document.documentElement.dataset["ready"] = "";
