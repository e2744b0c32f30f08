// @ts-check
// What scenarios of format 2 have: agents inside agents, budgets, what holds for a turn, questions and who answers them,
// hooks, layers, and a process that ends in the middle. The format is described in tests/data/scenarios/README.md.

import { listOf } from "./scenario.mjs";

/** @import { World } from "./world.mjs" */

/** Under this name a model holds what the engine wants to know of it; see www/npm/models/setup.js. */
const SETUP = Symbol.for("turnwheel.model");

/** Whether a scenario has words that only this engine knows. @param {any} scenario */
export const isSecond = ({ format }) => format === 2;

/** Whether messages must be posted, or questions be answered. @param {any} scenario */
export const isPosted = ({ steering, answers }) => listOf(steering).some(({ when }) => when != null) || listOf(answers).length > 0;

/** The options of an agent that only format 2 has. @param {World} world @returns {any} */
export function secondOptions(world) {
  const { scenario } = world;
  if (!isSecond(scenario)) return {};
  const given = scenario.options ?? {};
  const life = world.lives;
  return {
    ...(scenario.approval === undefined && { approval: { mode: given.approval_mode ?? "smart" } }),
    ...(given.budget && { budget: given.budget }),
    ...(given.stream_options && { streamOptions: given.stream_options }),
    ...(given.max_depth !== undefined && { maxDepth: given.max_depth }),
    ...(given.max_turns !== undefined && { maxTurns: given.max_turns }),
    ...(given.tool_timeout_ms !== undefined && { timeouts: { toolMs: given.tool_timeout_ms } }),
    ...(given.prepare_turn && { prepareTurn: (/** @type {any} */ turn) => prepared(world, turn) }),
    ...(given.hooks && { hooks: hooks((entry) => void (life === world.lives && world.log.hooks.push(entry))) }),
    ...(given.layers && layers(world)),
  };
}

/** What holds for a turn or a run. @param {World} world @param {any} given @returns {any} */
export function turnOptions(world, { stream_options, active_tools, system_prompt, model, budget }) {
  return {
    ...(stream_options && { streamOptions: stream_options }), ...(active_tools && { activeTools: active_tools }),
    ...(system_prompt !== undefined && { systemPrompt: system_prompt }), ...(model !== undefined && { model: world.models[model] }),
    ...(budget && { budget }),
  };
}

/** @param {World} world @param {any} turn */
function prepared(world, { turnIndex, messages }) {
  const given = world.scenario.options.prepare_turn[turnIndex];
  if (!given) return;
  return { ...turnOptions(world, given), ...(given.newest !== undefined && { messages: messages.slice(-given.newest) }) };
}

/** A model that a scenario streams. @param {World} world @param {any} model @returns {any} */
export function withMore(world, model) {
  const { price, estimates } = world.scenario.options ?? {};
  if (!price && !estimates) return model;
  const before = model[SETUP];
  const setup = { ...before?.(), ...(price && { price }), ...(estimates && { estimatesUsage: true }) };
  return Object.freeze(Object.defineProperty({ ...model }, SETUP, { value: () => setup }));
}

/** A tool that runs an agent. @param {World} world @param {string} name @param {any} given @returns {any} */
export function subAgent(world, name, given) {
  const { Agent, subagent } = /** @type {any} */ (world.engine);
  return subagent({
    name, description: "scripted", ...(given.own_approvals && { approvals: "own" }),
    agent: (/** @type {any} */ _, /** @type {any} */ { runId, callId }) => new Agent({
      host: world.host, model: world.model(name, given.by_call?.[callId] ?? listOf(given.model), `${runId}/${callId}`),
      tools: listOf(given.tools).map((/** @type {any} */ tool) => world.tool(tool, {})), maxTurns: Infinity, retry: world.retry,
      approval: { mode: given.approval_mode ?? "smart" },
      ...(given.approval && { approveTool: (/** @type {any} */ call) => world.approve(given.approval, call) }),
      ...(given.budget && { budget: given.budget }), ...(given.stream_options && { streamOptions: given.stream_options }),
    }),
  });
}

// ---- questions

/** Lets the person answer what an event asks. @param {World} world @param {any} event */
export function answer(world, event) {
  const { type, id, callId } = event;
  if (type === "tool_approval_requested") plan(world, { id, kind: "tool", callId });
  else if (type === "question_asked") plan(world, event);
  else if (type === "run_resumed") for (const question of [...event.pendingApprovals, ...listOf(event.pendingQuestions)]) plan(world, question);
}

/** @param {World} world @param {any} question */
function plan(world, { id, kind, callId }) {
  const answers = listOf(world.scenario.answers);
  if (world.asked.has(id)) return;
  world.asked.add(id);
  const at = answers.findIndex((given, n) => !world.planned.has(n) && given.kind === kind && (given.call == null || given.call === callId));
  if (at < 0) return;
  world.planned.add(at);
  const life = world.lives;
  world.clock.at(world.clock.elapsed + (answers[at].after_ms ?? 0), () => {
    if (world.lives !== life) return;
    world.answered.add(at);
    world.agent.resolve(id, answers[at].answer);
  });
}

// ---- the end of a process

/** Puts the run into a checkpoint, as text, and ends the process. @param {World} world @param {any} run */
export function endLife(world, run) {
  const saved = JSON.stringify(run.checkpoint());
  world.lives++;
  world.hands = undefined;
  world.agent[Symbol.dispose]();
  // Nobody has answered what the old process has not heard.
  world.planned = new Set(world.answered);
  world.asked.clear();
  return saved;
}

// ---- hooks and layers

/** @param {(entry: any) => void} note */
function hooks(note) {
  return {
    beforeInference: (/** @type {any} */ { turnIndex, attempt, model, messages }) => note({ hook: "before_inference", turn: turnIndex, attempt, model, messages: messages.length }),
    afterInference: (/** @type {any} */ { turnIndex, attempt, model, message }) =>
      note({ hook: "after_inference", turn: turnIndex, attempt, model, text: textOf(message), stop_reason: message.stopReason }),
    beforeToolExecution: (/** @type {any} */ { call }) => note({ hook: "before_tool", id: call.callId, arguments: call.arguments }),
    afterToolExecution: (/** @type {any} */ { call, result }) =>
      note({ hook: "after_tool", id: call.callId, text: textOf(result), is_error: result.isError, cause: result.cause ?? null }),
    onError: (/** @type {any} */ { error }) => note({ hook: "on_error", code: error.code }),
  };
}

/** @param {any} message */
const textOf = ({ content }) => content.filter((/** @type {any} */ { type }) => type === "text").map((/** @type {any} */ { text }) => text).join("");

/** @param {World} world */
function layers(world) {
  const note = (/** @type {any} */ entry) => world.log.around.push(entry);
  return {
    wrapTool: async (/** @type {any} */ { callId, path }, /** @type {() => Promise<any>} */ next) => {
      note({ tool: callId, path, edge: "in" });
      const output = next();
      // A tool that fails has come to its end too.
      await output.then(() => note({ tool: callId, path, edge: "out" }), () => note({ tool: callId, path, edge: "out" }));
      return output;
    },
    wrapModel: (/** @type {any} */ { model, path, turnIndex, attempt, messages }, /** @type {() => Promise<any>} */ next) => {
      note({ model, path, turn: turnIndex, attempt, messages: messages.length });
      return next();
    },
  };
}
