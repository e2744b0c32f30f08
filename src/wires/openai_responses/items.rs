//! The items of an answer while their pieces arrive.

use crate::data::json::{RawJson, Value, fill};
use crate::data::text::Put;
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::piece::Piece;

use super::signatures::{PART_SEPARATOR, signature_of_message, signature_of_reasoning};

/// What an item costs besides its texts.
const ITEM: usize = 256;

/// The items so far. What is done when one of them ends is in `finished.rs`.
#[derive(Default)]
pub(super) struct OutputItems {
    pub(super) items: Vec<OutputItem>,
    /// The position of the item that the last piece belonged to.
    last: usize,
    /// Calls whose input is a text are xAI's own searches.
    is_xai: bool,
}

/// What an item is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OutputItemKind {
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
pub(super) struct OutputItem {
    pub(super) index: Option<u64>,
    pub(super) kind: OutputItemKind,
    /// The block of a call.
    pub(super) block: Option<u32>,
    /// What is known of the item, without its texts.
    pub(super) signature: String,
    /// What was emitted so far: text, thinking, arguments. The end of the item repeats it, but not always to
    /// the letter: some servers then write the arguments with other whitespace, or the text without its
    /// leading whitespace.
    pub(super) emitted: String,
    pub(super) emitted_refusal: String,
    /// Whether thinking arrives as a summary or in full.
    pub(super) thinks_in: Option<&'static str>,
    /// The part of the thinking that was emitted last.
    part: Option<u64>,
    pub(super) metadata: Option<RawJson>,
    pub(super) is_done: bool,
    pub(super) is_cut: bool,
}

