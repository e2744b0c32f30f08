//! Messages as this wire writes them: items. Their ids are left out, because the provider stores nothing.
//! Thinking is sent back encrypted, only to the model it came from, and before the text or call that it led
//! to.

use std::borrow::Cow;
use std::rc::Rc;

use crate::data::json::{ToJson, Value, fill, without_comma, write_str};
use crate::data::text::Put;
use crate::wires::decoding::citations::is_citations;
use crate::wires::encoding::files::{FileForm, data_url, form_of, result_parts};
use crate::wires::encoding::history::Carried;
use crate::wires::encoding::ids::{fitting_id, is_plain};
use crate::words::message::{
    AssistantMessage, ContentBlock, FileBlock, LlmMessage, Media, MediaSource, ThinkingBlock, ToolCallBlock,
    ToolResultMessage, UserMessage,
};

use super::signatures::parts;

/// Writes messages for one model of one server.
pub(super) struct ResponsesMessageWriter<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

// In `Carried`, `answer` is the last answer. Its calls are needed, because the result of a call whose input
// is a text has another type.

impl ResponsesMessageWriter<'_> {
    /// Appends the items of a message, each with a comma before it.
    pub(super) fn write(&self, message: &LlmMessage, carried: &mut Carried, out: &mut String) {
        match message {
            LlmMessage::User(message) => write_user(message, out),
            LlmMessage::Assistant(message) => self.write_assistant(message, carried, out),
            LlmMessage::ToolResult(message) => write_result(message, carried, out),
        }
    }

    fn write_assistant(&self, message: &Rc<AssistantMessage>, carried: &mut Carried, out: &mut String) {
        let is_own = message.provider == self.provider;
        carried.answer = if is_own { Some(message.clone()) } else { None };
        let is_same_model = is_own && message.model == self.model && !message.is_cut();
        // The provider rejects thinking that led to nothing, so thinking waits for what follows it.
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
                    write_call(call, is_own && is_custom(call), out);
                }
                // xAI's own searches come without a result, so they cannot be sent back.
                ContentBlock::Raw(data)
                    if is_same_model
                        && !is_citations(data)
                        && data.to_value().text_at("type") != Some("custom_tool_call") =>
                {
                    out.put(&std::mem::take(&mut waiting));
                    fill(",#", &[data.as_str()], out);
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
            ContentBlock::Image(image) => write_image(&image.media, &mut parts),
            ContentBlock::File(file) => write_file(file, &mut parts),
            // User messages do not contain these.
            ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) | ContentBlock::Raw(_) => _ = parts.pop(),
        }
    }
    if !parts.is_empty() {
        fill(r#",{"role":"user","content":[#]}"#, &[without_comma(&parts)], out);
    }
}

fn write_reasoning(block: &ThinkingBlock, out: &mut String) {
    let Some(Ok(Value::Object(signature))) = block.signature.as_deref().map(Value::parse) else {
        return;
    };
    let is_summary = signature.get("source").is_none();
    // Only its id is left, and the provider stored nothing that the id could refer to.
    if is_summary && signature.get("encrypted_content").is_none() {
        return;
    }
    out.put(",{\"type\":\"reasoning\"");
    // A page may have posted the signature: it must not make another item of this one.
    let is_own = |key: &str| !matches!(key, "source" | "parts" | "type" | "role" | "summary" | "content");
    for (key, value) in signature.iter().filter(|(key, _)| is_own(key)) {
        fill(",\"$\":#", &[key, &value.to_json()], out);
    }
    let kind = if is_summary { "summary_text" } else { "reasoning_text" };
    let mut list = String::new();
    for part in parts(&block.thinking, signature.get("parts")) {
        list.put(",");
        write_part(kind, part, &mut list);
    }
    let template = if is_summary { ",\"summary\":[#]}" } else { ",\"summary\":[],\"content\":[#]}" };
    fill(template, &[without_comma(&list)], out);
}

fn write_text(text: &str, phase: &Option<Value>, out: &mut String) {
    out.put(",{\"type\":\"message\",\"role\":\"assistant\"");
    if let Some(phase) = phase {
        fill(",\"phase\":#", &[&phase.to_json()], out);
    }
    fill(r#","content":[{"type":"output_text","text":"$","annotations":[]}]}"#, &[text], out);
}

fn write_call(call: &ToolCallBlock, is_custom: bool, out: &mut String) {
    let template = if is_custom {
        r#",{"type":"custom_tool_call","call_id":"$","name":"$","input":"$"}"#
    } else {
        r#",{"type":"function_call","call_id":"$","name":"$","arguments":"$"}"#
    };
    let input = if is_custom { call.arguments.to_value() } else { Value::Null };
    let input = match input.text_at("input") {
        _ if !is_custom => call.object(),
        input => input.unwrap_or_default(),
    };
    let name = fitting_id(&call.tool_name, 64, is_plain);
    fill(template, &[&wire_id(&call.call_id), &name, input], out);
}

/// Whether the provider knows a call as one whose input is a plain text.
fn is_custom(call: &ToolCallBlock) -> bool {
    call.metadata.as_ref().is_some_and(|metadata| metadata.to_value().get("custom").is_some())
}

fn write_result(message: &ToolResultMessage, carried: &mut Carried, out: &mut String) {
    let (text, media) = result_parts(message);
    let is_custom = carried.call(&message.call_id).is_some_and(is_custom);
    let mut output = String::new();
    if media.is_empty() {
        write_str(&text, &mut output);
    } else {
        let mut list = String::new();
        if !text.is_empty() {
            list.put(",");
            write_input_text(&text, &mut list);
        }
        for block in media {
            list.put(",");
            match block {
                ContentBlock::Image(image) => write_image(&image.media, &mut list),
                ContentBlock::File(file) => write_file(file, &mut list),
                _ => {}
            }
        }
        fill("[#]", &[without_comma(&list)], &mut output);
    }
    let kind = if is_custom { "custom_tool_call_output" } else { "function_call_output" };
    fill(r#",{"type":"$","call_id":"$","output":#}"#, &[kind, &wire_id(&message.call_id), &output], out);
}

fn write_input_text(text: &str, out: &mut String) {
    write_part("input_text", text, out);
}

fn write_part(kind: &str, text: &str, out: &mut String) {
    fill(r#"{"type":"$","text":"$"}"#, &[kind, text], out);
}

fn write_image(media: &Media, out: &mut String) {
    let url = data_url(media);
    fill(r#"{"type":"input_image","image_url":"$","detail":"auto"}"#, &[&url], out);
}

fn write_file(file: &FileBlock, out: &mut String) {
    match form_of(file) {
        FileForm::Image => return write_image(&file.media, out),
        FileForm::Text(text) => return write_input_text(&text, out),
        FileForm::Other => {}
    }
    if let MediaSource::Url(url) = file.media.source() {
        return fill(r#"{"type":"input_file","file_url":"$"}"#, &[url], out);
    }
    let values = [file.name.as_deref().unwrap_or("file"), &data_url(&file.media)];
    fill(r#"{"type":"input_file","filename":"$","file_data":"$"}"#, &values, out);
}

fn wire_id(call_id: &str) -> Cow<'_, str> {
    fitting_id(call_id, 64, is_plain)
}
