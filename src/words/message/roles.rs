//! What is said by whom: the messages of each role.

use super::blocks::{ContentBlock, TextBlock, ToolCallBlock, text_of};
use super::reasons::{MessageStopReason, ToolResultCause};
use super::usage::Usage;
use crate::data::json::RawJson;
use crate::words::error::ErrorInfo;

/// A message from the user: text, images, files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// Text, image and file blocks.
    pub content: Vec<ContentBlock>,
    /// Milliseconds since 1970, from the host's clock.
    pub timestamp: u64,
    /// Its name in every process. A run names those that have none: `RUN/mN`.
    pub id: Option<String>,
    /// Other members that a checkpoint of another engine has for this message. Written back to checkpoints,
    /// used nowhere else.
    pub foreign: Option<RawJson>,
}

impl UserMessage {
    /// Creates a message with one text block.
    pub fn from_text(text: impl Into<String>) -> Self {
        UserMessage { content: vec![ContentBlock::text(text)], ..UserMessage::default() }
    }
}

/// A message from the model: text, thinking, tool calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssistantMessage {
    /// Text, thinking, tool call and raw blocks.
    pub content: Vec<ContentBlock>,
    /// The name of the provider, such as `openai`.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// The usage of the call, as far as it was reported.
    pub usage: Usage,
    /// Why the message ended.
    pub stop_reason: MessageStopReason,
    /// The error, if the stop reason is error or aborted.
    pub error: Option<ErrorInfo>,
    /// Milliseconds since 1970, from the host's clock.
    pub timestamp: u64,
    /// Its name in every process, `RUN/TURN`.
    pub id: Option<String>,
    /// Other members that a checkpoint of another engine has for this message. Written back to checkpoints,
    /// used nowhere else.
    pub foreign: Option<RawJson>,
}

impl AssistantMessage {
    /// Returns the tool calls, in the order of their declaration.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns all text, concatenated.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }

    /// Whether the call failed, or was aborted or interrupted.
    pub fn is_cut(&self) -> bool {
        use MessageStopReason::{Aborted, Error, Interrupted};
        matches!(self.stop_reason, Error | Aborted | Interrupted)
    }
}

/// A result from a tool, or from the engine in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResultMessage {
    /// The id of the call that this answers.
    pub call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// Text and image blocks, shown to the model.
    pub content: Vec<ContentBlock>,
    /// Data for the UI; never sent to the model.
    pub details: Option<RawJson>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Set if the engine wrote this result instead of the tool.
    pub cause: Option<ToolResultCause>,
    /// Milliseconds since 1970, from the host's clock.
    pub timestamp: u64,
    /// Other members that a checkpoint of another engine has for this message. Written back to checkpoints,
    /// used nowhere else.
    pub foreign: Option<RawJson>,
}

impl ToolResultMessage {
    /// Returns the text of a result that is nothing but text: a single text block from a tool that did not
    /// fail.
    pub fn plain_text(&self) -> Option<&str> {
        match &*self.content {
            [ContentBlock::Text(TextBlock { text, signature: None })]
                if !self.is_error && self.cause.is_none() && self.details.is_none() =>
            {
                Some(text)
            }
            _ => None,
        }
    }

    /// Returns all text, concatenated.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

/// A message of the host's own: kept in the history, but not shown to the model unless `convert_to_llm`
/// converts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomMessage {
    /// The host's name for this kind of message.
    pub kind: String,
    /// Any JSON.
    pub data: RawJson,
    /// Milliseconds since 1970, from the host's clock.
    pub timestamp: u64,
}
