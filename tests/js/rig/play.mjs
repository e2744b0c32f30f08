// @ts-check
// Plays a scenario in virtual time and returns its trace.

import { listOf } from "./scenario.mjs";
import { answer, endLife, isPosted, secondOptions, turnOptions } from "./second.mjs";
import { textOf } from "./trace.mjs";
import { kindOf, SLOTS, World } from "./world.mjs";

/**
 * What plays: the package, or a module with these of its names.
 * @typedef {Pick<typeof import("../../../pkg/entry/node.js"), "Agent" | "agentLoop" | "agentLoopContinue" | "custom" | "transferTo">} Engine
 */

/**
 * Plays a scenario.
 * @param {any} scenario @param {"natural" | "inbox" | "provider"} queues How queued messages reach the run: posted to
 * an agent, polled, or (natural) polled by a loop and posted to an agent.
 * @param {Engine} engine @param {(run: any) => void} [onRun] is given every run when it begins
 */
export async function play(scenario, queues, engine, onRun = () => {}) {
  return (await playIn(new World(scenario, engine, onRun), queues)).trace;
}

/**
 * Plays a scenario, and writes a tape of it.
 * @param {any} scenario @param {"natural" | "inbox" | "provider"} queues @param {Engine} engine
 * @param {(agent: any) => any} record `recordNow` of turnwheel/tape
 * @param {(run: any) => void} [onRun]
 */
export async function playRecorded(scenario, queues, engine, record, onRun = () => {}) {
  const world = new World(scenario, engine, onRun);
  world.record = (/** @type {any} */ agent) => {
    world.recorder = record(agent);
    world.note(description(scenario, initialMessages(scenario)));
  };
  const { trace } = await playIn(world, queues);
  const recorder = /** @type {any} */ (world.recorder);
  recorder.stop();
  return { trace, tape: recorder.toText() };
}

/** What a trace shows and no machine knows. @param {any} scenario @param {any[]} initial */
function description(scenario, initial) {
  return {
    scenario: scenario.name, divergences: scenario.divergences ?? [], tells_time: scenario.driver !== "agent",
    metrics: scenario.options?.metrics === true, async_transform: Boolean(scenario.async_transform), initial,
    policies: listOf(scenario.policies).map(({ name, slot, tools }) => ({ name, slot: SLOTS[slot], tools: listOf(tools) })),
  };
}

/** @param {World} world @param {"natural" | "inbox" | "provider"} queues */
async function playIn(world, queues) {
  const { scenario } = world;
  const isAgent = scenario.driver === "agent";
  const polled = queues === "natural" ? !isAgent && !isPosted(scenario) : queues === "provider";
  const history = await (isAgent ? playAgent(world, polled) : playLoop(world, polled));
  return { trace: world.log.trace(scenario, history) };
}

/** One run of the loop. @param {World} world @param {boolean} polled */
async function playLoop(world, polled) {
  const { scenario, engine } = world;
  const config = options(world, polled);
  const messages = initialMessages(scenario);
  const prompts = listOf(scenario.prompt);
  const continues = scenario.mode === "continue";
  // An agent if messages are posted, or if there is a history to start with; otherwise the entry
  // points for a single run.
  const agent = !polled || scenario.format === 2 || (!continues && messages.length > 0) ? new engine.Agent({ ...config, messages }) : undefined;
  if (agent) world.record?.(agent);
  let run;
  try {
    const { run_options: runOptions } = scenario.options ?? {};
    if (agent) run = continues ? agent.continue() : agent.prompt(prompts, runOptions ? turnOptions(world, runOptions) : {});
    else run = continues ? engine.agentLoopContinue(messages, config) : engine.agentLoop(prompts, config);
  } catch (error) {
    // There is no run whose tape could say so.
    if (!agent) world.record?.(new engine.Agent({ ...config, tools: [], messages }));
    refused(world, continues ? "continue" : "prompt", error);
    return messages;
  }
  world.onRun(run);
  // It begins in the next microtask, and is recorded before.
  if (!agent) world.record?.(run);
  world.agent = agent;
  handOver(world, run, polled);
  world.fire("before_start");
  if (scenario.sleep_ms) return await playLives(world, run, polled);
  await watch(world, listen(run, (event) => writeDown(world, event, true)));
  return run.messages;
}

/** What the user can do in a run. @param {World} world @param {any} run @param {boolean} polled */
function handOver(world, run, polled) {
  const abort = () => run.abort("the user stopped it");
  world.hands = world.agent && !polled ? { abort, ...queues(world.agent, world) } : { abort };
}

/** @param {AsyncIterable<any>} run @param {(event: any) => void} onEvent */
async function listen(run, onEvent) {
  for await (const event of run) onEvent(event);
}

/** A run whose process ends in the middle, and the one that goes on with it. @param {World} world @param {any} run @param {boolean} polled */
async function playLives(world, run, polled) {
  let saved = "";
  const first = listen(run, (event) => void (saved === "" && writeDown(world, event, true)));
  const end = new Promise((resolve) => world.clock.at(world.scenario.sleep_ms, () => resolve((saved = endLife(world, run)))));
  if (!(await watch(world, Promise.race([first, end]))) || saved === "") return run.messages;
  world.agent = await world.engine.Agent.restore(saved, options(world, polled));
  const again = world.agent.continue();
  handOver(world, again, polled);
  world.fire("after_sleep");
  await watch(world, listen(again, (event) => writeDown(world, event, true)));
  return again.messages;
}

