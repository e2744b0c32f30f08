//! Reads the events of an answer. A block ends when the next one begins or the message ends, because only
//! then is it known whether the token limit cut it off. A call may also end by itself, because gateways
//! interleave several.

use std::mem;

use crate::data::json::{RawJson, Reader};
use crate::wires::Limits;
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::citations::Citations;
use crate::wires::decoding::fields::tree;
use crate::wires::decoding::frames::{Frames, SseDecoder};
use crate::wires::decoding::stop::filter_of;
use crate::wires::errors::in_stream_text;
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::MessageStopReason;

use super::block::AnthropicBlock;
use super::frame::{AnthropicEvent, BlockStart};
use super::usage::AnthropicUsage;

/// Creates a decoder of one answer.
pub(in crate::wires) fn decoder(limits: Limits) -> Box<SseDecoder> {
    SseDecoder::new(Box::<AnthropicDecoder>::default(), limits)
}

#[derive(Default)]
struct AnthropicDecoder {
    usage: AnthropicUsage,
    message_id: String,
    open: AnthropicBlock,
    /// The number of the open block.
    at: Option<u64>,
    /// Calls that are not complete although another block began, because a gateway interleaves several.
    suspended: Vec<(Option<u64>, AnthropicBlock)>,
    citations: Citations,
    /// Whether any call is complete.
    has_calls: bool,
    /// The end of the block with the number `at` arrived.
    is_stopped: bool,
    /// The start of another message arrived. What comes next tells whether the answer starts over.
    another: Option<AnotherStart>,
}

/// The start of a message with another id than the one before.
struct AnotherStart {
    id: String,
    usage: AnthropicUsage,
}

impl Frames for AnthropicDecoder {
    fn frame(&mut self, frame: Frame<'_>, answering: &mut Answering) {
        let data = frame.data;
        // Gateways send it. Without a stop reason it means nothing.
        if data == "[DONE]" && answering.stop_word.is_some() {
            return self.finish(answering);
        }
        let mut event = AnthropicEvent::default();
        match event.read(data) {
            Ok(()) => {
                if event.kind.is_empty() || frame.event == "error" {
                    event.kind = frame.event.into();
                }
                self.event(event, data, answering);
            }
            Err(error) => answering.broken(&frame, &error),
        }
    }

    fn document(&mut self, text: &str, answering: &mut Answering) {
        let mut message = AnthropicEvent::default();
        if message.read(text).is_err() || message.kind != "message" {
            return answering.fail_if_error(text);
        }
        self.start(&message, answering);
    }

    fn finish(&mut self, answering: &mut Answering) {
        use MessageStopReason as Stop;
        answering.start();
        let word = match answering.stop_word.as_deref().unwrap_or_default() {
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "pause_turn" | "compaction" => Stop::Pause,
            "tool_use" => Stop::ToolUse,
            "error" => {
                let text = "the provider ended the answer with `error`";
                return answering.fail(ErrorInfo::new(ErrorKind::Server, text));
            }
            word => filter_of(word).unwrap_or(Stop::Stop),
        };
        self.end_blocks(word == Stop::Length || word.forbids_calls(), answering);
        answering.close();
        self.citations.keep(answering);
        let stop_reason = if word == Stop::Stop && self.has_calls { Stop::ToolUse } else { word };
        answering.done(stop_reason);
    }
}

impl AnthropicDecoder {
    fn event(&mut self, mut event: AnthropicEvent<'_>, data: &str, answering: &mut Answering) {
        if event.is_error || event.kind == "error" {
            return answering.fail(in_stream_text(data));
        }
        match &*event.kind {
            "message_start" => self.start(&event, answering),
            "content_block_start" => {
                answering.start();
                self.begin(event.index, event.block, answering);
            }
            "content_block_delta" => {
                answering.start();
                event.index = self.index_of(&event);
                self.delta(event, answering);
            }
            "content_block_stop" => {
                event.index = event.index.or(self.at);
                self.switch_to(event.index);
                self.is_stopped |= event.index == self.at;
                self.open.close_raw(answering);
                if let AnthropicBlock::Call { is_stopped, .. } = &mut self.open {
                    *is_stopped = true;
                }
            }
            "message_delta" => {
                answering.start();
                self.take_end(&event, answering);
            }
            "message_stop" => self.finish(answering),
            // `ping`, and future events.
            _ => {}
        }
    }

    /// Gateways send the start of a message twice. With another id, the answer may start over.
    fn start(&mut self, event: &AnthropicEvent<'_>, answering: &mut Answering) {
        let is_another = !self.message_id.is_empty()
            && !event.message_id.is_empty()
            && self.message_id != event.message_id;
        if is_another && answering.last_block().is_some() {
            let id = event.message_id.clone().into_owned();
            self.another = Some(AnotherStart { id, usage: event.usage });
            if event.content.is_none_or(|content| content == "[]") {
                return;
            }
            self.tell_apart(false, answering);
        }
        self.another = None;
        if !event.message_id.is_empty() {
            self.message_id = event.message_id.clone().into_owned();
        }
        answering.start();
        self.take_end(event, answering);
        // Empty in most streams; the whole content if the server does not stream.
        let mut index = 0;
        let _ = Reader::new(event.content.unwrap_or("[]")).array(|reader, _| {
            let block = Some(reader.skip()?).filter(|block| block.starts_with("{"));
            self.begin(Some(index), block, answering);
            self.open.close_raw(answering);
            index += 1;
            Ok(())
        });
    }

