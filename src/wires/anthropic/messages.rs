//! Messages as this wire writes them. Users and tools have the same role: everything between two answers is
//! one message.

use std::borrow::Cow;

use crate::data::json::{ToJson, Value, fill, without_comma};
use crate::data::text::{Put, contains};
use crate::wires::decoding::citations::is_citations;
use crate::wires::encoding::files::decoded_text;
use crate::wires::encoding::history::{Carried, LEFT_OUT};
use crate::wires::encoding::ids::{fitting_id, is_plain};
use crate::words::message::{
    AssistantMessage, ContentBlock, FileBlock, LlmMessage, Media, MediaSource, MessageStopReason,
    ThinkingBlock, ToolCallBlock, ToolResultMessage,
};

/// Writes messages for one model.
pub(super) struct AnthropicMessageWriter<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

// In `Carried`, `is_open` says that the last message is a user's, and that its list of blocks is still open.

/// Writes the whole list, with marks for the cache.
pub(super) fn write_all(carried: &Carried, messages: &str, cache: &str, out: &mut String) {
    out.put("[");
    // The provider wants the user to begin.
    if messages.starts_with(",{\"role\":\"assistant\"") {
        fill(r#"{"role":"user","content":[{"type":"text","text":"$"}]},"#, &[LEFT_OUT], out);
    }
    // Each message begins with a comma, which the first of the list must not have.
    let mut at = messages.len() - without_comma(messages).len();
    for mark in carried.marks.iter().flatten() {
        out.put(messages.get(at..*mark).unwrap_or_default());
        out.put(cache);
        at = *mark;
    }
    out.put(messages.get(at..).unwrap_or_default());
    out.put(if carried.is_open { "]}]" } else { "]" });
}

impl Carried {
    /// Begins a block of a user message, and a user message if none is open.
    fn open(&mut self, out: &mut String) {
        if !self.is_open {
            out.put(",{\"role\":\"user\",\"content\":[");
            let [_, last] = self.marks;
            *self = Carried { is_open: true, marks: [last, None], ..Carried::default() };
        }
        if self.has_block {
            out.put(",");
        }
        self.has_block = true;
    }

    /// Notes the end of a block of a user message as a place for a mark.
    fn mark(&mut self, out: &str) {
        let [_, last] = &mut self.marks;
        *last = out.len().checked_sub(1);
    }

    fn close(&mut self, out: &mut String) {
        if self.is_open {
            out.put("]}");
            self.is_open = false;
        }
    }
}

impl AnthropicMessageWriter<'_> {
    /// Appends a message, with a comma before it. An empty one is left out.
    pub(super) fn write(&self, message: &LlmMessage, carried: &mut Carried, out: &mut String) {
        match message {
            LlmMessage::User(message) => {
                for block in &message.content {
                    write_user_block(block, carried, out);
                }
            }
            LlmMessage::Assistant(message) => self.write_assistant(message, carried, out),
            LlmMessage::ToolResult(message) => write_result(message, carried, out),
        }
    }

    fn write_assistant(&self, message: &AssistantMessage, carried: &mut Carried, out: &mut String) {
        let is_own = message.provider == self.provider;
        // What Claude said before it refused does not count. If it saw it again, it would go on refusing.
        if is_own
            && message.stop_reason == MessageStopReason::Refusal
            && message.tool_calls().next().is_none()
        {
            return;
        }
        let mut blocks = AnswerBlocks::default();
        for (at, block) in message.content.iter().enumerate() {
            match block {
                ContentBlock::Text(block) => {
                    let is_last = at + 1 == message.content.len();
                    // The last text of the conversation may not end with whitespace.
                    let is_trimmed = is_last && message.stop_reason != MessageStopReason::Pause;
                    let text = if is_trimmed { block.text.trim_end() } else { &block.text };
                    if !text.trim_ascii().is_empty() {
                        let signature = block.signature.as_deref().filter(|_| is_own && !message.is_cut());
                        blocks.add(|list| write_cited(text, signature, list));
                    }
                }
                ContentBlock::Thinking(block) if is_own && message.model == self.model => {
                    if let Some(signature) = signature_of(block, message) {
                        blocks.add_thinking(block, signature);
                    }
                }
                ContentBlock::ToolCall(call) => blocks.add_call(call),
                ContentBlock::Raw(data)
                    if is_own && !is_citations(data) && is_answered(&data.to_value(), message) =>
                {
                    blocks.add(|list| list.put(data.as_str()));
                }
                _ => {}
            }
        }
        let list = blocks.end(message.stop_reason == MessageStopReason::Pause);
        if let Some(list) = list.strip_prefix(",") {
            carried.close(out);
            fill(r#",{"role":"assistant","content":[#]}"#, &[list], out);
        }
    }
}

/// The blocks of an answer in the order that the wire accepts: nothing but calls may follow a call, and
/// thinking may not be the last. Each is written with a comma before it.
#[derive(Default)]
struct AnswerBlocks {
    list: String,
    /// The calls since the last thinking. They wait, because text that came after them must be written before
    /// them.
    calls: String,
    /// The end of the last block in `list` that may be the last.
    end: usize,
}

impl AnswerBlocks {
    fn add(&mut self, write: impl FnOnce(&mut String)) {
        self.list.put(",");
        write(&mut self.list);
        self.end = self.list.len();
    }

    /// Adds thinking, which must stay where it was: after the calls before it.
    fn add_thinking(&mut self, block: &ThinkingBlock, signature: &str) {
        if !self.calls.is_empty() {
            self.list.put(&std::mem::take(&mut self.calls));
            self.end = self.list.len();
        }
        if block.redacted {
            fill(r#",{"type":"redacted_thinking","data":"$"}"#, &[signature], &mut self.list);
        } else {
            let template = r#",{"type":"thinking","thinking":"$","signature":"$"}"#;
            fill(template, &[&block.thinking, signature], &mut self.list);
        }
    }

    fn add_call(&mut self, call: &ToolCallBlock) {
        let name = fitting_id(&call.tool_name, 128, is_plain);
        let values = [&*wire_id(&call.call_id), &name, call.object()];
        fill(r#",{"type":"tool_use","id":"$","name":"$","input":#}"#, &values, &mut self.calls);
    }

    /// Returns the list. An answer in which the provider paused is sent back as it came.
    fn end(mut self, is_paused: bool) -> String {
        if self.calls.is_empty() && !is_paused {
            self.list.truncate(self.end);
        }
        self.list.put(&self.calls);
        self.list
    }
}

/// Returns the signature with which thinking is sent back; `None` if it must not be sent back. Claude's
/// thinking without a signature was cut. Some other models sign nothing and still require their thinking,
/// with an empty signature.
fn signature_of<'b>(block: &'b ThinkingBlock, message: &AssistantMessage) -> Option<&'b str> {
    let signature = block.signature.as_deref().unwrap_or_default();
    let is_lost = block.redacted || block.thinking.is_empty() || message.is_cut();
    if signature.is_empty() && (is_lost || contains(&message.model, "claude")) {
        None
    } else {
        Some(signature)
    }
}

/// Whether an answer begins with thinking that can be sent back.
pub(super) fn begins_with_thinking(message: &AssistantMessage, provider: &str, model: &str) -> bool {
    message.provider == provider
        && message.model == model
        && matches!(message.content.first(), Some(ContentBlock::Thinking(block))
            if signature_of(block, message).is_some())
}

/// Whether a block that is kept unchanged can be sent back. A call that the provider ran itself needs its
/// result, unless the provider paused in it.
fn is_answered(block: &Value, message: &AssistantMessage) -> bool {
    if message.is_cut() {
        return false;
    }
    let text = |value: &Value, key: &str| value.owned_at(key);
    let is_call = text(block, "type").is_some_and(|kind| kind.ends_with("_tool_use"));
    if !is_call || message.stop_reason == MessageStopReason::Pause {
        return true;
    }
    let id = text(block, "id");
    message.content.iter().any(
        |other| matches!(other, ContentBlock::Raw(data) if text(&data.to_value(), "tool_use_id") == id && id.is_some()),
    )
}

fn write_user_block(block: &ContentBlock, carried: &mut Carried, out: &mut String) {
    match block {
        ContentBlock::Text(block) if block.text.trim_ascii().is_empty() => return,
        ContentBlock::Text(block) => {
            carried.open(out);
            write_text(&block.text, out);
        }
        ContentBlock::Image(image) => {
            carried.open(out);
            write_image(&image.media, out);
        }
        ContentBlock::File(file) => {
            carried.open(out);
            write_file(file, out);
        }
        // User messages do not contain these.
        ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) | ContentBlock::Raw(_) => return,
    }
    carried.mark(out);
}

