// @ts-check
// The contents of a scenario; the format is described in tests/data/oracle/README.md. An unknown word is a
// need that cannot be met: such a scenario is not played.

/** @typedef {(value: any) => string | undefined} Check What a value needs that nobody has. */

/** @type {Check} */
const anything = () => undefined;

/** An object with some of these members. @param {string} what @param {Record<string, Check>} members @returns {Check} */
const record = (what, members) => (value) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return `${what} that is ${JSON.stringify(value)}`;
  for (const [key, member] of Object.entries(value)) {
    if (!Object.hasOwn(members, key)) return `\`${key}\` of ${what}`;
    // Null means absent.
    const need = member === null ? undefined : members[key](member);
    if (need !== undefined) return need;
  }
};

/** One of these words, or an object with exactly one of these members. @param {string} what @param {string[]} words @param {Record<string, Check>} [members] @returns {Check} */
const choice = (what, words, members = {}) => (value) => {
  if (words.includes(value)) return;
  const keys = typeof value === "object" && value !== null ? Object.keys(value) : [];
  if (keys.length !== 1 || !Object.hasOwn(members, keys[0])) return `${what} ${JSON.stringify(keys.length === 1 ? keys[0] : value)}`;
  return members[keys[0]](value[keys[0]]);
};

/** @param {Check} item @returns {Check} */
const list = (item) => (values) => values.map(item).find((/** @type {any} */ need) => need !== undefined);

/** @param {Check} item @returns {Check} */
const map = (item) => (values) => list(item)(Object.values(values));

const trigger = choice("the trigger", ["before_start", "after_sleep"], {
  model_call: record("the trigger `model_call`", { n: anything, before_item: anything }),
  tool: record("the trigger `tool`", { id: anything, when: choice("the moment", ["start", "end"]) }),
  approval: anything, transform: anything, ms: anything,
});

const call = record("a tool call", { id: anything, name: anything, arguments: anything, arguments_chunks: anything, incomplete: anything });

const errorKinds = ["throttled", "network", "overflow", "auth", "content_filtered", "aborted", "none"];

const modelCall = record("a model call", {
  events: list(choice("the event", [], { text: anything, thinking: anything, tool_call: call, raw: anything, delay_ms: anything })),
  stop: choice("the stop reason", ["stop", "tool_use", "length", "content_filter", "refusal"]),
  usage: record("usage", { input: anything, output: anything, cache_read: anything, cache_write: anything }),
  error: record("an error", { kind: choice("the error kind", errorKinds), message: anything }),
  no_terminal: anything,
});

const behavior = record("a behaviour", {
  updates: anything, update_gap_ms: anything, delay_ms: anything, set_state: anything, forever: anything,
  until_cancelled: anything, panic: anything, transfer_to: anything, error: anything, echo: anything, result: anything, ask: anything,
});

/** @type {Check} */
const decision = (value) =>
  choice("the decision", ["approve", "reject", "forever"], {
    approve_with: anything, panic: anything, panic_sync: anything,
    after: record("the decision `after`", { ms: anything, then: decision }),
  })(value);

const transform = choice("the transform", ["noop"], {
  keep_last: record("the transform `keep_last`", { n: anything, only_on_overflow: anything, form: choice("the form", ["view", "messages", "report"]) }),
  reduce: list(choice("the reducer", [], { prune_tool_results: anything, keep_last: anything, sliding_window: record("the reducer `sliding_window`", { tokens: anything, overflow_tokens: anything, anchor: anything }) })),
  prepend: anything,
  sliding_window: record("the transform `sliding_window`", { normal_budget: anything, overflow_budget: anything, anchor: anything }),
});

const queued = record("a queued message", { text: anything, at: trigger, when: choice("the moment", ["now", "immediate", "after_tool", "after_batch"]) });

const queueMode = choice("the queue mode", ["all", "one_at_a_time"]);

const approvalMode = choice("the approval mode", ["smart", "enabled", "bypassed"]);

const approval = record("approval", { default: decision, by_call: map(decision) });

const turnChoice = record("what holds for a turn", { stream_options: anything, active_tools: anything, system_prompt: anything, model: anything, newest: anything, budget: anything });

/** @type {Check} */
const tool = (value) =>
  record("a tool", {
    name: anything, schema: anything, requires_approval: anything, timeout_ms: anything, idempotent: anything, behavior, by_call: map(behavior),
    agent: record("an agent", {
      model: list(modelCall), by_call: map(list(modelCall)), tools: list(tool), own_approvals: anything, approval, approval_mode: approvalMode, budget: anything, stream_options: anything,
    }),
  })(value);

const scenario = record("a scenario", {
  name: anything, format: choice("the format", /** @type {any} */ ([1, 2])), area: anything, why: anything, expect_note: anything, divergences: anything,
  driver: choice("the driver", ["loop", "agent"]),
  system_prompt: anything,
  mode: choice("the mode", ["prompt", "continue"]),
  initial_messages: list(
    record("a message", {
      role: choice("the role", ["user", "assistant", "tool_result", "custom"]),
      text: anything, tool_calls: list(call), tool_call_id: anything, is_error: anything,
    }),
  ),
  prompt: anything,
  model: list(modelCall),
  fallback: list(list(modelCall)),
  tools: list(tool),
  steering: list(queued), follow_up: list(queued),
  approval,
  answers: list(record("an answer", { kind: choice("the kind", ["tool", "budget", "elicitation"]), call: anything, after_ms: anything, answer: anything })),
  sleep_ms: anything,
  policies: list(
    record("a policy", {
      slot: choice("the policy slot", ["pre_turn", "pre_dispatch", "post_turn", "post_loop"]),
      name: anything, on_calls: anything, tools: anything,
      verdict: choice("the verdict", ["continue"], {
        stop: anything, inject: anything, skip: anything, set_arguments: anything, panic: anything,
        set_arguments_then_panic: anything, replace_text: anything, replace_dropping_calls: anything,
      }),
    }),
  ),
  transform, async_transform: transform,
  abort: record("abort", { at: trigger }),
  then: list(choice("the step", ["continue", "reset", "clear_queues"], { run_options: turnChoice, prompt: anything, steer: anything, follow_up: anything })),
  panicking_subscriber: anything,
  structured_output: anything,
  options: record("the options", {
    retry: record("the retry option", {
      max_attempts: anything, base_delay_ms: anything, multiplier: anything, max_delay_ms: anything,
      only: list(choice("the error kind", [...errorKinds, "stream"])),
    }),
    steering_mode: queueMode, follow_up_mode: queueMode,
    tool_execution: choice("the tool execution", ["concurrent", "sequential"], { priority: anything, groups: anything }),
    approval_mode: approvalMode,
    dynamic_system_prompts: anything, api_keys: anything, model_supports_tools: anything, agent_name: anything,
    transfer_chain: anything, transfer_max_depth: anything, session_state: anything, metrics: anything,
    cache: record("the cache option", { ttl_s: anything, min_tokens: anything, intervals: anything }),
    structured_output_max_retries: anything, budget: anything, price: anything, estimates: anything, steering_when: anything,
    stream_options: anything, run_options: turnChoice, prepare_turn: list((value) => (value === null ? undefined : turnChoice(value))),
    hooks: anything, layers: anything, max_depth: anything, max_turns: anything, tool_timeout_ms: anything,
  }),
});

/** Returns what a scenario needs that cannot be played, or nothing. @type {Check} */
export const unmetNeed = scenario;

/** @param {any} oneOrMany */
export const listOf = (oneOrMany) => (oneOrMany === undefined || oneOrMany === null ? [] : [oneOrMany].flat());
