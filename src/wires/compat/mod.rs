//! What one server accepts and another rejects. The switches are known from the address and can be set by
//! hand: `server` names a server whose switches apply whatever the address, and each other name sets one
//! switch.

mod servers;
mod switches;

use crate::data::json::{RawJson, ToJson, Value};

use super::encoding::strict::{is_strict, strict_form};

pub use servers::{known, server};

/// The switches of one server. Not every wire has all of them; a wire rejects those it does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compat {
    /// `maxTokensField`: the name of the field that limits the length of the answer, `max_tokens` or
    /// `max_completion_tokens`.
    pub max_tokens_field: &'static str,
    /// `developerRole`: reasoning models get the system prompt in the role `developer`.
    pub developer_role: bool,
    /// `streamOptions`: usage must be asked for with `stream_options`.
    pub stream_options: bool,
    /// `store`: sends `store: false`.
    pub store: bool,
    /// `parallelToolCalls`: the server knows `parallel_tool_calls`.
    pub parallel_tool_calls: bool,
    /// `strict`: when schemas are marked as strict.
    pub strict: Strict,
    /// `reasoning`: how to say how much to think.
    pub reasoning: ReasoningStyle,
    /// `toolIds`: the form that the ids of calls must have.
    pub tool_ids: ToolIds,
    /// `replayReasoning`: how thinking is sent back.
    pub replay: Replay,
    /// `toolResultName`: tool messages carry the tool's `name`.
    pub tool_result_name: bool,
    /// `assistantAfterTool`: a user message may not follow a tool message.
    pub assistant_after_tool: bool,
    /// `cacheControl`: the server accepts `cache_control`; on Chat, only for Claude.
    pub cache_control: bool,
    /// `cacheTtl`: how long Anthropic keeps its cache, `5m` or `1h`.
    pub cache_ttl: &'static str,
    /// `promptCacheKey`: the server separates caches by `prompt_cache_key`, which is the id of the session.
    pub prompt_cache_key: bool,
}

/// When schemas are marked as strict. Set by hand, `true` means always and `false` never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strict {
    /// Never.
    Never,
    /// If the schema has the form that strict schemas must have.
    Fitting,
    /// Always.
    Always,
}

impl Strict {
    /// Whether a schema is marked.
    pub fn marks(self, schema: &Value) -> bool {
        match self {
            Strict::Never => false,
            Strict::Always => true,
            Strict::Fitting => is_strict(schema),
        }
    }

    /// The schema of the answer as it is sent, and whether it is marked.
    pub(crate) fn answer(self, schema: &RawJson) -> (RawJson, bool) {
        let strict = if self == Strict::Fitting { strict_form(&schema.to_value()) } else { None };
        match strict {
            Some(strict) => (strict.to_raw(), true),
            None => (schema.clone(), self == Strict::Always),
        }
    }
}

/// How to say how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningStyle {
    /// `none`: not at all.
    None,
    /// `reasoning_effort`: a word. On Anthropic and Gemini: whatever the name of the model suggests.
    Effort,
    /// `openrouter`: `reasoning: {effort | max_tokens | enabled}`
    OpenRouter,
    /// `deepseek`: `thinking: {type}` and `reasoning_effort` low or high.
    DeepSeek,
    /// `thinking`: `thinking: {type}`
    Thinking,
    /// `enable_thinking`: `enable_thinking` and `thinking_budget`.
    EnableThinking,
    /// `chat_template_kwargs`: `chat_template_kwargs: {enable_thinking}`
    TemplateKwargs,
    /// `mistral`: `prompt_mode` for Magistral, else `reasoning_effort` none or high.
    Mistral,
    /// `adaptive`: Claude decides how much, guided by a word.
    Adaptive,
    /// `budget`: Claude or Gemini is told how many tokens it may think.
    Budget,
    /// `level`: a word for Gemini.
    Level,
}

/// The form that the ids of calls must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolIds {
    /// `any`
    Any,
    /// `short`: at most 40 characters, none of them unusual.
    Short,
    /// `mistral`: exactly 9 letters or digits.
    Mistral,
}

/// How thinking is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// `none`: not at all.
    None,
    /// `reasoning_content`: in that field; empty for answers without thinking.
    ReasoningContent,
    /// `reasoning`: in that field.
    Reasoning,
    /// `reasoning_details`: unchanged and in order.
    Details,
    /// `thinking`: as chunks of the content.
    ThinkingChunk,
}

impl Default for Compat {
    /// What every server accepts.
    fn default() -> Self {
        Compat {
            max_tokens_field: "max_tokens",
            developer_role: false,
            stream_options: false,
            store: false,
            parallel_tool_calls: false,
            strict: Strict::Never,
            reasoning: ReasoningStyle::Effort,
            tool_ids: ToolIds::Short,
            replay: Replay::None,
            tool_result_name: false,
            assistant_after_tool: false,
            cache_control: false,
            cache_ttl: "5m",
            prompt_cache_key: false,
        }
    }
}

#[cfg(test)]
mod tests;
