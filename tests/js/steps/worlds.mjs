// Random worlds for durable runs, and schedules that kill them: a model that answers from what it is shown, so that it may be asked
// again; tools that count their beginnings; people who decide, steer and abort from outside.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { Agent, subagent, tool } from "../kit.mjs";
import { dice } from "../dice.mjs";
import { Life, Records } from "./engines.mjs";

const OBJECT = { type: "object" };

/** A model that says what `answer` returns for a request: blocks, or an error. */
export function model(id, answer, pause = async () => {}) {
  return {
    id, provider: "test",
    async *streamFn(request) {
      await pause();
      const { error, text, calls = [] } = answer(request);
      if (error) return void (yield { type: "error", error });
      let contentIndex = 0;
      yield { type: "start" };
      if (text !== undefined) {
        yield { type: "text_start", contentIndex };
        yield { type: "text_delta", contentIndex, delta: text };
        yield { type: "text_end", contentIndex, signature: `signed ${text}` };
        contentIndex++;
        await pause();
      }
      for (const { id: callId, name, args } of calls) {
        yield { type: "tool_call_start", contentIndex, callId, toolName: name };
        yield { type: "tool_call_delta", contentIndex, delta: JSON.stringify(args) };
        yield { type: "tool_call_end", contentIndex, metadata: { of: callId } };
        contentIndex++;
      }
      yield { type: "done", stopReason: calls.length > 0 ? "tool_use" : "stop", usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, total: 15 } };
    },
  };
}

/** How many turns had calls, also if there is only a summary of them. */
const turnsIn = (messages) => Math.max(-1, ...[...JSON.stringify(messages).matchAll(/c(\d+)-/g)].map(([, turn]) => Number(turn))) + 1;

/** Makes room: all but the last turn becomes a summary. */
async function shorten(messages) {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const text = `a summary up to c${turnsIn(messages.slice(0, last)) - 1}-`;
  return { messages: [{ role: "user", content: [{ type: "text", text }], timestamp: 0 }, ...messages.slice(last)] };
}

/** A world: what is asked, how it can fail, and who interferes. */
export class World {
  constructor(seed, features) {
    const roll = (this.roll = dice(seed));
    this.seed = seed;
    const has = (name, sides) => features?.[name] ?? roll(sides) === 0;
    Object.assign(this, {
      failures: has("failures", 3), fallback: has("fallback", 5), approvals: has("approvals", 2), approver: has("approver", 4),
      hooks: has("hooks", 4), transform: has("transform", 4), queue: has("queue", 4), children: has("children", 3), narrow: has("narrow", 4),
      steering: features?.steering ?? false, aborts: features?.aborts ?? false, prefix: has("prefix", 3), summary: has("summary", 6), wait: has("wait", 3), elsewhere: features?.elsewhere ?? false,
    });
    this.turns = Array.from({ length: 2 + roll(2) }, () => Array.from({ length: 1 + roll(3) }, () => ["pay", "look", "slow", this.children ? "research" : "look"][roll(4)]));
    /** How often each call began, over all lives. */
    this.begins = new Map();
    this.failed = new Set();
    this.faults = [];
    this.time = 1_000_000;
    this.letters = this.steering ? [3 + roll(8), 8 + roll(12)] : [];
    this.abortAt = this.aborts ? 2 + roll(14) : Infinity;
  }

  /** What the engine waits for itself. */
  outside() {
    const decide = async (/** @type {string} */ name, /** @type {any} */ { kind, arguments: args }) => {
      await this.pause(400);
      if (kind === "tool_call") return name.includes("/1-") ? { error: "nobody looks" } : { output: `look ${JSON.stringify(args)}` };
      return name.endsWith("1") ? "reject" : "approve";
    };
    return { waits: this.wait, decide };
  }

  now() {
    return (this.time += 1 + this.roll(5));
  }

  async pause(times = 40) {
    const ticks = this.roll(times);
    for (let i = 0; i < ticks; i++) await undefined;
    if (this.roll(12) === 0) await new Promise((go) => setImmediate(go));
  }

  began(name, callId) {
    const key = `${name} ${callId}`;
    this.begins.set(key, (this.begins.get(key) ?? 0) + 1);
  }

  tools(level) {
    const make = (name, more = {}) => tool({
      name, description: name, parameters: OBJECT, ...more,
      execute: async (args, context) => {
        this.began(name, `${context.runId}/${context.callId}`);
        await this.pause();
        context.state.set(name, (context.state.get(name) ?? 0) + 1);
        await this.pause(name === "slow" ? 300 : 40);
        if (args.fails) throw new Error(`${name} failed`);
        return `${name} ${JSON.stringify(args)}`;
      },
    });
    const research = subagent({ name: "research", description: "", agent: () => this.agent(undefined, level + 1) });
    return [make("pay", { requiresApproval: this.approvals && level === 0 }), this.elsewhere ? { name: "look", description: "look", parameters: OBJECT } : make("look", { idempotent: true }), make("slow"), ...(this.children && level < 2 ? [research] : [])];
  }

