//! Chunks in, events out. The end of the body ends the answer: every chunk may have a finish reason.

use crate::data::json::{RawJson, Reader, Value, fill};
use crate::rules::stream::AssistantMessageEvent as Event;
use crate::wires::Limits;
use crate::wires::decoding::blocks::Kind;
use crate::wires::decoding::{Frames, Progress, SseDecoder};
use crate::wires::errors::in_stream_text;
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::MessageStopReason;

use super::frame::{Candidate, Chunk, Part};
use super::partial_arguments::PartialArguments;

/// A decoder of one answer.
pub(super) fn decoder(limits: Limits) -> Box<SseDecoder> {
    SseDecoder::new(Box::<Answer>::default(), limits)
}

#[derive(Default)]
struct Answer {
    progress: Progress,
    /// The call whose arguments arrive in pieces.
    open: Option<OpenCall>,
    has_calls: bool,
    /// What the provider tells of why it stopped.
    details: String,
    /// Why the prompt was refused.
    blocked: Option<String>,
}

struct OpenCall {
    block: u32,
    id: String,
    signature: String,
    arguments: PartialArguments,
}

impl Frames for Answer {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    fn frame(&mut self, frame: Frame<'_>, out: &mut Vec<Event>) {
        let data = frame.data;
        if self.progress.is_ended {
            return;
        }
        let mut chunk = Chunk::default();
        match chunk.read(data) {
            Ok(()) => self.chunk(chunk, data, out),
            Err(error) => self.progress.broken(&frame, &error, out),
        }
    }

    /// Takes what stood beside or in place of the frames: an error, or the chunks as one list.
    fn document(&mut self, text: &str, out: &mut Vec<Event>) {
        if text.starts_with("[") {
            let _ = Reader::new(text).array(|reader, _| {
                self.document_item(reader.skip()?, out);
                Ok(())
            });
        } else {
            self.document_item(text, out);
        }
    }

    fn done(&mut self, out: &mut Vec<Event>) {
        use MessageStopReason as Stop;
        self.progress.start(out);
        // A refused prompt has no answer; if there is one, it counts.
        if let Some(reason) = self.blocked.take().filter(|_| self.progress.blocks.last().is_none()) {
            let message = ["the provider refused the prompt: ", &reason].concat();
            return self.progress.fail(ErrorInfo::new(ErrorKind::ContentFiltered, message), out);
        }
        let word = self.progress.remarks.raw_stop_reason.as_deref().unwrap_or_default();
        let stop_reason = match word {
            // There would be more, but the token for requesting it is not kept.
            "MAX_TOKENS" | "CONTINUATION" => Stop::Length,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => Stop::ContentFilter,
            // The model's own mistake: it may do better the next time.
            "MALFORMED_FUNCTION_CALL"
            | "MALFORMED_RESPONSE"
            | "MISSING_THOUGHT_SIGNATURE"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS" => {
                let details = if self.details.is_empty() { "the answer went wrong" } else { &self.details };
                let message = [word, ": ", details].concat();
                return self.progress.fail(ErrorInfo::new(ErrorKind::Server, message), out);
            }
            _ => Stop::Stop,
        };
        // Otherwise arguments that are incomplete were cut off.
        if stop_reason == Stop::Stop {
            self.finish_call(out);
        }
        self.progress.blocks.close(out);
        let asks = stop_reason == Stop::Stop && self.has_calls;
        self.progress.done(if asks { Stop::ToolUse } else { stop_reason }, out);
    }
}

impl Answer {
    fn chunk(&mut self, chunk: Chunk<'_>, data: &str, out: &mut Vec<Event>) {
        if chunk.is_error {
            return self.progress.fail(in_stream_text(data), out);
        }
        self.progress.start(out);
        let Candidate { parts, finish_reason, finish_message } = chunk.candidate;
        for part in parts {
            self.part(part, out);
        }
        if let Some(usage) = chunk.usage {
            self.progress.emit_usage(usage, out);
        }
        let remarks = &mut self.progress.remarks;
        if !finish_reason.is_empty() {
            remarks.raw_stop_reason = Some(finish_reason.into_owned());
        }
        if !finish_message.is_empty() {
            remarks.stop_details = Some(RawJson::string(&finish_message));
            self.details = finish_message.into_owned();
        }
        if !chunk.block_reason.is_empty() && remarks.raw_stop_reason.is_none() {
            remarks.raw_stop_reason = Some(["promptFeedback.blockReason=", &*chunk.block_reason].concat());
            let reason =
                if chunk.block_message.is_empty() { chunk.block_reason } else { chunk.block_message };
            self.blocked = Some(reason.into_owned());
        }
    }

