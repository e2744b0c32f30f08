//! Events in, events out. A block ends when the next one begins or the message ends: only then is it known whether the
//! token limit cut it off. A call may also end by itself, because gateways interleave several.

use crate::data::json::{Map, Reader, ToJson, Value};
use crate::data::text::{Put, contains};
use crate::rules::stream::AssistantMessageEvent as Event;
use crate::wires::Limits;
use crate::wires::decoding::blocks::{Kind, Piece};
use crate::wires::decoding::{Frames, Progress, SseDecoder};
use crate::wires::errors::in_stream_text;
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::MessageStopReason;

use super::frame::{Delta, Start, Tokens, WireEvent};

/// A decoder of one answer.
pub(super) fn decoder(limits: Limits) -> Box<SseDecoder> {
    SseDecoder::new(Box::<Answer>::default(), limits)
}

#[derive(Default)]
struct Answer {
    progress: Progress,
    tokens: Tokens,
    message_id: String,
    open: Open,
    /// The number of the open block.
    at: Option<u64>,
    /// Calls that are not complete although another block began: gateways interleave several.
    suspended: Vec<(Option<u64>, Open)>,
    /// Whether any call is complete.
    has_calls: bool,
}

/// The block that is being received.
#[derive(Default)]
enum Open {
    #[default]
    None,
    /// Text or thinking.
    Text { kind: Kind, is_cited: bool },
    Call {
        index: u32,
        /// Arguments that stood in the first event.
        input: Option<String>,
        has_pieces: bool,
        /// Its end arrived: it is complete, unless nothing follows and the token limit cut it off.
        is_stopped: bool,
    },
    /// Kept as it is.
    Raw { block: Map, input: String },
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
        // Gateways send it. Without a stop reason it means nothing.
        if data == "[DONE]" && self.progress.remarks.raw_stop_reason.is_some() {
            return self.done(out);
        }
        let mut event = WireEvent::default();
        match event.read(data) {
            Ok(()) => {
                if event.kind.is_empty() || frame.event == "error" {
                    event.kind = frame.event.into();
                }
                self.event(event, data, out);
            }
            Err(error) => self.progress.broken(&frame, &error, out),
        }
    }

    /// Takes what stood beside or in place of the frames: an error, or the whole answer of a server that cannot stream.
    fn document(&mut self, text: &str, out: &mut Vec<Event>) {
        let mut message = WireEvent::default();
        if message.read(text).is_err() || message.kind != "message" {
            return self.progress.fail_if_error(text, out);
        }
        self.start(&message, out);
    }

    fn done(&mut self, out: &mut Vec<Event>) {
        use MessageStopReason as Stop;
        self.progress.start(out);
        let word = self.progress.remarks.raw_stop_reason.as_deref().unwrap_or_default();
        let word = match word {
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "refusal" => Stop::Refusal,
            "pause_turn" | "compaction" => Stop::Pause,
            "tool_use" => Stop::ToolUse,
            "error" => {
                let text = "the provider ended the answer with `error`";
                return self.progress.fail(ErrorInfo::new(ErrorKind::Server, text), out);
            }
            _ => Stop::Stop,
        };
        // The last block was cut off, or refused.
        let is_cut = matches!(word, Stop::Length | Stop::Refusal);
        let last = self.progress.blocks.last();
        let mut open = std::mem::take(&mut self.suspended);
        open.push((self.at, std::mem::take(&mut self.open)));
        for (_, open) in open {
            let is_whole =
                matches!(&open, Open::Call { index, is_stopped: true, .. } if Some(*index) != last);
            if !is_cut || is_whole {
                self.open = open;
                self.close(out);
            }
        }
        self.progress.blocks.close(out);
        let stop_reason = if word == Stop::Stop && self.has_calls { Stop::ToolUse } else { word };
        self.progress.done(stop_reason, out);
    }
}

impl Answer {
    fn event(&mut self, event: WireEvent<'_>, data: &str, out: &mut Vec<Event>) {
        if event.is_error || event.kind == "error" {
            return self.progress.fail(in_stream_text(data), out);
        }
        match &*event.kind {
            "message_start" => self.start(&event, out),
            "content_block_start" => {
                self.progress.start(out);
                self.begin(&event, out);
            }
            "content_block_delta" => {
                self.progress.start(out);
                self.delta(event, out);
            }
            "content_block_stop" => {
                self.switch_to(event.index);
                self.close_raw(out);
                if let Open::Call { is_stopped, .. } = &mut self.open {
                    *is_stopped = true;
                }
            }
            "message_delta" => {
                self.progress.start(out);
                self.take_end(&event, out);
            }
            "message_stop" => self.done(out),
            // `ping`, and future events.
            _ => {}
        }
    }

