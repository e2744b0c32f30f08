//! Messages as JSON, the same as in the npm package, field for field.

use std::rc::Rc;

use super::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, LlmMessage, MessageStopReason,
    ToolResultMessage, UserMessage,
};
use crate::data::json::members::{any, maybe, maybe_part, needed, part, plain};
use crate::data::json::{FromJson, ToJson, Value, members};

/// The blocks of a message.
mod blocks {
    use super::{ContentBlock, FromJson, Value};
    pub(super) use crate::data::json::members::plain::write;

    /// Reads blocks, and refuses kinds that the role does not allow. A bare string is one text block.
    pub(super) fn read(
        value: &Value,
        key: &str,
        role: &str,
        takes: fn(&ContentBlock) -> bool,
    ) -> Result<Vec<ContentBlock>, String> {
        let items = match value.get(key) {
            Some(Value::String(text)) => return Ok(vec![ContentBlock::text(text.as_str())]),
            Some(Value::Array(items)) => items,
            other => {
                let got = other.map_or("nothing", Value::kind);
                return Err(
                    ["`content` of a ", role, " message must be a list of blocks, got ", got].concat()
                );
            }
        };
        let mut content = Vec::with_capacity(items.len());
        for item in items {
            let block = ContentBlock::from_json(item)?;
            if !takes(&block) {
                let kind = item.text_at("type").unwrap_or_default();
                return Err(["a ", role, " message takes no `", kind, "` block"].concat());
            }
            content.push(block);
        }
        Ok(content)
    }
}

/// Why an answer ended.
mod stop_reason {
    use super::{MessageStopReason, Value};
    pub(super) use crate::data::json::members::plain::write;

    pub(super) fn read(value: &Value, key: &str) -> Result<MessageStopReason, String> {
        let Some(word) = value.text_at(key) else { return Ok(MessageStopReason::Stop) };
        MessageStopReason::from_word(word).ok_or_else(|| ["unknown stop reason `", word, "`"].concat())
    }
}

/// Whether users write such blocks, and tools return them.
fn is_shown(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::File(_))
}

/// Whether models write such blocks.
fn is_said(block: &ContentBlock) -> bool {
    use ContentBlock::{Raw, Text, Thinking, ToolCall};
    matches!(block, Text(_) | Thinking(_) | ToolCall(_) | Raw(_))
}

members!(UserMessage {
    "role" = "user",
    "content" =>? content: blocks("user", is_shown),
    "timestamp" => timestamp: plain,
    "id" => id: maybe,
    ..foreign: None,
});

members!(AssistantMessage {
    "role" = "assistant",
    "content" =>? content: blocks("assistant", is_said),
    "provider" => provider: plain,
    "model" => model: plain,
    "usage" =>? usage: part,
    "stopReason" =>? stop_reason: stop_reason,
    "error" =>? error: maybe_part,
    "timestamp" => timestamp: plain,
    "id" => id: maybe,
    ..foreign: None,
});

members!(ToolResultMessage {
    "role" = "tool_result",
    "callId" =>? call_id: needed,
    "toolName" => tool_name: plain,
    "content" =>? content: blocks("tool_result", is_shown),
    "details" => details: maybe,
    "isError" => is_error: plain,
    "cause" => cause: maybe,
    "timestamp" => timestamp: plain,
    ..foreign: None,
});

members!(CustomMessage {
    "role" = "custom",
    "kind" =>? kind: needed,
    "data" => data: any,
    "timestamp" => timestamp: plain,
});

impl ToJson for AgentMessage {
    fn write_json(&self, out: &mut String) {
        match self {
            AgentMessage::User(message) => message.write_json(out),
            AgentMessage::Assistant(message) => message.write_json(out),
            AgentMessage::ToolResult(message) => message.write_json(out),
            AgentMessage::Custom(message) => message.write_json(out),
        }
    }
}

impl ToJson for LlmMessage {
    fn write_json(&self, out: &mut String) {
        match self {
            LlmMessage::User(message) => message.write_json(out),
            LlmMessage::Assistant(message) => message.write_json(out),
            LlmMessage::ToolResult(message) => message.write_json(out),
        }
    }
}

impl FromJson for AgentMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        match value.text_at("role") {
            Some("user") => UserMessage::from_json(value).map(Into::into),
            Some("assistant") => AssistantMessage::from_json(value).map(Into::into),
            Some("tool_result") => ToolResultMessage::from_json(value).map(Into::into),
            Some("custom") => CustomMessage::from_json(value).map(|m| AgentMessage::Custom(Rc::new(m))),
            Some(other) => Err([
                "unknown role `",
                other,
                "`; a message is one of `user`, `assistant`, `tool_result`, `custom`",
            ]
            .concat()),
            None => Err(["a message must be an object with a `role`, got ", value.kind()].concat()),
        }
    }
}

impl FromJson for LlmMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        AgentMessage::from_json(value)?
            .as_llm()
            .ok_or_else(|| "a custom message cannot be sent to a model".to_owned())
    }
}
