// @ts-check
// The functions among an agent's options. Each notes what it was told, and does one of a few things.

/** @import { World } from "./world.mjs" */

/** Puts the functions of the plan into the options. @param {World} world @param {any} options */
export function addFunctions(world, options) {
  for (const [name, kind] of Object.entries(world.plan.functions)) TABLE[name]?.(world, options, kind);
}

const throws = (/** @type {string} */ message) => {
  throw new Error(message);
};
const text = (/** @type {string} */ words) => ({ role: "user", content: [{ type: "text", text: words }], timestamp: 3 });

/** What of these is not there by itself. @param {any} options @param {string} name @param {any} more */
const within = (options, name, more) => (options[name] = { ...(typeof options[name] === "object" && options[name]), ...more });

/** @type {{ [name: string]: (world: World, options: any, kind: number) => void }} */
const TABLE = {
  approveTool(world, options, kind) {
    options.approveTool = (/** @type {any} */ request) => {
      world.say("approveTool", request);
      return [() => "approve", () => "reject", () => ({ action: "reject", reason: "no" }), async () => (await world.clock.sleep(30), "approve"), () => throws("nobody is here"), () => ({ action: "result", content: "made up" }), () => ({ action: "approve", arguments: { n: 7 } })][kind]?.();
    };
  },
  convertToLlm(world, options, kind) {
    options.convertToLlm = (/** @type {any} */ message) => (message.role !== "custom" ? message : [() => null, () => text(`note: ${JSON.stringify(message.data)}`), () => throws("cannot convert")][kind]?.());
  },
  transformContext(world, options, kind) {
    const { slidingWindow, keepLast, pruneToolResults } = world.package;
    const own = (/** @type {any[]} */ messages, /** @type {boolean} */ overflow, /** @type {any} */ info) => {
      world.say("transformContext", messages.length, overflow, info);
      return [() => undefined, () => messages.slice(-2), () => (messages.length > 4 ? { messages: messages.slice(-3), report: { text: "cut" } } : undefined)][kind]?.();
    };
    options.transformContext = [own, own, own, () => slidingWindow({ tokens: 30 }), () => keepLast(1), () => pruneToolResults({ keepLast: 1 })][kind];
    if (kind > 2) options.transformContext = options.transformContext();
  },
  asyncTransformContext(world, options, kind) {
    options.asyncTransformContext = async (/** @type {any[]} */ messages, /** @type {boolean} */ overflow, /** @type {AbortSignal} */ signal) => {
      world.say("asyncTransformContext", messages.length, overflow);
      if (kind > 0) await world.clock.sleep(4, signal);
      return [() => undefined, () => [...messages, text("by the way")], () => throws("no context today")][kind]?.();
    };
  },
  compaction(world, options, kind) {
    const engine = async (/** @type {any[]} */ messages, /** @type {any} */ model) => {
      world.say("compaction", messages.length, model.id);
      return [{ messages: messages.slice(-1) }, { messages: [text("in short"), ...messages.slice(-1)], report: { text: "in short" } }, { messages }][kind];
    };
    options.compaction = { engine, maxRecoveriesPerTurn: 1 + (kind % 2) };
  },
  getApiKey(world, options, kind) {
    options.getApiKey = async (/** @type {string} */ provider, /** @type {any} */ run) => {
      world.say("getApiKey", provider, run);
      return [() => undefined, () => "key-2", () => throws("the vault is shut")][kind]?.();
    };
  },
  getSteeringMessages(world, options, kind) {
    let asked = 0;
    options.getSteeringMessages = (/** @type {any} */ run) => (world.say("getSteeringMessages", run), [() => (++asked === 2 ? ["Read this"] : []), () => (++asked === 3 ? ["Read this"] : []), () => throws("no letters")][kind]?.());
  },
  getFollowUpMessages(world, options, kind) {
    let asked = 0;
    options.getFollowUpMessages = async (/** @type {any} */ run) => (world.say("getFollowUpMessages", run), [() => [], () => (asked++ < 1 ? ["One more"] : []), () => throws("no letters")][kind]?.());
  },
  prepareTurn(world, options, kind) {
    options.prepareTurn = async (/** @type {any} */ turn) => {
      world.say("prepareTurn", turn);
      return [undefined, { activeTools: turn.turnIndex === 0 ? ["look"] : [] }, { systemPrompt: `Turn ${turn.turnIndex}` }, { messages: turn.messages.slice(-3), streamOptions: { temperature: 0 } }, { odd: true }][kind];
    };
  },
  retry(world, options, kind) {
    options.retry = (/** @type {any} */ error, /** @type {number} */ attempt, /** @type {any} */ run) => (world.say("retry", error, attempt, run), attempt < 3 && (kind === 0 ? 7 : error.retryable && 1000));
  },
  dynamicSystemPrompt(world, options, kind) {
    options.dynamicSystemPrompt = (/** @type {any} */ run) => (kind === 1 ? throws("no prompt") : `Turn ${run.turnIndex}`);
  },
  hooks(world, options, kind) {
    const names = ["beforeInference", "afterInference", "beforeToolExecution", "afterToolExecution", "onError"];
    options.hooks = Object.fromEntries(names.map((name, at) => [name, async (/** @type {any} */ context) => {
      world.say(`hook ${name}`, context);
      if (kind > 0 && at % 2) await world.clock.sleep(3);
      if (kind === 2 && at === 3) throws("the hook broke");
    }]));
  },
  preTurn(world, options, kind) {
    within(options, "policies", { preTurn: [(/** @type {any} */ context) => (world.say("preTurn", context), [undefined, context.turnIndex > 1 ? { stop: "enough turns" } : undefined, context.turnIndex === 1 ? { inject: ["Be careful"] } : "continue"][kind])] });
  },
  preDispatch(world, options, kind) {
    within(options, "policies", { preDispatch: [(/** @type {any} */ call) => (world.say("preDispatch", call), kind === 3 ? throws("the policy broke") : [call.toolName === "look" ? { skip: "not today" } : undefined, { arguments: { n: 5 } }, call.toolName === "pay" ? { stop: "no money" } : undefined][kind])] });
  },
  postTurn(world, options, kind) {
    within(options, "policies", { postTurn: [(/** @type {any} */ context) => (world.say("postTurn", context), [undefined, context.turnIndex === 0 ? { inject: ["And then?"] } : undefined, { stop: "after one" }][kind])] });
  },
  postLoop(world, options, kind) {
    let asked = 0;
    within(options, "policies", { postLoop: [(/** @type {any} */ context) => (world.say("postLoop", context), [undefined, asked++ === 0 && { inject: ["Sure?"] }, { stop: "sure" }][kind] || undefined)] });
  },
  wrapTool(world, options, kind) {
    options.wrapTool = async (/** @type {any} */ call, /** @type {any} */ next) => {
      world.say("wrapTool", call);
      const given = kind === 2 ? "instead" : await next(kind === 1 ? { turnIndex: 99 } : undefined);
      world.say("wrapped", given);
      return given;
    };
  },
  wrapModel(world, options, kind) {
    options.wrapModel = async (/** @type {any} */ call, /** @type {any} */ next) => {
      world.say("wrapModel", call);
      if (kind === 1) await world.clock.sleep(2);
      world.say("wrapped", await next());
    };
  },
  toolExecution(world, options, kind) {
    options.toolExecution = (/** @type {any[]} */ calls, /** @type {any} */ run) => (world.say("toolExecution", calls, run), kind === 0 ? calls.map((_, i) => [i]).reverse() : [calls.map((_, i) => i), [0]]);
  },
  resultTexts(world, options, kind) {
    const own = (/** @type {any} */ call, /** @type {string} */ detail) => (kind === 1 ? throws("no words") : `${call.toolName}, in other words: ${detail}`);
    options.resultTexts = Object.fromEntries(["unknown_tool", "invalid_arguments", "rejected", "steering", "aborted", "timeout", "threw", "skipped"].map((cause) => [cause, own]));
  },
};
