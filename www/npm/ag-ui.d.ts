/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { Agent, Answer, AgentMessage, AgentRun, ErrorInfo, EventResponseInit, JsonSchema, JsonValue, ToolDecision, ToolDefinition, UserMessage } from "./index.js";

/**
 * The events of a run as AG-UI events (protocol 1.0; clients from 0.0.59 on read them): until the run ends, or until it waits for the
 * client, whose answer is another run for the protocol. Call it again then, and it goes on from there. Call it in the same task as
 * `prompt`, or the beginning is missing.
 *
 * @example
 * for await (const event of toAGUI(agent.prompt("Hello"), { threadId: "chat-7" })) show(JSON.stringify(event));
 */
export function toAGUI(run: Pick<AgentRun, "toResponse">, options?: AGUIOptions): AsyncIterable<AGUIEvent>;

/**
 * The same as a Response of server-sent events, for an `HttpAgent`. A client that goes away does not stop the run, unless
 * `abortOnLeave` is set.
 *
 * @example
 * const input = fromAGUI(await request.json());
 * if (input.prompt) run = agent.prompt(input.prompt);
 * for (const [id, decision] of Object.entries(input.decisions)) agent.resolveTools({ [id]: decision });
 * return toAGUIResponse(run, { input, abortOnLeave: true });
 */
export function toAGUIResponse(run: Pick<AgentRun, "toResponse">, init?: AGUIResponseInit): Response;

/**
 * Reads what an AG-UI client posts. Throws if it is something else. With an `agent`, `decisions` has the results of the client's own
 * tools, too.
 *
 * @example
 * const { threadId, prompt, decisions } = fromAGUI(await request.json());
 */
export function fromAGUI(input: unknown, options?: AGUIInputOptions): AGUIInput;

/**
 * Options of `fromAGUI`. `agent`: the agent of the thread, or what gives it. What a client posts as the result of a tool counts only if
 * this agent waits for it, and only for tools without `execute`. `answers`: what clients
 * may answer, besides for tools that `frontendTools` made, `["tool", "elicitation", "tool_call"]` by default; `"arguments"` lets them approve a call with other arguments, `"budget"` raise a
 * budget. What they may not is in `refused`, by the id of the question, with the reason; the question stays open.
 *
 * @example
 * const input = fromAGUI(await request.json(), { agent });
 * for (const [id, answer] of Object.entries({ ...input.decisions, ...input.answers })) agent.resolve(id, answer);
 */
export interface AGUIInputOptions { answers?: readonly ("tool" | "elicitation" | "tool_call" | "arguments" | "budget")[] | undefined; agent?: Pick<Agent, "tools" | "pendingQuestions" | "pendingApprovals"> | ((threadId: string) => Pick<Agent, "tools" | "pendingQuestions" | "pendingApprovals"> | undefined) | undefined }

/**
 * The tools that the client runs, as tools of the agent, without `execute`. A call waits for its result, which is among the `decisions`
 * of a later input, if `fromAGUI` is given the agent.
 *
 * @example
 * const input = fromAGUI(await request.json());
 * const agent = new Agent({ model, tools: [...tools, ...frontendTools(input.tools)] });
 */
export function frontendTools(tools: readonly AGUITool[]): ToolDefinition[];

/**
 * An event of the protocol, as `@ag-ui/core` describes it.
 *
 * @example
 * const isText = ({ type }: AGUIEvent) => type === "TEXT_MESSAGE_CONTENT";
 */
export interface AGUIEvent {
  type:
    | "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" | "STEP_STARTED" | "STEP_FINISHED"
    | "TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_END"
    | "REASONING_START" | "REASONING_MESSAGE_START" | "REASONING_MESSAGE_CONTENT" | "REASONING_MESSAGE_END" | "REASONING_END" | "REASONING_ENCRYPTED_VALUE"
    | "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_END" | "TOOL_CALL_RESULT"
    | "STATE_SNAPSHOT" | "STATE_DELTA" | "SUBAGENT_STARTED" | "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" | "CUSTOM";
  [member: string]: JsonValue;
}

/**
 * A tool that the client runs.
 *
 * @example
 * const tool: AGUITool = { name: "show_map", description: "Shows a place on the map", parameters: { type: "object" } };
 */
export interface AGUITool { name: string; description: string; parameters?: JsonSchema }

/**
 * What a client has posted. `prompt`: the messages of the user since the last answer. `decisions`: answers to interrupts, by the ids
 * of the questions, and results of the client's tools, by those of the calls (with the option `agent`). `answers`: what was allowed of
 * a budget, and what a tool wanted to know, by the ids of the questions. `messages`: the conversation before; an agent that
 * stays on the server knows it already.
 *
 * @example
 * const { messages, prompt }: AGUIInput = fromAGUI(await request.json());
 * const run = prompt && new Agent({ model, messages }).prompt(prompt); // a server that keeps nothing
 */
export interface AGUIInput {
  threadId: string;
  runId: string;
  /** Clients of before 1.0 send none. */
  protocolVersion?: string;
  prompt?: UserMessage[];
  decisions: { [id: string]: ToolDecision };
  answers: { [id: string]: Answer };
  /** Answers that the client may not give, with the reason; their questions stay open. */
  refused?: { [id: string]: string };
  messages: AgentMessage[];
  tools: AGUITool[];
  state: JsonValue;
  context: JsonValue;
  forwardedProps?: JsonValue;
}

/**
 * Options of `toAGUI`. `input` is what the client has posted: its ids, its version of the protocol and its tools.
 *
 * @example
 * const options: AGUIOptions = { input: fromAGUI(await request.json()), onError: () => "Something went wrong." };
 */
export interface AGUIOptions {
  input?: Pick<AGUIInput, "threadId" | "runId" | "protocolVersion" | "tools">;
  /** Default: that of the input, or else the id of the run. */
  threadId?: string;
  /** What the client calls the run. Default: that of the input, or else the id of the run, with a number from the second response on. */
  runId?: string;
  /** The state before the run, from which changes count. Default: that of the session. */
  state?: { [key: string]: JsonValue };
  /** The text that the user is shown for an error. Default: its message. */
  onError?(error: ErrorInfo): string;
}

/**
 * Options of `toAGUIResponse`.
 *
 * @example
 * const init: AGUIResponseInit = { threadId: "chat-7", abortOnLeave: true, headers: { "access-control-allow-origin": "https://app.example" } };
 */
export interface AGUIResponseInit extends AGUIOptions, Omit<EventResponseInit, "lastEventId"> {}
