//! Messages as this wire writes them: contents with parts. A signature is sent back on the part that it came
//! with, and only to the model that signed it.

use std::rc::Rc;

use crate::data::json::{RawJson, fill, without_comma};
use crate::data::text::Put;
use crate::wires::decoding::citations::is_citations;
use crate::wires::encoding::files::{FileForm, caption, form_of, text_and_media};
use crate::wires::encoding::history::{Carried, GO_ON, LEFT_OUT};
use crate::wires::encoding::ids::{fitting_id, is_plain};
use crate::words::message::{
    AssistantMessage, ContentBlock, LlmMessage, Media, MediaSource, ToolCallBlock, ToolResultMessage,
    UserMessage,
};

/// Writes messages for one model.
pub(super) struct GeminiMessageWriter<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    /// Gemini 3 and later.
    pub(super) is_gemini_3: bool,
}

// In `Carried`, `is_open` says that the last message is a tool result, and that the content with all results
// of the turn is still open. `pictures` are those of the results, for models that accept none inside a
// result.

/// What the provider accepts instead of a signature that was never made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Writes the whole list, with the system prompt before it.
pub(super) fn write_all(prompt: &str, mut carried: Carried, contents: &str, out: &mut String) {
    out.put("[");
    if prompt.is_empty() {
        // The provider wants the user to begin.
        if contents.starts_with(",{\"role\":\"model\"") {
            fill(r#"{"role":"user","parts":[{"text":"$"}]},"#, &[LEFT_OUT], out);
        }
        out.put(without_comma(contents));
    } else {
        fill(r#"{"role":"user","parts":[{"text":"$"}]}"#, &[prompt], out);
        out.put(contents);
    }
    close(&mut carried, out);
    out.put("]");
}

fn close(carried: &mut Carried, out: &mut String) {
    if carried.is_open {
        carried.is_open = false;
        out.put(&carried.take_pictures());
        out.put("]}");
    }
}

impl GeminiMessageWriter<'_> {
    /// Appends a message, with a comma before it. An empty one is left out.
    pub(super) fn write(&self, message: &LlmMessage, carried: &mut Carried, out: &mut String) {
        match message {
            LlmMessage::User(message) => {
                close(carried, out);
                carried.is_answered = false;
                write_user(message, out);
            }
            LlmMessage::Assistant(message) => {
                close(carried, out);
                self.write_model(message, carried, out);
            }
            LlmMessage::ToolResult(message) => self.write_result(message, carried, out),
        }
    }

    fn write_model(&self, message: &Rc<AssistantMessage>, carried: &mut Carried, out: &mut String) {
        let is_own = message.provider == self.provider;
        carried.answer = if is_own { Some(message.clone()) } else { None };
        let is_same_model = is_own && message.model == self.model;
        let mut parts = String::new();
        let mut is_first_call = true;
        for block in &message.content {
            match block {
                ContentBlock::Text(block) => {
                    let signature = block.signature.as_deref().filter(|_| is_same_model);
                    if !block.text.is_empty() || signature.is_some() {
                        write_text(&block.text, signature, false, &mut parts);
                    }
                }
                ContentBlock::Thinking(block)
                    if is_same_model
                        && !block.redacted
                        && (!block.thinking.is_empty() || block.signature.is_some()) =>
                {
                    write_text(&block.thinking, block.signature.as_deref(), true, &mut parts);
                }
                ContentBlock::ToolCall(call) => {
                    let metadata = call.metadata.as_ref().filter(|_| is_own);
                    let metadata = metadata.map(RawJson::to_value).unwrap_or_default();
                    let word = |key: &str| metadata.text_at(key);
                    let signature = word("thoughtSignature").filter(|_| is_same_model);
                    let sentinel = if is_first_call && self.is_gemini_3 { Some(NO_SIGNATURE) } else { None };
                    write_call(call, word("id"), signature.or(sentinel), &mut parts);
                    is_first_call = false;
                }
                ContentBlock::Raw(data) if is_same_model && !message.is_cut() && !is_citations(data) => {
                    fill(",#", &[data.as_str()], &mut parts);
                }
                _ => {}
            }
        }
        if parts.is_empty() {
            return;
        }
        if carried.is_answered {
            let mut words = String::new();
            write_text(GO_ON, None, false, &mut words);
            write_content("user", &words, out);
        }
        carried.is_answered = true;
        write_content("model", &parts, out);
    }

    fn write_result(&self, message: &ToolResultMessage, carried: &mut Carried, out: &mut String) {
        out.put(if carried.is_open { "," } else { ",{\"role\":\"user\",\"parts\":[" });
        (carried.is_open, carried.is_answered) = (true, false);
        out.put("{\"functionResponse\":{");
        let metadata = carried.call(&message.call_id).and_then(|call| call.metadata.as_ref());
        if let Some(id) = metadata.map(RawJson::to_value).unwrap_or_default().text_at("id") {
            fill("\"id\":\"$\",", &[id], out);
        }
        let name = fitting_id(&message.tool_name, 64, is_allowed);
        let key = if message.is_error { "error" } else { "result" };
        let (text, media) = text_and_media(message);
        fill("\"name\":\"$\",\"response\":{\"$\":\"$\"}", &[&name, key, &text], out);
        let mut parts = String::new();
        for block in &media {
            match block {
                ContentBlock::Image(image) => write_data(&image.media, &mut parts),
                ContentBlock::File(file) => write_data(&file.media, &mut parts),
                _ => {}
            }
        }
        if self.is_gemini_3 && !parts.is_empty() {
            fill(",\"parts\":[#]", &[without_comma(&parts)], out);
        }
        out.put("}}");
        if !self.is_gemini_3 && !parts.is_empty() {
            let caption = [caption(&media), &message.tool_name, "`:"].concat();
            let mut later = String::new();
            write_text(&caption, None, false, &mut later);
            later.put(&parts);
            carried.pictures.push(later.into());
        }
    }
}

fn write_user(message: &UserMessage, out: &mut String) {
    let mut parts = String::new();
    for block in &message.content {
        match block {
            ContentBlock::Text(block) if block.text.is_empty() => {}
            ContentBlock::Text(block) => write_text(&block.text, None, false, &mut parts),
            ContentBlock::Image(image) => write_data(&image.media, &mut parts),
            // The provider accepts text only as text, not as a file.
            ContentBlock::File(file) => match form_of(file) {
                FileForm::Text(text) => write_text(&text, None, false, &mut parts),
                _ => write_data(&file.media, &mut parts),
            },
            // User messages do not contain these.
            ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) | ContentBlock::Raw(_) => {}
        }
    }
    write_content("user", &parts, out);
}

