// @ts-check
// Plays a plan with a package, in virtual time. Everything that can be seen from outside becomes a line.

import { dice } from "../js/dice.mjs";
import { Clock, quiet } from "./clock.mjs";
import { damaged } from "./damage.mjs";
import { addFunctions } from "./functions.mjs";
import { modelOf } from "./models.mjs";
import { show } from "./show.mjs";
import { toolsOf } from "./tools.mjs";

/** @import { Plan, Step } from "./plan.mjs" */
/** @typedef {{ text: string, calls: number, childCalls: number, callIds: number, ids: number, elapsed: number }} Saved A checkpoint, and where its world was. */

/** More lines than any sequence has that comes to an end. */
const MOST_LINES = 4000;
/** After the last step: how much time goes by, and how often what still waits is looked at. */
const REST_MS = 100_000;
const LOOKS = 6;

export class World {
  clock = new Clock();
  /** @type {string[]} */ lines = [];
  /** @type {any} */ agent;
  /** @type {any} */ run;
  /** What is awaited and has not settled. @type {Set<string>} */ open = new Set();
  /** @type {Saved | undefined} */ saved;
  /** Ends the listeners that steps have added. @type {(() => void)[]} */ leave = [];
  calls = 0;
  childCalls = 0;
  callIds = 1;
  ids = 0;
  events = 0;
  #names = 0;
  #signal = new AbortController();

  /** @param {any} own the package @param {Plan} plan @param {Saved} [from] */
  constructor(own, plan, from) {
    this.package = own;
    this.plan = plan;
    this.from = from;
    this.roll = dice(plan.seed + (from ? 77 : 0));
    if (from) ({ calls: this.calls, childCalls: this.childCalls, callIds: this.callIds, ids: this.ids } = from);
    this.clock.elapsed = from ? from.elapsed + 1000 : 0;
  }

  /** Writes a line. @param {string} label @param {...unknown} values */
  say(label, ...values) {
    if (this.lines.length < MOST_LINES) this.lines.push([`${this.clock.elapsed} ${label}`, ...values.map(show)].join(" "));
  }

