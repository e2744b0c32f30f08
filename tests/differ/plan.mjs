// @ts-check
// A random sequence of calls of the public API, as plain data: what the agent is made with, what its model will say, and what
// is done with it when. Data can be written down, played by two packages, and made shorter.

import { dice } from "../js/dice.mjs";

/**
 * @typedef {{ do: string, [name: string]: any }} Step `at`: in the listener, at this event; without, in turn, when all rests.
 * @typedef {{ text?: string[], thinking?: string, calls?: { tool: string, args: any, broken?: boolean }[], fails?: any, pauseMs?: number, usage?: any, stop?: string }} Answer
 * @typedef {{ seed: number, model: string, options: { [name: string]: any }, functions: { [name: string]: number }, tools: string[], host: boolean,
 *   history: number, script: Answer[], childScript: Answer[], steps: Step[], checkpointAt: number, after: Step[] }} Plan
 */

export const MODELS = ["custom", "custom", "custom", "scripted", "openai-chat", "openai-chat", "openai-responses", "anthropic", "gemini"];
const TOOLS = [
  "look", "look", "look", "data", "blocks", "nothing", "odd", "fails", "fails_late", "fatal", "slow", "slow", "deaf", "tells", "tells", "asks", "asks", "keeps",
  "pay", "pay", "maybe", "limited", "big", "moves_on", "quits", "child", "child_asks",
];

/** The functions among the options, each with the number of things it may do. */
export const FUNCTIONS = {
  approveTool: 7, convertToLlm: 3, transformContext: 6, asyncTransformContext: 3, compaction: 3, getApiKey: 3, getSteeringMessages: 3, getFollowUpMessages: 3,
  prepareTurn: 5, retry: 2, dynamicSystemPrompt: 2, hooks: 3, preTurn: 3, preDispatch: 4, postTurn: 3, postLoop: 3, wrapTool: 3, wrapModel: 2, toolExecution: 2, resultTexts: 2,
};

/** @param {number} seed @returns {Plan} */
export function planOf(seed) {
  const roll = dice(seed);
  for (let i = 0; i < 8; i++) roll(2);
  const one = (/** @type {any[]} */ list) => list[roll(list.length)];
  const some = (/** @type {number} */ sides) => roll(sides) === 0;
  const many = (/** @type {number} */ most, /** @type {() => any} */ make) => Array.from({ length: roll(most + 1) }, make);
  const model = one(MODELS);
  const tools = some(12) ? [] : [...new Set(Array.from({ length: 2 + roll(6) }, () => one(TOOLS)))];
  const given = () => (some(8) ? one([{}, { n: "three" }, { n: 2.5, more: true }]) : { n: roll(6) });
  const call = () => ({ tool: some(14) ? "no_such_tool" : tools.length ? one(tools) : "look", args: given(), ...(some(20) && { broken: true }) });
  const failure = () => one([
    { kind: "throws", message: "the line is dead" }, { kind: "error", code: one(["overloaded", "throttled", "server", "network", "auth", "context_overflow", "content_filtered"]) },
    { kind: "status", status: one([400, 401, 404, 413, 429, 500, 503, 529]), after: one([undefined, 1, 2, 90]) }, { kind: "cut" }, { kind: "silent" },
  ]);
  /** @returns {Answer} */
  const answer = () => ({
    ...(!some(3) && { text: one([["So."], ["Well, ", "it ", "is."], ["{\"n\":", "1}"], ["{\"n\":\"no\"}"], ["Grüße ", "👋🏽"], [""]]) }), ...(some(6) && { thinking: "Hm." }),
    ...(!some(3) && { calls: Array.from({ length: 1 + roll(3) }, call) }), ...(some(9) && { fails: failure() }), ...(some(2) && { pauseMs: one([1, 5, 20, 200]) }),
    ...(some(3) && { usage: { input: 10 + roll(90), output: 1 + roll(40) } }), ...(some(14) && { stop: one(["length", "refusal", "pause", "content_filter"]) }),
  });
  const script = Array.from({ length: 2 + roll(7) }, answer);
  const childScript = many(4, () => ({ ...answer(), calls: some(2) ? [{ tool: one(["look", "pay", "asks"]), args: given() }] : [] }));
  const options = settings(roll);
  /** @type {{ [name: string]: number }} */
  const functions = {};
  for (const [name, kinds] of Object.entries(FUNCTIONS)) if (some(13)) functions[name] = roll(kinds);
  /** @returns {Step} */
  const step = () => ({ ms: one([0, 2, 8, 40, 300, 2000]), ...stepOf(roll, tools) });
  /** @type {Step[]} */
  const steps = [{ do: "prompt", input: "Go", ms: one([0, 2, 20, 100, 500]), ...how(roll, tools) }, ...Array.from({ length: 1 + roll(9) }, step)];
  if (some(12)) steps.shift();
  for (const each of steps) if (each.do !== "wait" && some(3)) each.at = 1 + roll(30);
  const after = [...many(some(3) ? 3 : 0, step), ...(some(6) ? [] : [{ do: "continue", ms: one([0, 20, 500]), ...how(roll, tools) }]), ...many(5, step)];
  return { seed, model, options, functions, tools, host: !some(6), history: some(3) ? 1 + roll(4) : 0, script, childScript, steps, checkpointAt: 1 + roll(one([8, 8, 25, 60])), after };
}

