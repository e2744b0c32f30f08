//! One block of the answer, from its first event to its last.

use std::mem;

use crate::data::json::{Map, ToJson, Value};
use crate::data::text::contains;
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::fields::tree;
use crate::wires::decoding::piece::Piece;

use super::frame::{AnthropicDelta, BlockStart};

/// A block that has begun and not ended.
#[derive(Default)]
pub(super) enum AnthropicBlock {
    #[default]
    None,
    /// Text or thinking.
    Text { kind: BlockKind, is_cited: bool },
    Call {
        /// The provider's id of the call.
        id: String,
        index: u32,
        /// Arguments that stood in the first event.
        input: Option<String>,
        has_pieces: bool,
        /// Its end arrived: it is complete, if its arguments are.
        is_stopped: bool,
    },
    /// A block that is kept unchanged, because only the provider understands it.
    Raw { block: Map, input: String },
}

impl AnthropicBlock {
    /// Begins a block with its first event.
    pub(super) fn begin(written: &str, answering: &mut Answering) -> AnthropicBlock {
        let start = BlockStart::read(written);
        match &*start.kind {
            "text" => AnthropicBlock::begin_text(BlockKind::Text, start, answering),
            "thinking" => AnthropicBlock::begin_text(BlockKind::Thinking, start, answering),
            "redacted_thinking" => {
                answering.redacted(start.data.into_owned());
                AnthropicBlock::None
            }
            "tool_use" => {
                if !answering.count_call() {
                    return AnthropicBlock::None;
                }
                let index = answering.begin_call(&start.id, &start.name);
                let input = start.input.filter(|input| *input != "{}").map(str::to_owned);
                let id = start.id.into_owned();
                AnthropicBlock::Call { id, index, input, has_pieces: false, is_stopped: false }
            }
            _ => {
                answering.count_bytes(written.len());
                if answering.count_call()
                    && let Some(Value::Object(block)) = tree(written, answering)
                {
                    return AnthropicBlock::Raw { block, input: String::new() };
                }
                AnthropicBlock::None
            }
        }
    }

    /// Begins a block of text or thinking.
    pub(super) fn begin_text(
        kind: BlockKind,
        start: BlockStart<'_>,
        answering: &mut Answering,
    ) -> AnthropicBlock {
        answering.close();
        answering.open(kind);
        if let Some(text) = start.text {
            answering.text(kind, text);
        }
        if !start.signature.is_empty() {
            answering.sign(&start.signature);
        }
        AnthropicBlock::Text { kind, is_cited: false }
    }

    /// Adds a piece to the block. One of another kind is ignored.
    pub(super) fn delta(&mut self, delta: AnthropicDelta<'_>, answering: &mut Answering) {
        match (&mut *self, &*delta.kind) {
            (AnthropicBlock::Text { kind: kind @ BlockKind::Text, .. }, "text_delta")
            | (AnthropicBlock::Text { kind: kind @ BlockKind::Thinking, .. }, "thinking_delta") => {
                if let Some(piece) = delta.piece.filter(|piece| !piece.is_empty()) {
                    answering.holes.text = piece.span();
                    answering.text(*kind, piece);
                }
            }
            (AnthropicBlock::Text { kind: BlockKind::Thinking, .. }, "signature_delta") => {
                answering.sign(&delta.signature.unwrap_or_default());
            }
            (AnthropicBlock::Text { is_cited, .. }, "citations_delta") => {
                cite(is_cited, delta.citation, answering);
            }
            (AnthropicBlock::Call { index, has_pieces, .. }, "input_json_delta") => {
                if let Some(piece) = delta.piece.filter(|piece| !piece.is_empty()) {
                    *has_pieces = true;
                    answering.holes.text = piece.span();
                    answering.arguments(*index, piece);
                }
            }
            (AnthropicBlock::Raw { block, input }, _) => add_to_raw(block, input, delta, answering),
            _ => {}
        }
    }

    /// Ends a block that is kept unchanged. Unlike the others, it is complete at its own end.
    pub(super) fn close_raw(&mut self, answering: &mut Answering) {
        let AnthropicBlock::Raw { .. } = self else {
            return;
        };
        if let AnthropicBlock::Raw { mut block, input } = mem::take(self) {
            match tree(&input, answering) {
                Some(input) => block.insert("input", input),
                // The token limit cut it off.
                None if !input.trim_ascii().is_empty() => return,
                None => {}
            }
            answering.raw(Value::Object(block).to_raw());
        }
    }

    /// Ends the block: something follows, so it was not cut off. Returns whether it was a call.
    pub(super) fn close(&mut self, answering: &mut Answering) -> bool {
        self.close_raw(answering);
        match mem::take(self) {
            AnthropicBlock::Text { is_cited: true, .. } => answering.sign("]}"),
            AnthropicBlock::Call { index, input, has_pieces, .. } => {
                if let Some(input) = input.filter(|_| !has_pieces) {
                    answering.arguments(index, input.as_str().into());
                }
                answering.end_call(index, None);
                return true;
            }
            _ => {}
        }
        false
    }
}

/// Keeps a citation as part of the block's signature. What is quoted from the provider's own search must be
/// sent back with the text. Citations of the user's documents are not sent back, because the documents may be
/// gone by then.
fn cite(is_cited: &mut bool, citation: Option<&str>, answering: &mut Answering) {
    let Some(citation) = citation.filter(|citation| contains(citation, "web_search_result_location")) else {
        return;
    };
    answering.count_bytes(citation.len());
    answering.sign(if *is_cited { "," } else { "{\"citations\":[" });
    answering.sign(citation);
    *is_cited = true;
}

/// Adds a piece to a block that is kept unchanged, where the provider itself would have put it.
fn add_to_raw(block: &mut Map, input: &mut String, delta: AnthropicDelta<'_>, answering: &mut Answering) {
    if let Some(secret) = delta.signature.filter(|_| delta.kind == "compaction_delta") {
        answering.count_bytes(secret.len());
        block.insert("encrypted_content", Value::String(secret.into_owned()));
    }
    let Some(piece) = delta.piece else {
        return;
    };
    answering.count_bytes(piece.text.len());
    match &*delta.kind {
        "input_json_delta" => answering.hold(input, &piece.text),
        "compaction_delta" => append(block, "content", &piece, answering),
        "text_delta" => append(block, "text", &piece, answering),
        _ => {}
    }
}

/// Appends to a text of a block.
fn append(block: &mut Map, key: &str, piece: &Piece<'_>, answering: &mut Answering) {
    match block.get_mut(key) {
        Some(Value::String(text)) => answering.hold(text, &piece.text),
        _ => block.insert(key, Value::from(&*piece.text)),
    }
}
