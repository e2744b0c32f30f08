//! Questions: what waits for a person.

use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value, words};

use super::event::{BudgetKind, read_amount, write_amount};
use super::message::ToolCallBlock;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// Whether a tool call may run.
    Tool,
    /// Whether a budget may be exceeded.
    Budget,
    /// What a running tool wants to know.
    Elicitation,
    /// The result of a call whose tool has no implementation here.
    ToolCall,
}

words!(QuestionKind { Tool = "tool", Budget = "budget", Elicitation = "elicitation", ToolCall = "tool_call" });

/// A limit of a budget that leaves no room for the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachedLimit {
    /// What it limits.
    pub kind: BudgetKind,
    /// What was used: trillionths of the unit of the prices, a number, or milliseconds.
    pub used: u64,
    /// What may be used.
    pub limit: u64,
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
    /// The call, with the arguments that its tool would receive, or has received.
    pub call: Option<ToolCallBlock>,
    /// The question in words, if it has any.
    pub message: Option<String>,
    /// A JSON Schema of what is to be answered, if a tool asks for more than a yes.
    pub schema: Option<RawJson>,
    /// The limit, if the question is about a budget.
    pub limit: Option<ReachedLimit>,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at: u64,
}

impl Question {
    /// A question about a tool call of the agent itself.
    pub fn about(call: ToolCallBlock, id: String, asked_at: u64) -> Self {
        Question { call: Some(call), ..Question::new(QuestionKind::Tool, id, asked_at) }
    }

    /// A question of the agent itself.
    pub fn new(kind: QuestionKind, id: String, asked_at: u64) -> Self {
        Question {
            id,
            kind,
            path: Vec::new(),
            call: None,
            message: None,
            schema: None,
            limit: None,
            asked_at,
        }
    }

    /// Returns the id of the call that the question is about, if it is about one.
    pub fn call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|call| call.call_id.as_str())
    }

    /// Appends the members of the question's JSON object. One about a call has the members of the call too.
    pub(crate) fn write_members(&self, object: &mut ObjectWriter<'_>) {
        if let Some(call) = &self.call {
            if self.kind == QuestionKind::Tool {
                object.field("type", "tool_call");
            }
            object.field("callId", &call.call_id).field("toolName", &call.tool_name);
            if let QuestionKind::Tool | QuestionKind::ToolCall = self.kind {
                object.field("arguments", &call.arguments).optional("metadata", &call.metadata);
            }
        }
        object.field("id", &self.id).field("kind", self.kind.as_str()).field("path", &self.path);
        object.optional("message", &self.message).optional("schema", &self.schema);
        if let Some(limit) = &self.limit {
            limit.write_json(object.key("budget"));
        }
        object.field("askedAt", &self.asked_at);
    }
}

impl ToJson for Question {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        self.write_members(&mut object);
        object.end();
    }
}

impl FromJson for Question {
    fn from_json(value: &Value) -> Result<Self, String> {
        let mut path = Vec::new();
        for call_id in value.list_at("path") {
            path.extend(call_id.as_str().map(str::to_owned));
        }
        let call = value.get("callId").map(|call_id| ToolCallBlock {
            call_id: call_id.as_str().unwrap_or_default().to_owned(),
            tool_name: value.owned_at("toolName").unwrap_or_default(),
            arguments: value.get("arguments").map_or_else(RawJson::empty_object, ToJson::to_raw),
            metadata: value.get("metadata").map(ToJson::to_raw),
        });
        Ok(Question {
            id: value.owned_at("id").unwrap_or_default(),
            kind: value.text_at("kind").and_then(QuestionKind::from_word).unwrap_or(QuestionKind::Tool),
            path,
            call,
            message: value.owned_at("message"),
            schema: value.get("schema").map(ToJson::to_raw),
            limit: value.get("budget").and_then(ReachedLimit::read),
            asked_at: value.number_at("askedAt").unwrap_or_default(),
        })
    }
}

impl ToJson for ReachedLimit {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("kind", self.kind.as_str());
        write_amount("used", self.kind, self.used, &mut object);
        write_amount("limit", self.kind, self.limit, &mut object);
        object.end();
    }
}

impl ReachedLimit {
    fn read(value: &Value) -> Option<Self> {
        let kind = BudgetKind::from_word(value.text_at("kind")?)?;
        let amount = |key: &str| read_amount(value, key, kind);
        Some(ReachedLimit { kind, used: amount("used"), limit: amount("limit") })
    }
}
