//! Reads the events of an answer. An item is found by whichever of its keys a server keeps, and its last event is
//! authoritative.

use crate::data::json::{Reader, Value};
use crate::wires::Limits;
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::fields::tree;
use crate::wires::decoding::frames::{Frames, SseDecoder};
use crate::wires::decoding::stop::filter_of;
use crate::wires::decoding::template::span_of;
use crate::wires::errors::{error_in, in_stream};
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::MessageStopReason;

use super::frame::{ResponseObject, ResponsesEvent};
use super::items::OutputItems;
use super::keys::ItemState;

/// Creates a decoder of one answer. `is_xai`: calls whose input is a text are xAI's own searches.
pub(in crate::wires) fn decoder(limits: Limits, is_xai: bool) -> Box<SseDecoder> {
    SseDecoder::new(Box::new(ResponsesDecoder { items: OutputItems::new(is_xai) }), limits)
}

struct ResponsesDecoder {
    items: OutputItems,
}

impl Frames for ResponsesDecoder {
    fn frame(&mut self, frame: Frame<'_>, answering: &mut Answering) {
        let mut event = ResponsesEvent::default();
        match event.read(frame.data) {
            Ok(()) => {
                if event.kind.is_empty() || frame.event == "error" {
                    event.kind = frame.event.into();
                }
                self.event(event, frame.data, answering);
            }
            Err(error) => answering.broken(&frame, &error),
        }
    }

    /// `error` and `response.failed` may both come. The second one still says why the answer stopped.
    fn late_frame(&mut self, frame: Frame<'_>, answering: &mut Answering) {
        let mut event = ResponsesEvent::default();
        if event.read(frame.data).is_ok() && event.kind == "response.failed" {
            answering.stop_word = Some("failed".to_owned());
        }
    }

    fn document(&mut self, text: &str, answering: &mut Answering) {
        let mut response = ResponseObject::default();
        if response.read_document(text).is_err() || response.object != "response" {
            return answering.fail_if_error(text);
        }
        answering.start();
        self.end(&response, answering);
    }

    fn repeated(&mut self, text: &str, answering: &mut Answering) {
        self.items.repeated(text, answering);
    }

    /// Only a frame can end an answer.
    fn is_whole(&self, _answering: &Answering) -> bool {
        false
    }
}

impl ResponsesDecoder {
    fn event(&mut self, event: ResponsesEvent<'_>, data: &str, answering: &mut Answering) {
        // Some gateways say `response.error`.
        if event.kind.ends_with("error") || (event.has_error && !event.kind.starts_with("response.")) {
            return fail(data, answering);
        }
        let Some(kind) = event.kind.strip_prefix("response.") else {
            return;
        };
        answering.start();
        answering.holes.ignored = event.ignored.map(span_of);
        let keys = &event.keys;
        match (kind, event.delta, event.item) {
            ("output_text.delta", Some(delta), _) => {
                self.items.text_delta(keys, (BlockKind::Text, event.part), delta, answering);
            }
            ("refusal.delta", Some(delta), _) => {
                self.items.text_delta(keys, (BlockKind::Refusal, event.part), delta, answering);
            }
            ("reasoning_summary_text.delta", delta, _) => {
                self.items.thinking_delta(keys, "summary", event.part, delta, answering);
            }
            ("reasoning_text.delta" | "reasoning.delta", delta, _) => {
                self.items.thinking_delta(keys, "content", event.part, delta, answering);
            }
            ("function_call_arguments.delta" | "custom_tool_call_input.delta", Some(delta), _) => {
                self.items.arguments_delta(keys, delta, answering);
            }
            ("output_item.added", _, Some(item)) => {
                if let Some(item) = tree(item, answering) {
                    self.items.announce(keys.index, &item, answering);
                }
            }
            ("output_item.done", _, Some(item)) => self.items.finish(keys.index, item, answering),
            ("output_text.annotation.added", ..) => {
                if let Some(annotation) = event.annotation.and_then(|written| tree(written, answering)) {
                    self.items.citations.take(&[&annotation], answering);
                }
            }
            (kind, ..) if kind.ends_with(".done") => {
                if let Some(whole) = &event.whole {
                    self.items.end_pieces(kind, (keys, event.part, &event.name), &whole.text, answering);
                }
            }
            ("completed" | "incomplete" | "failed" | "done" | "cancelled", ..) => {
                let mut response = event.response;
                if response.status.is_empty() && kind != "done" {
                    response.status = kind.into();
                }
                self.end(&response, answering);
            }
            _ => {}
        }
    }

    fn end(&mut self, response: &ResponseObject<'_>, answering: &mut Answering) {
        if let Some(usage) = response.usage {
            answering.report_usage(usage);
        }
        if response.status == "failed" || response.status == "cancelled" || response.error.is_some() {
            answering.stop_word = Some(response.status.clone().into_owned());
            let document = response.error.map(|error| ["{\"error\":", error, "}"].concat());
            let error = document.and_then(|document| error_in(&document)).unwrap_or_else(|| {
                let text = ["the provider ended the answer as `", &response.status, "`"].concat();
                ErrorInfo::new(ErrorKind::Server, text)
            });
            return answering.fail(error);
        }
        if self.items.has_conflict {
            self.start_over(response, answering);
        }
        self.take_output(response, answering);
        if answering.is_ended {
            return;
        }
        answering.close();
        let is_incomplete = response.status == "incomplete";
        let word = if is_incomplete && !response.reason.is_empty() {
            [&response.status, ":", &*response.reason].concat()
        } else {
            response.status.clone().into_owned()
        };
        answering.stop_word = Some(word).filter(|word| !word.is_empty());
        let has_calls = self.items.end_calls(!is_incomplete, answering);
        self.items.citations.keep(answering);
        answering.done(if answering.is_refused() {
            MessageStopReason::Refusal
        } else if let Some(filter) = filter_of(&response.reason) {
            filter
        } else if is_incomplete {
            MessageStopReason::Length
        } else if has_calls {
            MessageStopReason::ToolUse
        } else {
            MessageStopReason::Stop
        });
    }