/// Whether a character is allowed in the name of a function.
fn is_allowed(c: char) -> bool {
    is_plain(c) || matches!(c, '.' | ':')
}

/// Writes a content. The provider rejects one without parts.
fn write_content(role: &str, parts: &str, out: &mut String) {
    if !parts.is_empty() {
        fill(r#",{"role":"$","parts":[#]}"#, &[role, without_comma(parts)], out);
    }
}

fn write_text(text: &str, signature: Option<&str>, is_thought: bool, out: &mut String) {
    fill(",{\"text\":\"$\"#", &[text, if is_thought { ",\"thought\":true" } else { "" }], out);
    sign(signature, out);
}

fn write_call(call: &ToolCallBlock, id: Option<&str>, signature: Option<&str>, out: &mut String) {
    out.put(",{\"functionCall\":{");
    if let Some(id) = id {
        fill("\"id\":\"$\",", &[id], out);
    }
    let name = fitting_id(&call.tool_name, 64, is_allowed);
    fill("\"name\":\"$\",\"args\":#}", &[&name, call.object()], out);
    sign(signature, out);
}

/// Ends a part, with its signature.
fn sign(signature: Option<&str>, out: &mut String) {
    if let Some(signature) = signature {
        fill(",\"thoughtSignature\":\"$\"", &[signature], out);
    }
    out.put("}");
}

fn write_data(media: &Media, out: &mut String) {
    match media.source() {
        MediaSource::Data(data) => {
            fill(r#",{"inlineData":{"mimeType":"$","data":"$"}}"#, &[media.mime_type(), data], out);
        }
        MediaSource::Url(url) => write_link(media.mime_type(), url, out),
    }
}

/// Writes an image or a file that is elsewhere. The type of an image need not be known.
fn write_link(mime_type: &str, url: &str, out: &mut String) {
    let template = if mime_type.is_empty() {
        r#",{"fileData":{#"fileUri":"$"}}"#
    } else {
        r#",{"fileData":{"mimeType":"$","fileUri":"$"}}"#
    };
    fill(template, &[mime_type, url], out);
}
