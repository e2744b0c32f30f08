//! How a Claude is told to think.

use crate::data::text::{self, contains};
use crate::rules::stream::{ModelRequest, Reasoning};
use crate::wires::compat::ReasoningStyle;
use crate::wires::encoding::body::RequestBody;
use crate::wires::encoding::options::effort;
use crate::words::message::LlmMessage;

use super::PROVIDER;
use super::messages::begins_with_thinking;
use super::models::known_version;

/// How much a request tells the model to think.
pub(super) enum AnthropicThinking {
    /// The model decides, guided by a word.
    Adaptive(&'static str),
    /// At most this many tokens.
    Budget(u64),
    /// As little as it can. The type of `thinking` says so.
    Off(&'static str),
    /// As little as it can. The effort says so.
    Lowest,
    /// The request does not mention it.
    Unspecified,
}

impl AnthropicThinking {
    pub(super) fn of(request: &ModelRequest, style: ReasoningStyle) -> AnthropicThinking {
        let reasoning = request.options.reasoning.as_ref().filter(|_| style != ReasoningStyle::None);
        let Some(reasoning) = reasoning else {
            return AnthropicThinking::Unspecified;
        };
        let version = match style {
            ReasoningStyle::Adaptive => Some((4, 6)),
            ReasoningStyle::Budget => Some((4, 5)),
            _ => known_version(&request.model),
        };
        // Opus 4.1 and older write at most 32,000 tokens, with what they think.
        let is_short = contains(&request.model, "opus") && version < Some((4, 5));
        match (reasoning, effort(reasoning)) {
            (_, "off" | "none") => AnthropicThinking::off(&request.model, version),
            (_, word) if version >= Some((4, 6)) => AnthropicThinking::Adaptive(match word {
                "minimal" | "low" => "low",
                "high" => "high",
                // The word came with 4.7.
                "xhigh" if version < Some((4, 7)) => "high",
                "xhigh" => "xhigh",
                "max" => "max",
                _ => "medium",
            }),
            _ if began_without_thinking(request) => AnthropicThinking::Unspecified,
            (Reasoning::Budget(tokens), _) => AnthropicThinking::Budget((*tokens).max(1_024)),
            (Reasoning::Effort(_), word) => AnthropicThinking::Budget(match word {
                "minimal" => 1_024,
                "low" => 2_048,
                "high" => 16_384,
                "xhigh" | "max" if is_short => 24_576,
                "xhigh" | "max" => 32_768,
                _ => 8_192,
            }),
        }
    }

    fn off(model: &str, version: Option<(u32, u32)>) -> AnthropicThinking {
        let is = |family| contains(model, family);
        match version {
            Some(version) if is("fable") || is("mythos") || (is("opus") && version >= (5, 5)) => {
                AnthropicThinking::Lowest
            }
            Some(version) if is("sonnet") && version >= (5, 5) => AnthropicThinking::Off("between_tools"),
            Some(version) if version >= (3, 7) => AnthropicThinking::Off("disabled"),
            // Models that cannot think reject the field.
            _ => AnthropicThinking::Unspecified,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        matches!(self, AnthropicThinking::Adaptive(_) | AnthropicThinking::Budget(_))
    }

    pub(super) fn write(&self, body: &mut RequestBody<'_>) {
        match self {
            AnthropicThinking::Adaptive(_) => {
                body.raw("thinking", r#"{"type":"adaptive","display":"summarized"}"#);
            }
            AnthropicThinking::Budget(tokens) => {
                body.fill("thinking", r#"{"type":"enabled","budget_tokens":#}"#, &[&text::number(*tokens)]);
            }
            AnthropicThinking::Off(word) => body.fill("thinking", "{\"type\":\"$\"}", &[word]),
            AnthropicThinking::Lowest | AnthropicThinking::Unspecified => {}
        }
    }
}

/// Whether the tool loop that the request continues began without thinking: then it must go on without. A
/// loop that began with thinking goes on with it, although not every answer in it thinks.
fn began_without_thinking(request: &ModelRequest) -> bool {
    let mut answers = 0;
    for message in request.messages.iter().rev() {
        match message {
            LlmMessage::User(_) => break,
            LlmMessage::Assistant(answer) if begins_with_thinking(answer, PROVIDER, &request.model) => {
                return false;
            }
            LlmMessage::Assistant(_) => answers += 1,
            LlmMessage::ToolResult(_) => {}
        }
    }
    answers > 0
}
