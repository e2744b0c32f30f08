//! Chunks in, events out. What servers do that no reference tells stands beside the line that copes with it.

use crate::data::json::{Map, RawJson, Reader, ToJson, Value, fill};
use crate::data::text::Put;
use crate::rules::stream::AssistantMessageEvent as Event;
use crate::wires::Limits;
use crate::wires::decoding::blocks::{Blocks, Kind, Piece, place_of};
use crate::wires::decoding::{Frames, Progress, SseDecoder};
use crate::wires::errors::in_stream;
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::MessageStopReason;

use super::frame::{CallPiece, Choice, Chunk, Detail, DetailKind};

/// A decoder of one answer. `keeps_details`: what `reasoning_details` hold is put into the metadata of the first call,
/// to be given back.
pub(super) fn decoder(limits: Limits, keeps_details: bool) -> Box<SseDecoder> {
    SseDecoder::new(Box::new(Answer { keeps_details, ..Answer::default() }), limits)
}

#[derive(Default)]
struct Answer {
    progress: Progress,
    keeps_details: bool,
    calls: Vec<Call>,
    /// The highest index of a call: what lies above it need not be looked for.
    highest_index: Option<u64>,
    /// One for each thinking block, in order: the entry of `reasoning_details` that it was made of, without its texts;
    /// null for none.
    details: Vec<Value>,
    /// The last chunk had a usage and nothing that belongs to a block: servers that send no finish reason end so.
    has_trailer: bool,
    saw_delta: bool,
    /// How the last chunk began: see [`Chunk::read`].
    head: String,
}

#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    /// Its block; it has none before its name is known.
    block: Option<u32>,
    /// Arguments that came before the name, and those of calls without an id, whose repetition must be recognised.
    text: String,
    length: usize,
    /// `extra_content`, to be given back.
    extra: Option<RawJson>,
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
        if data == "[DONE]" {
            return self.done(out);
        }
        let mut chunk = Chunk::default();
        match chunk.read(data, &mut self.head) {
            Ok(()) if frame.event == "error" => self.fail_by(data, out),
            Ok(()) => {
                self.progress.start(out);
                self.progress.blocks.ignored_places = [place_of(chunk.padding), (0, 0)];
                self.chunk(&mut chunk, data, out);
            }
            Err(error) => self.progress.broken(&frame, &error, out),
        }
    }

    /// Beside the frames, or in their place: an error, or the whole answer of a server that cannot stream.
    fn document(&mut self, text: &str, out: &mut Vec<Event>) {
        let mut chunk = Chunk::default();
        if chunk.read(text, &mut self.head).is_err() {
            return self.progress.fail_if_error(text, out);
        }
        if chunk.is_failure() {
            return self.fail_by(text, out);
        }
        if !chunk.is_answer() {
            return;
        }
        self.progress.start(out);
        self.chunk(&mut chunk, text, out);
    }

    /// `[DONE]`, or the end of a body that had all that an end needs.
    fn done(&mut self, out: &mut Vec<Event>) {
        self.progress.start(out);
        let word = self.progress.remarks.raw_stop_reason.as_deref().unwrap_or_default();
        // SGLang and vLLM say `abort` of what they gave up, Z.ai `network_error`.
        if matches!(word, "error" | "abort" | "network_error" | "insufficient_system_resource") {
            let is_busy = word == "insufficient_system_resource";
            let kind = if is_busy { ErrorKind::Overloaded } else { ErrorKind::Server };
            let message = ["the provider ended the answer with `", word, "`"].concat();
            return self.progress.fail(ErrorInfo::new(kind, message), out);
        }
        let stop_reason = self.stop_reason();
        self.progress.blocks.close(out);
        self.end_calls(stop_reason, out);
        self.progress.done(stop_reason, out);
    }

    fn is_whole(&self) -> bool {
        self.progress.remarks.raw_stop_reason.is_some() || self.has_trailer
    }
}

