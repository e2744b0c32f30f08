//! What a host hands over and receives as JSON, in the form of the npm package, and serde for it.

use serde::{Serialize, Serializer};

use crate::data::json::{FromJson, ObjectWriter, ToJson, Value, serde_as_json, serialize_as_json};
use crate::host::ports::{AgentRunContext, ApprovalRequest};
use crate::host::tool::{AgentToolResult, Transfer};
use crate::words::message::ContentBlock;

impl ToJson for AgentRunContext {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("runId", &self.run_id).field("sessionId", &self.session_id);
        object.optional("metadata", &self.metadata);
        object.end();
    }
}

impl FromJson for AgentRunContext {
    fn from_json(value: &Value) -> Result<Self, String> {
        let id = |key: &str| value.text_at(key).ok_or_else(|| ["a run needs a text `", key, "`"].concat());
        let metadata = value.get("metadata").map(ToJson::to_raw);
        Ok(AgentRunContext { metadata, ..AgentRunContext::new(id("runId")?, id("sessionId")?) })
    }
}

impl ToJson for AgentToolResult {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("content", &self.content).optional("details", &self.details);
        object.field("isError", &self.is_error);
        if let Some(transfer) = &self.transfer {
            let mut inner = ObjectWriter::new(object.key("transfer"));
            inner.field("to", &transfer.to).optional("reason", &transfer.reason);
            inner.end();
        }
        object.end();
    }
}

/// Reads what a tool in JavaScript returns as blocks or as a transfer. Other values have no form of their own here.
impl FromJson for AgentToolResult {
    fn from_json(value: &Value) -> Result<Self, String> {
        let transfer = value.get("transfer").map(|transfer| match transfer.text_at("to") {
            Some(to) => Ok(Transfer { to: to.to_owned(), reason: transfer.owned_at("reason") }),
            None => Err("a transfer needs a text `to`".to_owned()),
        });
        let transfer = transfer.transpose()?;
        let content = match value.get("content") {
            Some(blocks) => Vec::<ContentBlock>::from_json(blocks)?,
            None if transfer.is_some() => Vec::new(),
            None => return Err("the result of a tool needs `content`, a list of blocks".to_owned()),
        };
        Ok(AgentToolResult {
            content,
            details: value.get("details").map(ToJson::to_raw),
            is_error: value.flag_at("isError").unwrap_or(false),
            transfer,
        })
    }
}

impl ToJson for ApprovalRequest {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("id", &self.id).field("callId", &self.call_id).field("toolName", &self.tool_name);
        object.field("arguments", &self.arguments).field("requiresApproval", &self.requires_approval);
        object.end();
    }
}

serde_as_json!(AgentRunContext, AgentToolResult);

impl Serialize for ApprovalRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_as_json(self, serializer)
    }
}