impl OutputItems {
    pub(super) fn new(is_xai: bool) -> Self {
        OutputItems { is_xai, ..OutputItems::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether the item with this index has begun and not ended.
    pub(super) fn is_unfinished(&self, index: u64) -> bool {
        let item = self.find(Some(index)).and_then(|at| self.items.get(at));
        item.is_some_and(|item| !item.is_done)
    }

    /// Returns the position of an item; without an index, that of the last one.
    pub(super) fn find(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(_) => self.items.iter().rposition(|item| item.index == index),
            None => self.items.len().checked_sub(1),
        }
    }

    /// Returns the position of an item, and adds it if it was not announced.
    fn find_or_add(&mut self, index: Option<u64>, kind: OutputItemKind, answering: &mut Answering) -> usize {
        let known = self.find(index).filter(|at| self.items.get(*at).is_some_and(|item| item.kind == kind));
        known.unwrap_or_else(|| {
            answering.count_held(ITEM);
            self.items.push(OutputItem::new(index, kind));
            self.items.len() - 1
        })
    }

    pub(super) fn kind_of(&self, value: &Value) -> OutputItemKind {
        match OutputItemKind::of(value.text_at("type").unwrap_or_default()) {
            OutputItemKind::CustomCall if self.is_xai => OutputItemKind::Other,
            kind => kind,
        }
    }

    /// Adds an item that begins. Returns its position; `None` if there are too many calls.
    pub(super) fn add(
        &mut self,
        index: Option<u64>,
        value: &Value,
        answering: &mut Answering,
    ) -> Option<usize> {
        let word = |key: &str| value.text_at(key).unwrap_or_default();
        let mut item = OutputItem::new(index, self.kind_of(value));
        match item.kind {
            OutputItemKind::Message => item.signature = signature_of_message(value),
            OutputItemKind::Call | OutputItemKind::CustomCall => {
                if !answering.count_call() {
                    return None;
                }
                let (item_id, call_id) = (word("id"), word("call_id"));
                let id = if call_id.is_empty() { item_id } else { call_id };
                let block = answering.begin_call(id, word("name"));
                item.block = Some(block);
                if !item_id.is_empty() {
                    answering.remarks.items.push((block, item_id.to_owned()));
                }
            }
            // Its end may come after the next item has begun, when its block is no longer open.
            OutputItemKind::Reasoning => {
                item.signature = signature_of_reasoning(value.clone(), "content", &[])
            }
            OutputItemKind::Other => {}
        }
        answering.count_held(ITEM + item.signature.len());
        self.items.push(item);
        Some(self.items.len() - 1)
    }

    pub(super) fn text_delta(
        &mut self,
        index: Option<u64>,
        kind: BlockKind,
        piece: Piece<'_>,
        answering: &mut Answering,
    ) {
        if !piece.is_empty() {
            let at = self.find_or_add(index, OutputItemKind::Message, answering);
            self.text(at, kind, piece, answering);
        }
    }

    pub(super) fn text(&mut self, at: usize, kind: BlockKind, piece: Piece<'_>, answering: &mut Answering) {
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        // Another message is another block.
        let is_refusal = kind == BlockKind::Refusal;
        let emitted = if is_refusal { &mut item.emitted_refusal } else { &mut item.emitted };
        if emitted.is_empty() {
            answering.close();
        }
        answering.hold(emitted, &piece.text);
        self.last = at;
        answering.holes.text = piece.span().filter(|_| !is_refusal);
        answering.text(kind, piece);
        answering.set_signature(&item.signature);
    }

    /// Adds a piece of thinking, from the summary or from the full `source`. Some servers send the same
    /// thinking in both: the first one counts.
    pub(super) fn thinking_delta(
        &mut self,
        index: Option<u64>,
        source: &'static str,
        part: Option<u64>,
        piece: Option<Piece<'_>>,
        answering: &mut Answering,
    ) {
        let at = self.find_or_add(index, OutputItemKind::Reasoning, answering);
        let (Some(item), Some(piece)) = (self.items.get_mut(at), piece) else {
            return;
        };
        if piece.is_empty() || *item.thinks_in.get_or_insert(source) != source {
            return;
        }
        if item.emitted.is_empty() {
            answering.close();
        } else if item.part != part {
            answering.text(BlockKind::Thinking, PART_SEPARATOR.into());
            item.emitted.put(PART_SEPARATOR);
        }
        item.part = part;
        let is_first = item.emitted.is_empty();
        answering.hold(&mut item.emitted, &piece.text);
        self.last = at;
        answering.holes.text = piece.span();
        answering.text(BlockKind::Thinking, piece);
        if is_first && source == "content" && item.index.is_some() {
            answering.set_signature(&item.signature);
        }
    }

    pub(super) fn arguments_delta(
        &mut self,
        index: Option<u64>,
        piece: Piece<'_>,
        answering: &mut Answering,
    ) {
        if let Some(at) = self.find(index) {
            self.arguments(at, piece, answering);
        }
    }

    pub(super) fn arguments(&mut self, at: usize, piece: Piece<'_>, answering: &mut Answering) {
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        let Some(block) = item.block.filter(|_| !piece.is_empty()) else {
            return;
        };
        let is_first = item.emitted.is_empty();
        answering.hold(&mut item.emitted, &piece.text);
        if item.kind == OutputItemKind::Call {
            self.last = at;
            answering.holes.text = piece.span();
            return answering.arguments(block, piece);
        }
        // The text becomes the one argument `input`.
        if is_first {
            answering.arguments(block, "{\"input\":\"".into());
        }
        let mut json = String::new();
        fill("$", &[&piece.text], &mut json);
        answering.arguments(block, json.as_str().into());
    }

    /// The last piece came again with another text, which is already an event.
    pub(super) fn repeated(&mut self, text: &str, answering: &mut Answering) {
        if let Some(item) = self.items.get_mut(self.last) {
            answering.hold(&mut item.emitted, text);
        }
    }

    /// Ends the complete calls. Returns whether there are any.
    pub(super) fn end_calls(&mut self, answering: &mut Answering) -> bool {
        let mut has_calls = false;
        for item in self.items.iter_mut().filter(|item| item.is_done && !item.is_cut) {
            if let Some(index) = item.block {
                answering.end_call(index, item.metadata.take());
                has_calls = true;
            }
        }
        has_calls
    }
}

impl OutputItemKind {
    fn of(word: &str) -> OutputItemKind {
        match word {
            "message" => OutputItemKind::Message,
            "reasoning" => OutputItemKind::Reasoning,
            "function_call" => OutputItemKind::Call,
            "custom_tool_call" => OutputItemKind::CustomCall,
            _ => OutputItemKind::Other,
        }
    }
}

impl OutputItem {
    fn new(index: Option<u64>, kind: OutputItemKind) -> Self {
        OutputItem { index, kind, ..OutputItem::default() }
    }
}