/** The options that are data, a few of them wrong. @param {(sides: number) => number} roll */
function settings(roll) {
  const one = (/** @type {any[]} */ list) => list[roll(list.length)];
  /** @type {{ [name: string]: () => any }} */
  const all = {
    systemPrompt: () => one(["Be brief.", ""]), sessionId: () => "session", maxTurns: () => one([0, 1, 2, 4, 100]), maxDepth: () => one([1, 8]),
    retry: () => one([{ maxAttempts: 1 }, { maxAttempts: 2, jitter: false }, { initialBackoffMs: 10, multiplier: 3 }, { retryUnknown: true, initialBackoffMs: 5 }, { maxRetryDelayMs: 1500 }]),
    fallback: () => [one(["second", "third"])], compaction: () => "summarize",
    approval: () => one([{ mode: "enabled" }, { mode: "bypassed" }, { rules: { look: "ask", pay: "approve" } }, { rules: { pay: "deny" }, default: "approve" }, { default: "ask" }]),
    earlyDecisions: () => one(["park", "refuse"]), toolExecution: () => one(["concurrent", "sequential", "priority"]), maxConcurrentTools: () => one([1, 2]), gate: () => one(["batch", "prefix"]),
    steering: () => one([{ when: "immediate" }, { when: "after_batch" }, { inFlight: "finish" }, { delivery: "one_at_a_time" }, { atStart: "before_first_call" }]),
    followUp: () => ({ delivery: one(["all", "one_at_a_time"]) }), timeouts: () => one([{ firstChunkMs: 10 }, { chunkMs: 10 }, { modelMs: 50 }, { toolMs: 30 }, { totalMs: 120 }]),
    sessionState: () => ({ k: 1, deep: { list: [1, null] } }), cache: () => one([{}, { minTokens: 1 }, { minTokens: 4, intervals: 2 }]),
    output: () => ({ type: "object", properties: { n: { type: "integer" } }, required: ["n"] }), outputRetries: () => one([0, 1]),
    transfer: () => ({ agentName: "first", chain: one([[], ["zeroth"]]), maxDepth: one([1, 3]) }), coalesceMs: () => one([0, 10]), includeRequests: () => true,
    budget: () => budgetOf(roll), streamOptions: () => streamOptions(roll), contextWindow: () => one([60, 400]), price: () => ({ input: 3, output: 15 }),
    // What is refused, or ought to be.
    maxTurnz: () => 3, temperature: () => 1, instructions: () => "Be brief.", gateway: () => "x", messages: () => one(["no list", [{ role: "nobody" }], [{ role: "user", content: "text" }]]),
  };
  const wrong = ["maxTurnz", "temperature", "instructions", "gateway", "messages"];
  return Object.fromEntries(Object.entries(all).flatMap(([name, make]) => (roll(wrong.includes(name) ? 200 : 11) === 0 ? [[name, make()]] : [])));
}

/** @param {(sides: number) => number} roll */
function budgetOf(roll) {
  const one = (/** @type {any[]} */ list) => list[roll(list.length)];
  return { ...one([{ tokens: 40 }, { tokens: 400 }, { turns: 2 }, { toolCalls: 2 }, { ms: 60 }, { tokens: 60, turns: 3 }]), ...one([{}, { onExceed: "ask" }, { onExceed: "wrap_up" }, { warnAt: 0.5 }, { scope: "agent" }]) };
}

/** @param {(sides: number) => number} roll */
function streamOptions(roll) {
  return [{ temperature: 0.5 }, { maxTokens: 50 }, { toolChoice: "required" }, { toolChoice: { toolName: "look" } }, { reasoning: "low" }, { stop: ["END"] }, { headers: { "x-mine": "1" }, body: { seed: 7 } }, { parallelToolCalls: false, cache: "none" }][roll(8)];
}

/** How a run is read, and what it is started with. @param {(sides: number) => number} roll */
function how(roll, /** @type {string[]} */ tools) {
  const some = (/** @type {number} */ sides) => roll(sides) === 0;
  const reads = ["result", "result", "result", "events", "events", "leave", "text", "or_throw", "partial", "response", "ui"][roll(11)];
  return {
    reads, ...(reads === "leave" && { leaveAfter: 1 + roll(12) }), ...(some(6) && { metadata: { user: "u-17" } }), ...(some(8) && { runId: `run-${roll(3)}` }), ...(some(8) && { activeTools: [[], tools.slice(0, 2), tools.slice(1), ["no_such_tool"]][roll(8) > 0 ? roll(3) : 3] }),
    ...(some(10) && { budget: { turns: 1 + roll(2) } }), ...(some(10) && { streamOptions: streamOptions(roll) }), ...(some(10) && { systemPrompt: "Only now." }), ...(some(12) && { signal: ["later", "aborted"][roll(2)] }),
    ...(some(80) && { maxTurns: 3 }),
  };
}

