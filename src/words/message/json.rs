//! Messages as JSON, the same as in the npm package, field for field.

use std::rc::Rc;

use super::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, LlmMessage, MessageStopReason,
    ToolResultCause, ToolResultMessage, Usage, UserMessage,
};
use crate::data::json::{FromJson, ObjectWriter, ToJson, Value, bool_text};
use crate::words::error::ErrorInfo;

/// Reads blocks, and refuses kinds that the role does not allow. A bare string is one text block.
fn blocks(value: &Value, role: &str, takes: fn(&ContentBlock) -> bool) -> Result<Vec<ContentBlock>, String> {
    let items = match value.get("content") {
        Some(Value::String(text)) => return Ok(vec![ContentBlock::text(text.as_str())]),
        Some(Value::Array(items)) => items,
        other => {
            let got = other.map_or("nothing", Value::kind);
            return Err(["`content` of a ", role, " message must be a list of blocks, got ", got].concat());
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

pub(super) fn text_field(value: &Value, key: &str) -> Result<String, String> {
    match value.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => Err(["`", key, "` must be a string, got ", other.map_or("nothing", Value::kind)].concat()),
    }
}

fn timestamp(value: &Value) -> u64 {
    value.number_at("timestamp").unwrap_or(0)
}

impl ToJson for UserMessage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.fill(r#""role":"user""#, &[]).field("content", &self.content);
        object.field("timestamp", &self.timestamp);
        object.end();
    }
}

impl FromJson for UserMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let takes = |b: &ContentBlock| {
            matches!(b, ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::File(_))
        };
        Ok(UserMessage { content: blocks(value, "user", takes)?, timestamp: timestamp(value), foreign: None })
    }
}

impl ToJson for AssistantMessage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.fill(r#""role":"assistant""#, &[]).field("content", &self.content);
        object
            .fill(r#""provider":"$","model":"$""#, &[&self.provider, &self.model])
            .field("usage", &self.usage);
        object.fill(r#""stopReason":"$""#, &[self.stop_reason.as_str()]).optional("error", &self.error);
        object.field("timestamp", &self.timestamp);
        object.end();
    }
}

impl FromJson for AssistantMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let takes = |b: &ContentBlock| {
            matches!(
                b,
                ContentBlock::Text(_)
                    | ContentBlock::Thinking(_)
                    | ContentBlock::ToolCall(_)
                    | ContentBlock::Raw(_)
            )
        };
        let word = value.text_at("stopReason");
        let stop_reason = match word {
            None => MessageStopReason::Stop,
            Some(word) => MessageStopReason::from_word(word)
                .ok_or_else(|| ["unknown stop reason `", word, "`"].concat())?,
        };
        Ok(AssistantMessage {
            content: blocks(value, "assistant", takes)?,
            provider: value.text_at("provider").unwrap_or_default().to_owned(),
            model: value.text_at("model").unwrap_or_default().to_owned(),
            usage: value.get("usage").map_or(Ok(Usage::default()), Usage::from_json)?,
            stop_reason,
            error: value.get("error").map(ErrorInfo::from_json).transpose()?,
            timestamp: timestamp(value),
            foreign: None,
        })
    }
}

impl ToJson for ToolResultMessage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        let template = r#""role":"tool_result","callId":"$","toolName":"$""#;
        object.fill(template, &[&self.call_id, &self.tool_name]);
        object.field("content", &self.content).optional("details", &self.details);
        object.fill(r#""isError":#"#, &[bool_text(self.is_error)]);
        if let Some(cause) = self.cause {
            object.field("cause", cause.as_str());
        }
        object.field("timestamp", &self.timestamp);
        object.end();
    }
}

impl FromJson for ToolResultMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let takes = |b: &ContentBlock| {
            matches!(b, ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::File(_))
        };
        Ok(ToolResultMessage {
            call_id: text_field(value, "callId")?,
            tool_name: value.text_at("toolName").unwrap_or_default().to_owned(),
            content: blocks(value, "tool_result", takes)?,
            details: value.get("details").map(ToJson::to_raw),
            is_error: value.flag_at("isError").unwrap_or(false),
            cause: value.text_at("cause").and_then(ToolResultCause::from_word),
            timestamp: timestamp(value),
            foreign: None,
        })
    }
}

impl ToJson for CustomMessage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.fill(r#""role":"custom","kind":"$","data":#"#, &[&self.kind, self.data.as_str()]);
        object.field("timestamp", &self.timestamp);
        object.end();
    }
}

impl FromJson for CustomMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let data = value.get("data").unwrap_or(&Value::Null);
        Ok(CustomMessage {
            kind: text_field(value, "kind")?,
            data: data.to_raw(),
            timestamp: timestamp(value),
        })
    }
}

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
