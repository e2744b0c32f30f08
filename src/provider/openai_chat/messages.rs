//! Messages as this wire writes them.

use std::borrow::Cow;

use crate::json::{ObjectWriter, RawJson, ToJson, Value, write_list, write_str};
use crate::message::{
    AssistantMessage, ContentBlock, FileBlock, ImageBlock, LlmMessage, ThinkingBlock, ToolCallBlock,
    ToolResultMessage, UserMessage, text_of,
};
use crate::text::{Put, contains};

use crate::provider::compat::{Compat, Replay, ToolIds};
use crate::provider::request::{
    FileForm, data_url, digest, fitting_id, form_of, is_plain, is_reasoning_model, told_result,
};

/// Writes messages for one model of one server.
pub(super) struct Scribe<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    pub(super) compat: &'a Compat,
    /// Whether prompts may be cached.
    pub(super) caches: bool,
}

/// What waits behind a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    /// Content parts with the pictures of tool results, which tool messages cannot hold: they follow in a user
    /// message, once all results of the turn are told.
    pictures: String,
    /// The last message was a tool's.
    is_after_tool: bool,
}

impl Scribe<'_> {
    /// The whole list: the system prompt, the messages written before, and what waits behind them.
    pub(super) fn write_all(&self, system_prompt: &str, messages: &str, carried: Carried, out: &mut String) {
        out.put("[");
        if !system_prompt.is_empty() {
            self.write_system(system_prompt, out);
        }
        let mut last = String::new();
        let mut carried = carried;
        self.write_pictures(&mut carried, &mut last);
        // Each message begins with a comma, which the first of the list must not have.
        let is_first = system_prompt.is_empty();
        for text in [messages, &last] {
            let is_first = is_first && out.ends_with('[');
            out.put(if is_first { text.strip_prefix(',').unwrap_or(text) } else { text });
        }
        out.put("]");
    }

    /// Appends a message, with a comma before it. One with nothing to say is left out.
    pub(super) fn write(&self, message: &LlmMessage, carried: &mut Carried, out: &mut String) {
        match message {
            LlmMessage::User(message) => self.write_user(message, carried, out),
            LlmMessage::Assistant(message) => self.write_assistant(message, carried, out),
            LlmMessage::ToolResult(message) => self.write_result(message, carried, out),
        }
    }

    fn write_system(&self, text: &str, out: &mut String) {
        let is_developer = self.compat.developer_role && is_reasoning_model(self.model);
        let mut object = ObjectWriter::new(out);
        object.field("role", if is_developer { "developer" } else { "system" });
        if self.caches && self.compat.cache_control && self.model.starts_with("anthropic/") {
            let out = object.key("content");
            out.put("[");
            let mut part = ObjectWriter::new(out);
            part.field("type", "text").field("text", text);
            part.key("cache_control").put("{\"type\":\"ephemeral\"}");
            part.end();
            out.put("]");
        } else {
            object.field("content", text);
        }
        object.end();
    }

    fn write_user(&self, message: &UserMessage, carried: &mut Carried, out: &mut String) {
        let Carried { pictures, .. } = carried;
        if message.content.is_empty() && pictures.is_empty() {
            return;
        }
        self.separate(carried.is_after_tool, out);
        out.put(",{\"role\":\"user\",\"content\":");
        match message.content.as_slice() {
            // Servers of text models know no lists.
            [ContentBlock::Text(block)] if pictures.is_empty() => write_str(&block.text, out),
            blocks => {
                out.put("[");
                out.put(pictures);
                for (at, block) in blocks.iter().enumerate() {
                    if at > 0 || !pictures.is_empty() {
                        out.put(",");
                    }
                    write_part(block, out);
                }
                out.put("]");
            }
        }
        out.put("}");
        *carried = Carried::default();
    }

    fn write_assistant(&self, message: &AssistantMessage, carried: &mut Carried, out: &mut String) {
        let text = text_of(&message.content);
        let calls: Vec<&ToolCallBlock> = message.tool_calls().collect();
        if text.is_empty() && calls.is_empty() {
            return;
        }
        self.write_pictures(carried, out);
        out.put(",");
        let mut object = ObjectWriter::new(out);
        object.field("role", "assistant");
        let is_own = message.provider == self.provider;
        let thinking = if is_own { thinking_of(message) } else { String::new() };
        match self.compat.replay {
            Replay::ThinkingChunk if !thinking.is_empty() => {
                write_thinking_chunk(&thinking, &text, object.key("content"));
            }
            _ if text.is_empty() => object.key("content").put("null"),
            _ => _ = object.field("content", &text),
        }
        match self.compat.replay {
            Replay::ReasoningContent
                if self.takes_reasoning() && !(thinking.is_empty() && calls.is_empty()) =>
            {
                object.field("reasoning_content", &thinking);
            }
            Replay::Reasoning if !thinking.is_empty() => _ = object.field("reasoning", &thinking),
            Replay::Details if is_own && message.model == self.model => {
                if let Some(details) = details_of(message) {
                    write_list(&details, object.key("reasoning_details"));
                }
            }
            _ => {}
        }
        if !calls.is_empty() {
            let (ids, gives_extra) = (self.compat.tool_ids, is_own && message.model == self.model);
            let list: Vec<Call<'_>> = calls.iter().map(|call| Call { call, ids, gives_extra }).collect();
            object.field("tool_calls", &list);
        }
        object.end();
        carried.is_after_tool = false;
    }

    fn write_result(&self, message: &ToolResultMessage, carried: &mut Carried, out: &mut String) {
        let (mut text, pictures) = told_result(message);
        if text.is_empty() && !pictures.is_empty() {
            text.put("(see the attached image)");
        }
        out.put(",");
        let mut object = ObjectWriter::new(out);
        object.field("role", "tool");
        object.field("tool_call_id", wire_id(&message.call_id, self.compat.tool_ids).as_ref());
        if self.compat.tool_result_name {
            object.field("name", fitting_name(&message.tool_name).as_ref());
        }
        object.field("content", &text);
        object.end();
        carried.is_after_tool = true;
        self.carry(&pictures, message, &mut carried.pictures);
    }

    /// Keeps pictures for the user message behind the results.
    fn carry(&self, pictures: &[&ImageBlock], message: &ToolResultMessage, kept: &mut String) {
        if pictures.is_empty() {
            return;
        }
        if !kept.is_empty() {
            kept.put(",");
        }
        let id = wire_id(&message.call_id, self.compat.tool_ids);
        write_text_part(&["Image from the result of `", &message.tool_name, "` (", &id, "):"].concat(), kept);
        for picture in pictures {
            kept.put(",");
            write_image_part(picture, kept);
        }
    }

    fn write_pictures(&self, carried: &mut Carried, out: &mut String) {
        let Carried { pictures, is_after_tool } = std::mem::take(carried);
        if pictures.is_empty() {
            carried.is_after_tool = is_after_tool;
            return;
        }
        self.separate(is_after_tool, out);
        out.put(",{\"role\":\"user\",\"content\":[");
        out.put(&pictures);
        out.put("]}");
    }

    /// Some templates refuse a user message behind a tool message.
    fn separate(&self, is_after_tool: bool, out: &mut String) {
        if is_after_tool && self.compat.assistant_after_tool {
            out.put(",{\"role\":\"assistant\",\"content\":\"I have read the results.\"}");
        }
    }

    /// The first reasoning models of DeepSeek refuse their own reasoning.
    fn takes_reasoning(&self) -> bool {
        let model = self.model.to_ascii_lowercase();
        !(model.ends_with("deepseek-r1") || contains(&model, "deepseek-r1-"))
    }
}

