// @ts-check
// The names of the GenAI semantic conventions, as text: all of them are in development, and what a dashboard reads must not
// change with a dependency. They are those of `@opentelemetry/semantic-conventions` 1.45.0, `/incubating`; a test compares.

export const AGENT_NAME = "gen_ai.agent.name";
export const CONVERSATION_ID = "gen_ai.conversation.id";
export const ERROR_TYPE = "error.type";
export const FINISH_REASONS = "gen_ai.response.finish_reasons";
export const INPUT_MESSAGES = "gen_ai.input.messages";
export const OPERATION_NAME = "gen_ai.operation.name";
export const OUTPUT_MESSAGES = "gen_ai.output.messages";
export const OUTPUT_TYPE = "gen_ai.output.type";
export const PROVIDER_NAME = "gen_ai.provider.name";
export const REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens";
export const REQUEST_MODEL = "gen_ai.request.model";
export const REQUEST_STOP_SEQUENCES = "gen_ai.request.stop_sequences";
export const REQUEST_STREAM = "gen_ai.request.stream";
export const REQUEST_TEMPERATURE = "gen_ai.request.temperature";
export const REQUEST_TOP_P = "gen_ai.request.top_p";
export const RESPONSE_MODEL = "gen_ai.response.model";
export const SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions";
export const TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk";
export const TOKEN_TYPE = "gen_ai.token.type";
export const TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments";
export const TOOL_CALL_ID = "gen_ai.tool.call.id";
export const TOOL_CALL_RESULT = "gen_ai.tool.call.result";
export const TOOL_DEFINITIONS = "gen_ai.tool.definitions";
export const TOOL_DESCRIPTION = "gen_ai.tool.description";
export const TOOL_NAME = "gen_ai.tool.name";
export const TOOL_TYPE = "gen_ai.tool.type";
export const CACHE_CREATION_TOKENS = "gen_ai.usage.cache_creation.input_tokens";
export const CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens";
export const INPUT_TOKENS = "gen_ai.usage.input_tokens";
export const OUTPUT_TOKENS = "gen_ai.usage.output_tokens";
export const REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens";

/** The histograms. The last two are not in 1.45.0, but in the conventions' own repository. */
export const METRICS = /** @type {const} */ ({
  tokens: "gen_ai.client.token.usage",
  duration: "gen_ai.client.operation.duration",
  firstChunk: "gen_ai.client.operation.time_to_first_chunk",
  perChunk: "gen_ai.client.operation.time_per_output_chunk",
  agent: "gen_ai.invoke_agent.duration",
  tool: "gen_ai.execute_tool.duration",
});

/** What the conventions call a provider, where it is not our name. @type {Record<string, string>} */
const PROVIDERS = { gemini: "gcp.gemini", mistral: "mistral_ai", xai: "x_ai", azure: "azure.ai.openai" };

/** @param {string} provider */
export const providerName = (provider) => (Object.hasOwn(PROVIDERS, provider) ? /** @type {string} */ (PROVIDERS[provider]) : provider || "custom");

/** What the conventions call the end of an answer. @type {Record<string, string>} */
const REASONS = { tool_use: "tool_call", refusal: "content_filter" };

/** @param {string} reason */
export const finishReason = (reason) => REASONS[reason] ?? reason;
