// @ts-check
// What happens to an agent, drawn from a seed: the turns that its model speaks, the faults of the server before each, the
// options of the agent, what its user does, and how each run has to end. The server and the agent draw the same plan.

import { dice } from "../js/dice.mjs";
import { ODDITIES } from "./faults.mjs";
import { WIRES } from "./wires.mjs";

/**
 * @typedef {{ tool: string, answer?: string, turns?: Turn[] }} Call
 * @typedef {{ kind: string, [more: string]: any }} Fault
 * @typedef {{ stop: string, code?: string | undefined }} Expected
 */

/**
 * One turn: the faults come first, one an attempt; the answer after them is good.
 * @typedef {object} Turn
 * @property {Call[]} calls
 * @property {Fault[]} [faults]
 * @property {string[]} [odd]
 * @property {number} [step] bytes in one write
 * @property {string} [type] the content type
 * @property {import("./wires.mjs").Answer["finish"]} [finish]
 * @property {boolean} [open]
 * @property {string} [ids] `same`: all calls of the turn have one id; `again`: the ids of the turn before; `none`
 */

/**
 * @typedef {object} Plan
 * @property {string} scenario
 * @property {string} wire
 * @property {Turn[]} turns
 * @property {number} prompts
 * @property {Record<string, any>} options of the agent
 * @property {Record<string, any>} limits of the model
 * @property {string} drive what the user does: see drives.mjs
 * @property {any} [with] what the drive wants to know
 * @property {Expected[]} expect how each run ends
 * @property {string[]} causes why a call may have no result of its own, besides what the call asks for
 * @property {boolean} [stored] it dies and goes on from its checkpoint
 * @property {boolean} [remote] its user is elsewhere
 * @property {boolean} [dropped] nobody waits for its end
 */

/** @typedef {(sides: number) => number} Roll */

const COMPLETED = { stop: "completed" };
/** @template T @param {Roll} roll @param {readonly T[]} list @returns {T} */
const pick = (roll, list) => /** @type {T} */ (list[roll(list.length)]);
/** @template T @param {number} n @param {(i: number) => T} make */
const times = (n, make) => Array.from({ length: n }, (_, i) => make(i));

/** Faults after which the model is asked again. */
const PASSING = ["cut", "cut", "cut", "end", "almost", "almost", "reset", "empty", "character", "error"];
/** Faults that only a limit of time notices. */
const SILENCES = ["mute", "stall", "gzip"];
const REFUSALS = [
  { fault: { kind: "status", status: 429, headers: { "retry-after-ms": "3" }, type: "rate_limit_error" }, code: "throttled" },
  { fault: { kind: "status", status: 429, headers: { "retry-after": "soon" }, type: "rate_limit_error" }, code: "throttled" },
  { fault: { kind: "status", status: 500, headers: { "retry-after": "0" } }, code: "server" },
  { fault: { kind: "status", status: 503 }, code: "overloaded" },
  { fault: { kind: "status", status: 529, type: "overloaded_error" }, code: "overloaded" },
];
const FINAL = [
  { fault: { kind: "status", status: 401, type: "authentication_error", message: "wrong key KEY" }, code: "auth" },
  { fault: { kind: "status", status: 403, type: "permission_error", message: "not for KEY" }, code: "auth" },
  { fault: { kind: "status", status: 400, type: "invalid_request_error", message: "no such field" }, code: "invalid_request" },
  { fault: { kind: "status", status: 404, type: "not_found_error", message: "no such model" }, code: "invalid_request" },
];

/** @param {Roll} roll @returns {Fault} */
const passing = (roll) => (roll(3) === 0 ? pick(roll, REFUSALS).fault : { kind: pick(roll, PASSING) });
/** @param {Roll} roll @param {string[]} tools @returns {Call[]} */
const calls = (roll, tools) => times(1 + roll(3), () => ({ tool: pick(roll, tools) }));
/** Some turns with tools. @param {Roll} roll @param {string[]} [tools] @param {number} [most] @returns {Turn[]} */
const working = (roll, tools = ["note", "look", "slow"], most = 3) => times(1 + roll(most), () => ({ calls: calls(roll, tools) }));
/** @returns {Turn} */
const closing = () => ({ calls: [] });
/** Turns of so many runs, each of which ends with a turn without calls. @param {number} runs @param {() => Turn[]} make */
const chapters = (runs, make) => times(runs, () => [...make(), closing()]).flat();