struct Call<'a> {
    call: &'a ToolCallBlock,
    ids: ToolIds,
    gives_extra: bool,
}

impl ToJson for Call<'_> {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("id", wire_id(&self.call.call_id, self.ids).as_ref()).field("type", "function");
        let mut function = ObjectWriter::new(object.key("function"));
        function
            .field("name", fitting_name(&self.call.tool_name).as_ref())
            .field("arguments", self.call.arguments.as_str());
        function.end();
        let metadata = self.call.metadata.as_ref().filter(|_| self.gives_extra).map(RawJson::to_value);
        if let Some(extra) = metadata.as_ref().and_then(|metadata| metadata.get("extra_content")) {
            object.field("extra_content", extra);
        }
        object.end();
    }
}

/// A model may call what no server takes for a name. Some servers take a few more characters than OpenAI.
fn fitting_name(name: &str) -> Cow<'_, str> {
    fitting_id(name, 64, |c| is_plain(c) || matches!(c, '.' | ':' | '/'))
}

fn write_part(block: &ContentBlock, out: &mut String) {
    match block {
        ContentBlock::Text(block) => write_text_part(&block.text, out),
        ContentBlock::Image(image) => write_image_part(image, out),
        ContentBlock::File(file) => write_file_part(file, out),
        // No user message holds these.
        ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) | ContentBlock::Raw(_) => {
            write_text_part("", out)
        }
    }
}

fn write_text_part(text: &str, out: &mut String) {
    let mut part = ObjectWriter::new(out);
    part.field("type", "text").field("text", text);
    part.end();
}

