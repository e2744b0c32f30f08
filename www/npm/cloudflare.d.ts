/**
 * @experimental A minor version may change this entry.
 * @module
 */

import { DurableObject } from "cloudflare:workers";
import type { Agent, AgentEvent, AgentHost, AgentOptions, Input } from "./index.js";
import type { AgentCommand, AgentHandlerOptions } from "./server.js";

/**
 * An agent in a Durable Object: a conversation that outlives its process, and that any number of pages can listen to. Extend
 * it with `options`, bind the class in `wrangler.jsonc` (under `new_sqlite_classes`), and pass requests on with {@link route}.
 * Clients are `RemoteAgent` of turnwheel/remote and whatever follows docs/remote.md.
 *
 * Every event is stored before anybody receives it, in one transaction with the checkpoint that belongs to it. An object that
 * is thrown out of memory during a run goes on when it wakes, and is woken: what had finished is not run again, a tool that
 * was running runs again only if it is `idempotent`. Needs `import … from "turnwheel"` in the same Worker, which brings the
 * engine; elsewhere than in Workers its constructor throws.
 *
 * @example
 * import { openai } from "turnwheel";
 * import { DurableAgent } from "turnwheel/cloudflare";
 *
 * export class Chat extends DurableAgent<{ OPENAI_API_KEY: string }> {
 *   options() {
 *     return { model: openai("gpt-5-mini", { apiKey: this.env.OPENAI_API_KEY }), tools };
 *   }
 * }
 */
export abstract class DurableAgent<Env = unknown> extends DurableObject<Env> {
  /**
   * Says which agent it is: model, tools, prompts. Asked once in each life of the object, before anything else happens in it.
   * `name` is the one that the object was asked for by. It may wait, for 20 seconds at most. If it throws, requests get a 503
   * with the reason in the log, and the next request asks again; a run in progress is tried again after 30 seconds, then after
   * twice as long each time, up to an hour. `host.sleep` is the object's own.
   */
  protected abstract options(id: { name?: string }): AgentOptions | Promise<AgentOptions>;

  /** The agent. It is there in `onEvent` and in requests; before `options` has answered, reading it throws. */
  readonly agent: Agent;

  /**
   * Decides who may use the agent, as `authorize` of `agentHandler` does: only `true` allows a request. Default: everybody who
   * can reach the object, which are the Workers that have its binding. So ask there, or here.
   */
  protected authorize?(request: Request, command: AgentCommand): boolean | Response | Promise<boolean | Response>;

  /**
   * The limits of one object, as those of `agentHandler`; what is left out keeps its default. Defaults here: 1 MB of
   * conversation (`historyBytes`), 50 listeners, 120 commands a minute, 5,000 events kept; the others are those of
   * `agentHandler`.
   */
  protected limits?(): NonNullable<AgentHandlerOptions["limits"]>;

  /** Further options of `agentHandler`: `cors`, `caller`, `runOptions`, `keepAliveMs`, … */
  protected handlerOptions?(): Omit<AgentHandlerOptions, "authorize" | "limits" | "events" | "commit">;

  /** Called with every event, after it was stored. What it throws is reported on the console. */
  protected onEvent?(event: AgentEvent): void;

  /**
   * A back-off of this many milliseconds or more is an alarm, so that the object may leave memory meanwhile; a shorter one is
   * a timer. Default 10,000.
   */
  protected alarmAfterMs: number;

  /** Answers commands and event streams, as `agentHandler` of turnwheel/server does. */
  override fetch(request: Request): Promise<Response>;

  /**
   * Starts a run, from code of the same Worker (RPC), and answers as soon as it is stored. Rejects if a run is in progress, if
   * the input has more than 1 MB, if the conversation is full, or if `options` failed.
   */
  prompt(input: Input | Input[]): Promise<{ runId: string }>;

  /**
   * Prompts the agent at a time, in milliseconds since 1970: as soon as possible if that is past, at most ten years ahead. If
   * a run is in progress then, the input is a follow-up of it. It is said once, also if the object is thrown out of memory at
   * that moment. At most 1,000 wait at a time. Returns an id for `unschedule`.
   */
  schedule(at: number, input: Input): Promise<string>;