/** @type {(roll: Roll) => Partial<Plan>} */
function talk(roll) {
  const prompts = 1 + roll(3);
  const odd = () => Object.keys(ODDITIES).filter(() => roll(5) === 0).slice(0, 3);
  /** @returns {Turn[]} */
  const made = () => working(roll).map((turn) => ({ ...turn, odd: odd(), ids: pick(roll, ["own", "own", "same", "again", "none"]), ...(roll(3) === 0 && { step: 1 + roll(9) }), ...(roll(6) === 0 && { finish: pick(roll, /** @type {any[]} */ (["lie", "unknown"])) }) }));
  return { prompts, turns: chapters(prompts, made) };
}

/** @type {(roll: Roll) => Partial<Plan>} */
function failures(roll) {
  const prompts = 1 + roll(2);
  const turns = chapters(prompts, () => working(roll)).map((turn) => ({ ...turn, faults: times(roll(3), () => passing(roll)) }));
  return { prompts, turns };
}

/** The first run ends with this error, whatever is tried; the next prompt goes on. @param {Roll} roll @param {Fault} fault @param {number} attempts @param {string} code @param {Partial<Plan>} [more] */
function failing(roll, fault, attempts, code, more = {}) {
  const before = working(roll, ["note"], 2).slice(0, roll(2));
  const turns = [...before, { calls: calls(roll, ["note"]), faults: times(attempts, () => fault) }, ...working(roll, ["look"], 1), closing()];
  return { turns, prompts: 2, expect: [{ stop: "error", code }, COMPLETED], ...more };
}

/** The only run ends with this error; a short limit of time may be over before the fault comes, to the same end. @param {Roll} roll @param {Fault} fault @param {string} code @param {any} options */
const hopeless = (roll, fault, code, options) => failing(roll, fault, 20, code, { prompts: 1, expect: [{ stop: "error", code }], options, causes: ["aborted"] });

/** @type {(roll: Roll) => Partial<Plan>} */
function used(roll) {
  const { fault, code } = pick(roll, [...REFUSALS, ...PASSING.filter((kind) => kind !== "error").map((kind) => ({ fault: { kind }, code: "network" }))]);
  return failing(roll, fault, 3, code);
}

/** @type {(roll: Roll) => Partial<Plan>} */
function silent(roll) {
  const timeouts = { firstChunkMs: 300, chunkMs: 300 };
  return hopeless(roll, { kind: pick(roll, SILENCES) }, "network", { timeouts, retry: { maxAttempts: 2, initialBackoffMs: 3 } });
}

/** A silence that is noticed, and an answer in the next attempt. The limit is long: a busy machine is silent, too. @type {(roll: Roll) => Partial<Plan>} */
function stalls(roll) {
  const turns = working(roll, ["note"], 1).map((turn) => ({ ...turn, faults: [{ kind: pick(roll, SILENCES) }] }));
  return { turns: [...turns, closing()], options: { timeouts: { firstChunkMs: 4000, chunkMs: 4000 }, retry: { maxAttempts: 6, initialBackoffMs: 3 } } };
}

/** @type {(roll: Roll) => Partial<Plan>} */
function asked(roll) {
  const answers = ["approve", "reject", "late", "twice", "changed", "result", "unknown"];
  const turns = times(1 + roll(2), () => ({ calls: times(1 + roll(3), () => (roll(3) === 0 ? { tool: "note" } : { tool: "pay", answer: pick(roll, answers) })) }));
  return { turns: [...turns, closing()], drive: "decides" };
}

