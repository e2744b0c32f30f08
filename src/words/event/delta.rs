//! A piece of a message.

use std::rc::Rc;

use crate::data::json::{FromJson, ObjectWriter, ToJson, Value};

/// A piece of a message, shown while it streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The index of the block that it belongs to.
    pub content_index: u32,
    /// The kind of the block.
    pub kind: DeltaKind,
    /// The added text.
    pub text: String,
}

/// The kind of block that a [`Delta`] belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeltaKind {
    /// Text.
    Text,
    /// Thinking.
    Thinking,
    /// The text of a call's arguments.
    ToolCall {
        /// The id of the call.
        call_id: Rc<str>,
        /// The name of the tool.
        tool_name: Rc<str>,
    },
}

impl ToJson for Delta {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        let kind = match &self.kind {
            DeltaKind::Text => "text",
            DeltaKind::Thinking => "thinking",
            DeltaKind::ToolCall { .. } => "tool_call",
        };
        object.field("type", kind).field("contentIndex", &self.content_index);
        if let DeltaKind::ToolCall { call_id, tool_name } = &self.kind {
            object.field("callId", call_id).field("toolName", tool_name);
        }
        object.field("delta", &self.text);
        object.end();
    }
}

impl FromJson for Delta {
    fn from_json(value: &Value) -> Result<Self, String> {
        let text = |key: &str| value.text_at(key).unwrap_or_default();
        let kind = match text("type") {
            "text" => DeltaKind::Text,
            "thinking" => DeltaKind::Thinking,
            "tool_call" => {
                DeltaKind::ToolCall { call_id: text("callId").into(), tool_name: text("toolName").into() }
            }
            other => return Err(["unknown delta `", other, "`"].concat()),
        };
        let index = value.number_at("contentIndex");
        let content_index = index.and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
        Ok(Delta { content_index, kind, text: text("delta").to_owned() })
    }
}
