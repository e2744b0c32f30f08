//! Messages as this wire writes them: items. Ids of items are left out, because the provider keeps none; thinking goes
//! back encrypted, to the model that thought it, in front of what came of it.

use std::borrow::Cow;

use crate::json::{ObjectWriter, RawJson, ToJson, Value};
use crate::message::{
    AssistantMessage, ContentBlock, FileBlock, ImageBlock, LlmMessage, ThinkingBlock, ToolCallBlock,
    ToolResultMessage, UserMessage,
};
use crate::provider::request::{FileForm, data_url, fitting_id, form_of, is_plain, told_result};
use crate::text::Put;

use super::decode::JOINT;

/// Writes messages for one model of one server.
pub(super) struct Scribe<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

/// The calls of the last answer whose input is a text: their results have another name.
pub(super) type CustomCalls = Vec<String>;

impl Scribe<'_> {
    /// Appends the items of a message, each with a comma before it.
    pub(super) fn write(&self, message: &LlmMessage, custom: &mut CustomCalls, out: &mut String) {
        match message {
            LlmMessage::User(message) => write_user(message, out),
            LlmMessage::Assistant(message) => self.write_assistant(message, custom, out),
            LlmMessage::ToolResult(message) => write_result(message, custom, out),
        }
    }

    fn write_assistant(&self, message: &AssistantMessage, custom: &mut CustomCalls, out: &mut String) {
        custom.clear();
        let is_own = message.provider == self.provider;
        let is_same_model = is_own && message.model == self.model && !message.is_cut();
        // Thinking that nothing came of is refused: it waits for what follows it.
        let mut waiting = String::new();
        for block in &message.content {
            match block {
                ContentBlock::Thinking(block) if is_same_model => write_reasoning(block, &mut waiting),
                ContentBlock::Text(block) if !block.text.is_empty() => {
                    out.put(&std::mem::take(&mut waiting));
                    let signature = block.signature.as_deref().filter(|_| is_own).map(Value::parse);
                    let phase = signature.and_then(Result::ok).and_then(|item| item.get("phase").cloned());
                    write_text(&block.text, &phase, out);
                }
                ContentBlock::ToolCall(call) => {
                    out.put(&std::mem::take(&mut waiting));
                    let metadata = call.metadata.as_ref().filter(|_| is_own).map(RawJson::to_value);
                    let is_custom = metadata.is_some_and(|metadata| metadata.get("custom").is_some());
                    if is_custom {
                        custom.push(call.call_id.clone());
                    }
                    write_call(call, is_custom, out);
                }
                ContentBlock::Raw(data) if is_same_model => {
                    out.put(&std::mem::take(&mut waiting));
                    out.put(",");
                    data.write_json(out);
                }
                _ => {}
            }
        }
    }
}

fn write_user(message: &UserMessage, out: &mut String) {
    let mut parts = String::new();
    for block in &message.content {
        parts.put(",");
        match block {
            ContentBlock::Text(block) => write_input_text(&block.text, &mut parts),
            ContentBlock::Image(image) => write_image(image, &mut parts),
            ContentBlock::File(file) => write_file(file, &mut parts),
            // No user message holds these.
            ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) | ContentBlock::Raw(_) => _ = parts.pop(),
        }
    }
    if let Some(parts) = parts.strip_prefix(',') {
        out.put(",{\"role\":\"user\",\"content\":[");
        out.put(parts);
        out.put("]}");
    }
}

fn write_reasoning(block: &ThinkingBlock, out: &mut String) {
    let Some(Ok(Value::Object(signature))) = block.signature.as_deref().map(Value::parse) else {
        return;
    };
    let is_summary = signature.get("source").is_none();
    // The provider kept nothing that an id could stand for.
    if is_summary && signature.get("encrypted_content").is_none() {
        return;
    }
    out.put(",");
    let mut object = ObjectWriter::new(out);
    object.field("type", "reasoning");
    for (key, value) in signature.iter().filter(|(key, _)| !matches!(*key, "source" | "parts")) {
        object.field(key, value);
    }
    let parts = parts(&block.thinking, signature.get("parts"));
    for (list, word, is_filled) in
        [("summary", "summary_text", is_summary), ("content", "reasoning_text", !is_summary)]
    {
        if list == "content" && !is_filled {
            continue;
        }
        let out = object.key(list);
        out.put("[");
        for (at, part) in parts.iter().filter(|_| is_filled).enumerate() {
            if at > 0 {
                out.put(",");
            }
            write_part(word, part, out);
        }
        out.put("]");
    }
    object.end();
}