/** Where a run can be stopped: at which event, how many of them there are at least, and what its first turn is made of. @type {{ at: string, most: number, calls: Call[], faults?: Fault[] }[]} */
const MOMENTS = [
  { at: "message_update", most: 2, calls: [{ tool: "deaf" }] },
  { at: "tool_execution_start", most: 2, calls: [{ tool: "deaf" }, { tool: "note" }] },
  { at: "tool_execution_end", most: 1, calls: [{ tool: "deaf" }, { tool: "note" }] },
  { at: "tool_approval_requested", most: 2, calls: [{ tool: "pay" }, { tool: "pay" }, { tool: "note" }] },
  { at: "retry_attempt", most: 1, calls: [{ tool: "note" }], faults: [{ kind: "cut" }] },
  { at: "subagent_event", most: 3, calls: [{ tool: "child", turns: [{ calls: [{ tool: "deaf" }] }] }, { tool: "note" }] },
];

/** @type {(roll: Roll) => Partial<Plan>} */
function aborted(roll) {
  const { at, most, ...first } = pick(roll, MOMENTS);
  return {
    turns: [first, ...working(roll, ["note", "pay"], 2), closing()], prompts: 2, drive: "aborts",
    with: { at, how: pick(roll, ["agent", "run", "signal", "leave"]), after: 1 + roll(most) },
    expect: [{ stop: "aborted", code: "aborted" }, COMPLETED], causes: ["aborted"],
  };
}

/** @type {(roll: Roll) => Partial<Plan>} */
function steered(roll) {
  const how = pick(roll, ["steer", "immediate", "finish", "follow", "cleared"]);
  const tools = how === "steer" || how === "immediate" ? ["note", "slow", "patient"] : ["note", "slow"];
  const steering = { when: how === "immediate" ? "immediate" : "after_tool", inFlight: how === "finish" ? "finish" : "cancel" };
  // `after_tool` acts when a tool has finished, so one has to.
  const batch = () => ({ calls: [{ tool: "note" }, ...calls(roll, tools)] });
  const turns = [batch(), ...times(roll(2), batch), closing(), closing(), closing()];
  return { turns, drive: "posts", with: { how, letters: 1 + roll(2) }, options: { steering }, causes: ["steering", "skipped"] };
}

/** @type {(roll: Roll) => Partial<Plan>} */
function family(roll) {
  /** @returns {Call} */
  const child = (depth = 0) => ({ tool: "child", turns: [...working(roll, ["note", "look"], 2).map((turn) => ({ ...turn, faults: times(roll(2), () => passing(roll)) })), ...(depth < 1 && roll(2) === 0 ? [{ calls: [child(depth + 1)] }] : []), closing()] });
  return { turns: [...times(1 + roll(2), () => ({ calls: [...times(1 + roll(2), () => child()), ...(roll(2) ? [{ tool: "note" }] : [])] })), closing()] };
}

/** @type {(roll: Roll) => Partial<Plan>} */
function stored(roll) {
  const prompts = 1 + roll(2);
  const answers = ["approve", "approve", "reject", "late", "changed"];
  const batch = () => ({ calls: times(1 + roll(3), () => (roll(3) === 0 ? { tool: "pay", answer: pick(roll, answers) } : { tool: pick(roll, ["note", "look", "slow"]) })), faults: times(roll(2), () => passing(roll)) });
  return { prompts, turns: chapters(prompts, () => times(1 + roll(3), batch)), drive: "decides", stored: true, causes: ["interrupted"], with: { deaths: roll(4), letters: roll(3) } };
}

/** @type {(roll: Roll) => Partial<Plan>} */
function distant(roll) {
  const base = roll(2) === 0 ? asked(roll) : { ...failures(roll), drive: "decides" };
  return { ...base, remote: true, with: { clients: 1 + roll(3), letters: roll(2) } };
}

