// @ts-check
// The host's synchronous rules, called from inside a step of the engine: JSON in, JSON out. The Rust half is
// engine/src/rules.rs. Nothing here may wait, or call the engine except to post commands.

import { kindOf, messagesOf, misuse, textOf, toMessage } from "./shared.js";

/**
 * Calls one rule.
 * @param {any} core @param {string} name @param {string} json
 * @returns {string | undefined}
 */
export function callRule(core, name, json) {
  return callHost(core, () => {
    const answer = RULES[name](core, JSON.parse(json));
    return answer === undefined ? undefined : JSON.stringify(answer);
  });
}

/** @type {Record<string, (core: any, input: any) => any>} */
const RULES = {
  convertToLlm(core, message) {
    const answer = handled(core.options.convertToLlm(message));
    return answer === message ? true : answer ?? null;
  },

  transformContext(core, { overflow, cached, messages }) {
    const { log } = core.activeRun;
    const given = messages ?? log.slice();
    const { length } = given;
    return transformAnswer(handled(core.options.transformContext(given, overflow, { cachedMessages: cached })), log, length);
  },

  preTurn: (core, context) => runPolicies(core, core.options.policies.preTurn, context),
  postLoop: (core, context) => runPolicies(core, core.options.policies.postLoop, context),

  postTurn(core, { known, rest, ...turn }) {
    const { log } = core.activeRun;
    /** @type {any[] | undefined} */
    let messages;
    Object.defineProperty(turn, "messages", { enumerable: true, get: () => (messages ??= [...log.slice(0, known), ...rest]) });
    const isCall = (/** @type {any} */ block) => block.type === "tool_call";
    const calls = turn.message.content.filter(isCall).map(callText);
    const verdict = runPolicies(core, core.options.policies.postTurn, turn);
    // Calls of this turn are passed by their index: the engine has them as the model wrote them.
    const toIndex = (/** @type {any} */ block) => (isCall(block) && calls.includes(callText(block)) ? calls.indexOf(callText(block)) : block);
    const inject = verdict?.inject?.map((message) => (message.role === "assistant" ? { ...message, content: message.content.map(toIndex) } : message));
    return inject ? { inject } : verdict;
  },

  preDispatch(core, { policy, ...call }) {
    const { stop, skip, inject, arguments: args } = callPolicy(core, () => checkVerdict(core.options.policies.preDispatch[policy](call))) ?? {};
    if (stop !== undefined) return { stop: String(stop) };
    if (skip !== undefined) return { skip: String(skip) };
    return { ...(args && { arguments: args }), inject };
  },

  steering: (core) => fromHostQueue(core, "getSteeringMessages"),
  followUp: (core) => fromHostQueue(core, "getFollowUpMessages"),

  dynamicSystemPrompt(core) {
    const text = handled(core.options.dynamicSystemPrompt()) ?? "";
    if (typeof text !== "string") throw misuse(`it must give a text at once, got ${kindOf(text)}`);
    return text;
  },

  resultTexts: (core, { cause, call, detail }) => handled(core.options.resultTexts[cause]?.(call, detail)),

  retry(core, { error, attempt }) {
    const delay = handled(core.options.retry(error, attempt));
    return typeof delay === "number" ? Math.max(0, Math.round(delay)) : false;
  },

  toolExecution: (core, calls) => handled(core.options.toolExecution(calls)),

  requiresApproval(core, { tool, arguments: args }) {
    const { definition, self, check } = core.toolOf(tool);
    // The rule sees what the tool will get, with the schema's defaults and transforms. If the schema is
    // asynchronous, that is not known yet.
    const checked = check(args);
    if (handled(checked) instanceof Promise) return;
    // The AI SDK's name is needsApproval.
    return handled((definition.requiresApproval ?? definition.needsApproval).call(self, "error" in checked ? args : checked.value)) !== false;
  },
};

/**
 * Validates the arguments of a call, and keeps the schema's output until the tool
 * starts. Returns what is wrong.
 * @param {any} core @param {string} callId @param {string} toolName @param {string} json
 * @returns {string | undefined}
 */
export function validate(core, callId, toolName, json) {
  return callHost(core, () => {
    const args = JSON.parse(json);
    if (toolName === OUTPUT_TOOL && !core.tools.has(toolName)) return checkOutput(core, args);
    const answer = core.toolOf(toolName).check(args);
    if ("error" in answer) return answer.error;
    // An asynchronous schema is awaited when the tool starts.
    core.checkedArguments.set(callId, handled(answer));
  });
}

/**
 * Runs host code: an exception becomes a text, and its object is kept.
 * @template T @param {any} core @param {() => T} work
 */
function callHost(core, work) {
  try {
    return work();
  } catch (error) {
    core.noteThrown(error);
    throw textOf(error);
  }
}

/**
 * Marks a promise as handled: it may reject while nobody waits for it, because the rule's answer must not be
 * one, or because it is awaited only later.
 * @template T @param {T} answer @returns {T}
 */
export function handled(answer) {
  const promise = /** @type {any} */ (answer);
  if (typeof promise?.then === "function") promise.then(undefined, () => {});
  return answer;
}

