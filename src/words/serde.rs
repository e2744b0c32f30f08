//! serde for what is said and stored, in the JSON form of the npm package. A message's `foreign` is only for checkpoints
//! and is left out.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::data::json::{serde_as_json, serde_as_word};
use crate::words::error::{AgentError, ErrorInfo, ErrorKind};
use crate::words::event::{
    AgentEvent, CompactionReport, DecisionSource, Delta, RunStopReason, TurnEndReason,
};
use crate::words::message::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, LlmMessage, MessageStopReason,
    ToolCallBlock, ToolResultCause, ToolResultMessage, Usage, UserMessage,
};
use crate::words::question::Question;

serde_as_word!(DecisionSource, ErrorKind, MessageStopReason, RunStopReason, ToolResultCause, TurnEndReason);

serde_as_json!(
    AgentEvent,
    CompactionReport,
    Delta,
    ErrorInfo,
    Usage,
    ContentBlock,
    ToolCallBlock,
    UserMessage,
    AssistantMessage,
    ToolResultMessage,
    CustomMessage,
    AgentMessage,
    LlmMessage,
    Question,
);

/// An error is written without its cause, which is no data.
impl Serialize for AgentError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.info().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AgentError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ErrorInfo::deserialize(deserializer).map(AgentError::from)
    }
}
