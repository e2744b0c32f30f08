//! Messages as this wire writes them: users and tools speak in the same role, one message for all that stands between
//! two answers.

use crate::json::{ObjectWriter, ToJson, Value, write_str};
use crate::message::{
    AssistantMessage, ContentBlock, FileBlock, ImageBlock, LlmMessage, MessageStopReason, ToolResultMessage,
};
use crate::provider::request::{decoded_text, fitting_id, is_plain};
use crate::text::Put;

use super::encode::Cache;

/// Writes messages for one model.
pub(super) struct Scribe<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

/// What the next message must know.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    /// The last message is a user's, and its list of blocks is still open.
    is_open: bool,
    /// The list has a block.
    has_block: bool,
    /// Where the last blocks of the last two user messages end, before their closing brace: places for a mark.
    marks: [Option<usize>; 2],
}

impl Carried {
    /// The whole list, with marks for the cache.
    pub(super) fn write_all(&self, messages: &str, cache: Option<Cache>, out: &mut String) {
        out.put("[");
        let begin = out.len();
        let mut at = 0;
        for (mark, cache) in self.marks.iter().flatten().zip(cache.iter().cycle()) {
            out.put(messages.get(at..*mark).unwrap_or_default());
            out.put(",\"cache_control\":");
            cache.write_json(out);
            at = *mark;
        }
        out.put(messages.get(at..).unwrap_or_default());
        if self.is_open {
            out.put("]}");
        }
        // Each message begins with a comma, which the first of the list must not have.
        if out.get(begin..).is_some_and(|list| list.starts_with(',')) {
            out.remove(begin);
        }
        out.put("]");
    }

    /// Makes room for a block of a user message; opens one where none is open.
    fn open(&mut self, out: &mut String) {
        if !self.is_open {
            out.put(",{\"role\":\"user\",\"content\":[");
            *self = Carried { is_open: true, has_block: false, marks: [self.marks[1], None] };
        }
        if self.has_block {
            out.put(",");
        }
        self.has_block = true;
    }

    /// A block of a user message was written.
    fn mark(&mut self, out: &str) {
        self.marks[1] = out.len().checked_sub(1);
    }

    fn close(&mut self, out: &mut String) {
        if self.is_open {
            out.put("]}");
            self.is_open = false;
        }
    }
}

impl Scribe<'_> {
    /// Appends a message, with a comma before it. One with nothing to say is left out.
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
        let mut list = String::new();
        let is_own = message.provider == self.provider;
        let is_same_model = is_own && message.model == self.model;
        for (at, block) in message.content.iter().enumerate() {
            let begin = list.len();
            list.put(",");
            match block {
                ContentBlock::Text(block) => {
                    let is_last = at + 1 == message.content.len();
                    // The last text of the conversation may not end with blanks.
                    let is_cut = is_last && message.stop_reason != MessageStopReason::Pause;
                    let text = if is_cut { block.text.trim_end() } else { &block.text };
                    if !text.trim_ascii().is_empty() {
                        let signature = block.signature.as_deref().filter(|_| is_own && !message.is_cut());
                        write_cited(text, signature, &mut list);
                    }
                }
                ContentBlock::Thinking(block) if is_same_model => {
                    // Without a signature it was cut.
                    if let Some(signature) = block.signature.as_deref().filter(|text| !text.is_empty()) {
                        let mut object = ObjectWriter::new(&mut list);
                        if block.redacted {
                            object.field("type", "redacted_thinking").field("data", signature);
                        } else {
                            object.field("type", "thinking").field("thinking", &block.thinking);
                            object.field("signature", signature);
                        }
                        object.end();
                    }
                }
                ContentBlock::ToolCall(call) => {
                    let mut object = ObjectWriter::new(&mut list);
                    object.field("type", "tool_use").field("id", wire_id(&call.call_id).as_ref());
                    object.field("name", &*fitting_id(&call.tool_name, 128, is_plain));
                    object.field("input", &call.arguments);
                    object.end();
                }
                ContentBlock::Raw(data) if is_own && is_answered(&data.to_value(), message) => {
                    data.write_json(&mut list);
                }
                _ => {}
            }
            // Nothing was written.
            if list.len() == begin + 1 {
                list.truncate(begin);
            }
        }
        if let Some(list) = list.strip_prefix(',') {
            carried.close(out);
            out.put(",{\"role\":\"assistant\",\"content\":[");
            out.put(list);
            out.put("]}");
        }
    }
}