impl Answer {
    fn chunk(&mut self, chunk: &mut Chunk<'_>, data: &str, out: &mut Vec<Event>) {
        let is_failure = chunk.is_failure();
        let has_content = chunk.choice.as_ref().is_some_and(Choice::has_content);
        let usage = chunk.usage();
        if let Some(usage) = usage {
            self.progress.emit_usage(usage, out);
        }
        if has_content {
            self.has_trailer = false;
        } else if usage.is_some() {
            // A first chunk with a role and a usage is no trailer.
            self.has_trailer =
                chunk.is_without_choice || self.progress.blocks.last().is_some() || self.has_trailer;
        }
        if let Some(choice) = &mut chunk.choice {
            self.saw_delta |= choice.has_delta;
            let message = choice.message.filter(|_| !self.saw_delta);
            self.choice(choice, out);
            // Of a server that cannot stream, beside the frames or as the only one.
            if let Some(message) = message {
                let mut choice = Choice::default();
                if choice.read_message(message).is_ok() {
                    self.choice(&mut choice, out);
                }
            }
        }
        if is_failure && !self.progress.is_ended {
            self.fail_by(data, out);
        }
    }

    fn choice(&mut self, choice: &mut Choice<'_>, out: &mut Vec<Event>) {
        let thinks_in_details =
            choice.details.iter().any(|d| d.text.as_ref().is_some_and(|text| !text.is_empty()));
        if let Some(reasoning) = choice.reasoning.take().filter(|_| !thinks_in_details) {
            self.emit_thinking(reasoning, out);
        }
        for detail in choice.details.drain(..) {
            self.detail(detail, out);
        }
        for (kind, piece) in choice.parts.drain(..) {
            if kind == Kind::Thinking {
                self.emit_thinking(piece, out)
            } else {
                self.emit_text(kind, piece, out)
            }
        }
        if let Some(content) = choice.content.take() {
            self.emit_text(Kind::Text, content, out);
        }
        if let Some(refusal) = choice.refusal.take() {
            self.emit_text(Kind::Refusal, refusal, out);
        }
        let count = choice.calls.len();
        for (position, piece) in choice.calls.drain(..).enumerate() {
            self.call(piece, position, count, out);
        }
        if !choice.finish_reason.is_empty() {
            self.progress.remarks.raw_stop_reason = Some(choice.finish_reason.to_ascii_lowercase());
        }
    }

    fn emit_text(&mut self, kind: Kind, piece: Piece<'_>, out: &mut Vec<Event>) {
        if piece.is_empty() {
            return;
        }
        self.progress.blocks.piece_place = piece.place();
        self.progress.blocks.text(kind, piece, out);
    }

    fn emit_thinking(&mut self, piece: Piece<'_>, out: &mut Vec<Event>) {
        if piece.is_empty() {
            return;
        }
        if self.progress.blocks.open(Kind::Thinking).is_none() {
            self.details.push(Value::Null);
        }
        self.progress.blocks.piece_place = piece.place();
        self.progress.blocks.text(Kind::Thinking, piece, out);
    }

    /// One entry of `reasoning_details`: more of the open thinking block if it is of the same entry, else a new block.
    fn detail(&mut self, detail: Detail<'_>, out: &mut Vec<Event>) {
        if detail.kind == DetailKind::Encrypted {
            let data = detail.data.map(|data| data.text.into_owned()).unwrap_or_default();
            self.progress.blocks.redacted(data, out);
            self.details.push(Value::Object(frame_of(detail.raw)));
            return;
        }
        if self.progress.blocks.open(Kind::Thinking).is_some() && !self.continues(&detail) {
            self.progress.blocks.close(out);
        }
        if self.progress.blocks.open(Kind::Thinking).is_none() {
            self.details.push(Value::Null);
        }
        self.progress.blocks.ensure(Kind::Thinking, out);
        if let Some(slot) = self.details.last_mut() {
            merge_detail(slot, &detail);
        }
        if let Some(text) = detail.text.filter(|text| !text.is_empty()) {
            self.progress.blocks.text(Kind::Thinking, text, out);
        }
        if let Some(signature) = detail.signature {
            self.progress.blocks.sign(&signature.text);
        }
        self.progress.blocks.piece_place = None;
    }

