//! `reasoning_details`, in which OpenRouter wraps the thinking of any provider: read, made into thinking
//! blocks, and put together again to be sent back.

use crate::data::json::{Map, Reader, ToJson, Value, fill};
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::fields::{ReadResult, text};
use crate::wires::decoding::piece::Piece;
use crate::words::message::{AssistantMessage, ContentBlock, ThinkingBlock};

/// One entry of `reasoning_details`, or a piece of one.
#[derive(Default)]
pub(super) struct ReasoningDetail<'a> {
    /// The entry as it was written.
    raw: &'a str,
    kind: ReasoningDetailKind,
    index: Option<u64>,
    text: Option<Piece<'a>>,
    data: Option<Piece<'a>>,
    signature: Option<Piece<'a>>,
}

/// The kinds of entry in `reasoning_details`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReasoningDetailKind {
    Text,
    Summary,
    Encrypted,
    #[default]
    Unknown,
}

impl<'a> ReasoningDetail<'a> {
    /// Reads an entry into a list, if it says something.
    pub(super) fn read(reader: &mut Reader<'a>, list: &mut Vec<ReasoningDetail<'a>>) -> ReadResult {
        if reader.peek() != Some(b'{') {
            return reader.pass_over();
        }
        let start = reader.position();
        let mut detail = ReasoningDetail::default();
        reader.object(|reader, key| match key {
            "type" => {
                detail.kind = match text(reader)?.as_deref() {
                    Some("reasoning.text") => ReasoningDetailKind::Text,
                    Some("reasoning.summary") => ReasoningDetailKind::Summary,
                    Some("reasoning.encrypted") => ReasoningDetailKind::Encrypted,
                    _ => ReasoningDetailKind::Unknown,
                };
                Ok(())
            }
            "index" => reader.optional_u64().map(|index| detail.index = index),
            "text" | "summary" => Piece::read(reader, &mut detail.text),
            "data" => Piece::read(reader, &mut detail.data),
            "signature" => Piece::read(reader, &mut detail.signature),
            _ => reader.pass_over(),
        })?;
        detail.raw = reader.since(start);
        let has = |piece: &Option<Piece<'_>>| piece.as_ref().is_some_and(|piece| !piece.is_empty());
        let has_content = match detail.kind {
            ReasoningDetailKind::Text | ReasoningDetailKind::Summary => {
                has(&detail.text) || has(&detail.signature)
            }
            ReasoningDetailKind::Encrypted => has(&detail.data),
            ReasoningDetailKind::Unknown => false,
        };
        if has_content {
            list.push(detail);
        }
        Ok(())
    }

    /// Whether it holds thinking that can be shown.
    pub(super) fn has_text(&self) -> bool {
        self.text.as_ref().is_some_and(|text| !text.is_empty())
    }

    /// Returns the entry without the texts that stand in the thinking block.
    fn frame(&self) -> Map {
        let mut frame = match Value::parse_bounded(self.raw) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        for key in ["text", "summary", "data", "signature"] {
            frame.remove(key);
        }
        frame
    }
}

/// What an entry costs besides what it says.
const ENTRY: usize = 64;

/// What is kept of the thinking blocks of an answer so that `reasoning_details` can be sent back.
#[derive(Default)]
pub(super) struct ReasoningDetails {
    /// One for each thinking block, in order: the entry that it was made of, without its texts; null if it
    /// was made of none.
    frames: Vec<Value>,
}

impl ReasoningDetails {
    /// Counts a thinking block that begins with text from another field.
    pub(super) fn begin_plain(&mut self, answering: &mut Answering) {
        if !answering.is_open(BlockKind::Thinking) {
            answering.count_held(ENTRY);
            self.frames.push(Value::Null);
        }
    }

    /// Takes an entry: it continues the open thinking block if it is a piece of the same entry, and otherwise
    /// begins a block.
    pub(super) fn take(&mut self, detail: ReasoningDetail<'_>, answering: &mut Answering) {
        if detail.kind == ReasoningDetailKind::Encrypted {
            answering.count_held(ENTRY + detail.raw.len());
            self.frames.push(Value::Object(detail.frame()));
            return answering.redacted(detail.data.map(|data| data.text.into_owned()).unwrap_or_default());
        }
        if answering.is_open(BlockKind::Thinking) && !self.continues(&detail) {
            answering.close();
        }
        self.begin_plain(answering);
        answering.open(BlockKind::Thinking);
        if self.merge(&detail) {
            answering.count_held(detail.raw.len());
        }
        if let Some(text) = detail.text.filter(|text| !text.is_empty()) {
            answering.text(BlockKind::Thinking, text);
        }
        if let Some(signature) = detail.signature {
            answering.sign(&signature.text);
        }
        answering.holes.text = None;
    }

    /// Whether an entry is a piece of the one that the last block was made of.
    fn continues(&self, detail: &ReasoningDetail<'_>) -> bool {
        let Some(frame) = self.frames.last().filter(|frame| !frame.is_null()) else {
            return true;
        };
        let kind = match detail.kind {
            ReasoningDetailKind::Summary => "reasoning.summary",
            _ => "reasoning.text",
        };
        let index = frame.get("index").and_then(Value::as_u64);
        frame.text_at("type") == Some(kind)
            && (index.is_none() || detail.index.is_none() || index == detail.index)
    }

    /// Adds what a later piece of an entry says to what an earlier one said. Returns whether any of it was kept.
    fn merge(&mut self, detail: &ReasoningDetail<'_>) -> bool {
        match self.frames.last_mut() {
            Some(frame @ Value::Null) => *frame = Value::Object(detail.frame()),
            // Only the signature comes late, and sometimes an id with it.
            Some(Value::Object(frame)) if detail.signature.is_some() => {
                for (key, value) in detail.frame() {
                    if !value.is_null() {
                        frame.insert(key, value);
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// Writes the entries as a member of a call's metadata, if there are any.
    pub(super) fn write(&self, members: &mut String) {
        if !self.frames.iter().all(Value::is_null) {
            fill(",\"reasoning_details\":#", &[&self.frames.to_json()], members);
        }
    }
}

/// Returns the thinking blocks of a message.
pub(super) fn thinking_blocks(message: &AssistantMessage) -> impl Iterator<Item = &ThinkingBlock> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::Thinking(block) => Some(block),
        _ => None,
    })
}

/// Returns `reasoning_details` as they came: the entries in the metadata of a call, with the texts of the
/// thinking blocks that were made of them; `None` if blocks were removed since.
pub(super) fn details_of(message: &AssistantMessage) -> Option<Vec<Value>> {
    let metadata = message.tool_calls().find_map(|call| call.metadata.as_ref())?.to_value();
    let frames = metadata.get("reasoning_details")?.as_array()?;
    if frames.len() != thinking_blocks(message).count() {
        return None;
    }
    let mut details = Vec::new();
    for (frame, block) in frames.iter().zip(thinking_blocks(message)) {
        let Value::Object(mut entry) = frame.clone() else {
            continue;
        };
        let signature = block.signature.clone().map(Value::String);
        match entry.get("type").and_then(Value::as_str) {
            Some("reasoning.encrypted") => entry.insert("data", signature?),
            Some("reasoning.summary") => entry.insert("summary", Value::String(block.thinking.clone())),
            _ => {
                entry.insert("text", Value::String(block.thinking.clone()));
                if let Some(signature) = signature {
                    entry.insert("signature", signature);
                }
            }
        }
        details.push(Value::Object(entry));
    }
    if details.is_empty() { None } else { Some(details) }
}
