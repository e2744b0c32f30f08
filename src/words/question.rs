//! Questions: what waits for a person.

use crate::data::json::{FromJson, ObjectWriter, ToJson, Value};

use super::message::ToolCallBlock;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// Whether a tool call may run.
    Tool,
}

impl QuestionKind {
    /// Returns the word used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            QuestionKind::Tool => "tool",
        }
    }
}

/// A question that waits for a person. An answer names its id, and applies to exactly what is shown here.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Names this question and no other: not one of a later run, nor of another run from the same checkpoint.
    pub id: String,
    /// What the question is about.
    pub kind: QuestionKind,
    /// The calls that led to the agent that asks; empty for the agent itself.
    pub path: Vec<String>,
    /// The call, with the arguments that its tool would receive.
    pub call: Option<ToolCallBlock>,
    /// The question in words, if it has any.
    pub message: Option<String>,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at: u64,
}

impl Question {
    /// A question about a tool call of the agent itself.
    pub fn about(call: ToolCallBlock, id: String, asked_at: u64) -> Self {
        let kind = QuestionKind::Tool;
        Question { id, kind, path: Vec::new(), call: Some(call), message: None, asked_at }
    }

    /// Returns the id of the call that the question is about, if it is about one.
    pub fn call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|call| call.call_id.as_str())
    }
}

impl ToJson for Question {
    /// A question about a call has the members of the call too.
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        if let Some(call) = &self.call {
            object.field("type", "tool_call").field("callId", &call.call_id);
            object.field("toolName", &call.tool_name).field("arguments", &call.arguments);
            object.optional("metadata", &call.metadata);
        }
        object.field("id", &self.id).field("kind", self.kind.as_str()).field("path", &self.path);
        object.optional("message", &self.message).field("askedAt", &self.asked_at);
        object.end();
    }
}

impl FromJson for Question {
    fn from_json(value: &Value) -> Result<Self, String> {
        let mut path = Vec::new();
        for call_id in value.list_at("path") {
            path.extend(call_id.as_str().map(str::to_owned));
        }
        Ok(Question {
            id: value.owned_at("id").unwrap_or_default(),
            kind: QuestionKind::Tool,
            path,
            call: value.get("callId").map(|_| ToolCallBlock::from_json(value)).transpose()?,
            message: value.owned_at("message"),
            asked_at: value.number_at("askedAt").unwrap_or_default(),
        })
    }
}