    /// Gateways send it twice. With another id, the answer starts over.
    fn start(&mut self, event: &WireEvent<'_>, out: &mut Vec<Event>) {
        let is_another = !self.message_id.is_empty()
            && !event.message_id.is_empty()
            && self.message_id != event.message_id;
        if is_another && self.progress.blocks.last().is_some() {
            self.open = Open::None;
            self.suspended.clear();
            self.tokens = Tokens::default();
            self.has_calls = false;
            self.progress.restart(out);
        }
        if !event.message_id.is_empty() {
            self.message_id = event.message_id.clone().into_owned();
        }
        self.progress.start(out);
        self.take_end(event, out);
        // Empty in most streams; the whole content if the server does not stream.
        let mut index = 0;
        let _ = Reader::new(event.content.unwrap_or("[]")).array(|reader, _| {
            let block = Some(reader.skip()?).filter(|block| block.starts_with("{"));
            self.begin(&WireEvent { index: Some(index), block, ..WireEvent::default() }, out);
            self.close_raw(out);
            index += 1;
            Ok(())
        });
    }

    /// Resumes the block with this number, if it was put aside.
    fn switch_to(&mut self, index: Option<u64>) {
        if index != self.at
            && let Some((at, open)) = self.suspended.iter_mut().find(|(at, _)| *at == index)
        {
            std::mem::swap(at, &mut self.at);
            std::mem::swap(open, &mut self.open);
        }
    }

    fn emit_usage(&mut self, tokens: &Tokens, out: &mut Vec<Event>) {
        if tokens.is_empty() {
            return;
        }
        self.tokens.merge(tokens);
        {
            self.progress.remarks.billed = self.tokens.billed;
        }
        self.progress.emit_usage(self.tokens.usage(), out);
    }

    fn begin(&mut self, event: &WireEvent<'_>, out: &mut Vec<Event>) {
        if let Open::Call { is_stopped: false, .. } = self.open {
            self.suspended.push((self.at, std::mem::take(&mut self.open)));
        }
        self.close(out);
        self.at = event.index;
        let Some(block) = event.block else {
            return;
        };
        let start = Start::read(block);
        match &*start.kind {
            "text" => self.begin_text(Kind::Text, start, out),
            "thinking" => self.begin_text(Kind::Thinking, start, out),
            "redacted_thinking" => _ = self.progress.blocks.redacted(start.data.into_owned(), out),
            "tool_use" => {
                if self.progress.count_call(out) {
                    let index = self.progress.blocks.call(&start.id, &start.name, out);
                    let input = start.input.filter(|input| *input != "{}").map(str::to_owned);
                    self.open = Open::Call { index, input, has_pieces: false, is_stopped: false };
                }
            }
            _ => {
                self.progress.count_bytes(block.len(), out);
                if self.progress.count_call(out)
                    && let Ok(Value::Object(block)) = Value::parse(block)
                {
                    self.open = Open::Raw { block, input: String::new() };
                }
            }
        }
    }

    fn begin_text(&mut self, kind: Kind, start: Start<'_>, out: &mut Vec<Event>) {
        self.progress.blocks.close(out);
        self.progress.blocks.ensure(kind, out);
        if let Some(text) = start.text {
            self.progress.blocks.text(kind, text, out);
        }
        if !start.signature.is_empty() {
            self.progress.blocks.sign(&start.signature);
        }
        self.open = Open::Text { kind, is_cited: false };
    }

