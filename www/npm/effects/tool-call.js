// @ts-check
// Executes a tool call.

import { isLong, stateText, updateText } from "../messages/tool-texts.js";
import { limitError, quiet, textOf, toResult } from "../core.js";
import { setParent } from "../tools/subagent.js";
import { CANCELLED } from "../tools/tool.js";
import { keepShape } from "../v8.js";
import { holdSlot, MESSAGES, SIGNAL, Slot } from "./slot.js";

/** @import { JsonValue, ToolContext as PublicContext, ToolQuestionInput } from "../index.js" */
/** @import { Driver } from "../run/driver.js" */
/** @typedef {{ kind: "tool", name: string, callId: string }} ToolEffect */

/**
 * Runs one call; the engine always gets a result. Starts once all calls that start with it
 * have been announced.
 * @param {Driver} run @param {number} slot @param {ToolEffect} effect @param {Slot} state
 */
export async function executeTool(run, slot, effect, state) {
  const { core } = run;
  const { tools } = core.settings;
  const { name, callId } = effect;
  const taken = tools.takeChecked(callId);
  const prepared = taken?.prepared;
  await undefined;
  if (state.aborted) return;
  try {
    const checked = taken?.checked instanceof Promise ? await taken.checked : taken?.checked;
    if (!prepared || !checked) return { failed: `the arguments of \`${name}\` are not there any more` };
    if ("error" in checked) return { invalid: limitError(checked.error) };
    const { definition, self } = prepared;
    const context = /** @type {PublicContext} */ (/** @type {unknown} */ (new ToolContext(run, slot, effect, state)));
    const execute = () => definition.execute?.call(self, checked.value, context);
    const output = await (run.around.wrapTool || run.around.within ? wrapped(run, state, effect, checked.value, execute, context) : execute());
    if (output === CANCELLED) return { cancelled: true };
    const result = typeof output === "string" ? output : toResult(output);
    const limit = definition.maxResultBytes;
    return isLong(result, limit) ? (await import("../messages/limits.js")).limitResult(result, limit) : result;
  } catch (error) {
    // The error of any other tool is not an error of the run.
    if (prepared?.definition.fatal) core.thrown.note(error);
    return { failed: limitError(textOf(error)) };
  }
}

/** What wraps tools, once it is loaded. @type {typeof import("./around.js") | undefined} */
let around;

/** @param {Driver} run @param {Slot} state @param {ToolEffect} effect @param {unknown} args @param {() => unknown} execute @param {object} context @returns {unknown} */
function wrapped(run, state, { callId, name }, args, execute, context) {
  const wrap = (/** @type {typeof import("./around.js")} */ module) => (around = module).aroundTool(run, state, { callId, toolName: name, arguments: args }, execute, context);
  return around ? wrap(around) : import("./around.js").then(wrap);
}

/**
 * What a tool receives besides its arguments. `signal` and `messages` are properties that are made when they are
 * first read.
 */
class ToolContext {
  /** @param {Driver} run @param {number} slot @param {ToolEffect} effect @param {Slot} state */
  constructor(run, slot, { name, callId }, state) {
    const { core, engineRun } = run;
    holdSlot(this, state);
    this.callId = callId;
    this.toolName = name;
    this.runId = run.runId;
    this.sessionId = core.session.id;
    this.turnIndex = run.fold.turn?.turnIndex;
    this.metadata = run.metadata;
    Object.defineProperty(this, "signal", SIGNAL);
    // The same under the AI SDK's names.
    this.toolCallId = callId;
    Object.defineProperty(this, "abortSignal", SIGNAL);
    state.log = run.fold.messages;
    Object.defineProperty(this, "messages", MESSAGES);
    // Belongs to this call: it has no effect after the call ends.
    this.state = {
      get: (/** @type {string} */ key) => core.session.state.get(key),
      set: (/** @type {string} */ key, /** @type {JsonValue} */ value) => engineRun.setState(slot, key, stateText(value)),
      delete: (/** @type {string} */ key) => engineRun.setState(slot, key, undefined),
    };
    setParent(this, { run, slot, callId });
    this.update = (/** @type {unknown} */ partial) => {
      if (!state.aborted) engineRun.update(slot, updateText(partial));
    };
    this.ask = (/** @type {ToolQuestionInput} */ question) => {
      quiet(question);
      return import("../run/asks.js").then(({ ask }) => ask(run, slot, state, question));
    };
  }
}

const noRun = /** @type {Driver} */ (/** @type {unknown} */ ({ core: { session: {}, registration: {} }, fold: {} }));
keepShape(new ToolContext(noRun, 0, { kind: "tool", name: "", callId: "" }, new Slot()));
