// @ts-check
// A user who is elsewhere: RemoteAgents that talk to the agent's handler over connections that break. Clients come and go
// during the run, and at the end each mirror has to show what the agent has.

import { cutAfter } from "../js/cut.mjs";
import { dice } from "../js/dice.mjs";
import { decider } from "./drives.mjs";
import { later } from "./tools.mjs";

/**
 * A fetch between two ends of which neither can rely on the other: requests that never arrive, answers that get lost after the
 * command was executed, streams that break.
 * @param {(request: Request) => Promise<Response>} ask @param {(sides: number) => number} roll
 */
const unreliable = (ask, roll) => async (/** @type {any} */ url, /** @type {any} */ init) => {
  const luck = roll(8);
  if (luck === 0) throw new TypeError("fetch failed");
  const response = await ask(new Request(String(url), { ...init, duplex: "half" }));
  if (luck === 1) {
    await response.body?.cancel().catch(() => {});
    if (roll(2)) throw new TypeError("fetch failed");
    return new Response("bad gateway", { status: 502 });
  }
  if (!String(url).includes("/events") || luck > 4 || !response.body) return response;
  return new Response(cutAfter(response.body, 1 + roll(3000)), { status: response.status, headers: response.headers });
};

const marksOf = (/** @type {readonly any[]} */ messages) => JSON.stringify(messages);

/** @param {import("./agents.mjs").Life} life @returns {import("./drives.mjs").Drive} */
export function distant(life) {
  const { clients, letters } = life.plan.with;
  const { RemoteAgent, agentHandler } = life.host.lib;
  const roll = dice(Number(life.id.replace(/\D/g, "")) + 7);
  /** @type {any} */
  let served;
  /** @type {{ remote: any, events: any[] }[]} */
  const open = [];
  const join = () => {
    const options = { url: served.url, fetch: unreliable(served.ask, roll), reconnects: { initialMs: 2, maxMs: 30, maxAttempts: 300 }, onError() {} };
    const client = { remote: new RemoteAgent(options), events: /** @type {any[]} */ ([]) };
    client.remote.subscribe((/** @type {any} */ event) => void client.events.push(event));
    open.push(client);
    return client;
  };
  const decide = decider(life, () => open[0]?.remote);
  /** Somebody leaves in the middle without a word, and somebody else comes. */
  const change = () => {
    if (open.length > 1) open.pop()?.remote[Symbol.dispose]();
    if (roll(2)) join();
  };
  return {
    async user() {
      const handler = agentHandler(life.agent, { keepAliveMs: 500, answers: ["tool", "elicitation", "arguments", "result", "budget"] });
      served = life.host.serve?.(life.id, handler) ?? { url: `http://127.0.0.1/agents/${life.id}`, ask: handler, close() {} };
      life.served = { handler, served };
      const { remote } = join();
      for (let i = 1; i < clients; i++) join();
      remote.subscribe((/** @type {any} */ event) => { if (event.type === "tool_approval_requested") decide(event); });
      await remote.ready();
      return remote;
    },
    event(event) {
      if (event.type === "turn_end") queueMicrotask(change);
      if (event.type !== "turn_start" || life.saved.letters.length >= letters) return;
      const mark = `f${life.saved.letters.length}`;
      life.posted(mark, open[0]?.remote.followUp(`@${life.id}.${mark}@ and this`));
    },
    async finish() {
      const last = join();
      await Promise.all(open.map(async ({ remote }) => (await remote.ready(), await remote.waitForIdle())));
      const whole = marksOf(life.agent.messages);
      for (const [i, { remote }] of open.entries()) if (marksOf(remote.messages) !== whole) life.complain(`mirror ${i} of ${open.length} shows another history: ${marksOf(remote.messages).slice(-300)} instead of ${whole.slice(-300)}`);
      heard(life, open.slice(0, -1).map(({ events }) => events));
      if (last.remote.isRunning) life.complain("a new mirror says that a run is in progress");
      for (const { remote } of open) remote[Symbol.dispose]();
      await later(0);
      life.served.handler[Symbol.dispose]();
      served.close();
    },
  };
}

/** The first client heard everything, once and in order; the others the end of it. @param {any} life @param {any[][]} lists */
function heard(life, [first = [], ...others]) {
  const ends = first.filter(({ type }) => type === "agent_end").length;
  if (ends !== life.saved.runs.length) life.complain(`the first client heard of ${ends} ends in ${life.saved.runs.length} runs`);
  if (first.length !== life.events) life.complain(`the first client heard ${first.length} of ${life.events} events`);
  const whole = first.map((event) => JSON.stringify(event));
  for (const [i, list] of others.entries()) {
    const tail = whole.slice(whole.length - list.length).join();
    if (list.map((event) => JSON.stringify(event)).join() !== tail) life.complain(`client ${i + 1} heard something else than the first`);
  }
}
