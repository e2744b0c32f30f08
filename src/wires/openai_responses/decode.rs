//! Reads the events of an answer. An item is identified by its index in the output, and its last event is
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
        let index = event.output_index;
        match (kind, event.delta, event.item) {
            ("output_text.delta", Some(delta), _) => {
                self.items.text_delta(index, BlockKind::Text, delta, answering);
            }
            ("refusal.delta", Some(delta), _) => {
                self.items.text_delta(index, BlockKind::Refusal, delta, answering);
            }
            ("reasoning_summary_text.delta", delta, _) => {
                self.items.thinking_delta(index, "summary", event.part, delta, answering);
            }
            ("reasoning_text.delta" | "reasoning.delta", delta, _) => {
                self.items.thinking_delta(index, "content", event.part, delta, answering);
            }
            ("function_call_arguments.delta" | "custom_tool_call_input.delta", Some(delta), _) => {
                self.items.arguments_delta(index, delta, answering);
            }
            ("output_item.added", _, Some(item)) => {
                if let Some(item) = tree(item, answering) {
                    self.items.add(index, &item, answering);
                }
            }
            ("output_item.done", _, Some(item)) => self.items.finish(index, item, answering),
            ("completed" | "incomplete" | "failed" | "done", ..) => {
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
        let has_calls = self.items.end_calls(answering);
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

    /// Takes the items that the response repeats, where everything arrived at once or the ends of items were
    /// omitted.
    fn take_output(&mut self, response: &ResponseObject<'_>, answering: &mut Answering) {
        let is_all = self.items.is_empty();
        let mut index = 0;
        let _ = Reader::new(response.output.unwrap_or("[]")).array(|reader, _| {
            let item = reader.skip()?;
            if is_all || (response.status != "incomplete" && self.items.is_unfinished(index)) {
                self.items.finish(Some(index), item, answering);
            }
            index += 1;
            Ok(())
        });
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
}
