/**
 * @experimental A minor version may change this entry.
 * @module
 */

/**
 * Runs inside durable engines: hosts for `new Agent({ host })`, each made from an engine that is passed in. Nothing here imports
 * one. For Cloudflare Workflows, see `turnwheel/cloudflare`.
 */
import type { AgentHost, ApprovalRequest, JsonValue, Model, StepEffect, ToolDefinition } from "./index.js";

/** A promise of Restate's own, as `ctx.run` returns it. */
export interface RestatePromiseLike<T> extends PromiseLike<T> {
  map<U>(mapper: (value?: T, failure?: any) => U): RestatePromiseLike<U>;
}

/** What is used of the context of a Restate handler; `ctx.promise` is that of a workflow. */
export interface RestateContext {
  run(name: string, action: () => Promise<any>): RestatePromiseLike<any>;
  sleep(ms: number): RestatePromiseLike<any>;
  promise(name: string): { get(): RestatePromiseLike<any> };
}

/** What is used of `@restatedev/restate-sdk`. */
export interface RestateTools {
  RestatePromise: { race(promises: RestatePromiseLike<any>[]): PromiseLike<any> };
}

/**
 * A host for a handler of a Restate workflow. Restate allows one await at a time, so all steps go through one loop; the handler
 * must not await anything else of `ctx` while a run is in progress. A person decides by resolving the durable promise that has
 * the name of the question, such as `t3/approve/0`. A step stores at most 32 MB.
 *
 * @example
 * const handler = async (ctx: RestateContext, prompt: string) => {
 *   const agent = new Agent({ model, tools, host: restate(ctx, { RestatePromise }) });
 *   return (await agent.prompt(prompt).orThrow()).text;
 * };
 */
export function restate(ctx: RestateContext, tools: RestateTools): AgentHost;

/** What is used of the class `DBOS` of `@dbos-inc/dbos-sdk`. */
export interface DBOSLike {
  runStep<T>(work: () => Promise<T>, options: { name: string }): Promise<T>;
  sleep(ms: number): Promise<void>;
  recv<T>(topic: string, timeoutSeconds?: number): Promise<T | null>;
}

/**
 * A host for a workflow of DBOS. A person decides by `DBOS.send(workflowId, decision, name)`, where the topic is the name of the
 * question, such as `t3/approve/0`. After 30 days without a decision the call is rejected.
 *
 * @example
 * const answer = DBOS.registerWorkflow(async (prompt: string) => {
 *   const agent = new Agent({ model, tools, host: dbos(DBOS) });
 *   return (await agent.prompt(prompt).orThrow()).text;
 * }, { name: "answer" });
 */
export function dbos(DBOS: DBOSLike): AgentHost;

/** What a workflow gives to {@link byData}. */
export interface ByDataOptions {
  /** Carries out an effect in a step or an activity of the engine, by {@link perform}. Returns what that returns. */
  run(effect: Extract<StepEffect, { kind: "model" | "tool" }>, name: string): Promise<any>;
  /** The engine's own sleep, for delays between attempts. Default: `setTimeout`, which some workflows do not have. */
  sleep?(ms: number, name?: string): Promise<void>;
  /** Waits for a decision about a call: a signal or a hook of the engine. */
  wait?(name: string, request: ApprovalRequest & { kind?: "tool" | "tool_call" }): Promise<JsonValue>;
}

/**
 * A host for engines that take no functions, such as Temporal and Vercel Workflow: calls of models and tools are sent as plain
 * JSON, and everything else runs in the workflow again. The agent gets {@link elsewhere}, and a step the model itself.
 *
 * @example
 * async function step(effect: StepEffect) {
 *   "use step";
 *   return perform(effect, { model, tools, attempt: getStepMetadata().attempt });
 * }
 * const agent = new Agent({ model: elsewhere(model), tools, host: byData({ run: step }) });
 */
export function byData(options: ByDataOptions): AgentHost;

/**
 * The model of an agent whose host is made by {@link byData}: it has the name, and is never called. Nothing of it but its name goes
 * into the workflow, so that its key stays where the steps run.
 *
 * @example
 * const agent = new Agent({ model: elsewhere({ id: "gpt-5-mini", provider: "openai" }), host: byData({ run: step }) });
 */
export function elsewhere(model: { id: string; provider?: string }, options?: { contextWindow?: number }): Model;

/** What {@link perform} may need. */
export interface PerformOptions {
  /** The model, with its key; for effects of the kind `model`. */
  model?: Model;
  /** The tools; for effects of the kind `tool`. They cannot ask, report progress or change the session state here. */
  tools?: readonly ToolDefinition[] | { [name: string]: any };
  signal?: AbortSignal;
  /**
   * The how many-th time it is that the engine begins this step; default 1. A tool that is not `idempotent` is begun once: after that
   * it may have run, and the model is told so. Vercel: `getStepMetadata().attempt`; Temporal: `Context.current().info.attempt`.
   */
  attempt?: number;
}

/**
 * Carries out an effect, in whatever process has the model and the tools, and returns the record of the step. Never rejects for
 * what a model or a tool does: that is in the record. Throws misuse for other kinds of effects.
 *
 * @example
 * const record = await perform({ kind: "tool", name: "add", arguments: { a: 1, b: 2 }, callId: "call_1" }, { tools: [add] });
 */
export function perform(effect: StepEffect, options: PerformOptions): Promise<any>;

/**
 * Says where `turnwheel-server.wasm` comes from, the engine of agents with `host.step`, for hosts without files and `fetch`: the body
 * of a workflow that runs in a VM, say. The same as `use` of `turnwheel/tape`. Not needed in browsers, Node, Bun, Deno and Workers.
 *
 * @throws if `source` is no function
 * @example
 * use(() => bytes); // of node_modules/turnwheel/turnwheel-server.wasm
 */
export function use(source: () => ArrayBuffer | ArrayBufferView | WebAssembly.Module | Promise<ArrayBuffer | ArrayBufferView | WebAssembly.Module>): void;