  /** Takes back what was scheduled. Returns false if it was said already, or is not known. */
  unschedule(id: string): Promise<boolean>;

  /**
   * The one alarm of an object is shared: what wakes a run, ends a back-off or was scheduled is a row of a table, and the
   * alarm is set to the earliest. Do not set it yourself. An `alarm` of your own must call `await super.alarm()`; if it does
   * not, the console says so, and it is called all the same.
   */
  override alarm(info?: { readonly isRetry: boolean; readonly retryCount: number }): Promise<void>;
}

/**
 * The part of a namespace of Durable Objects that {@link route} uses.
 *
 * @example
 * const namespace: ObjectNamespace = env.CHAT;
 */
export interface ObjectNamespace {
  idFromName(name: string): any;
  get(id: any): { fetch(request: any): Promise<any> };
}

/**
 * What {@link route} may be told.
 *
 * @example
 * const options: RouteOptions = { prefix: "/chats", authorize: (request, name) => request.headers.get("authorization") === `Bearer token of ${name}` };
 */
export interface RouteOptions {
  /** Default: `/agents`. */
  prefix?: string;
  /**
   * Says whether who asks may use the agent of this name: true, false, or a Response of its own. Whatever else it gives or throws is
   * a no, before any object is asked. Without it everybody may, unless the request was authenticated before. It is not asked about
   * a preflight (OPTIONS), which carries no credentials.
   */
  authorize?: (request: Request, name: string) => boolean | Response | Promise<boolean | Response>;
}

/**
 * Passes a request for `PREFIX/NAME/…` to the object with that name; `undefined` for every other path. Without `authorize` it lets
 * everybody in: authenticate the request before, and check that who asks may use NAME. A name has at most 256 characters, encoded
 * as in a URL.
 *
 * @example
 * export default {
 *   fetch: (request: Request) => route(request, env.CHAT) ?? new Response("not found", { status: 404 }),
 * };
 */
export function route(request: Request, namespace: ObjectNamespace, options?: RouteOptions): Promise<Response> | undefined;

/**
 * The part of a Workflow's `step` that {@link workflowHost} uses.
 *
 * @example
 * const part: StepOfWorkflow = step;
 */
export interface StepOfWorkflow {
  do(name: string, config: any, callback: (context: any) => Promise<any>): Promise<any>;
  sleep(name: string, duration: number): Promise<void>;
  waitForEvent(name: string, options: { type: string; timeout?: any }): Promise<{ payload: any }>;
}

/**
 * What {@link workflowHost} gives: the `host` of an agent in a Workflow.
 *
 * @example
 * const host: WorkflowHost = workflowHost(step);
 */
export type WorkflowHost = Required<Pick<AgentHost, "step" | "sleep" | "wait" | "steps">>;

/**
 * The `host` of an agent inside a Cloudflare Workflow: every call of a model, every tool and every decision is a step of the
 * Workflow, stored when it has ended, and not run again. A question waits, up to 30 days, for an event of the type that
 * {@link decisionType} says, whose payload is the decision. A step may take 30 minutes and is tried four times; a result may
 * have 1,000,000 bytes. What reaches the agent from outside in other ways is not stored.
 *
 * @example
 * import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "cloudflare:workers";
 *
 * export class Research extends WorkflowEntrypoint<unknown, { topic: string }> {
 *   override async run(event: WorkflowEvent<{ topic: string }>, step: WorkflowStep) {
 *     const agent = new Agent({ model, tools, host: workflowHost(step) });
 *     return (await agent.prompt(event.payload.topic)).text;
 *   }
 * }
 */
export function workflowHost(step: StepOfWorkflow): WorkflowHost;

/**
 * The type of the event that answers a question of an agent in a Workflow: the name that `host.wait` gets, with "-" in place
 * of "/", such as `t0-approve-0` for the first call of the first turn; one that is longer than 100 characters ends with a digest.
 *
 * @example
 * const instance = await env.FLOW.get(id);
 * await instance.sendEvent({ type: decisionType("t0/approve/0"), payload: "approve" });
 */
export function decisionType(name: string): string;
