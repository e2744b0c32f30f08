//! What the npm package writes of a model call in JavaScript, and the crate in Rust: only serde needs it here.

use crate::data::json::members::{maybe, plain};
use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value, members};
use crate::rules::stream::{AssistantMessageEvent, ModelRequest, ToolSchema};

impl FromJson for ToolSchema {
    fn from_json(value: &Value) -> Result<Self, String> {
        let Some(name) = value.text_at("name") else { return Err("a tool needs a text `name`".to_owned()) };
        Ok(ToolSchema {
            name: name.into(),
            description: value.text_at("description").unwrap_or_default().into(),
            parameters: value.get("parameters").map_or_else(RawJson::empty_object, ToJson::to_raw),
        })
    }
}

// The key is left out, because what is written down is read by others.
members!(write ModelRequest {
    "model" => model: plain,
    "systemPrompt" => system_prompt: plain,
    "messages" => messages: plain,
    "tools" => tools: plain,
    "options" => options: plain,
    "output" => output: maybe,
    "sessionId" => session_id: maybe,
});

impl AssistantMessageEvent {
    /// Returns the name that JSON has in `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::TextStart { .. } => "text_start",
            Self::TextDelta { .. } => "text_delta",
            Self::TextEnd { .. } => "text_end",
            Self::ThinkingStart { .. } => "thinking_start",
            Self::ThinkingDelta { .. } => "thinking_delta",
            Self::ThinkingEnd { .. } => "thinking_end",
            Self::ToolCallStart { .. } => "tool_call_start",
            Self::ToolCallDelta { .. } => "tool_call_delta",
            Self::ToolCallEnd { .. } => "tool_call_end",
            Self::Raw { .. } => "raw",
            Self::Usage(_) => "usage",
            Self::Ping => "ping",
            Self::Done { .. } => "done",
            Self::Error(_) => "error",
        }
    }

    fn index(&self) -> Option<u32> {
        match self {
            Self::TextStart { index }
            | Self::TextDelta { index, .. }
            | Self::TextEnd { index, .. }
            | Self::ThinkingStart { index }
            | Self::ThinkingDelta { index, .. }
            | Self::ThinkingEnd { index, .. }
            | Self::ToolCallStart { index, .. }
            | Self::ToolCallDelta { index, .. }
            | Self::ToolCallEnd { index, .. }
            | Self::Raw { index, .. } => Some(*index),
            Self::Start | Self::Usage(_) | Self::Ping | Self::Done { .. } | Self::Error(_) => None,
        }
    }
}

impl ToJson for AssistantMessageEvent {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("type", self.name()).optional("contentIndex", &self.index());
        match self {
            Self::Start | Self::Ping | Self::TextStart { .. } | Self::ThinkingStart { .. } => {}
            Self::TextDelta { delta, .. }
            | Self::ThinkingDelta { delta, .. }
            | Self::ToolCallDelta { delta, .. } => drop(object.field("delta", delta)),
            Self::TextEnd { signature, .. } => drop(object.optional("signature", signature)),
            Self::ThinkingEnd { signature, redacted, .. } => {
                object.optional("signature", signature).optional("redacted", &redacted.then_some(true));
            }
            Self::ToolCallStart { call_id, tool_name, .. } => {
                object.field("callId", call_id).field("toolName", tool_name);
            }
            Self::ToolCallEnd { metadata, .. } => drop(object.optional("metadata", metadata)),
            Self::Raw { data, .. } => drop(object.field("data", data)),
            Self::Usage(usage) => usage.write_members(&mut object),
            Self::Done { stop_reason, usage } => {
                object.field("stopReason", stop_reason.as_str()).optional("usage", usage);
            }
            Self::Error(error) => drop(object.field("error", error)),
        }
        object.end();
    }
}