  /** The host of an agent; of some plans there is none, and the globals are asked. */
  host() {
    if (!this.plan.host) return {};
    return {
      now: () => this.clock.now(), random: () => this.roll(1000) / 1000, id: () => `id-${++this.ids}`,
      sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal, /** @type {string | undefined} */ name) => (this.say("sleep", ms, name), this.clock.sleep(ms, signal)),
    };
  }

  /** What the global `fetch` finds: the files that messages name. @param {unknown} url */
  async fetchFile(url) {
    this.say("global fetch", String(url));
    await this.clock.sleep(3);
    if (this.roll(6) === 0) throw new TypeError("no network");
    return this.roll(6) === 0 ? new Response("gone", { status: 404 }) : new Response("AAAA", { headers: { "content-type": "image/png" } });
  }

  /** The options of the plan's agent. */
  options() {
    const { contextWindow, price, fallback, ...options } = structuredClone(this.plan.options);
    const isWire = !["custom", "scripted"].includes(this.plan.model);
    options.model = modelOf(this, this.plan.model, "m", { ...(contextWindow && { contextWindow }), ...(price && isWire && { price }) });
    if (fallback) options.fallback = fallback.map((/** @type {string} */ id) => modelOf(this, "custom", id));
    if (this.plan.tools.length > 0) options.tools = toolsOf(this, this.plan.tools);
    if (this.plan.host) options.host = this.host();
    if (this.plan.history > 0 && options.messages === undefined && !this.from) options.messages = history(this.plan.history);
    addFunctions(this, options);
    return options;
  }

  /** Plays all of it. */
  async play() {
    // A package of before November 2026 gives the restored agent at once.
    const restored = this.from && await Promise.resolve().then(() => this.package.Agent.restore(this.from.text, this.options())).then((agent) => ({ agent }), (error) => ({ error }));
    this.try("make", () => {
      if (restored?.error) throw restored.error;
      return restored?.agent ?? new this.package.Agent(this.options());
    }, (agent) => (this.agent = agent));
    if (!this.agent) return;
    this.#listen();
    if (this.from) this.look();
    const steps = this.from ? this.plan.after : this.plan.steps;
    this.timed = steps.filter(({ at }) => at !== undefined);
    for (const step of steps.filter(({ at }) => at === undefined)) {
      this.say(`step ${step.do}`);
      await this.do(step);
      await this.clock.advance(step.ms ?? 2);
    }
    await this.#comeToRest();
  }

  #listen() {
    this.agent.subscribe((/** @type {any} */ event, /** @type {any} */ info) => {
      this.say("event", event, ...(info?.replaying ? ["replaying"] : []));
      const at = ++this.events;
      if (at === this.plan.checkpointAt && !this.from) this.save();
      for (const step of this.timed ?? []) if (step.at === at) (this.say(`step ${step.do} in event ${at}`), void this.do(step));
    }, { keep: true });
  }

  /** Keeps a checkpoint, which both packages will go on from. */
  save() {
    this.try("checkpoint", () => JSON.stringify(this.agent.checkpoint()), (text) => {
      this.say("saved", JSON.parse(text));
      this.saved = { text, calls: this.calls, childCalls: this.childCalls, callIds: this.callIds, ids: this.ids, elapsed: this.clock.elapsed };
    });
  }

  /** Everything that may be read at any time. */
  look() {
    const { agent } = this;
    for (const name of ["isRunning", "canContinue", "pendingQuestions", "pendingApprovals", "usage", "messages", "systemPrompt", "streamOptions", "budget", "sessionId"]) this.try(`read ${name}`, () => agent[name], (value) => this.say(name, value));
    this.try("read tools", () => agent.tools.map((/** @type {any} */ { name }) => name), (names) => this.say("tools", names));
  }

  /** @template T @param {string} what @param {() => T} act @param {(value: T) => void} [then] */
  try(what, act, then = () => {}) {
    let value;
    try {
      value = act();
    } catch (error) {
      return this.say(`${what} threw`, error);
    }
    then(value);
  }

  /** Says how a promise settles. @param {string} what @param {any} promise */
  watch(what, promise) {
    const name = `${what} ${++this.#names}`;
    this.open.add(name);
    const settled = (/** @type {string} */ how) => (/** @type {unknown} */ value) => (this.open.delete(name), this.say(`${name} ${how}`, value));
    Promise.resolve(promise).then(settled("gave"), settled("failed"));
  }

  /** @param {Step} step */
  async do(step) {
    const act = STEPS[step.do];
    if (!act) throw new Error(`no step \`${step.do}\``);
    try {
      await act(this, step);
    } catch (error) {
      this.say(`${step.do} threw`, error);
    }
  }

  /** What a run is started with. @param {Step} step */
  runOptions({ reads, leaveAfter, input, do: _do, at, ms, signal, ...options }) {
    if (signal === "later") return { ...options, signal: this.#signal.signal };
    return signal === "aborted" ? { ...options, signal: AbortSignal.abort("too late") } : options;
  }

  /** Reads a run as the step says. @param {any} run @param {Step} step */
  read(run, { reads = "result", leaveAfter = 0 }) {
    this.run = run;
    this.say("run", run.runId);
    this.watch("result", run.result);
    const all = async (/** @type {any} */ pieces, /** @type {string} */ what) => {
      let count = 0;
      for await (const piece of pieces) {
        this.say(what, what === "piece of events" ? piece.type : piece);
        if (++count === leaveAfter) break;
      }
      return count;
    };
    if (reads === "events" || reads === "leave") this.watch("reader", all(run, "piece of events"));
    if (reads === "text") this.watch("reader", all(run.textStream, "piece of text"));
    if (reads === "or_throw") (this.watch("orThrow", run.orThrow()), this.watch("reader", all(run.textStream.orThrow(), "piece of text")));
    if (reads === "partial") this.watch("reader", all(run.partialOutput, "piece of output"));
    if (reads === "response") this.watch("response", run.toResponse({ keepAliveMs: 0 }).text());
    if (reads === "ui") this.watch("response", run.toUIMessageStreamResponse({ keepAliveMs: 0 }).text());
  }

  /** Goes on with an agent that was restored. @param {any} agent */
  restored(agent) {
    this.agent = agent;
    this.#listen();
    this.look();
  }

  abortSignal() {
    this.#signal.abort("the signal");
  }

  /** Lets what runs come to its end: people say no, and what still goes on is stopped. */
  async #comeToRest() {
    for (let looks = 0; looks < LOOKS && this.agent.isRunning; looks++) {
      await this.clock.advance(REST_MS);
      if (!this.agent.isRunning) break;
      const [question] = this.agent.pendingQuestions;
      if (question) this.try("no", () => this.agent.resolve(question.id, "reject"), (wasOpen) => this.say("said no", wasOpen));
      else if (looks > 1) this.agent.abort("the end");
    }
    this.agent.abort("the end");
    await this.clock.advance(2);
    if (!this.saved && !this.from) this.save();
    this.look();
    this.say("the end", { calls: this.calls, childCalls: this.childCalls, events: this.events });
    this.try("dispose", () => this.agent[Symbol.dispose]());
    await this.clock.advance(2);
    for (const name of this.open) this.say(`${name} is open`);
  }
}