/** Runs of an agent. @param {World} world @param {boolean} polled */
async function playAgent(world, polled) {
  const { scenario } = world;
  const config = options(world, polled);
  const agent = new world.engine.Agent({ ...config, messages: initialMessages(scenario), output: scenario.structured_output ?? undefined });
  world.agent = agent;
  world.record?.(agent);
  subscribe(world, agent);
  world.hands = { abort: () => agent.abort("the user stopped it"), ...(!polled && queues(agent, world)) };
  world.fire("before_start");
  const run = (/** @type {string} */ call, /** @type {() => any} */ begin) => settle(world, call, begin);
  const prompts = listOf(scenario.prompt);
  let runOptions = scenario.options?.run_options;
  const prompt = (/** @type {any} */ texts) => agent.prompt(texts, runOptions ? turnOptions(world, runOptions) : {});
  if (scenario.structured_output && prompts.length > 0) await run("structured_output", () => agent.prompt(prompts));
  else if (scenario.mode === "continue") await run("continue", () => agent.continue());
  else if (prompts.length > 0) await run("prompt", () => prompt(prompts));
  // The other requests want no structured output.
  agent.output = undefined;
  for (const step of listOf(scenario.then)) {
    if (step === "continue") await run("continue", () => agent.continue());
    else if (step.run_options !== undefined) runOptions = step.run_options;
    else if (step === "clear_queues") {
      agent.clearQueues();
      did(world, { call: "clear_queues" });
    } else if (step === "reset") {
      agent.reset();
      did(world, { call: "reset" });
    } else if (step.steer !== undefined) {
      world.steer(step.steer);
      did(world, { call: "steer" });
    } else if (step.follow_up !== undefined) {
      world.followUp(step.follow_up);
      did(world, { call: "follow_up" });
    } else await run("prompt", () => prompt(listOf(step.prompt)));
  }
  return agent.messages;
}

/** @param {World} world @param {any} agent */
function subscribe(world, agent) {
  agent.subscribe((event) => writeDown(world, event, false));
  const failsOn = world.scenario.panicking_subscriber;
  let count = 0;
  if (failsOn === undefined || failsOn === null) return;
  agent.subscribe(() => {
    if (++count === failsOn) throw new Error("the subscriber crashed");
  });
}

/** @param {any} agent @param {World} world */
function queues(agent, world) {
  const note = async (/** @type {string} */ text, /** @type {Promise<any>} */ receipt) => {
    // An engine may have no receipts, and a single run has no agent that could tell.
    const { delivered, turnIndex } = (await receipt) ?? {};
    if (world.scenario.driver === "agent" && world.log.showsMore) world.log.receipts.push(delivered ? { text, turn_index: turnIndex } : { text, not_read: true });
  };
  return {
    steer: (/** @type {string} */ text, /** @type {any} */ when) => void note(text, agent.steer(text, when ? { when } : {})),
    followUp: (/** @type {string} */ text) => void note(text, agent.followUp(text)),
  };
}

/**
 * Plays one run of an agent, and returns its outcome.
 * @param {World} world @param {string} call @param {() => any} begin
 */
async function settle(world, call, begin) {
  let run;
  try {
    run = begin();
  } catch (error) {
    return refused(world, call, error);
  }
  world.onRun(run);
  if (!(await watch(world, run.result))) return;
  const result = await run.result;
  world.note({ ran: call });
  world.log.outcomes.push(outcome(call, result));
}

/** @param {World} world @param {PromiseLike<any>} work */
async function watch(world, work) {
  const over = await world.clock.watch(work);
  if (!over) {
    world.note({ hangs: true });
    world.log.events.push({ type: "oracle_hang" });
  }
  return over;
}

/** @param {World} world @param {any} event @param {boolean} withTime */
function writeDown(world, event, withTime) {
  answer(world, event);
  world.log.event(event, withTime ? world.t : undefined, world.scenario.options?.metrics === true);
}

/** @param {World} world @param {string} call @param {any} error */
function refused(world, call, error) {
  did(world, { call, error: error.message });
}

/** Something happened between the runs. @param {World} world @param {any} outcome */
function did(world, outcome) {
  world.note({ did: outcome });
  world.log.outcomes.push(outcome);
}

/** @param {string} call @param {any} result */
export function outcome(call, { output, messages, usage, error }) {
  if (call === "structured_output") {
    return output === undefined ? { call, error: error?.message ?? null } : { call, ok: output };
  }
  const isNew = (/** @type {any} */ { role }) => role === "assistant" || role === "tool_result";
  const last = messages.findLast((/** @type {any} */ message) => message.role === "assistant");
  return {
    call, new_message_count: messages.filter(isNew).length,
    assistant_text: last ? textOf(last) : null, stop_reason: last?.stopReason ?? null, run_error: error?.message ?? null,
    usage: { input: usage.input, output: usage.output, total: usage.total },
  };
}