    /// The message whose start came last is the one that goes on if its next piece belongs to a block that is open,
    /// or begins one with a higher number; otherwise it begins from its first block, and the answer starts over.
    fn tell_apart(&mut self, goes_on: bool, answering: &mut Answering) {
        let Some(another) = self.another.take() else {
            return;
        };
        if !goes_on {
            *self = AnthropicDecoder { at: self.at, ..AnthropicDecoder::default() };
            answering.restart();
        }
        self.message_id = another.id;
        self.take_usage(&another.usage, answering);
    }

    /// The number of the block that a piece belongs to. Gateways leave it out, or change it after the first event: a piece
    /// of arguments under a number that nothing has is one of the call that is open.
    fn index_of(&self, event: &AnthropicEvent<'_>) -> Option<u64> {
        let is_call = matches!(self.open, AnthropicBlock::Call { is_stopped: false, .. });
        let is_known = event.index == self.at || self.suspended.iter().any(|(at, _)| *at == event.index);
        let is_lost = event.index.is_none()
            || (is_call && !is_known && self.suspended.is_empty() && event.delta.kind == "input_json_delta");
        if is_lost { self.at } else { event.index }
    }

    fn begin(&mut self, index: Option<u64>, block: Option<&str>, answering: &mut Answering) {
        // Gateways begin a call twice.
        if let (AnthropicBlock::Call { id, .. }, Some(block)) = (&self.open, block)
            && index == self.at
            && !id.is_empty()
            && BlockStart::read(block).id == *id
        {
            return;
        }
        self.tell_apart(index > self.at, answering);
        self.is_stopped = false;
        if let AnthropicBlock::Call { is_stopped: false, .. } = self.open {
            self.suspended.push((self.at, mem::take(&mut self.open)));
        }
        self.close(answering);
        self.at = index;
        if let Some(block) = block {
            self.open = AnthropicBlock::begin(block, answering);
        }
    }

    fn delta(&mut self, event: AnthropicEvent<'_>, answering: &mut Answering) {
        self.switch_to(event.index);
        self.tell_apart(event.index == self.at && !self.is_stopped, answering);
        // Gateways omit the first event of a block.
        if event.index != self.at || matches!(self.open, AnthropicBlock::None) {
            let kind = match &*event.delta.kind {
                "text_delta" => BlockKind::Text,
                "thinking_delta" => BlockKind::Thinking,
                _ => return,
            };
            self.close(answering);
            self.at = event.index;
            self.open = AnthropicBlock::begin_text(kind, BlockStart::default(), answering);
        }
        if let Some(citation) = event.delta.citation.and_then(|written| tree(written, answering)) {
            self.citations.take(&[&citation], answering);
        }
        self.open.delta(event.delta, answering);
    }

    /// Resumes the block with this number, if it was suspended.
    fn switch_to(&mut self, index: Option<u64>) {
        if index != self.at
            && let Some((at, open)) = self.suspended.iter_mut().find(|(at, _)| *at == index)
        {
            mem::swap(at, &mut self.at);
            mem::swap(open, &mut self.open);
        }
    }

    /// Closes the open block: something follows, so it was not cut off.
    fn close(&mut self, answering: &mut Answering) {
        self.has_calls |= self.open.close(answering);
    }

    /// Closes all blocks at the end of the message. If the message `is_cut`, by the token limit or by a
    /// refusal, the last block is cut too and stays open.
    fn end_blocks(&mut self, is_cut: bool, answering: &mut Answering) {
        let last = answering.last_block();
        let mut open = mem::take(&mut self.suspended);
        open.push((self.at, mem::take(&mut self.open)));
        for (_, open) in open {
            // A call that the limit cuts off has no end of its own. Gateways close it all the same: then its arguments are no
            // whole object, or there are none yet.
            let is_whole = matches!(&open, AnthropicBlock::Call { index, has_pieces, is_stopped: true, .. }
                if *has_pieces || Some(*index) != last);
            if !is_cut || is_whole {
                self.open = open;
                self.close(answering);
            }
        }
    }

    /// Takes what a message says of its end: the stop reason, and the usage so far.
    fn take_end(&mut self, event: &AnthropicEvent<'_>, answering: &mut Answering) {
        self.tell_apart(true, answering);
        let end = &event.delta;
        if !end.stop_reason.is_empty() {
            answering.stop(end.stop_reason.clone().into_owned());
        }
        if let Some(text) = end.stop_sequence.as_deref() {
            answering.remarks.stop_sequence = Some(text.to_owned());
        }
        if let Some(details) = end.stop_details {
            answering.remarks.stop_details = RawJson::parse(details).ok();
        }
        self.take_usage(&event.usage, answering);
    }

    fn take_usage(&mut self, usage: &AnthropicUsage, answering: &mut Answering) {
        if !usage.is_empty() {
            self.usage.merge(usage);
            answering.remarks.billed = self.usage.billed;
            answering.report_usage(self.usage.usage());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::decoding::frames::is_compared;

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
