/**
 * @experimental A minor version may change this entry.
 * @module
 */

import type { Agent, AgentMessage, JsonValue, Model, ToolResultMessage, UIMessageResponseInit } from "./index.js";
import type { RemoteAgent } from "./remote.js";

export { fromUIMessages } from "./server.js";

/**
 * The part of a language model of the AI SDK that is used; specification v3 or v4.
 *
 * @example
 * const model: LanguageModelLike = createOpenAI({ apiKey })("gpt-5-mini");
 */
export interface LanguageModelLike {
  readonly specificationVersion: "v3" | "v4";
  readonly provider: string;
  readonly modelId: string;
  doStream(options: any): PromiseLike<{ stream: ReadableStream<any> }>;
}

/**
 * Options of `fromLanguageModel`. `providerOptions` and `call` are sent with every call, `providerOptions` before what
 * `streamOptions` asks for. `tools` are those that the provider defines (`openai.tools.webSearch()`), by name; one that you run
 * yourself is a tool of the agent, too, with the same name. `contextWindow` and `price` are as in `ProviderOptions`. `onWarning` hears of what a provider does not support.
 *
 * @example
 * const options: LanguageModelOptions = { providerOptions: { openai: { serviceTier: "flex" } }, call: { seed: 1 }, onWarning: console.warn };
 */
export interface LanguageModelOptions {
  providerOptions?: { [provider: string]: { [name: string]: JsonValue } };
  tools?: { [name: string]: object };
  call?: { topK?: number; seed?: number; presencePenalty?: number; frequencyPenalty?: number };
  contextWindow?: number;
  price?: { input: number; output: number; cacheRead?: number; cacheWrite?: number };
  limits?: { answer?: number };
  onWarning?(warning: unknown): void;
}

/**
 * A language model of the AI SDK as a model: of any provider package, with `wrapLanguageModel` or without.
 *
 * @example
 * const agent = new Agent({ model: fromLanguageModel(createMistral({ apiKey })("mistral-large-latest")) });
 */
export function fromLanguageModel(model: LanguageModelLike, options?: LanguageModelOptions): Model;

/**
 * What `useChat` of the AI SDK needs of its `transport`.
 *
 * @example
 * const transport: ChatTransportLike = chatTransport(agent);
 */
export interface ChatTransportLike {
  readonly resumeStreamIsReplay: true;
  sendMessages(options: { trigger: "submit-message" | "regenerate-message"; chatId: string; messageId: string | undefined; messages: any[]; abortSignal: AbortSignal | undefined }): Promise<ReadableStream<any>>;
  reconnectToStream(options: { chatId: string; abortSignal?: AbortSignal | undefined }): Promise<ReadableStream<any> | null>;
}

/**
 * A transport for `useChat` that talks to an agent without a server in between. Messages that are sent while a run is in
 * progress steer it, or follow it up.
 *
 * @example
 * const transport = chatTransport(agent);
 * // useChat({ transport, sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses })
 */
export function chatTransport(agent: Agent | RemoteAgent, options?: ChatTransportOptions): ChatTransportLike;

/**
 * Options of `chatTransport`: those of `run.toUIMessageStreamResponse`, and what becomes of a message that is sent while a run is
 * in progress: `steer` (default) or `followUp`.
 *
 * @example
 * const options: ChatTransportOptions = { whileRunning: "followUp", onError: () => "Something went wrong." };
 */
export interface ChatTransportOptions extends Pick<UIMessageResponseInit, "messageMetadata" | "onError" | "toolOutput"> { whileRunning?: "steer" | "followUp" }

/**
 * A message of `useChat`.
 *
 * @example
 * const texts = (message: UIMessageLike) => message.parts.filter(({ type }) => type === "text");
 */
export interface UIMessageLike { id: string; role: "user" | "assistant"; parts: any[]; metadata?: any }

/**
 * A history as the messages of `useChat`: one message of the assistant for everything between two of the user.
 *
 * @example
 * const messages = toUIMessages(agent.messages); // useChat({ messages, transport })
 */
export function toUIMessages(messages: readonly AgentMessage[], options?: { toolOutput?(result: ToolResultMessage): unknown }): UIMessageLike[];

/**
 * It is gone, and throws.
 *
 * @deprecated Give `useChat` a {@link chatTransport}.
 * @example
 * const transport = chatTransport(agent); // for useChat
 */
export function toAgent(...given: unknown[]): never;