/** The options for a scenario. @param {World} world @param {boolean} polled @returns {any} */
function options(world, polled) {
  const { scenario, clock } = world;
  const { approval, policies, transform, async_transform: asyncTransform } = scenario;
  const given = scenario.options ?? {};
  const usual = scenario.driver === "agent" ? "one_at_a_time" : "all";
  const { tool_execution: execution } = given;
  const prompts = listOf(given.dynamic_system_prompts);
  const keys = listOf(given.api_keys);
  const nextKey = world.each(keys);
  const shorten = world.transform(asyncTransform, "async");
  let ids = 0;
  world.host = { now: () => clock.now(), sleep: (/** @type {number} */ ms, /** @type {AbortSignal} */ signal) => clock.pause(ms, signal), random: () => 0.5, id: () => `id-${world.lives}-${++ids}` };
  world.retry = retry(given.retry ?? {});
  world.models = [world.model("primary", listOf(scenario.model)), ...(scenario.fallback ?? []).map((/** @type {any} */ script, /** @type {number} */ n) => world.model(`fallback-${n + 1}`, script))];
  return {
    host: world.host,
    model: world.models[0],
    fallback: world.models.slice(1),
    systemPrompt: scenario.system_prompt ?? "",
    tools: listOf(scenario.tools).map((tool) => world.tool(tool, execution?.priority ?? {})),
    maxTurns: Infinity,
    includeRequests: true,
    retry: world.retry,
    ...(approval && { approveTool: world.approveTool }),
    // Without an approver nobody is asked.
    approval: { mode: approval ? (given.approval_mode ?? "smart") : "bypassed" },
    policies: slots(listOf(policies), world),
    ...(transform && { transformContext: world.transform(transform, "sync") }),
    ...(asyncTransform && { asyncTransformContext: async (/** @type {any} */ messages, /** @type {boolean} */ overflow, /** @type {any} */ signal, /** @type {any} */ info) => shorten(messages, overflow, info) }),
    ...(polled && { getSteeringMessages: () => world.poll("steering"), getFollowUpMessages: () => world.poll("followUp") }),
    steering: { delivery: given.steering_mode ?? usual, ...(given.steering_when && { when: given.steering_when }) },
    followUp: { delivery: given.follow_up_mode ?? usual },
    toolExecution: execution?.groups ? () => execution.groups : execution?.priority ? "priority" : (execution ?? "concurrent"),
    ...(prompts.length > 0 && { dynamicSystemPrompt: world.each(prompts) }),
    ...(keys.length > 0 && { getApiKey: () => nextKey() }),
    ...(given.session_state && { sessionState: given.session_state }),
    ...(given.cache && { cache: { ttlMs: given.cache.ttl_s * 1000, minTokens: given.cache.min_tokens, intervals: given.cache.intervals } }),
    ...(typeof given.structured_output_max_retries === "number" && { outputRetries: given.structured_output_max_retries }),
    transfer: { agentName: given.agent_name ?? undefined, chain: given.transfer_chain ?? undefined, maxDepth: given.transfer_max_depth ?? undefined },
    ...secondOptions(world),
  };
}

/** @param {any[]} policies @param {World} world */
function slots(policies, world) {
  const of = (/** @type {string} */ slot) => policies.filter((policy) => policy.slot === slot).map((policy) => world.policy(policy));
  return { preTurn: of("pre_turn"), preDispatch: of("pre_dispatch"), postTurn: of("post_turn"), postLoop: of("post_loop") };
}

/** @param {any} given */
function retry({ max_attempts: maxAttempts = 3, base_delay_ms: initialBackoffMs = 1000, multiplier = 2, max_delay_ms: maxBackoffMs = 60_000, only = [] }) {
  if (only.length === 0) return { maxAttempts, initialBackoffMs, multiplier, maxBackoffMs, jitter: false };
  return (/** @type {any} */ error, /** @type {number} */ attempt) => attempt < maxAttempts && only.includes(kindOf(error)) && initialBackoffMs;
}

/** @param {any} scenario @returns {any[]} */
function initialMessages(scenario) {
  /** @type {Map<string, string>} */
  const names = new Map();
  return listOf(scenario.initial_messages).map(({ role, text = "", tool_calls: calls, tool_call_id: callId = "", is_error: isError = false }) => {
    const block = { type: "text", text };
    if (role === "custom") return { role, kind: "scenario", data: text, timestamp: 1 };
    if (role === "user") return { role, content: [block], timestamp: 1 };
    if (role === "tool_result") return { role, callId, toolName: names.get(callId) ?? "", content: [block], isError, timestamp: 1 };
    const blocks = listOf(calls).map((call) => {
      names.set(call.id, call.name);
      return { type: "tool_call", callId: call.id, toolName: call.name, arguments: call.arguments ?? {} };
    });
    return {
      role, content: [...(text === "" ? [] : [block]), ...blocks], provider: "scripted", model: "primary",
      usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }, stopReason: blocks.length > 0 ? "tool_use" : "stop", timestamp: 1,
    };
  });
}