    fn continues(&self, detail: &Detail<'_>) -> bool {
        let Some(frame) = self.details.last().filter(|frame| !frame.is_null()) else {
            return true;
        };
        let kind = match detail.kind {
            DetailKind::Summary => "reasoning.summary",
            _ => "reasoning.text",
        };
        let index = frame.get("index").and_then(Value::as_u64);
        frame.text_at("type") == Some(kind)
            && (index.is_none() || detail.index.is_none() || index == detail.index)
    }

    fn call(&mut self, piece: CallPiece<'_>, position: usize, count: usize, out: &mut Vec<Event>) {
        if self.progress.is_ended {
            return;
        }
        let is_empty = piece.id.is_empty()
            && piece.name.is_empty()
            && piece.arguments.as_ref().is_none_or(Piece::is_empty);
        let at = match self.place_of(&piece, position, count) {
            Some(at) => at,
            // A last delta of nulls, for a call that nobody knows.
            None if is_empty => return,
            None => {
                if !self.progress.count_call(out) {
                    return;
                }
                self.highest_index = self.highest_index.max(piece.index);
                self.calls.push(Call { index: piece.index, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else {
            return;
        };
        let is_known = count == 1 && call.block.is_some() && !call.id.is_empty() && piece.extra.is_none();
        let place = piece.arguments.as_ref().and_then(Piece::place);
        self.progress.blocks.piece_place = place.filter(|_| is_known);
        let bytes = call.take(piece, &mut self.progress.blocks, out);
        self.progress.count_bytes(bytes, out);
    }

    /// The call that a piece belongs to; `None` if it begins one. By index, else by id, else by place, else the last.
    fn place_of(&self, piece: &CallPiece<'_>, position: usize, count: usize) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        let at = match piece.index {
            Some(index) if Some(index) > self.highest_index => return None,
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index))?,
            None if !piece.id.is_empty() => {
                let known = self.calls.iter().rposition(|call| call.id == piece.id);
                // A new id without a name begins nothing.
                known.or(if piece.name.is_empty() { last } else { None })?
            }
            None if !piece.name.is_empty() => {
                last.filter(|at| self.calls.get(*at).is_some_and(|call| call.name == piece.name))?
            }
            None if count > 1 && position < self.calls.len() => position,
            None => last?,
        };
        let is_another = self.calls.get(at).is_some_and(|call| call.is_other_than(piece));
        if is_another { None } else { Some(at) }
    }

    fn stop_reason(&self) -> MessageStopReason {
        use MessageStopReason as Stop;
        if !self.progress.blocks.refusals.is_empty() {
            return Stop::Refusal;
        }
        match self.progress.remarks.raw_stop_reason.as_deref() {
            Some("length" | "model_length" | "max_tokens" | "model_context_window_exceeded") => Stop::Length,
            Some("content_filter" | "sensitive") => Stop::ContentFilter,
            Some("tool_calls" | "function_call" | "tool_use") => Stop::ToolUse,
            // Whatever the server's word, calls that are whole ask for their results.
            _ if !self.calls.is_empty() => Stop::ToolUse,
            _ => Stop::Stop,
        }
    }

    /// Ends the calls that are whole. This wire closes none: the last call of a message that was cut is cut too,
    /// unless something began after it.
    fn end_calls(&mut self, stop_reason: MessageStopReason, out: &mut Vec<Event>) {
        for call in &mut self.calls {
            call.begin(&mut self.progress.blocks, out);
        }
        let is_cut = matches!(stop_reason, MessageStopReason::Length | MessageStopReason::ContentFilter);
        let cut = self.progress.blocks.last().filter(|_| is_cut);
        // The first call holds the entries of all thinking blocks.
        let mut members = String::new();
        if self.keeps_details && !self.details.iter().all(Value::is_null) {
            fill(",\"reasoning_details\":#", &[&self.details.to_json()], &mut members);
        }
        for call in &self.calls {
            if let Some(index) = call.block.filter(|index| Some(*index) != cut) {
                if let Some(extra) = &call.extra {
                    fill(",\"extra_content\":#", &[extra.as_str()], &mut members);
                }
                out.push(Event::ToolCallEnd { index, metadata: RawJson::object_of(&members) });
                members.clear();
            }
        }
    }

    fn fail_by(&mut self, document: &str, out: &mut Vec<Event>) {
        let value = Value::parse(document).unwrap_or_default();
        {
            let failed = value.path(&["error", "failed_generation"]).and_then(Value::as_str);
            self.progress.remarks.failed_generation = failed.map(str::to_owned);
        }
        let has_error = |part: &&Value| part.get("error").is_some_and(|error| !error.is_null());
        let mut parts = value.list_at("choices").first().into_iter().chain(value.get("x_groq"));
        let inner = if has_error(&&value) { None } else { parts.find(has_error) };
        self.progress.fail(in_stream(inner.unwrap_or(&value)), out);
    }
}

impl Call {
    /// Whether a piece at this call's place is another call. Ollama gives every call the index 0.
    fn is_other_than(&self, piece: &CallPiece<'_>) -> bool {
        if piece.name.is_empty() {
            return false;
        }
        if !self.id.is_empty() && !piece.id.is_empty() {
            return self.id != piece.id;
        }
        // Without ids, only arguments that are whole and come once more tell two calls from one in pieces.
        let has_arguments = piece.arguments.as_ref().is_some_and(|arguments| !arguments.is_empty());
        has_arguments && self.id.is_empty() && is_whole(&self.text)
    }