/** The engine's own tool for structured output; see src/machine/structured.rs. */
const OUTPUT_TOOL = "__structured_output";

/** @param {any} core @param {any} value */
function checkOutput(core, value) {
  const answer = core.output.check(value);
  if (handled(answer) instanceof Promise) {
    return "the schema of `output` must validate at once, without a promise";
  }
  if ("error" in answer) return answer.error;
  core.answer = answer.value;
}

/**
 * Returns the value of a structured answer, as the schema returned it. A checkpoint keeps only its JSON, so in a
 * restored run it is checked again.
 * @param {any} core @param {string} json
 */
export function outputOf(core, json) {
  if (core.answer !== undefined) return core.answer;
  const value = JSON.parse(json);
  try {
    const answer = handled(core.output?.check(value));
    return answer && "value" in answer ? answer.value : value;
  } catch {
    return value;
  }
}

/**
 * Converts the answer of a host queue. A promise is stored, and its number is passed to the
 * effect that waits for it.
 * @param {any} core @param {string} name
 */
function fromHostQueue(core, name) {
  try {
    const answer = core.options[name]();
    if (typeof answer?.then !== "function") return messagesOf(answer);
    const number = core.nextPromise++;
    core.queueAnswers.set(number, Promise.resolve(answer).then(messagesOf).catch((error) => noMessages(name, error)));
    return number;
  } catch (error) {
    return noMessages(name, error);
  }
}

/** What a host queue that failed counts as. @param {string} name @param {unknown} error */
function noMessages(name, error) {
  console.error(`turnwheel: \`${name}\` failed and counts as no messages`, error);
  return [];
}

/**
 * Runs the policies of a slot in order. The first stop wins, and drops the injections before it; a
 * policy that throws has no say.
 * @param {any} core @param {any[]} policies @param {any} context
 * @returns {{ stop?: string, inject?: any[] } | undefined}
 */
function runPolicies(core, policies, context) {
  const inject = [];
  for (const policy of policies) {
    const verdict = callPolicy(core, () => checkVerdict(policy(context)));
    if (verdict?.stop !== undefined) return { stop: String(verdict.stop) };
    inject.push(...(verdict?.inject ?? []));
  }
  return inject.length > 0 ? { inject } : undefined;
}

/** A call as text, for comparison. @param {any} call */
function callText({ callId, toolName, arguments: args }) {
  return JSON.stringify([callId, toolName, args]);
}

/**
 * Checks a verdict. An injected value that is not a message is an error of this policy only.
 * @param {any} verdict
 */
function checkVerdict(verdict) {
  if (typeof handled(verdict)?.then === "function") {
    // An error is better than a stop that is never obeyed.
    throw misuse("a policy must decide at once, it gave a promise; only hooks are waited for");
  }
  const { stop, skip, inject, arguments: args } = verdict ?? {};
  return { stop, skip, arguments: args, inject: inject?.map((/** @type {any} */ message) => (message?.role === "assistant" ? message : toMessage(message, "inject"))) };
}

/** @param {any} core @param {() => any} call */
function callPolicy(core, call) {
  try {
    return call();
  } catch (error) {
    console.error("turnwheel: a policy threw and counts as `continue`", error);
    return undefined;
  }
}

/**
 * Converts a transformer's answer. Messages that the engine has are referred to by index ranges, [from, to].
 * @param {any} answer @param {any[]} history @param {number} [length] of the list that the transformer received
 */
export function transformAnswer(answer, history, length = history.length) {
  if (answer === undefined || answer === null) return null;
  if (typeof answer !== "object" || answer instanceof Promise) {
    throw misuse("a context transformer must give nothing, an array of messages, or { messages, report? }");
  }
  if (Array.isArray(answer)) {
    const view = refs(answer, history);
    const isWhole = answer.length === history.length && view.length === 1 && Array.isArray(view[0]);
    return isWhole ? null : { view };
  }
  if (!Array.isArray(answer.messages)) throw misuse("a context transformer that gives an object must give { messages: [...] }");
  const { report } = answer;
  return { replace: refs(answer.messages, history), report: report ? { text: "", droppedCount: Math.max(0, length - answer.messages.length), ...report } : null };
}

/** @param {any[]} messages @param {any[]} history */
function refs(messages, history) {
  const found = [];
  /** @type {Map<any, number> | undefined} */
  let indexes;
  let range = [0, 0];
  for (const message of messages) {
    const next = range[1];
    // Usually the messages are in order, with a gap at times. If they are shuffled or new, a map is built.
    let at = indexes ? indexes.get(message) ?? -1 : history[next] === message ? next : history.indexOf(message, next);
    if (at < 0 && !indexes) {
      indexes = new Map(history.map((known, index) => [known, index]));
      at = indexes.get(message) ?? -1;
    }
    // The engine would read an array as a range.
    if (Array.isArray(message)) throw misuse("a context transformer must give messages, got an array among them");
    if (at < 0) found.push(message);
    else if (at === next && found.at(-1) === range) range[1]++;
    else found.push((range = [at, at + 1]));
  }
  return found;
}