    fn delta(&mut self, event: WireEvent<'_>, out: &mut Vec<Event>) {
        self.switch_to(event.index);
        // Gateways omit the first event of a block.
        if event.index != self.at || matches!(self.open, Open::None) {
            let kind = match &*event.delta.kind {
                "text_delta" => Kind::Text,
                "thinking_delta" => Kind::Thinking,
                _ => return,
            };
            self.close(out);
            self.at = event.index;
            self.begin_text(kind, Start::default(), out);
        }
        let Delta { kind: word, piece, signature, citation, .. } = event.delta;
        let progress = &mut self.progress;
        match (&mut self.open, &*word) {
            (Open::Text { kind: kind @ Kind::Text, .. }, "text_delta")
            | (Open::Text { kind: kind @ Kind::Thinking, .. }, "thinking_delta") => {
                if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                    progress.blocks.piece_place = piece.place();
                    progress.blocks.text(*kind, piece, out);
                }
            }
            (Open::Text { kind: Kind::Thinking, .. }, "signature_delta") => {
                progress.blocks.sign(&signature.unwrap_or_default());
            }
            // What is quoted from the provider's own search is given back with the text. Places in documents of the
            // user are not: the documents may be gone by then.
            (Open::Text { is_cited, .. }, "citations_delta") => {
                let Some(citation) =
                    citation.filter(|citation| contains(citation, "web_search_result_location"))
                else {
                    return;
                };
                progress.count_bytes(citation.len(), out);
                progress.blocks.sign(if *is_cited { "," } else { "{\"citations\":[" });
                progress.blocks.sign(citation);
                *is_cited = true;
            }
            (Open::Call { index, has_pieces, .. }, "input_json_delta") => {
                if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                    *has_pieces = true;
                    progress.blocks.piece_place = piece.place();
                    progress.arguments(*index, piece, out);
                }
            }
            (Open::Raw { block, input }, _) => {
                if let Some(secret) = signature.filter(|_| word == "compaction_delta") {
                    progress.count_bytes(secret.len(), out);
                    block.insert("encrypted_content", Value::String(secret.into_owned()));
                }
                let Some(piece) = piece else {
                    return;
                };
                progress.count_bytes(piece.text.len(), out);
                match &*word {
                    "input_json_delta" => input.put(&piece.text),
                    "compaction_delta" => append(block, "content", &piece),
                    "text_delta" => append(block, "text", &piece),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn take_end(&mut self, event: &WireEvent<'_>, out: &mut Vec<Event>) {
        let remarks = &mut self.progress.remarks;
        if !event.delta.stop_reason.is_empty() {
            remarks.raw_stop_reason = Some(event.delta.stop_reason.clone().into_owned());
        }
        if let Some(text) = event.delta.stop_sequence.as_deref() {
            remarks.stop_sequence = Some(text.to_owned());
        }
        if let Some(details) = event.delta.stop_details {
            remarks.stop_details = crate::data::json::RawJson::parse(details).ok();
        }
        self.emit_usage(&event.tokens, out);
    }

    /// Closes a block that is kept whole: it is complete at its own end.
    fn close_raw(&mut self, out: &mut Vec<Event>) {
        let Open::Raw { .. } = self.open else {
            return;
        };
        if let Open::Raw { mut block, input } = std::mem::take(&mut self.open) {
            match Value::parse(&input) {
                Ok(input) => block.insert("input", input),
                // The token limit cut it off.
                Err(_) if !input.trim_ascii().is_empty() => return,
                Err(_) => {}
            }
            self.progress.blocks.raw(Value::Object(block).to_raw(), out);
        }
    }

    /// Closes the open block: something follows, so it was not cut off.
    fn close(&mut self, out: &mut Vec<Event>) {
        self.close_raw(out);
        if let Open::Text { is_cited: true, .. } = self.open {
            self.progress.blocks.sign("]}");
        }
        if let Open::Call { index, input, has_pieces, .. } = std::mem::take(&mut self.open) {
            if let Some(input) = input.filter(|_| !has_pieces) {
                self.progress.arguments(index, input.as_str().into(), out);
            }
            self.progress.blocks.release(out);
            out.push(Event::ToolCallEnd { index, metadata: None });
            self.has_calls = true;
        }
    }
}

/// Adds to a text of a block.
fn append(block: &mut Map, key: &str, piece: &Piece<'_>) {
    let before = block.get(key).and_then(Value::as_str).unwrap_or_default();
    let text = [before, &piece.text].concat();
    block.insert(key, Value::String(text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::decoding::is_compared;

    #[test]
    fn after_a_piece_the_next_frame_is_compared() {
        let cases = [
            (r#"{"type":"text","text":""}"#, r#"{"type":"text_delta","text":"a"}"#),
            (r#"{"type":"thinking","thinking":""}"#, r#"{"type":"thinking_delta","thinking":"a"}"#),
            (
                r#"{"type":"tool_use","id":"t","name":"f"}"#,
                r#"{"type":"input_json_delta","partial_json":"{"}"#,
            ),
        ];
        for (block, delta) in cases {
            let start = [r#"{"type":"content_block_start","index":0,"content_block":"#, block, "}"].concat();
            let more = [r#"{"type":"content_block_delta","index":0,"delta":"#, delta, "}"].concat();
            assert!(is_compared(decoder(Limits::default()), &[&start, &more, &more]), "{block}");
            assert!(!is_compared(decoder(Limits::default()), &[&start]), "{block}");
        }
    }
}
