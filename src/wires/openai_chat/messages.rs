//! Messages as this wire writes them.

use std::borrow::Cow;

use crate::data::json::{RawJson, ToJson, fill, without_comma, write_str};
use crate::data::list::ListWriter;
use crate::data::text::{Put, contains};
use crate::words::message::{
    AssistantMessage, ContentBlock, FileBlock, LlmMessage, Media, MediaSource, ToolCallBlock,
    ToolResultMessage, UserMessage, text_in,
};

use crate::wires::compat::{Compat, Replay, ToolIds};
use crate::wires::encoding::files::{FileForm, caption, data_url, form_of, result_parts};
use crate::wires::encoding::history::Carried;
use crate::wires::encoding::ids::{digest, fitting_id, is_plain};
use crate::wires::encoding::models::is_reasoning_model;

use super::details::{details_of, thinking_blocks};

/// Writes messages for one model of one server.
pub(super) struct ChatMessageWriter<'a> {
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    pub(super) compat: &'a Compat,
    /// Whether prompts may be cached.
    pub(super) caches: bool,
}

// In `Carried`, `pictures` are those of tool results. Tool messages cannot contain them, so they follow in a
// user message after all results of the turn. `is_open` says that the last message was a tool message.

impl ChatMessageWriter<'_> {
    /// Writes the whole list: the system prompt, the messages written before, and the pictures that wait.
    pub(super) fn write_all(
        &self,
        system_prompt: &str,
        messages: &str,
        mut carried: Carried,
        out: &mut String,
    ) {
        out.put("[");
        // Each message begins with a comma, which the first of the list must not have.
        let mut rest = messages;
        if !system_prompt.is_empty() {
            self.write_system(system_prompt, out);
        } else {
            rest = without_comma(messages);
        }
        out.put(rest);
        let mut last = String::new();
        self.write_pictures(&mut carried, &mut last);
        out.put(&last);
        out.put("]");
    }

    /// Appends a message, with a comma before it. An empty one is left out.
    pub(super) fn write(&self, message: &LlmMessage, carried: &mut Carried, out: &mut String) {
        match message {
            LlmMessage::User(message) => self.write_user(message, carried, out),
            LlmMessage::Assistant(message) => self.write_assistant(message, carried, out),
            LlmMessage::ToolResult(message) => self.write_result(message, carried, out),
        }
    }

    fn write_system(&self, text: &str, out: &mut String) {
        let is_developer = self.compat.developer_role && is_reasoning_model(self.model);
        let caches = self.caches && self.compat.cache_control && self.model.starts_with("anthropic/");
        let template = if caches {
            r#"{"role":"$","content":[{"type":"text","text":"$","cache_control":{"type":"ephemeral"}}]}"#
        } else {
            r#"{"role":"$","content":"$"}"#
        };
        fill(template, &[if is_developer { "developer" } else { "system" }, text], out);
    }

    fn write_user(&self, message: &UserMessage, carried: &mut Carried, out: &mut String) {
        if message.content.is_empty() && carried.pictures.is_empty() {
            return;
        }
        let mut parts = carried.take_pictures();
        self.separate(std::mem::take(&mut carried.is_open), out);
        match message.content.as_slice() {
            // Servers of text models do not accept lists.
            [ContentBlock::Text(block)] if parts.is_empty() => {
                fill(r#",{"role":"user","content":"$"}"#, &[&block.text], out);
            }
            blocks => {
                // DeepSeek accepts lists only with pictures.
                if self.provider == "deepseek"
                    && parts.is_empty()
                    && let Some(text) = text_alone(blocks)
                {
                    return fill(r#",{"role":"user","content":"$"}"#, &[&text], out);
                }
                for block in blocks {
                    parts.put(",");
                    write_part(block, self.provider == "mistral", &mut parts);
                }
                fill(USER, &[without_comma(&parts)], out);
            }
        }
    }

    fn write_assistant(&self, message: &AssistantMessage, carried: &mut Carried, out: &mut String) {
        let is_own = message.provider == self.provider;
        let is_same_model = is_own && message.model == self.model;
        let text = text_in(&message.content);
        let has_calls = message.tool_calls().next().is_some();
        if text.is_empty() && !has_calls {
            return;
        }
        self.write_pictures(carried, out);
        carried.is_open = false;
        out.put(",{\"role\":\"assistant\",\"content\":");
        let thinking = if is_own { thinking_of(message) } else { String::new() };
        match self.compat.replay {
            Replay::ThinkingChunk if !thinking.is_empty() => write_thinking_chunk(&thinking, &text, out),
            // Workers AI requires a text, and other servers reject an empty one.
            _ if text.is_empty() && self.provider != "workers-ai" => out.put("null"),
            _ => write_str(&text, out),
        }
        match self.compat.replay {
            // DeepSeek 4 requires the field in every answer, even if there was no thinking.
            Replay::ReasoningContent if self.takes_reasoning() => {
                fill(",\"reasoning_content\":\"$\"", &[&thinking], out);
            }
            Replay::Reasoning if !thinking.is_empty() => fill(",\"reasoning\":\"$\"", &[&thinking], out),
            Replay::Details if is_same_model => {
                if let Some(details) = details_of(message) {
                    fill(",\"reasoning_details\":#", &[&details.to_json()], out);
                }
            }
            _ => {}
        }
        if is_own && self.compat.replay == Replay::Details {
            // A file that was read once is not read again if its annotation comes back.
            for block in &message.content {
                if let ContentBlock::Raw(data) = block {
                    write_annotations(data, out);
                }
            }
        }
        if has_calls {
            out.put(",\"tool_calls\":");
            let mut calls = ListWriter::new(out);
            message.tool_calls().for_each(|call| self.write_call(call, is_same_model, calls.item()));
            calls.end();
        }
        out.put("}");
    }

    fn write_call(&self, call: &ToolCallBlock, gives_extra: bool, out: &mut String) {
        let id = wire_id(&call.call_id, self.compat);
        let name = self.fitting_name(&call.tool_name);
        let template = r#"{"id":"$","type":"function","function":{"name":"$","arguments":"$"}"#;
        fill(template, &[&id, &name, call.object()], out);
        let metadata = call.metadata.as_ref().filter(|_| gives_extra).map(RawJson::to_value);
        if let Some(extra) = metadata.as_ref().and_then(|metadata| metadata.get("extra_content")) {
            fill(",\"extra_content\":#", &[&extra.to_json()], out);
        }
        out.put("}");
    }

    fn write_result(&self, message: &ToolResultMessage, carried: &mut Carried, out: &mut String) {
        let (mut text, media) = result_parts(message);
        if text.is_empty() && !media.is_empty() {
            let is_image = media.iter().all(|block| matches!(block, ContentBlock::Image(_)));
            text =
                if is_image { "(see the attached image)".into() } else { "(see the attached file)".into() };
        }
        let id = wire_id(&message.call_id, self.compat);
        fill(",{\"role\":\"tool\",\"tool_call_id\":\"$\"", &[&id], out);
        if self.compat.tool_result_name {
            fill(",\"name\":\"$\"", &[&self.fitting_name(&message.tool_name)], out);
        }
        fill(",\"content\":\"$\"}", &[&text], out);
        carried.is_open = true;
        // The pictures are kept for the user message after the results.
        if !media.is_empty() {
            let caption = [caption(&media), &message.tool_name, "` (", &id, "):"];
            let mut parts = String::from(",");
            write_text_part(&caption.concat(), &mut parts);
            for block in media {
                parts.put(",");
                write_part(block, self.provider == "mistral", &mut parts);
            }
            carried.pictures.push(parts.into());
        }
    }

    fn write_pictures(&self, carried: &mut Carried, out: &mut String) {
        if carried.pictures.is_empty() {
            return;
        }
        let pictures = carried.take_pictures();
        self.separate(std::mem::take(&mut carried.is_open), out);
        fill(USER, &[without_comma(&pictures)], out);
    }

    /// Writes an answer between a tool message and a user message, because some templates reject that order.
    fn separate(&self, is_after_tool: bool, out: &mut String) {
        if is_after_tool && self.compat.assistant_after_tool {
            out.put(",{\"role\":\"assistant\",\"content\":\"I have read the results.\"}");
        }
    }

    /// Returns a name that the server accepts: a model may call a tool by a name that no server accepts. Some
    /// servers accept a few more characters than OpenAI; Ollama takes any name, so a tool with a blank in its name is
    /// called in the history as it was offered.
    fn fitting_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.provider {
            "ollama" => fitting_id(name, 128, |_| true),
            "openai" | "azure" => fitting_id(name, 64, is_plain),
            _ => fitting_id(name, 64, is_allowed_by_others),
        }
    }

    /// Whether the model accepts its own reasoning. The first reasoning models of DeepSeek do not.
    fn takes_reasoning(&self) -> bool {
        let model = self.model.to_ascii_lowercase();
        !(model.ends_with("deepseek-r1") || contains(&model, "deepseek-r1-"))
    }
}