fn write_image_part(image: &ImageBlock, out: &mut String) {
    let mut part = ObjectWriter::new(out);
    part.field("type", "image_url");
    let mut inner = ObjectWriter::new(part.key("image_url"));
    inner.field("url", &data_url(&image.mime_type, &image.data));
    inner.end();
    part.end();
}

fn write_file_part(file: &FileBlock, out: &mut String) {
    match form_of(file) {
        FileForm::Image(image) => return write_image_part(&image, out),
        FileForm::Text(text) => return write_text_part(&text, out),
        FileForm::Other => {}
    }
    let mut part = ObjectWriter::new(out);
    let format = match file.mime_type.as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    };
    if let Some(format) = format {
        part.field("type", "input_audio");
        let mut inner = ObjectWriter::new(part.key("input_audio"));
        inner.field("data", &file.data).field("format", format);
        inner.end();
    } else {
        part.field("type", "file");
        let mut inner = ObjectWriter::new(part.key("file"));
        inner.field("filename", file.name.as_deref().unwrap_or("file"));
        inner.field("file_data", &data_url(&file.mime_type, &file.data));
        inner.end();
    }
    part.end();
}

fn thinking_blocks(message: &AssistantMessage) -> impl Iterator<Item = &ThinkingBlock> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::Thinking(block) => Some(block),
        _ => None,
    })
}

fn thinking_of(message: &AssistantMessage) -> String {
    thinking_blocks(message).filter(|block| !block.redacted).map(|block| block.thinking.as_str()).collect()
}

fn write_thinking_chunk(thinking: &str, text: &str, out: &mut String) {
    out.put("[{\"type\":\"thinking\",\"thinking\":[");
    write_text_part(thinking, out);
    out.put("]}");
    if !text.is_empty() {
        out.put(",");
        write_text_part(text, out);
    }
    out.put("]");
}

/// `reasoning_details` as they came: the entries in the metadata of a call, with the texts of the thinking blocks they
/// were made to. Nothing, if blocks were taken out since.
fn details_of(message: &AssistantMessage) -> Option<Vec<Value>> {
    let metadata = message.tool_calls().find_map(|call| call.metadata.as_ref())?.to_value();
    let frames = metadata.get("reasoning_details")?.as_array()?;
    if frames.len() != thinking_blocks(message).count() {
        return None;
    }
    let mut details = Vec::new();
    for (frame, block) in frames.iter().zip(thinking_blocks(message)) {
        let Value::Object(mut entry) = frame.clone() else {
            continue;
        };
        let signature = block.signature.clone().map(Value::String);
        match entry.get("type").and_then(Value::as_str) {
            Some("reasoning.encrypted") => entry.insert("data", signature?),
            Some("reasoning.summary") => entry.insert("summary", Value::String(block.thinking.clone())),
            _ => {
                entry.insert("text", Value::String(block.thinking.clone()));
                if let Some(signature) = signature {
                    entry.insert("signature", signature);
                }
            }
        }
        details.push(Value::Object(entry));
    }
    if details.is_empty() { None } else { Some(details) }
}

/// An id that the server takes, made of ours alone, so that call and result always agree.
pub(super) fn wire_id(call_id: &str, rule: ToolIds) -> Cow<'_, str> {
    match rule {
        ToolIds::Any => Cow::Borrowed(call_id),
        ToolIds::Mistral => {
            if call_id.len() == 9 && call_id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                Cow::Borrowed(call_id)
            } else {
                Cow::Owned(digest(call_id, 9))
            }
        }
        ToolIds::Short => {
            let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
            fitting_id(call_id, 40, is_usual)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_where_they_fit_and_made_anew_where_not() {
        assert_eq!(wire_id("call_1", ToolIds::Short), "call_1");
        assert_eq!(wire_id("llm_version:0", ToolIds::Short), "llm_version:0");
        assert_eq!(wire_id("gSIMJiOkT", ToolIds::Mistral), "gSIMJiOkT");
        let long = "call_".repeat(20);
        for rule in [ToolIds::Short, ToolIds::Mistral] {
            let ids: Vec<String> =
                [long.as_str(), "t1#2", "t1#3", ""].iter().map(|id| wire_id(id, rule).into_owned()).collect();
            for (at, id) in ids.iter().enumerate() {
                assert!(!ids[..at].contains(id), "{ids:?}");
                let most = if rule == ToolIds::Mistral { 9..=9 } else { 0..=40 };
                assert!(most.contains(&id.len()), "{id}");
                assert!(
                    id.chars().all(|c| c.is_ascii_alphanumeric() || (rule == ToolIds::Short && c == '_')),
                    "{id}"
                );
            }
        }
    }
}
