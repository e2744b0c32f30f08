//! Reads the chunks of an answer. The answer ends with the body, because every chunk may have a finish
//! reason.

use crate::data::json::{RawJson, Reader, Value, fill};
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

use super::frame::{GeminiCandidate, GeminiChunk, GeminiPart};
use super::partial_arguments::PartialArguments;

/// Creates a decoder of one answer.
pub(in crate::wires) fn decoder(limits: Limits) -> Box<SseDecoder> {
    SseDecoder::new(Box::<GeminiDecoder>::default(), limits)
}

#[derive(Default)]
struct GeminiDecoder {
    /// The call whose arguments arrive in pieces.
    open: Option<GeminiCall>,
    has_calls: bool,
    /// What the provider says about why it stopped.
    details: String,
    citations: Citations,
    /// Why the prompt was refused.
    blocked: Option<String>,
}

struct GeminiCall {
    block: u32,
    id: String,
    signature: String,
    arguments: PartialArguments,
}

impl Frames for GeminiDecoder {
    fn frame(&mut self, frame: Frame<'_>, answering: &mut Answering) {
        let data = frame.data;
        let mut chunk = GeminiChunk::default();
        match chunk.read(data) {
            Ok(()) => self.chunk(chunk, data, answering),
            Err(error) => answering.broken(&frame, &error),
        }
    }

    /// Here a document may also be the list of all chunks.
    fn document(&mut self, text: &str, answering: &mut Answering) {
        if text.starts_with("[") {
            let _ = Reader::new(text).array(|reader, _| {
                self.document_item(reader.skip()?, answering);
                Ok(())
            });
        } else {
            self.document_item(text, answering);
        }
    }

    fn finish(&mut self, answering: &mut Answering) {
        answering.start();
        // A prompt that was refused has no answer. If there is an answer, it counts.
        if let Some(reason) = self.blocked.as_ref().filter(|_| answering.last_block().is_none()) {
            let message = ["the provider refused the prompt: ", reason].concat();
            return answering.fail(ErrorInfo::new(ErrorKind::ContentFiltered, message));
        }
        let word = &*answering.stop_word.clone().unwrap_or_default();
        let Some(mut stop_reason) = stop_reason(word) else {
            let details = if self.details.is_empty() { "the answer went wrong" } else { &self.details };
            let message = [word, ": ", details].concat();
            return answering.fail(ErrorInfo::new(ErrorKind::Server, message));
        };
        // With any other reason, arguments that are incomplete were cut off.
        if stop_reason == MessageStopReason::Stop {
            self.end_call(answering);
        }
        answering.close();
        // Now and then the model says nothing, and does so when it is asked again.
        if stop_reason == MessageStopReason::Stop && answering.last_block().is_none() {
            let message = ["the model ended with `", word, "` and said nothing"].concat();
            return answering.fail(ErrorInfo::new(ErrorKind::Server, message));
        }
        self.citations.keep(answering);
        // What was called for a prompt that was refused must not run.
        if self.has_calls && self.blocked.is_some() {
            stop_reason = MessageStopReason::ContentFilter;
        }
        let asks = stop_reason == MessageStopReason::Stop && self.has_calls;
        answering.done(if asks { MessageStopReason::ToolUse } else { stop_reason });
    }
}

impl GeminiDecoder {
    fn chunk(&mut self, chunk: GeminiChunk<'_>, data: &str, answering: &mut Answering) {
        if chunk.is_error {
            return answering.fail(in_stream_text(data));
        }
        answering.start();
        let GeminiCandidate { parts, finish_reason, finish_message, sources } = chunk.candidate;
        for part in parts {
            self.part(part, answering);
        }
        for written in sources.iter().filter(|written| written.starts_with("{")) {
            if let Some(metadata) = tree(written, answering) {
                self.cite(&metadata, answering);
            }
        }
        if let Some(usage) = chunk.usage {
            answering.report_usage(usage);
        }
        if !finish_reason.is_empty() {
            // Of a prompt that was blocked only the answer counts, if there is one.
            answering.stop_word.take_if(|_| self.blocked.is_some());
            answering.stop(finish_reason.into_owned());
        }
        if !finish_message.is_empty() {
            answering.remarks.stop_details = Some(RawJson::string(&finish_message));
            self.details = finish_message.into_owned();
        }
        if !chunk.block_reason.is_empty() {
            if answering.stop_word.is_none() {
                answering.stop_word = Some(["promptFeedback.blockReason=", &*chunk.block_reason].concat());
            }
            let reason =
                if chunk.block_message.is_empty() { chunk.block_reason } else { chunk.block_message };
            self.blocked = Some(reason.into_owned());
        }
    }