fn write_annotations(block: &RawJson, out: &mut String) {
    if let Some(list) = block.to_value().get("annotations") {
        fill(",\"annotations\":#", &[&list.to_json()], out);
    }
}

/// A user message with parts.
const USER: &str = r#",{"role":"user","content":[#]}"#;

fn is_allowed_by_others(c: char) -> bool {
    is_plain(c) || matches!(c, '.' | ':' | '/')
}

/// Joins texts, and files that are text; `None` if there is anything else.
fn text_alone(blocks: &[ContentBlock]) -> Option<String> {
    let mut all = String::new();
    for block in blocks {
        if !all.is_empty() {
            all.put("\n\n");
        }
        match block {
            ContentBlock::Text(block) => all.put(&block.text),
            ContentBlock::File(file) => match form_of(file) {
                FileForm::Text(text) => all.put(&text),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(all)
}

fn write_part(block: &ContentBlock, is_mistral: bool, out: &mut String) {
    match block {
        ContentBlock::Text(block) => write_text_part(&block.text, out),
        ContentBlock::Image(image) => write_image_part(&image.media, out),
        ContentBlock::File(file) => write_file_part(file, is_mistral, out),
        // User messages do not contain these.
        ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) | ContentBlock::Raw(_) => {
            write_text_part("", out)
        }
    }
}

fn write_text_part(text: &str, out: &mut String) {
    fill(r#"{"type":"text","text":"$"}"#, &[text], out);
}

fn write_image_part(media: &Media, out: &mut String) {
    let url = data_url(media);
    fill(r#"{"type":"image_url","image_url":{"url":"$"}}"#, &[&url], out);
}

fn write_file_part(file: &FileBlock, is_mistral: bool, out: &mut String) {
    match form_of(file) {
        FileForm::Image => return write_image_part(&file.media, out),
        FileForm::Text(text) => return write_text_part(&text, out),
        FileForm::Other => {}
    }
    let format = match file.media.mime_type() {
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        _ => {
            let (name, url) = (file.name.as_deref().unwrap_or("file"), data_url(&file.media));
            let template = if is_mistral {
                r#"{"type":"document_url","document_name":"$","document_url":"$"}"#
            } else {
                r#"{"type":"file","file":{"filename":"$","file_data":"$"}}"#
            };
            return fill(template, &[name, &url], out);
        }
    };
    let (MediaSource::Data(sound) | MediaSource::Url(sound)) = file.media.source();
    fill(r#"{"type":"input_audio","input_audio":{"data":"$","format":"$"}}"#, &[sound, format], out);
}

fn thinking_of(message: &AssistantMessage) -> String {
    thinking_blocks(message).filter(|block| !block.redacted).map(|block| block.thinking.as_str()).collect()
}

fn write_thinking_chunk(thinking: &str, text: &str, out: &mut String) {
    fill(r#"[{"type":"thinking","thinking":[{"type":"text","text":"$"}]}"#, &[thinking], out);
    if !text.is_empty() {
        out.put(",");
        write_text_part(text, out);
    }
    out.put("]");
}

/// Returns an id that the server accepts. It depends on our id alone, so that a call and its result always
/// agree.
pub(super) fn wire_id<'i>(call_id: &'i str, compat: &Compat) -> Cow<'i, str> {
    match compat.tool_ids {
        ToolIds::Any => Cow::Borrowed(call_id),
        ToolIds::Mistral => {
            if call_id.len() == 9 && call_id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                Cow::Borrowed(call_id)
            } else {
                Cow::Owned(digest(call_id, 9))
            }
        }
        ToolIds::Short => {
            let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
            // OpenRouter's own ids contain the name of the tool, and its `reasoning_details` refer to them.
            let max_length = if compat.replay == Replay::Details { 128 } else { 40 };
            fitting_id(call_id, max_length, is_allowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_where_they_fit_and_made_anew_where_not() {
        let made = |id: &str, rule| wire_id(id, &Compat { tool_ids: rule, ..Compat::default() }).into_owned();
        assert_eq!(made("call_1", ToolIds::Short), "call_1");
        assert_eq!(made("llm_version:0", ToolIds::Short), "llm_version:0");
        assert_eq!(made("gSIMJiOkT", ToolIds::Mistral), "gSIMJiOkT");
        let long = "call_".repeat(20);
        for rule in [ToolIds::Short, ToolIds::Mistral] {
            let ids: Vec<String> =
                [long.as_str(), "t1#2", "t1#3", ""].iter().map(|id| made(id, rule)).collect();
            for (at, id) in ids.iter().enumerate() {
                assert!(!ids[..at].contains(id), "{ids:?}");
                let lengths = if rule == ToolIds::Mistral { 9..=9 } else { 0..=40 };
                assert!(lengths.contains(&id.len()), "{id}");
                assert!(
                    id.chars().all(|c| c.is_ascii_alphanumeric() || (rule == ToolIds::Short && c == '_')),
                    "{id}"
                );
            }
        }
    }
}