  answer(request, level, which) {
    const turn = turnsIn(request.messages);
    if (!request.systemPrompt.startsWith("level ")) return { text: `a summary up to c${turn - 1}-` };
    const key = `${level} ${turn} ${which} ${request.messages.length}`;
    if (this.fallback && which === 0 && turn === 1) return { error: { code: "auth", message: "no more of this model", retryable: false } };
    if (this.failures && this.seed % 3 === turn && !this.failed.has(key)) {
      this.failed.add(key);
      return { error: { code: "rate_limit", message: "slowly", retryable: true } };
    }
    // It is too much, until there is a summary.
    if (this.summary && level === 0 && turn === 1 && !JSON.stringify(request.messages).includes("a summary")) return { error: { code: "context_overflow", message: "too long", retryable: false } };
    const plan = level === 0 ? this.turns[turn] : turn === 0 ? (level === 1 && this.seed % 2 ? ["look", "research"] : ["pay", "slow"]) : undefined;
    if (!plan) return { text: `done after ${turn}` };
    return { text: turn % 2 ? `turn ${turn}` : undefined, calls: plan.map((name, i) => ({ id: `c${turn}-${i}`, name, args: { turn, i, prompt: `look for ${i}`, ...(i === 2 && { fails: true }) } })) };
  }

  agent(host, level = 0) {
    const models = [0, 1].map((which) => model(`model-${which}`, (request) => this.answer(request, level, which), () => this.pause()));
    return new Agent({
      model: models[0], fallback: [models[1]], tools: this.tools(level), systemPrompt: `level ${level}`, retry: { initialBackoffMs: 1, maxBackoffMs: 2 },
      ...(this.narrow && { maxConcurrentTools: 2 }), ...(this.prefix && { gate: "prefix" }),
      ...(level === 0 && this.approvals && this.approver === "always" && { approveTool: async () => "approve" }),
      ...(host && { host: { now: () => this.now(), ...host } }),
      ...(level === 0 && this.approvals && this.approver === true && { approveTool: async () => (await this.pause(), "approve") }),
      ...(level === 0 && this.hooks && { hooks: { beforeInference: () => this.pause(), afterToolExecution: () => this.pause() } }),
      ...(level === 0 && this.summary && { compaction: this.seed % 2 ? "summarize" : { engine: async (messages) => (await this.pause(), shorten(messages)) } }),
      ...(level === 0 && this.transform && { asyncTransformContext: async (messages) => (await this.pause(), messages.slice()) }),
      ...(level === 0 && this.queue && { getSteeringMessages: async () => (await this.pause(), []), getFollowUpMessages: async () => (await this.pause(), []) }),
    });
  }

  /** Lives a run to its end, or until the life is over. */
  async live(life, { record, isQuiet } = {}) {
    const agent = this.agent(life.host);
    const recorder = record?.(agent);
    const events = [];
    agent.subscribe((event) => isPiece(event) || events.push(JSON.stringify(event)), { keep: true });
    const run = agent.prompt("Go on.", { runId: `run-${this.seed}` });
    const people = this.people(agent, run, life);
    if (isQuiet) quiet(life);
    const ended = await Promise.race([run.result, life.over]);
    const died = ended === "killed";
    const messages = JSON.stringify(agent.messages);
    if (!died) await people;
    return { died, result: died ? undefined : ended, messages, events, recorder };
  }

  /** What people do while a life lasts. */
  async people(agent, run, life) {
    let over = false;
    const decided = new Set();
    run.result.then(() => (over = true));
    for (;;) {
      await this.pause(60);
      await new Promise((go) => setImmediate(go));
      if (over || life.isOver) return;
      if (run.replaying || (this.wait && this.letters.length === 0 && this.abortAt === Infinity)) continue;
      for (const { id, callId } of this.wait ? [] : agent.pendingApprovals) {
        if (decided.has(id)) continue;
        decided.add(id);
        agent.resolveTool(callId, callId.endsWith("1") ? "reject" : "approve");
      }
      const begun = life.records.attempts.size;
      if (this.letters.length > 0 && begun >= this.letters[0]) {
        const at = this.letters.shift();
        agent.steer(`letter ${at}`, at % 2 ? { when: "immediate" } : {});
      }
      if (begun >= this.abortAt) run.abort("somebody had enough");
    }
  }
}

