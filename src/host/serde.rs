//! What a host hands over and receives as JSON, in the form of the npm package, and serde for it.

use serde::{Serialize, Serializer};

use crate::data::json::members::{maybe, plain};
use crate::data::json::{FromJson, ToJson, Value, members, serde_as_json, serialize_as_json};
use crate::host::ports::{AgentRunContext, ApprovalRequest};
use crate::host::tool::{AgentToolResult, Transfer};
use crate::words::message::ContentBlock;

members!(write AgentRunContext {
    "runId" => run_id: plain,
    "sessionId" => session_id: plain,
    "metadata" => metadata: maybe,
});

impl FromJson for AgentRunContext {
    fn from_json(value: &Value) -> Result<Self, String> {
        let id = |key: &str| value.text_at(key).ok_or_else(|| ["a run needs a text `", key, "`"].concat());
        let metadata = value.get("metadata").map(ToJson::to_raw);
        Ok(AgentRunContext { metadata, ..AgentRunContext::new(id("runId")?, id("sessionId")?) })
    }
}

members!(write AgentToolResult {
    "content" => content: plain,
    "details" => details: maybe,
    "isError" => is_error: plain,
    "transfer" => transfer: maybe,
});

members!(write Transfer { "to" => to: plain, "reason" => reason: maybe });

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

members!(write ApprovalRequest {
    "id" => id: plain,
    "callId" => call_id: plain,
    "toolName" => tool_name: plain,
    "arguments" => arguments: plain,
    "requiresApproval" => requires_approval: plain,
});

serde_as_json!(AgentRunContext, AgentToolResult);

impl Serialize for ApprovalRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_as_json(self, serializer)
    }
}