/** A conversation that was had before. @param {number} count */
function history(count) {
  const usage = { input: 3, output: 2, cacheRead: 0, cacheWrite: 0, total: 5 };
  const answer = (/** @type {any[]} */ content, /** @type {string} */ stopReason) => ({ role: "assistant", content, provider: "custom", model: "m", usage, stopReason, timestamp: 2 });
  return [
    { role: "user", content: [{ type: "text", text: "Once" }], timestamp: 1 }, answer([{ type: "text", text: "Yes." }, { type: "tool_call", callId: "h1", toolName: "look", arguments: { n: 1 } }], "tool_use"),
    { role: "tool_result", callId: "h1", toolName: "look", content: [{ type: "text", text: "seen 1" }], isError: false, timestamp: 3 }, { role: "user", content: [{ type: "text", text: "Twice" }], timestamp: 4 },
  ].slice(0, count);
}

/** @type {{ [name: string]: (world: World, step: any) => unknown }} */
const STEPS = {
  wait: () => undefined,
  prompt: (world, step) => world.read(world.agent.prompt(step.input, world.runOptions(step)), step),
  continue: (world, step) => world.read(world.agent.continue(world.runOptions(step)), step),
  loop(world, step) {
    const { sessionId, messages, ...options } = world.options();
    world.read(world.package.agentLoop([step.input], options, world.runOptions(step)), step);
  },
  steer: (world, { input, options }) => world.watch("receipt", world.agent.steer(input, ...(options ? [options] : []))),
  follow_up: (world, { input }) => world.watch("receipt", world.agent.followUp(input)),
  clear_queues: ({ agent }) => agent.clearQueues(),
  abort: ({ agent }, step) => ("reason" in step ? agent.abort(step.reason) : agent.abort()),
  resolve(world, { which, decision }) {
    const id = typeof which === "number" ? world.agent.pendingQuestions[which]?.id ?? "none" : which;
    world.say("resolved", id, world.agent.resolve(id, decision));
  },
  resolve_tool(world, { which, decision }) {
    const id = world.agent.pendingApprovals[which]?.callId ?? `c${which + 1}`;
    world.say("resolved", id, world.agent.resolveTool(id, decision));
  },
  resolve_tools(world, { which, decision }) {
    const ids = world.agent.pendingApprovals.map((/** @type {any} */ { callId }) => callId);
    world.say("resolved", ids, world.agent.resolveTools(Object.fromEntries([...ids, ...(which === 3 ? ["c99"] : [])].map((/** @type {string} */ id) => [id, decision]))));
  },
  checkpoint: (world) => world.say("checkpoint", world.agent.checkpoint()),
  // The agent goes on as another one, from its own checkpoint, which may be damaged.
  async restore(world, { damage }) {
    const text = JSON.stringify(world.agent.checkpoint());
    const { messages, ...options } = world.options();
    const next = await world.package.Agent.restore(damaged(text, damage), options);
    world.agent[Symbol.dispose]();
    await quiet();
    world.restored(next);
  },
  reset: ({ agent }) => agent.reset(),
  set(world, { name, value }) {
    world.agent[name] = name === "tools" ? toolsOf(world, value) : name === "model" ? modelFor(world, value) : value;
  },
  read: (world) => world.look(),
  listen: (world) => world.leave.push(world.agent.subscribe((/** @type {any} */ { type }) => world.say("another listener", type))),
  listen_badly: (world) => world.leave.push(world.agent.subscribe((/** @type {any} */ { type }) => {
    if (type.endsWith("_end")) throw new Error(`cannot hear ${type}`);
  })),
  leave: (world) => world.leave.pop()?.(),
  idle: (world) => world.watch("idle", world.agent.waitForIdle()),
  signal: (world) => world.abortSignal(),
  dispose: ({ agent }) => agent[Symbol.dispose](),
  partial: (world) => world.say("partial", world.run?.partialArguments(`c${world.callIds - 1}`), world.run?.messages),
  messages: (world) => world.say("messages", world.agent.messages, world.run?.checkpoint()),
};

/** What a step may assign to `model`. @param {World} world @param {unknown} value */
function modelFor(world, value) {
  if (value === "same") return world.agent.model;
  return value === "second" ? modelOf(world, "custom", "second") : value;
}