    /// Takes a piece of this call. Gives the number of bytes.
    fn take(&mut self, piece: CallPiece<'_>, blocks: &mut Blocks, out: &mut Vec<Event>) -> usize {
        if self.block.is_none() && self.id.is_empty() {
            self.id = piece.id.into_owned();
        }
        if let Some(extra) = piece.extra {
            self.extra = RawJson::parse(extra).ok();
        }
        // Kimi repeats the name: it is set once and never added to.
        if self.name.is_empty() {
            self.name = piece.name.into_owned();
        }
        if !self.name.is_empty() {
            self.begin(blocks, out);
        }
        let Some(arguments) = piece.arguments else {
            return 0;
        };
        // Groq writes `null` for no arguments.
        if self.length == 0 && arguments.text == "null" {
            return 0;
        }
        let length = arguments.text.len();
        self.length += length;
        if self.block.is_none() || self.id.is_empty() {
            self.text.put(&arguments.text);
        }
        if let Some(index) = self.block {
            blocks.arguments(index, arguments, out);
        }
        length
    }

    /// Begins the block, unless it has begun.
    fn begin(&mut self, blocks: &mut Blocks, out: &mut Vec<Event>) {
        if self.block.is_some() {
            return;
        }
        let index = blocks.call(&self.id, &self.name, out);
        blocks.arguments(index, self.text.as_str().into(), out);
        self.block = Some(index);
    }
}

fn is_whole(json: &str) -> bool {
    let mut reader = Reader::new(json);
    reader.peek() == Some(b'{') && reader.skip().is_ok() && reader.end().is_ok()
}

/// An entry of `reasoning_details` without the texts that stand in the thinking block.
fn frame_of(raw: &str) -> Map {
    let mut frame = match Value::parse(raw) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    for key in ["text", "summary", "data", "signature"] {
        frame.remove(key);
    }
    frame
}

/// Adds what a later piece of an entry says to what an earlier one said.
fn merge_detail(slot: &mut Value, detail: &Detail<'_>) {
    match slot {
        Value::Null => *slot = Value::Object(frame_of(detail.raw)),
        // Only the signature comes late, and with it, now and then, an id.
        Value::Object(frame) if detail.signature.is_some() => {
            for (key, value) in frame_of(detail.raw) {
                if !value.is_null() {
                    frame.insert(key, value);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::decoding::is_compared;

    #[test]
    fn after_a_piece_the_next_frame_is_compared() {
        let begun =
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}]}"#;
        let more = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}"#;
        let is_compared = |documents: &[&str]| is_compared(decoder(Limits::default(), false), documents);
        assert!(is_compared(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#; 2]));
        assert!(is_compared(&[r#"{"choices":[{"delta":{"reasoning_content":"a"}}],"obfuscation":"x"}"#; 2]));
        assert!(is_compared(&[begun, more]));
        assert!(!is_compared(&[begun]));
    }
}
