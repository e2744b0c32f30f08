//! Reads the chunks of an answer. What servers do that no reference mentions is explained at the line that
//! copes with it.

use crate::data::json::{Value, fill, without_comma};
use crate::wires::Limits;
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::citations::Citations;
use crate::wires::decoding::fields::tree;
use crate::wires::decoding::frames::{Frames, SseDecoder};
use crate::wires::decoding::piece::Piece;
use crate::wires::decoding::stop::filter_of;
use crate::wires::decoding::template::span_of;
use crate::wires::errors::in_stream;
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::MessageStopReason;

use super::calls::ChatCalls;
use super::details::{ReasoningDetail, ReasoningDetails};
use super::frame::{ChatChoice, ChatChunk, ChatMedia};

/// Creates a decoder of one answer. `keeps_details`: what `reasoning_details` hold is put into the metadata
/// of the first call, so that it can be sent back.
pub(in crate::wires) fn decoder(limits: Limits, keeps_details: bool) -> Box<SseDecoder> {
    SseDecoder::new(Box::new(ChatDecoder { keeps_details, ..ChatDecoder::default() }), limits)
}

#[derive(Default)]
struct ChatDecoder {
    keeps_details: bool,
    calls: ChatCalls,
    details: ReasoningDetails,
    /// What the text refers to: pages that a search found, files. JSON values, each with a comma before it.
    annotations: String,
    /// Pages that a search found, as the last chunk told them.
    pages: String,
    /// What the model spoke: the id, the sound in Base64, and its words.
    audio: [String; 3],
    /// The last chunk had a usage and nothing that belongs to a block. Servers that send no finish reason end
    /// like this.
    has_trailer: bool,
    saw_delta: bool,
    /// How the last chunk began: see [`ChatChunk::read`].
    head: String,
}

impl Frames for ChatDecoder {
    fn frame(&mut self, frame: Frame<'_>, answering: &mut Answering) {
        let data = frame.data;
        if data == "[DONE]" {
            return self.finish(answering);
        }
        let mut chunk = ChatChunk::default();
        match chunk.read(data, &mut self.head) {
            Ok(()) if frame.event == "error" => fail(data, answering),
            Ok(()) => {
                answering.start();
                answering.holes.ignored = [span_of(chunk.padding), (0, 0)];
                self.chunk(&mut chunk, data, answering);
            }
            Err(error) => answering.broken(&frame, &error),
        }
    }

    fn document(&mut self, text: &str, answering: &mut Answering) {
        let mut chunk = ChatChunk::default();
        if chunk.read(text, &mut self.head).is_err() {
            return answering.fail_if_error(text);
        }
        if chunk.is_failure() {
            return fail(text, answering);
        }
        if !chunk.is_answer() {
            return;
        }
        answering.start();
        self.chunk(&mut chunk, text, answering);
    }

    fn is_whole(&self, answering: &Answering) -> bool {
        answering.stop_word.is_some() || self.has_trailer
    }

    fn finish(&mut self, answering: &mut Answering) {
        answering.start();
        let word = own_word(answering);
        // SGLang and vLLM say `abort` when they give an answer up, Z.ai says `network_error`.
        if matches!(word.as_str(), "error" | "abort" | "network_error" | "insufficient_system_resource") {
            let is_busy = word == "insufficient_system_resource";
            let kind = if is_busy { ErrorKind::Overloaded } else { ErrorKind::Server };
            let message = ["the provider ended the answer with `", &word, "`"].concat();
            return answering.fail(ErrorInfo::new(kind, message));
        }
        let stop_reason = self.stop_reason(answering);
        answering.close();
        let mut members = String::new();
        if self.keeps_details {
            self.details.write(&mut members);
        }
        self.calls.end(stop_reason, members, answering);
        self.keep_sources(answering);
        self.keep_audio(answering);
        answering.done(stop_reason);
    }
}

impl ChatDecoder {
    fn chunk(&mut self, chunk: &mut ChatChunk<'_>, data: &str, answering: &mut Answering) {
        let is_failure = chunk.is_failure();
        let has_content = chunk.choice.as_ref().is_some_and(ChatChoice::has_content);
        let usage = chunk.usage();
        if let Some(usage) = usage {
            answering.report_usage(usage);
        }
        if has_content {
            self.has_trailer = false;
        } else if usage.is_some() {
            // A first chunk with a role and a usage is no trailer.
            let has_content = answering.last_block().is_some() || !self.calls.is_empty();
            self.has_trailer = chunk.is_without_choice || has_content || self.has_trailer;
        }
        if let Some(pages) = chunk.pages {
            pages.clone_into(&mut self.pages);
        }
        if let Some(choice) = &mut chunk.choice {
            self.saw_delta |= choice.has_delta;
            let message = choice.message.filter(|_| !self.saw_delta);
            self.choice(choice, answering);
            // A server that cannot stream sends the whole message, as the only chunk or after other chunks.
            if let Some(message) = message {
                let mut choice = ChatChoice::default();
                if choice.read_message(message).is_ok() {
                    self.choice(&mut choice, answering);
                }
            }
        }
        if is_failure && !answering.is_ended {
            fail(data, answering);
        }
    }

