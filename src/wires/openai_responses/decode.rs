//! Events in, events out. An item is identified by its index in the output; its last event is authoritative.

use crate::data::json::{Map, RawJson, Reader, ToJson, Value, fill};
use crate::data::text::Put;
use crate::rules::stream::AssistantMessageEvent as Event;
use crate::wires::Limits;
use crate::wires::decoding::blocks::{Kind, Piece, place_of};
use crate::wires::decoding::{Frames, Progress, SseDecoder};
use crate::wires::errors::{error_in, in_stream};
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::MessageStopReason;

use super::frame::{Response, WireEvent, texts};

/// A decoder of one answer. `is_xai`: calls whose input is a text are xAI's own searches.
pub(super) fn decoder(limits: Limits, is_xai: bool) -> Box<SseDecoder> {
    SseDecoder::new(Box::new(Answer { is_xai, ..Answer::default() }), limits)
}

#[derive(Default)]
struct Answer {
    progress: Progress,
    items: Vec<Item>,
    /// The position of the item that the last piece belonged to.
    last: usize,
    is_xai: bool,
}

/// What an item is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ItemKind {
    Message,
    Reasoning,
    Call,
    /// A call whose input is a text.
    CustomCall,
    /// Run by the provider, or unknown: kept unchanged.
    #[default]
    Other,
}

#[derive(Default)]
struct Item {
    index: Option<u64>,
    kind: ItemKind,
    /// The block of a call.
    block: Option<u32>,
    /// What is known of the item, without its texts.
    signature: String,
    /// What was emitted so far: text, thinking, arguments. The end of the item repeats it, but not always to the letter:
    /// some servers write the arguments with other blanks then, or the text without those it began with.
    emitted: String,
    emitted_refusal: String,
    /// Whether thinking arrives as a summary or in full.
    thinks_in: Option<&'static str>,
    /// The part of the thinking that was emitted last.
    part: Option<u64>,
    metadata: Option<RawJson>,
    is_done: bool,
    is_cut: bool,
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
        let mut event = WireEvent::default();
        match event.read(data) {
            // `error` and `response.failed` come both.
            Ok(()) if self.progress.is_ended && event.kind == "response.failed" => {
                self.progress.remarks.raw_stop_reason = Some("failed".to_owned());
            }
            Ok(()) if self.progress.is_ended => {}
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
        let mut response = Response::default();
        if response.read_document(text).is_err() || response.object != "response" {
            return self.progress.fail_if_error(text, out);
        }
        self.progress.start(out);
        self.finish(&response, out);
    }

    fn repeated(&mut self, text: &str) {
        if let Some(item) = self.items.get_mut(self.last) {
            item.emitted.put(text);
        }
    }

    /// Only a frame can end an answer.
    fn is_whole(&self) -> bool {
        false
    }
}