fn write_result(message: &ToolResultMessage, carried: &mut Carried, out: &mut String) {
    carried.open(out);
    fill(r#"{"type":"tool_result","tool_use_id":"$""#, &[&wire_id(&message.call_id)], out);
    let (mut list, mut is_marked) = (String::new(), message.is_error);
    for block in &message.content {
        match block {
            ContentBlock::Text(block) if !block.text.trim_ascii().is_empty() => {
                list.put(",");
                write_text(&block.text, &mut list);
            }
            ContentBlock::File(file) => {
                is_marked = false;
                list.put(",");
                write_file(file, &mut list);
            }
            ContentBlock::Image(image) => {
                // A result that is marked as an error may not contain a picture, so a word must say it
                // instead.
                is_marked = false;
                list.put(",");
                write_image(&image.media, &mut list);
            }
            _ => {}
        }
    }
    // An error must say something.
    if message.is_error && (list.is_empty() || !is_marked) {
        list.put(",");
        write_text("error", &mut list);
    }
    if is_marked {
        out.put(",\"is_error\":true");
    }
    if !list.is_empty() {
        fill(",\"content\":[#]", &[without_comma(&list)], out);
    }
    out.put("}");
    carried.mark(out);
}

fn write_text(text: &str, out: &mut String) {
    write_cited(text, None, out);
}

/// Writes a text with the citations that its signature holds.
fn write_cited(text: &str, signature: Option<&str>, out: &mut String) {
    fill("{\"type\":\"text\",\"text\":\"$\"", &[text], out);
    let signature = signature.and_then(|signature| Value::parse(signature).ok());
    if let Some(citations) = signature.as_ref().and_then(|signature| signature.get("citations")) {
        fill(",\"citations\":#", &[&citations.to_json()], out);
    }
    out.put("}");
}

fn write_image(media: &Media, out: &mut String) {
    match media.source() {
        MediaSource::Data(data) => {
            let template = r#"{"type":"image","source":{"type":"base64","media_type":"$","data":"$"}}"#;
            fill(template, &[media.mime_type(), data], out);
        }
        MediaSource::Url(url) => write_link("image", url, out),
    }
}

/// Writes an image or a document that is elsewhere.
fn write_link(kind: &str, url: &str, out: &mut String) {
    fill(r#"{"type":"$","source":{"type":"url","url":"$"}}"#, &[kind, url], out);
}

/// Writes a file as a document: plain text, or anything else by its own type, which must be PDF.
fn write_file(file: &FileBlock, out: &mut String) {
    let mime_type = file.media.mime_type();
    if mime_type.starts_with("image/") {
        return write_image(&file.media, out);
    }
    match file.media.source() {
        MediaSource::Url(url) => {
            write_link("document", url, out);
            out.pop();
        }
        MediaSource::Data(data) => {
            let text = decoded_text(file);
            let values = match &text {
                Some(text) => ["text", "text/plain", text],
                None => ["base64", mime_type, data],
            };
            fill(r#"{"type":"document","source":{"type":"$","media_type":"$","data":"$"}"#, &values, out);
        }
    }
    if let Some(name) = &file.name {
        fill(",\"title\":\"$\"", &[name], out);
    }
    out.put("}");
}

fn wire_id(call_id: &str) -> Cow<'_, str> {
    fitting_id(call_id, 64, is_plain)
}