    fn choice(&mut self, choice: &mut ChatChoice<'_>, answering: &mut Answering) {
        if choice.has_text() {
            self.calls.begin_waiting(answering);
        }
        // Servers that fill `reasoning_details` send the same text in `reasoning` too.
        let thinks_in_details = choice.details.iter().any(ReasoningDetail::has_text);
        if let Some(reasoning) = choice.reasoning.take().filter(|_| !thinks_in_details) {
            self.text(BlockKind::Thinking, reasoning, answering);
        }
        for detail in choice.details.drain(..) {
            self.details.take(detail, answering);
        }
        for (kind, piece) in choice.parts.drain(..) {
            self.text(kind, piece, answering);
        }
        if let Some(content) = choice.content.take() {
            self.text(BlockKind::Text, content, answering);
        }
        if let Some(media) = choice.media.take() {
            self.media(*media, answering);
        }
        if let Some(refusal) = choice.refusal.take() {
            self.text(BlockKind::Refusal, refusal, answering);
        }
        if let Some(list) = choice.annotations.take() {
            answering.hold(&mut self.annotations, ",");
            answering.hold(&mut self.annotations, list);
        }
        let count = choice.calls.len();
        for (position, piece) in choice.calls.drain(..).enumerate() {
            self.calls.take(piece, position, count, answering);
        }
        if !choice.finish_reason.is_empty() {
            answering.stop(choice.finish_reason.as_ref().to_owned());
        }
    }

    /// Keeps what the answer refers to, as the server wrote it and in the form of all wires.
    fn keep_sources(&mut self, answering: &mut Answering) {
        if self.annotations.is_empty() && self.pages.is_empty() {
            return;
        }
        let mut citations = Citations::default();
        let written = [["[", without_comma(&self.annotations), "]"].concat(), self.pages.clone()];
        for list in written.iter().filter_map(|list| tree(list, answering)).collect::<Vec<_>>() {
            for source in list.as_array().unwrap_or_default() {
                match source.as_str() {
                    Some(url) => citations.take_url(url, answering),
                    None => citations.take(&[source], answering),
                }
            }
        }
        if self.annotations.is_empty() {
            return citations.keep(answering);
        }
        let mut block = String::new();
        let values = [without_comma(&self.annotations), citations.values()];
        fill("{\"annotations\":[#],\"citations\":[#]}", &values, &mut block);
        answering.keep(&block);
    }

    /// Keeps the sound. Its words are the text of the answer.
    fn keep_audio(&mut self, answering: &mut Answering) {
        let [id, data, transcript] = &self.audio;
        if !data.is_empty() {
            let mut block = String::new();
            let template = r#"{"type":"audio","audio":{"id":"$","data":"$","transcript":"$"}}"#;
            fill(template, &[id, data, transcript], &mut block);
            answering.keep(&block);
        }
    }

    /// Takes pictures, and a piece of what the model speaks.
    fn media(&mut self, media: ChatMedia<'_>, answering: &mut Answering) {
        for image in media.images {
            answering.keep(image);
        }
        let audio = media.audio;
        let [id, data, transcript] = &mut self.audio;
        if id.is_empty() {
            *id = audio.id.into_owned();
        }
        answering.hold(data, &audio.data);
        if let Some(words) = audio.transcript {
            answering.hold(transcript, &words.text);
            self.text(BlockKind::Text, words, answering);
            answering.holes.text = None;
        }
    }

    fn text(&mut self, kind: BlockKind, piece: Piece<'_>, answering: &mut Answering) {
        if piece.is_empty() {
            return;
        }
        if kind == BlockKind::Thinking {
            self.details.begin_plain(answering);
        }
        answering.holes.text = piece.span();
        answering.text(kind, piece);
    }

    fn stop_reason(&self, answering: &Answering) -> MessageStopReason {
        use MessageStopReason as Stop;
        if answering.is_refused() {
            return Stop::Refusal;
        }
        let word = own_word(answering);
        if let Some(filter) = filter_of(&word) {
            return filter;
        }
        match word.as_str() {
            "length" | "model_length" | "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "tool_calls" | "function_call" | "tool_use" => Stop::ToolUse,
            // Calls that are whole ask for their results, whatever the server's word.
            _ if !self.calls.is_empty() => Stop::ToolUse,
            _ => Stop::Stop,
        }
    }
}

/// The provider's word for the end, to be compared: gateways write some of them in capitals.
fn own_word(answering: &Answering) -> String {
    answering.stop_word.as_deref().unwrap_or_default().to_ascii_lowercase()
}

/// Fails with the error that a chunk holds, at its top or in its choice.
fn fail(document: &str, answering: &mut Answering) {
    let value = Value::parse_bounded(document).unwrap_or_default();
    let failed = value.path(&["error", "failed_generation"]).and_then(Value::as_str);
    answering.remarks.failed_generation = failed.map(str::to_owned);
    let has_error = |part: &&Value| part.get("error").is_some_and(|error| !error.is_null());
    let mut parts = value.list_at("choices").first().into_iter().chain(value.get("x_groq"));
    let inner = if has_error(&&value) { None } else { parts.find(has_error) };
    answering.fail(in_stream(inner.unwrap_or(&value)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::decoding::frames::is_compared;

    #[test]
    fn after_a_piece_the_next_frame_is_compared() {
        let begun =
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}]}"#;
        let more = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}"#;
        let is_compared = |documents: &[&str]| is_compared(decoder(Limits::default(), false), documents);
        assert!(is_compared(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#; 2]));
        assert!(is_compared(&[r#"{"choices":[{"delta":{"reasoning_content":"a"}}],"obfuscation":"x"}"#; 2]));
        assert!(is_compared(&[begun, more, more]));
        assert!(!is_compared(&[begun]));
    }
}