    /// What was sent of a call in pieces is not what its end holds, and the pieces are out already. If the response
    /// repeats everything, the answer is taken from there; otherwise nobody knows what the model wrote.
    #[cold]
    fn start_over(&mut self, response: &ResponseObject<'_>, answering: &mut Answering) {
        let mut count = 0;
        let _ = Reader::new(response.output.unwrap_or("[]")).array(|reader, _| {
            count += 1;
            reader.pass_over()
        });
        if count < self.items.len() {
            let text = "the pieces of a call's arguments are not those of the whole call";
            return answering.fail(ErrorInfo::new(ErrorKind::Server, text));
        }
        answering.restart();
        self.items.clear();
    }

    /// Takes the items that the response repeats, where everything arrived at once, or events of items were omitted.
    fn take_output(&mut self, response: &ResponseObject<'_>, answering: &mut Answering) {
        let is_all = self.items.is_empty();
        if !is_all && response.status == "incomplete" {
            return;
        }
        let mut index = 0;
        let mut unknown = self.items.calls();
        let mut left = Vec::new();
        let _ = Reader::new(response.output.unwrap_or("[]")).array(|reader, _| {
            let item = reader.skip()?;
            let value = if is_all { None } else { tree(item, answering) };
            match value.map(|value| self.items.state_of(index, &value)) {
                None | Some(ItemState::Open) => self.items.finish(Some(index), item, answering),
                Some(ItemState::UnknownCall) => left.push((index, item)),
                Some(ItemState::KnownCall) => unknown = unknown.saturating_sub(1),
                Some(ItemState::Other) => {}
            }
            index += 1;
            Ok(())
        });
        // A call that no event told of; unless it is one of those that the events told of by another id.
        for (index, item) in left.into_iter().skip(unknown) {
            self.items.finish(Some(index), item, answering);
        }
    }
}

/// Fails with the error that an event holds.
fn fail(data: &str, answering: &mut Answering) {
    let mut value = Value::parse_bounded(data).unwrap_or_default();
    // Without an `error`, the `type` is that of the event and says nothing of the error.
    if let Value::Object(map) = &mut value
        && map.get("error").is_none_or(Value::is_null)
    {
        map.remove("type");
    }
    answering.fail(in_stream(&value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::decoding::frames::is_compared;

    #[test]
    fn after_a_piece_the_next_frame_is_compared() {
        let call = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}"#;
        for kind in ["output_text", "reasoning_summary_text", "reasoning_text", "function_call_arguments"] {
            let start = [r#"{"type":"response."#, kind, r#".delta","output_index":"#].concat();
            let index = if kind == "function_call_arguments" { "0" } else { "1" };
            let more = [&start, index, r#","delta":"a","sequence_number":1,"obfuscation":"x"}"#].concat();
            assert!(is_compared(decoder(Limits::default(), false), &[call, &more, &more]), "{kind}");
            assert!(!is_compared(decoder(Limits::default(), false), &[call]), "{kind}");
        }
    }

    /// The arguments of the calls that may run, and the errors.
    fn outcome(documents: &[&str]) -> Vec<String> {
        use crate::rules::stream::{Assembler, AssistantMessageEvent as Event};
        let mut decoder = decoder(Limits::default(), false);
        let mut events = Vec::new();
        for document in documents {
            crate::wires::Decoder::feed(
                &mut *decoder,
                ["data: ", document, "\n\n"].concat().as_bytes(),
                &mut events,
            );
        }
        let mut assembler = Assembler::default();
        let mut seen = Vec::new();
        for event in events {
            if let Event::Error(error) = &event {
                seen.push(error.message.clone());
            }
            assembler.push(event).unwrap();
        }
        let assembled = assembler.finish(MessageStopReason::ToolUse);
        for block in assembled.content {
            if let crate::words::message::ContentBlock::ToolCall(call) = block {
                seen.push([&*call.call_id, call.arguments.as_str()].concat());
            }
        }
        seen
    }

    #[test]
    fn a_call_never_runs_with_other_arguments_than_those_of_its_end() {
        let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","call_id":"a","name":"f"}}"#;
        let piece =
            r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"n\":1}"}"#;
        let item = |n: &str| {
            [
                r#"{"type":"function_call","id":"i","call_id":"a","name":"f","arguments":"{\"n\": "#,
                n,
                r#"}"}"#,
            ]
            .concat()
        };
        let ended = |n: &str| {
            [r#"{"type":"response.output_item.done","output_index":0,"item":"#, &item(n), "}"].concat()
        };
        let completed = |output: &str| {
            [r#"{"type":"response.completed","response":{"status":"completed","output":["#, output, "]}}"]
                .concat()
        };
        // Written in another way, it is the same.
        assert_eq!(outcome(&[added, piece, &ended("1"), &completed("")]), [r#"a{"n":1}"#]);
        // The response repeats what the end said: the answer is taken from there.
        assert_eq!(outcome(&[added, piece, &ended("2"), &completed(&item("2"))]), [r#"a{"n": 2}"#]);
        // Nobody knows.
        let seen = outcome(&[added, piece, &ended("2"), &completed("")]);
        assert_eq!(
            seen.first().map(String::as_str),
            Some("the pieces of a call's arguments are not those of the whole call")
        );
    }
}
