// Tools, models and chats of the AI SDK, as they are. It is compiled, never run; on its own, because the types of `ai` do not compile with
// `skipLibCheck: false`.

import { createAnthropic } from "@ai-sdk/anthropic";
import type { LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import { dynamicTool, jsonSchema, tool as aiTool, wrapLanguageModel, type ChatTransport, type UIMessage } from "ai";
import type { ChatTransport as ChatTransport6, UIMessage as UIMessage6 } from "ai-6";
import { createOpenAI as createOpenAI3 } from "ai-sdk-openai-3";
import { Agent, scripted, tool, type AgentOptions } from "turnwheel";
import { chatTransport, fromLanguageModel, fromUIMessages, toUIMessages } from "turnwheel/ai-sdk";
import { z } from "zod";

const theirs = aiTool({ description: "", inputSchema: z.object({ city: z.string() }), execute: async ({ city }, { toolCallId, abortSignal, messages }) => [city, toolCallId, abortSignal?.aborted, messages.length] });
const dynamic = dynamicTool({ description: "", inputSchema: jsonSchema({ type: "object" }), execute: async (input) => input });
const ours = tool({ name: "ours", description: "", parameters: z.object({ city: z.string() }), execute: ({ city }) => city });
new Agent({ model: scripted([]), tools: { theirs, dynamic, ours, plain: { description: "", parameters: {}, execute: () => "" } } });
const mixed: AgentOptions = { model: scripted([]), tools: { theirs, ours } };
void mixed;

const { tools: theirTools } = createAnthropic({});
fromLanguageModel(createAnthropic({ apiKey: "k" })("claude-sonnet-4-5"), { tools: { web_search: theirTools.webSearch_20250305({ maxUses: 2 }) }, providerOptions: { anthropic: { speed: "fast" } } });
fromLanguageModel(wrapLanguageModel({ model: createAnthropic({})("claude-sonnet-4-5"), middleware: [] }));
fromLanguageModel(createOpenAI3({}).chat("gpt-5-mini"));
export const versions = (v3: LanguageModelV3, v4: LanguageModelV4) => [v3, v4].map((model) => fromLanguageModel(model));

const agent = new Agent({ model: scripted([]) });
export const transport: ChatTransport<UIMessage> = chatTransport(agent);
export const transport6: ChatTransport6<UIMessage6> = chatTransport(agent, { whileRunning: "followUp" });
export const messages: UIMessage[] = toUIMessages(agent.messages);
export const messages6: UIMessage6[] = toUIMessages(agent.messages);
fromUIMessages(messages, { trusted: true });