    /// Takes what the answer was found in: for each text that a page supports that page, and the pages that support none.
    fn cite(&mut self, metadata: &Value, answering: &mut Answering) {
        let chunks = metadata.list_at("groundingChunks");
        let mut is_cited = vec![false; chunks.len()];
        for support in metadata.list_at("groundingSupports") {
            for index in support.list_at("groundingChunkIndices") {
                let index =
                    index.as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX);
                if let (Some(chunk), Some(is_cited)) = (chunks.get(index), is_cited.get_mut(index)) {
                    *is_cited = true;
                    self.citations.take(&[support, chunk], answering);
                }
            }
        }
        for (chunk, _) in chunks.iter().zip(is_cited).filter(|(_, is_cited)| !is_cited) {
            self.citations.take(&[chunk], answering);
        }
        for key in ["citationSources", "citations"] {
            for source in metadata.list_at(key) {
                self.citations.take(&[source], answering);
            }
        }
    }

    fn part(&mut self, part: GeminiPart<'_>, answering: &mut Answering) {
        if answering.is_ended {
            return;
        }
        if let Some(call) = part.call {
            return self.call(call, &part.signature, answering);
        }
        // Other fields beside a text only describe it.
        if part.is_other && part.text.is_none() {
            return answering.keep(part.raw);
        }
        let kind = if part.is_thought { BlockKind::Thinking } else { BlockKind::Text };
        let piece = part.text.unwrap_or_default();
        if part.signature.is_empty() {
            if !piece.is_empty() {
                answering.text(kind, piece);
            }
            return;
        }
        // A part with a signature must be sent back as it came: it is not merged with its neighbours, and it
        // is kept even if it is empty.
        answering.close();
        answering.open(kind);
        if !piece.is_empty() {
            answering.text(kind, piece);
        }
        answering.set_signature(&part.signature);
        answering.close();
    }

    fn call(&mut self, call: &str, signature: &str, answering: &mut Answering) {
        let Some(call) = tree(call, answering) else {
            return;
        };
        let word = |key: &str| call.text_at(key).unwrap_or_default();
        let name = word("name");
        if !name.is_empty() {
            // The previous call did not mark its end.
            self.end_call(answering);
            if !answering.count_call() {
                return;
            }
            let block = answering.begin_call(word("id"), name);
            let (id, arguments) = (word("id").to_owned(), PartialArguments::default());
            self.open = Some(GeminiCall { block, id, signature: String::new(), arguments });
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
        // Gateways write the arguments as a JSON text.
        let parsed = call.text_at("args").and_then(|text| tree(text, answering));
        let args = parsed.as_ref().or_else(|| call.get("args"));
        if let Some(whole) = args.filter(|args| args.as_object().is_some()) {
            written = open.arguments.set(whole, &mut text);
        }
        for entry in call.list_at("partialArgs") {
            written = written.and_then(|()| open.arguments.take(entry, &mut text));
        }
        answering.arguments(block, text.as_str().into());
        if written.is_err() {
            let text = "the pieces of a call's arguments came in an order that makes no JSON";
            return answering.fail(ErrorInfo::new(ErrorKind::Server, text));
        }
        if !answering.is_ended && call.flag_at("willContinue") != Some(true) {
            self.end_call(answering);
        }
    }

    fn end_call(&mut self, answering: &mut Answering) {
        let Some(GeminiCall { block, id, signature, arguments }) = self.open.take() else {
            return;
        };
        let mut text = String::new();
        arguments.finish(&mut text);
        answering.arguments(block, text.as_str().into());
        if answering.is_ended {
            return;
        }
        let mut members = String::new();
        for (key, value) in [("id", &id), ("thoughtSignature", &signature)] {
            if !value.is_empty() {
                fill(",\"$\":\"$\"", &[key, value], &mut members);
            }
        }
        let metadata = RawJson::object_of(&members);
        answering.end_call(block, metadata);
        self.has_calls = true;
    }

    fn document_item(&mut self, text: &str, answering: &mut Answering) {
        let mut chunk = GeminiChunk::default();
        if answering.is_ended {
            return;
        }
        match chunk.read(text) {
            Ok(()) if chunk.is_answer || chunk.is_error => self.chunk(chunk, text, answering),
            _ => answering.fail_if_error(text),
        }
    }
}

/// What the provider's word means; `None` if the model made a mistake, so that it may do better the next
/// time.
fn stop_reason(word: &str) -> Option<MessageStopReason> {
    Some(match word {
        // There would be more, but the token for requesting it is not kept.
        "MAX_TOKENS" | "CONTINUATION" => MessageStopReason::Length,
        "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "MISSING_THOUGHT_SIGNATURE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS" => return None,
        _ => filter_of(word).unwrap_or(MessageStopReason::Stop),
    })
}