impl Answer {
    fn event(&mut self, event: WireEvent<'_>, data: &str, out: &mut Vec<Event>) {
        // Some gateways say `response.error`.
        if event.kind.ends_with("error") || (event.has_error && !event.kind.starts_with("response.")) {
            return self.fail_by(data, out);
        }
        let Some(kind) = event.kind.strip_prefix("response.") else {
            return;
        };
        self.progress.start(out);
        self.progress.blocks.ignored_places = event.ignored_places.map(place_of);
        match kind {
            "output_text.delta" => self.text_delta(event, Kind::Text, out),
            "refusal.delta" => self.text_delta(event, Kind::Refusal, out),
            "reasoning_summary_text.delta" => self.thinking_delta(event, "summary", out),
            "reasoning_text.delta" | "reasoning.delta" => self.thinking_delta(event, "content", out),
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                if let (Some(at), Some(delta)) = (self.find(event.output_index), event.delta) {
                    self.arguments(at, delta, out);
                }
            }
            "output_item.added" => {
                if let Some(Ok(item)) = event.item.map(Value::parse) {
                    self.add(event.output_index, &item, out);
                }
            }
            "output_item.done" => {
                if let Some(item) = event.item {
                    self.finish_item(event.output_index, item, out);
                }
            }
            "completed" | "incomplete" | "failed" | "done" => {
                let mut response = event.response;
                if response.status.is_empty() && kind != "done" {
                    response.status = kind.into();
                }
                self.finish(&response, out);
            }
            _ => {}
        }
    }

    /// The position of an item; without an index, that of the last one.
    fn find(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.items.iter().rposition(|item| item.index == index),
            None => self.items.len().checked_sub(1),
        }
    }

    /// The position of an item; adds it if it was not announced.
    fn place(&mut self, index: Option<u64>, kind: ItemKind) -> usize {
        let known = self.find(index).filter(|at| self.items.get(*at).is_some_and(|item| item.kind == kind));
        known.unwrap_or_else(|| {
            self.items.push(Item::new(index, kind));
            self.items.len() - 1
        })
    }

    fn kind_of(&self, value: &Value) -> ItemKind {
        match ItemKind::of(value.text_at("type").unwrap_or_default()) {
            ItemKind::CustomCall if self.is_xai => ItemKind::Other,
            kind => kind,
        }
    }

    fn add(&mut self, index: Option<u64>, value: &Value, out: &mut Vec<Event>) -> Option<usize> {
        let word = |key: &str| value.text_at(key).unwrap_or_default();
        let mut item = Item::new(index, self.kind_of(value));
        match item.kind {
            ItemKind::Message => item.signature = signature_of_message(value),
            ItemKind::Call | ItemKind::CustomCall => {
                if !self.progress.count_call(out) {
                    return None;
                }
                let id = Some(word("call_id")).filter(|id| !id.is_empty()).unwrap_or(word("id"));
                let block = self.progress.blocks.call(id, word("name"), out);
                item.block = Some(block);
                let item_id = word("id");
                if !item_id.is_empty() {
                    self.progress.remarks.items.push((block, item_id.to_owned()));
                }
            }
            ItemKind::Reasoning | ItemKind::Other => {}
        }
        self.items.push(item);
        Some(self.items.len() - 1)
    }

    fn text_delta(&mut self, event: WireEvent<'_>, kind: Kind, out: &mut Vec<Event>) {
        let Some(delta) = event.delta.filter(|delta| !delta.is_empty()) else {
            return;
        };
        let at = self.place(event.output_index, ItemKind::Message);
        self.emit_text(at, kind, delta, out);
    }

    fn emit_text(&mut self, at: usize, kind: Kind, piece: Piece<'_>, out: &mut Vec<Event>) {
        let Answer { progress, items, last, .. } = self;
        let Some(item) = items.get_mut(at) else {
            return;
        };
        // Another message is another block.
        let emitted = if kind == Kind::Refusal { &mut item.emitted_refusal } else { &mut item.emitted };
        if emitted.is_empty() {
            progress.blocks.close(out);
        }
        emitted.put(&piece.text);
        *last = at;
        progress.blocks.piece_place = piece.place().filter(|_| kind == Kind::Text);
        progress.blocks.text(kind, piece, out);
        progress.blocks.set_signature(&item.signature);
    }

    fn thinking_delta(&mut self, event: WireEvent<'_>, source: &'static str, out: &mut Vec<Event>) {
        let at = self.place(event.output_index, ItemKind::Reasoning);
        if let Some(delta) = event.delta {
            self.emit_thinking(at, source, event.part, delta, out);
        }
    }

    /// Some servers send the same thinking twice, as a summary and in full: the first one counts.
    fn emit_thinking(
        &mut self,
        at: usize,
        source: &'static str,
        part: Option<u64>,
        piece: Piece<'_>,
        out: &mut Vec<Event>,
    ) {
        let Answer { progress, items, last, .. } = self;
        let Some(item) = items.get_mut(at) else {
            return;
        };
        if piece.is_empty() || *item.thinks_in.get_or_insert(source) != source {
            return;
        }
        if item.emitted.is_empty() {
            progress.blocks.close(out);
        } else if item.part != part {
            progress.blocks.text(Kind::Thinking, PART_SEPARATOR.into(), out);
            item.emitted.put(PART_SEPARATOR);
        }
        item.part = part;
        item.emitted.put(&piece.text);
        *last = at;
        progress.blocks.piece_place = piece.place();
        progress.blocks.text(Kind::Thinking, piece, out);
    }

    fn arguments(&mut self, at: usize, piece: Piece<'_>, out: &mut Vec<Event>) {
        let Answer { progress, items, last, .. } = self;
        let Some(item) = items.get_mut(at) else {
            return;
        };
        let Some(block) = item.block.filter(|_| !piece.is_empty()) else {
            return;
        };
        let is_first = item.emitted.is_empty();
        item.emitted.put(&piece.text);
        if item.kind == ItemKind::Call {
            *last = at;
            progress.blocks.piece_place = piece.place();
            return progress.arguments(block, piece, out);
        }
        // The text becomes the one argument `input`.
        if is_first {
            progress.arguments(block, "{\"input\":\"".into(), out);
        }
        let mut json = String::new();
        fill("$", &[&piece.text], &mut json);
        progress.arguments(block, json.as_str().into(), out);
    }

    /// An item is complete. Emits what its pieces did not contain.
    fn finish_item(&mut self, index: Option<u64>, raw: &str, out: &mut Vec<Event>) {
        let Ok(value) = Value::parse(raw) else {
            return;
        };
        let kind = self.kind_of(&value);
        let is_match = |item: &Item| item.kind == kind && !item.is_done;
        let known = match index {
            // llama.cpp numbers nothing and ends all items when the answer does, in the order in which they began.
            None => self.items.iter().position(is_match),
            Some(_) => self.find(index).filter(|at| self.items.get(*at).is_some_and(is_match)),
        };
        let Some(at) = known.or_else(|| self.add(index, &value, out)) else {
            return;
        };
        if let Some(item) = self.items.get_mut(at) {
            item.is_done = true;
            item.is_cut = value.text_at("status") == Some("incomplete");
        }
        match kind {
            ItemKind::Message => self.finish_message(at, &value, out),
            ItemKind::Reasoning => self.finish_reasoning(at, value, out),
            ItemKind::Call | ItemKind::CustomCall => self.finish_call(at, &value, out),
            ItemKind::Other => {
                self.progress.count_bytes(raw.len(), out);
                if self.progress.count_call(out)
                    && let Ok(data) = RawJson::parse(raw)
                {
                    self.progress.blocks.raw(data, out);
                }
            }
        }
    }

    fn finish_message(&mut self, at: usize, value: &Value, out: &mut Vec<Event>) {
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        item.signature = signature_of_message(value);
        let rest = |field, emitted: &str| rest_of(&texts(value, "content", field).concat(), emitted);
        let rests = [
            (Kind::Text, rest("text", &item.emitted)),
            (Kind::Refusal, rest("refusal", &item.emitted_refusal)),
        ];
        for (kind, rest) in rests {
            if !rest.is_empty() {
                self.emit_text(at, kind, rest.as_str().into(), out);
            }
        }
        if let Some(item) = self.items.get(at)
            && !(item.emitted.is_empty() && item.emitted_refusal.is_empty())
            && (self.progress.blocks.open(Kind::Text).is_some()
                || self.progress.blocks.open(Kind::Refusal).is_some())
        {
            self.progress.blocks.set_signature(&item.signature);
        }
        self.progress.blocks.close(out);
    }

    fn finish_reasoning(&mut self, at: usize, value: Value, out: &mut Vec<Event>) {
        let mut source = self.items.get(at).and_then(|item| item.thinks_in);
        for list in ["summary", "content"] {
            if source.is_none() && !texts(&value, list, "text").is_empty() {
                source = Some(list);
            }
        }
        let source = source.unwrap_or("summary");
        let mut parts = texts(&value, source, "text");
        let lengths: Vec<u64> = parts.iter().filter_map(|part| u64::try_from(part.len()).ok()).collect();
        // Nothing was emitted for empty ones.
        parts.retain(|part| !part.is_empty());
        let whole = parts.join(PART_SEPARATOR);
        let Some(item) = self.items.get(at) else {
            return;
        };
        if item.emitted.is_empty() {
            self.progress.blocks.close(out);
        } else if item.index.is_none() && self.progress.blocks.open(Kind::Thinking).is_none() {
            // Another item began since, and nothing in this one is worth a block behind it.
            return;
        }
        let rest = rest_of(&whole, &item.emitted);
        if !rest.is_empty() {
            self.progress.blocks.text(Kind::Thinking, rest.as_str().into(), out);
        }
        // Its signature is worth a block without a text.
        self.progress.blocks.ensure(Kind::Thinking, out);
        self.progress.blocks.set_signature(&signature_of_reasoning(value, source, &lengths));
        self.progress.blocks.close(out);
    }

    fn finish_call(&mut self, at: usize, value: &Value, out: &mut Vec<Event>) {
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        let field = if item.kind == ItemKind::Call { "arguments" } else { "input" };
        let whole = match value.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(object @ Value::Object(_)) => object.to_json(),
            _ => String::new(),
        };
        let rest = rest_of(&whole, &item.emitted);
        let mut members = String::new();
        if let Some(id) = value.text_at("id") {
            fill(",\"item_id\":\"$\"", &[id], &mut members);
        }
        if item.kind == ItemKind::CustomCall {
            members.put(",\"custom\":true");
        }
        item.metadata = RawJson::object_of(&members);
        self.arguments(at, rest.as_str().into(), out);
        let Some(item) = self.items.get(at) else {
            return;
        };
        if let (ItemKind::CustomCall, Some(block)) = (item.kind, item.block) {
            let end = if !item.emitted.is_empty() { "\"}" } else { "{\"input\":\"\"}" };
            self.progress.arguments(block, end.into(), out);
        }
    }

    fn finish(&mut self, response: &Response<'_>, out: &mut Vec<Event>) {
        if let Some(usage) = response.usage {
            self.progress.emit_usage(usage, out);
        }
        if response.status == "failed" || response.status == "cancelled" || response.error.is_some() {
            {
                self.progress.remarks.raw_stop_reason = Some(response.status.clone().into_owned());
            }
            let document = response.error.map(|error| ["{\"error\":", error, "}"].concat());
            let error = document.and_then(|document| error_in(&document)).unwrap_or_else(|| {
                let text = ["the provider ended the answer as `", &response.status, "`"].concat();
                ErrorInfo::new(ErrorKind::Server, text)
            });
            return self.progress.fail(error, out);
        }
        // Everything arrived at once, or the ends of items were omitted.
        let is_all = self.items.is_empty();
        let mut index = 0;
        let _ = Reader::new(response.output.unwrap_or("[]")).array(|reader, _| {
            let item = reader.skip()?;
            let known = self.find(Some(index)).and_then(|at| self.items.get(at));
            if is_all || (response.status != "incomplete" && known.is_some_and(|known| !known.is_done)) {
                self.finish_item(Some(index), item, out);
            }
            index += 1;
            Ok(())
        });
        if self.progress.is_ended {
            return;
        }
        self.progress.blocks.close(out);
        let is_incomplete = response.status == "incomplete";
        {
            let word = if is_incomplete && !response.reason.is_empty() {
                [&response.status, ":", &*response.reason].concat()
            } else {
                response.status.clone().into_owned()
            };
            self.progress.remarks.raw_stop_reason = Some(word).filter(|word| !word.is_empty());
        }
        let has_calls = self.end_calls(out);
        let stop_reason = if !self.progress.blocks.refusals.is_empty() {
            MessageStopReason::Refusal
        } else if response.reason == "content_filter" {
            MessageStopReason::ContentFilter
        } else if is_incomplete {
            MessageStopReason::Length
        } else if has_calls {
            MessageStopReason::ToolUse
        } else {
            MessageStopReason::Stop
        };
        self.progress.done(stop_reason, out);
    }

    /// Ends the complete calls. Returns whether there are any.
    fn end_calls(&mut self, out: &mut Vec<Event>) -> bool {
        let mut has_calls = false;
        for item in self.items.iter_mut().filter(|item| item.is_done && !item.is_cut) {
            if let Some(index) = item.block {
                out.push(Event::ToolCallEnd { index, metadata: item.metadata.take() });
                has_calls = true;
            }
        }
        has_calls
    }

    fn fail_by(&mut self, data: &str, out: &mut Vec<Event>) {
        let mut value = Value::parse(data).unwrap_or_default();
        // The type of the event is none of the error.
        if let Value::Object(map) = &mut value
            && map.get("error").is_none_or(Value::is_null)
        {
            map.remove("type");
        }
        self.progress.fail(in_stream(&value), out);
    }
}

