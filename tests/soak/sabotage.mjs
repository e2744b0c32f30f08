// @ts-check
// Doubles that do wrong on purpose, to show that the ledger sees it: `--sabotage NAME`. Each spoils what a fault of the
// package would spoil, from outside.

/** @type {any[]} */
const leaked = [];

/** Reads a body that breaks off as if it had ended well: what a careless reader would do. @param {Response} response */
function forgiving(response) {
  const reader = /** @type {any} */ (response.body).getReader();
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      if (!done) return controller.enqueue(value);
      controller.enqueue(new TextEncoder().encode('\n\ndata: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'));
      controller.close();
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

/** @type {Record<string, (life: import("./agents.mjs").Life, options: any) => any>} */
const KINDS = {
  /** The message before the last is gone from the history. */
  "lose-message": (_, options) => (options.tools ? { ...options, transformContext: (/** @type {any[]} */ messages) => (messages.length > 4 ? { messages: messages.filter((_, i) => i !== 2) } : undefined) } : options),
  "double-run": (_, options) => (options.tools ? { ...options, tools: options.tools.map((/** @type {any} */ tool) => ({ ...tool, execute: async (/** @type {any} */ args, /** @type {any} */ context) => (await tool.execute(args, context), tool.execute(args, context)) })) } : options),
  /** Says of every tool that it may run again after a restore. */
  rerun: (_, options) => (options.tools ? { ...options, tools: options.tools.map((/** @type {any} */ tool) => ({ ...tool, idempotent: true })) } : options),
  "cut-call": (_, options) => (options.tools ? options : { ...options, fetch: async (/** @type {any} */ url, /** @type {any} */ init) => forgiving(await fetch(url, init)) }),
  "wrong-end": (_, options) => (options.tools ? { ...options, maxTurns: 1 } : options),
  leak: (life, options) => (leaked.push(life, "x".repeat(2000) + life.id), options),
  rejection: (life, options) => (options.tools && life.id.endsWith("7") && void Promise.reject(new Error("nobody hears this")), options),
  timer: (life, options) => (options.tools && life.id.endsWith("7") && setInterval(() => {}, 60_000), options),
  hang: (life, options) => (options.tools && life.id.endsWith("7") ? { ...options, hooks: { beforeInference: () => new Promise(() => {}) } } : options),
};

export const SABOTAGE = Object.keys(KINDS);

/** The options of an agent (those with `tools`) or a model, as the sabotage of this host has it. @param {import("./agents.mjs").Life} life @param {any} options */
export const sabotaged = (life, options) => KINDS[life.host.sabotage ?? ""]?.(life, options) ?? options;