/// The parts that were joined.
fn parts<'t>(thinking: &'t str, lengths: Option<&Value>) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut rest = thinking;
    for length in lengths.and_then(Value::as_array).unwrap_or_default() {
        let length = length.as_u64().and_then(|length| usize::try_from(length).ok());
        let Some((part, after)) = length.and_then(|length| rest.split_at_checked(length)) else {
            break;
        };
        parts.push(part);
        rest = after.strip_prefix(JOINT).unwrap_or(after);
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

fn write_text(text: &str, phase: &Option<Value>, out: &mut String) {
    out.put(",");
    let mut object = ObjectWriter::new(out);
    object.field("type", "message").field("role", "assistant").optional("phase", phase);
    let out = object.key("content");
    out.put("[");
    let mut part = ObjectWriter::new(out);
    part.field("type", "output_text").field("text", text);
    part.key("annotations").put("[]");
    part.end();
    out.put("]");
    object.end();
}

fn write_call(call: &ToolCallBlock, is_custom: bool, out: &mut String) {
    out.put(",");
    let mut object = ObjectWriter::new(out);
    object.field("type", if is_custom { "custom_tool_call" } else { "function_call" });
    object
        .field("call_id", wire_id(&call.call_id).as_ref())
        .field("name", &*fitting_id(&call.tool_name, 64, is_plain));
    if is_custom {
        let arguments = call.arguments.to_value();
        object.field("input", arguments.get("input").and_then(Value::as_str).unwrap_or_default());
    } else {
        object.field("arguments", call.arguments.as_str());
    }
    object.end();
}

fn write_result(message: &ToolResultMessage, custom: &CustomCalls, out: &mut String) {
    let (text, pictures) = told_result(message);
    let is_custom = custom.contains(&message.call_id);
    out.put(",");
    let mut object = ObjectWriter::new(out);
    object.field("type", if is_custom { "custom_tool_call_output" } else { "function_call_output" });
    object.field("call_id", wire_id(&message.call_id).as_ref());
    if pictures.is_empty() {
        object.field("output", &text);
    } else {
        let out = object.key("output");
        out.put("[");
        if !text.is_empty() {
            write_input_text(&text, out);
        }
        for picture in pictures {
            if !out.ends_with('[') {
                out.put(",");
            }
            write_image(picture, out);
        }
        out.put("]");
    }
    object.end();
}

fn write_input_text(text: &str, out: &mut String) {
    write_part("input_text", text, out);
}

fn write_part(kind: &str, text: &str, out: &mut String) {
    let mut part = ObjectWriter::new(out);
    part.field("type", kind).field("text", text);
    part.end();
}

fn write_image(image: &ImageBlock, out: &mut String) {
    let mut part = ObjectWriter::new(out);
    part.field("type", "input_image").field("image_url", &data_url(&image.mime_type, &image.data));
    part.field("detail", "auto");
    part.end();
}

fn write_file(file: &FileBlock, out: &mut String) {
    match form_of(file) {
        FileForm::Image(image) => return write_image(&image, out),
        FileForm::Text(text) => return write_input_text(&text, out),
        FileForm::Other => {}
    }
    let mut part = ObjectWriter::new(out);
    part.field("type", "input_file").field("filename", file.name.as_deref().unwrap_or("file"));
    part.field("file_data", &data_url(&file.mime_type, &file.data));
    part.end();
}

fn wire_id(call_id: &str) -> Cow<'_, str> {
    fitting_id(call_id, 64, is_plain)
}