    fn part(&mut self, part: Part<'_>, out: &mut Vec<Event>) {
        if self.progress.is_ended {
            return;
        }
        if let Some(call) = part.call {
            return self.call(call, &part.signature, out);
        }
        // Beside a text other fields say how it sounds.
        if part.is_other && part.text.is_none() {
            self.progress.count_bytes(part.raw.len(), out);
            if self.progress.count_call(out)
                && let Ok(data) = RawJson::parse(part.raw)
            {
                self.progress.blocks.raw(data, out);
            }
            return;
        }
        let kind = if part.is_thought { Kind::Thinking } else { Kind::Text };
        let piece = part.text.unwrap_or_default();
        if part.signature.is_empty() {
            if !piece.is_empty() {
                self.progress.blocks.text(kind, piece, out);
            }
            return;
        }
        // A part with a signature goes back as it came: it is not merged with its neighbours, and kept if it is empty.
        let blocks = &mut self.progress.blocks;
        blocks.close(out);
        blocks.ensure(kind, out);
        if !piece.is_empty() {
            blocks.text(kind, piece, out);
        }
        blocks.set_signature(&part.signature);
        blocks.close(out);
    }

    fn call(&mut self, call: &str, signature: &str, out: &mut Vec<Event>) {
        let Ok(call) = Value::parse(call) else {
            return;
        };
        let word = |key: &str| call.text_at(key).unwrap_or_default();
        let name = word("name");
        if !name.is_empty() {
            // The previous call did not mark its end.
            self.finish_call(out);
            if !self.progress.count_call(out) {
                return;
            }
            let block = self.progress.blocks.call(word("id"), name, out);
            let (id, arguments) = (word("id").to_owned(), PartialArguments::default());
            self.open = Some(OpenCall { block, id, signature: String::new(), arguments });
        }
        let Some(open) = &mut self.open else {
            return;
        };
        if !signature.is_empty() {
            signature.clone_into(&mut open.signature);
        }
        let block = open.block;
        let mut text = String::new();
        let mut written = Ok(());
        // Gateways write the arguments as a text.
        let parsed = call.text_at("args").and_then(|text| Value::parse(text).ok());
        let args = parsed.as_ref().or_else(|| call.get("args"));
        if let Some(whole) = args.filter(|args| args.as_object().is_some()) {
            written = open.arguments.set(whole, &mut text);
        }
        for entry in call.list_at("partialArgs") {
            written = written.and_then(|()| open.arguments.take(entry, &mut text));
        }
        self.progress.arguments(block, text.as_str().into(), out);
        if written.is_err() {
            let text = "the pieces of a call's arguments came in an order that makes no JSON";
            return self.progress.fail(ErrorInfo::new(ErrorKind::Server, text), out);
        }
        if !self.progress.is_ended && call.flag_at("willContinue") != Some(true) {
            self.finish_call(out);
        }
    }

    fn finish_call(&mut self, out: &mut Vec<Event>) {
        let Some(OpenCall { block, id, signature, arguments }) = self.open.take() else {
            return;
        };
        let mut text = String::new();
        arguments.finish(&mut text);
        self.progress.arguments(block, text.as_str().into(), out);
        if self.progress.is_ended {
            return;
        }
        let mut members = String::new();
        for (key, value) in [("id", &id), ("thoughtSignature", &signature)] {
            if !value.is_empty() {
                fill(",\"$\":\"$\"", &[key, value], &mut members);
            }
        }
        let metadata = RawJson::object_of(&members);
        out.push(Event::ToolCallEnd { index: block, metadata });
        self.has_calls = true;
    }

    fn document_item(&mut self, text: &str, out: &mut Vec<Event>) {
        let mut chunk = Chunk::default();
        if self.progress.is_ended {
            return;
        }
        match chunk.read(text) {
            Ok(()) if chunk.is_answer || chunk.is_error => self.chunk(chunk, text, out),
            _ => self.progress.fail_if_error(text, out),
        }
    }
}