/** What a history says, without when. */
export const saying = (messages) => JSON.parse(messages).map(({ timestamp: _, ...message }) => message);

/** What may be told in one life only: pieces, and that what was shown of an answer inside a call is not what is stored of it. */
const PIECES = new Set(["message_update", "tool_execution_update"]);
/** What takes pieces back that are in no record, only where they were shown. */
const isTakenBack = ({ type, reason }) => type === "message_reset" && reason === "the provider began the answer anew";
const isPiece = (event) => PIECES.has(event.type) || isTakenBack(event) || (event.type === "subagent_event" && (PIECES.has(event.event.type) || event.event.type === "message_reset"));

/**
 * Lives a world under a schedule: up to `kills` lives end early. Then the journal is lived again, and must give the same.
 * Returns how often it was killed.
 */
export async function survive(seed, { mode = "name", kills = 1 + (seed % 4), features } = {}) {
  const world = new World(seed, features);
  const chance = dice(seed * 7 + 3);
  const records = new Records();
  const lives = [];
  let left = kills;
  if (mode === "per call") return callByCall(world, records, chance, kills);
  for (;;) {
    assert.ok(lives.length < 60, "it never ends");
    const kill = (name, where) => left > 0 && chance(9) === 0 && (left--, (killed = where === "end" ? name : undefined), true);
    let killed;
    const life = new Life(records, { ...world.outside(), mode, kill, pause: (name, where) => world.pause(where === "replay" || where === "store" ? 60 : 20) });
    const lived = await world.live(life);
    lives.push(lived);
    if (lived.result?.error?.phase === "step") throw lived.result.error;
    if (!lived.died) break;
  }
  const last = lives.at(-1);
  for (const { messages } of lives) {
    // What was said before a summary is in it.
    if (last.messages.includes("a summary") && !messages.includes("a summary")) continue;
    const final = JSON.parse(last.messages);
    const lived = JSON.parse(messages);
    // An abort says so in the answer whose calls it ends.
    const said = (list) => (world.aborts ? list.map(({ stopReason: _, error: __, ...message }) => message) : list);
    assert.deepEqual(said(lived), said(final.slice(0, lived.length)), "what a life has said stays");
  }
  for (const [call, times] of world.begins) if (!call.startsWith("look")) assert.equal(times, 1, `${call} began more than once`);
  const again = new Life(records, { ...world.outside(), mode, pause: (name, where) => world.pause(where === "replay" ? 200 : 20) });
  const replayed = await world.live(again);
  assert.deepEqual(again.began, [], "nothing runs again");
  assert.deepEqual(JSON.parse(replayed.messages), JSON.parse(last.messages), "the same history");
  const isSame = last.events.join() === replayed.events.join();
  const [first, second] = isSame ? [[], []] : [last, replayed].map(({ events }) => events.map((event) => JSON.parse(event)));
  const at = first.findIndex((event, i) => !isDeepStrictEqual(event, second[i]));
  const near = (events) => events.slice(Math.max(at - 3, 0), at + 3).map(({ type, at, callId = "", event }) => `${type} ${event?.type ?? ""} ${event?.callId ?? callId} ${at ?? event?.at}`);
  assert.deepEqual(at < 0 ? [] : near(second), at < 0 ? [] : near(first), `the same events, at ${at} of seed ${seed}`);
  if (at >= 0) assert.deepEqual(second[at], first[at], `event ${at} of seed ${seed}`);
  assert.equal(second.length, first.length);
  return { kills: lives.length - 1, lives, world, records };
}

/** An engine that calls the body once for each step. Some calls end when the work has ended, and it is not stored. */
async function callByCall(world, records, chance, kills) {
  let left = kills;
  for (let calls = 0; calls < 400; calls++) {
    const life = new Life(records, { mode: "per call", pause: () => world.pause(10) });
    const lived = await world.live(life, { isQuiet: true });
    if (!lived.died) {
      for (const [call, times] of world.begins) if (!call.startsWith("look")) assert.equal(times, 1, `${call} began more than once`);
      return { kills: kills - left, calls, world, records, last: lived };
    }
    const [target] = life.found;
    assert.ok(target, "the body waits for nothing");
    const kill = (name, where) => where === "end" && left > 0 && chance(9) === 0 && (left--, true);
    const one = new Life(records, { mode: "per call", kill, pause: () => world.pause(10) });
    one.target = target;
    await world.live(one);
  }
  assert.fail("it never ends");
}

/** Waits until a life goes no further. */
async function quiet(life) {
  for (let still = 0, seen = ""; still < 30; still++) {
    await new Promise((go) => setImmediate(go));
    const now = `${life.called} ${life.given}`;
    if (now !== seen) still = 0;
    seen = now;
  }
  life.end();
}