/** What may be said. @param {(sides: number) => number} roll */
function inputOf(roll) {
  const texts = ["And this?", "Look again.", "", "Straße 👩‍👩‍👧"];
  if (roll(3) > 0) return texts[roll(4)];
  const media = { type: ["image", "file"][roll(2)], mimeType: ["image/png", "image/png", "text/plain", "", "png", "image/png; charset=x"][roll(6)], ...[{ data: "AAAA" }, { url: "https://x.test/a.png" }, { data: "AAAA", url: "https://x.test/a.png" }, {}][roll(8) > 5 ? 2 + roll(2) : roll(2)] };
  return [
    [{ type: "text", text: "See" }, media], [media], [], { role: "custom", kind: "note", data: { seen: true }, timestamp: 5 }, { role: "user", content: [{ type: "text", text: "Written" }], timestamp: 7 },
    ["one", { role: "custom", kind: "note", data: 1, timestamp: 1 }], { role: "assistant", content: [] }, 42, null, [{ type: "tool_call" }],
  ][roll(10)];
}

const STEPS = [
  "wait", "wait", "wait", "wait", "wait", "wait", "steer", "steer", "steer", "steer", "follow_up", "follow_up", "resolve", "resolve", "resolve", "resolve", "resolve", "resolve_tool", "resolve_tool", "resolve_tools",
  "prompt", "prompt", "prompt", "prompt", "prompt", "prompt", "continue", "continue", "continue", "set", "set", "set", "set", "set", "restore", "restore", "abort", "abort", "checkpoint", "reset", "clear_queues",
  "read", "read", "listen", "listen_badly", "leave", "idle", "signal", "dispose", "loop", "partial", "messages",
];

/** @param {(sides: number) => number} roll @param {string[]} tools @returns {Step} */
function stepOf(roll, tools) {
  const name = /** @type {string} */ (STEPS[roll(STEPS.length)]);
  const decisions = [
    "approve", "approve", "approve", "reject", { action: "reject", reason: "too dear" }, { action: "approve", arguments: { n: 1 } }, { action: "result", content: "given" }, { action: "result", content: { content: [{ type: "text", text: "given" }] }, isError: true },
    { action: "accept" }, { action: "accept", content: { branch: "main" } }, { action: "decline" }, { action: "cancel" }, { raise: { tokens: 500, turns: 5, toolCalls: 5, ms: 5000 } }, { raise: { usd: 1 } }, "maybe", { action: "approve", arguments: [] }, 7,
  ];
  const decision = decisions[roll(decisions.length)];
  switch (name) {
    case "wait": return { do: name, ms: [0, 1, 5, 12, 25, 60, 250, 1500, 90_000][roll(9)] };
    case "steer": return { do: name, input: inputOf(roll), ...(roll(3) === 0 && { options: [{ when: "immediate" }, { when: "after_batch" }, { when: "after_tool" }, { when: "soon" }][roll(4)] }) };
    case "follow_up": return { do: name, input: inputOf(roll) };
    case "prompt": case "loop": return { do: name, input: roll(4) > 0 ? "Go on" : inputOf(roll), ...how(roll, tools) };
    case "continue": return { do: name, ...how(roll, tools) };
    case "resolve": return { do: name, which: roll(6) > 0 ? 0 : [1, "unknown", 5][roll(3)], decision };
    case "resolve_tool": case "resolve_tools": return { do: name, which: roll(4), decision };
    case "abort": return { do: name, ...(roll(2) === 0 && { reason: ["enough", { error: "odd" }][roll(2)] }) };
    case "restore": return { do: name, damage: roll(3) === 0 ? 1 + roll(9) : 0 };
    case "set": return { do: name, ...setOf(roll, tools) };
    default: return { do: name };
  }
}

/** An assignment to a member of the agent. @param {(sides: number) => number} roll @param {string[]} tools */
function setOf(roll, tools) {
  switch (roll(8)) {
    case 0: return { name: "systemPrompt", value: ["Now be long.", "", 7][roll(3)] };
    case 1: return { name: "tools", value: tools.slice(roll(3)) };
    case 2: return { name: "tools", value: ["look", "pay", "look"].slice(roll(3)) };
    case 3: return { name: "model", value: ["same", "second", undefined, "not a model"][roll(8) > 5 ? 2 + roll(2) : roll(2)] };
    case 4: return { name: "streamOptions", value: roll(4) > 0 ? streamOptions(roll) : [undefined, { temperatur: 1 }, 5][roll(3)] };
    case 5: return { name: "budget", value: roll(4) > 0 ? budgetOf(roll) : [undefined, { tokens: -1 }, { dollars: 1 }][roll(3)] };
    case 6: return { name: "output", value: [undefined, { type: "object", properties: { n: { type: "number" } } }, "text"][roll(3)] };
    default: return { name: "messages", value: [[], "none"][roll(2)] };
  }
}