/// Whether an answer begins with thinking that can be given back.
pub(super) fn begins_with_thinking(message: &AssistantMessage, provider: &str, model: &str) -> bool {
    message.provider == provider
        && message.model == model
        && matches!(message.content.first(), Some(ContentBlock::Thinking(block))
            if block.signature.as_deref().is_some_and(|text| !text.is_empty()))
}

/// A call that the provider ran itself is given back with its result, or if the provider paused in it.
fn is_answered(block: &Value, message: &AssistantMessage) -> bool {
    if message.is_cut() {
        return false;
    }
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
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
            write_image(image, out);
        }
        ContentBlock::File(file) => {
            carried.open(out);
            write_file(file, out);
        }
        // No user message holds these.
        ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) | ContentBlock::Raw(_) => return,
    }
    carried.mark(out);
}

fn write_result(message: &ToolResultMessage, carried: &mut Carried, out: &mut String) {
    carried.open(out);
    let mut object = ObjectWriter::new(out);
    object.field("type", "tool_result").field("tool_use_id", wire_id(&message.call_id).as_ref());
    if message.is_error {
        object.field("is_error", &true);
    }
    let mut list = String::new();
    for block in &message.content {
        match block {
            ContentBlock::Text(block) if !block.text.trim_ascii().is_empty() => {
                list.put(",");
                write_text(&block.text, &mut list);
            }
            ContentBlock::Image(image) => {
                list.put(",");
                write_image(image, &mut list);
            }
            _ => {}
        }
    }
    // An error must say something.
    if list.is_empty() && message.is_error {
        list.put(",");
        write_text("error", &mut list);
    }
    if let Some(list) = list.strip_prefix(',') {
        let out = object.key("content");
        out.put("[");
        out.put(list);
        out.put("]");
    }
    object.end();
    carried.mark(out);
}

fn write_text(text: &str, out: &mut String) {
    write_cited(text, None, out);
}

/// A text with the citations that its signature holds.
fn write_cited(text: &str, signature: Option<&str>, out: &mut String) {
    let mut part = ObjectWriter::new(out);
    part.field("type", "text").field("text", text);
    let signature = signature.and_then(|signature| Value::parse(signature).ok());
    if let Some(citations) = signature.as_ref().and_then(|signature| signature.get("citations")) {
        part.field("citations", citations);
    }
    part.end();
}

fn write_image(image: &ImageBlock, out: &mut String) {
    let mut part = ObjectWriter::new(out);
    part.field("type", "image");
    write_source(&image.mime_type, &image.data, part.key("source"));
    part.end();
}

/// Documents are PDF or plain text.
fn write_file(file: &FileBlock, out: &mut String) {
    if file.mime_type.starts_with("image/") {
        return write_image(&ImageBlock { mime_type: file.mime_type.clone(), data: file.data.clone() }, out);
    }
    let mut part = ObjectWriter::new(out);
    part.field("type", "document");
    match decoded_text(file) {
        Some(text) => {
            let mut source = ObjectWriter::new(part.key("source"));
            source.field("type", "text").field("media_type", "text/plain");
            write_str(&text, source.key("data"));
            source.end();
        }
        None => write_source(&file.mime_type, &file.data, part.key("source")),
    }
    part.optional("title", &file.name);
    part.end();
}

fn write_source(mime_type: &str, data: &str, out: &mut String) {
    let mut source = ObjectWriter::new(out);
    source.field("type", "base64").field("media_type", mime_type).field("data", data);
    source.end();
}

fn wire_id(call_id: &str) -> std::borrow::Cow<'_, str> {
    fitting_id(call_id, 64, is_plain)
}