/// Between two parts of one thinking.
pub(super) const PART_SEPARATOR: &str = "\n\n";

impl ItemKind {
    fn of(word: &str) -> ItemKind {
        match word {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call,
            "custom_tool_call" => ItemKind::CustomCall,
            _ => ItemKind::Other,
        }
    }
}

impl Item {
    fn new(index: Option<u64>, kind: ItemKind) -> Self {
        Item { index, kind, ..Item::default() }
    }
}

/// What must be sent back of a message: its phase.
/// What an item holds beyond what was emitted of it; nothing if it begins with something else.
fn rest_of(whole: &str, emitted: &str) -> String {
    whole.strip_prefix(emitted).unwrap_or_default().to_owned()
}

fn signature_of_message(value: &Value) -> String {
    let Some(phase) = value.text_at("phase") else {
        return String::new();
    };
    let mut text = String::new();
    fill("{\"phase\":\"$\"}", &[phase], &mut text);
    text
}

/// The item without its texts, and the lengths of its parts, so that it can be sent back unchanged.
fn signature_of_reasoning(value: Value, source: &str, lengths: &[u64]) -> String {
    let mut signature = Map::new();
    if let Value::Object(item) = value {
        for (key, value) in item {
            if !value.is_null() && !matches!(key.as_str(), "type" | "summary" | "content" | "status") {
                signature.insert(key, value);
            }
        }
    }
    if source != "summary" {
        signature.insert("source", Value::from(source));
    }
    if lengths.len() > 1 {
        signature.insert("parts", Value::Array(lengths.iter().map(|length| Value::from(*length)).collect()));
    }
    Value::Object(signature).to_json()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wires::decoding::is_compared;

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