/** `weight`: how often it is drawn. `waits`: why it is only played when it is named. @type {Record<string, { weight: number, waits?: string, hosts?: string, draw(roll: Roll): Partial<Plan> }>} */
export const SCENARIOS = {
  talk: { weight: 6, draw: talk },
  failures: { weight: 8, draw: failures },
  used: { weight: 4, draw: used },
  refused: { weight: 3, draw: (roll) => { const { fault, code } = pick(roll, FINAL); return failing(roll, fault, 1, code); } },
  silent: { weight: 2, draw: silent },
  stalls: { weight: 1, draw: stalls },
  later: { weight: 1, draw: (roll) => failing(roll, { kind: "status", status: 429, headers: { "retry-after": "86400" } }, 1, "throttled") },
  trickle: { weight: 2, draw: (roll) => hopeless(roll, { kind: pick(roll, ["trickle", "drip"]) }, "timeout", { timeouts: { totalMs: 500 } }) },
  garbage: { weight: 3, draw: (roll) => failing(roll, { kind: pick(roll, ["garbage", "page", "json"]) }, 1, "invalid_request") },
  line: { weight: 1, draw: (roll) => failing(roll, { kind: "line" }, 1, "server", { limits: { line: 65_536 } }) },
  filtered: { weight: 1, draw: (roll) => ({ turns: [{ calls: calls(roll, ["note"]), finish: "filter" }, closing()], prompts: 2, causes: ["filtered"] }) },
  length: { weight: 2, draw: (roll) => ({ turns: [{ calls: calls(roll, ["note"]), finish: "length", open: true }, closing()], causes: ["incomplete"] }) },
  asked: { weight: 6, draw: asked },
  stale: { weight: 2, draw: (roll) => ({ turns: [...times(1 + roll(2), () => ({ calls: times(1 + roll(2), () => ({ tool: "pay", answer: "unknown" })) })), closing()], drive: "misjudges" }) },
  aborted: { weight: 6, draw: aborted },
  steered: { weight: 6, draw: steered },
  tools: { weight: 5, draw: (roll) => ({ turns: [...working(roll, ["fail", "hang", "huge", "nothing", "wrong", "note"]), closing()] }) },
  family: { weight: 4, draw: family },
  stored: { weight: 6, draw: stored },
  distant: { weight: 6, draw: distant },
  dropped: { weight: 3, draw: (roll) => ({ turns: [{ calls: [{ tool: "pay", answer: "never" }, ...calls(roll, ["pay"])] }], dropped: true }) },
  redirect: { weight: 2, draw: (roll) => hopeless(roll, { kind: "redirect", status: pick(roll, [301, 302, 303, 307, 308]) }, "invalid_request", {}) },
  flood: { weight: 1, draw: (roll) => ({ ...hopeless(roll, { kind: "flood" }, "server", {}), limits: { answer: 100_000 } }) },
};

/** What is drawn, as often as its weight says. @param {string[]} only @param {string} host */
function lottery(only, host) {
  const named = only.length > 0 ? only : Object.keys(SCENARIOS).filter((name) => SCENARIOS[name]?.waits === undefined);
  const mine = named.filter((name) => host === "v" ? name === "stored" : true);
  return mine.flatMap((name) => Array.from({ length: SCENARIOS[name]?.weight ?? 1 }, () => name));
}

/**
 * The plan of a life. Its id is the host's letter and a number: `n12` in Node, `v3` in the process that is killed, `w7` in workerd.
 * @param {string} id @param {number} seed @param {string[]} [only] the scenarios to choose from
 * @returns {Plan}
 */
export function planOf(id, seed, only = []) {
  const host = id.charAt(0);
  const roll = dice(seed * 7919 + host.charCodeAt(0) * 104_729 + Number(id.slice(1)) * 31 + 1);
  for (let i = 0; i < 8; i++) roll(2);
  const scenario = pick(roll, lottery(only, host));
  const wire = pick(roll, WIRES);
  const drawn = SCENARIOS[scenario]?.draw(roll) ?? {};
  const prompts = drawn.prompts ?? 1;
  const retry = { initialBackoffMs: 3, maxBackoffMs: 10 };
  return {
    scenario, wire, turns: [closing()], prompts, limits: {}, drive: "listens", causes: [], expect: times(prompts, () => COMPLETED),
    ...drawn, options: { retry, ...drawn.options },
  };
}

/**
 * The turns of an agent or of one of its children: `n12x3y0` is the child that the first call of turn 3 started.
 * @param {Plan} plan @param {string} id @returns {Turn[]}
 */
export function turnsOf(plan, id) {
  let { turns } = plan;
  for (const [, turn, call] of id.matchAll(/x(\d+)y(\d+)/g)) turns = turns[Number(turn)]?.calls[Number(call)]?.turns ?? [];
  return turns;
}
