//! The items of an answer while their pieces arrive.

use crate::data::id_map::Index;
use crate::data::json::{RawJson, Value, fill};
use crate::data::text::Put;
use crate::wires::decoding::answering::Answering;
use crate::wires::decoding::blocks::BlockKind;
use crate::wires::decoding::citations::Citations;
use crate::wires::decoding::piece::Piece;

use super::keys::{ItemKeys, is_whole_object};
use super::signatures::{PART_SEPARATOR, signature_of_message, signature_of_reasoning};

/// What an item costs besides its texts.
const ITEM: usize = 256;

/// The items so far. What is done when one of them ends is in `finished.rs`.
#[derive(Default)]
pub(super) struct OutputItems {
    pub(super) items: Vec<OutputItem>,
    /// Those that have not ended, in order. Of a hundred calls most have ended when the next one begins.
    pub(super) open: Vec<usize>,
    /// Where the items with an id are, and those with the id of a call.
    pub(super) by_id: Index,
    pub(super) by_call: Index,
    /// The position of the item that the last piece belonged to.
    last: usize,
    pub(super) citations: Citations,
    /// Calls whose input is a text are xAI's own searches.
    is_xai: bool,
    /// The end of a call holds other arguments than the pieces that were emitted of it.
    pub(super) has_conflict: bool,
    /// There were pieces of arguments that may be those of several calls.
    has_lost_pieces: bool,
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
    /// Its own id, and that of a call; empty if it has none.
    pub(super) id: String,
    pub(super) call_id: String,
    /// The name of a call; empty until it is known.
    pub(super) name: String,
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
    /// The part of the text or of the thinking that was emitted last.
    part: Option<u64>,
    /// Where it begins in what was emitted.
    part_from: usize,
    pub(super) metadata: Option<RawJson>,
    /// All of its arguments arrived, though its end did not.
    is_whole: bool,
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

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// How many of them are calls.
    pub(super) fn calls(&self) -> usize {
        self.items.iter().filter(|item| item.kind.is_call()).count()
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        *self = OutputItems::new(self.is_xai);
    }

    /// Returns the position of an item, and adds it if it was not announced.
    fn find_or_add(&mut self, keys: &ItemKeys<'_>, kind: OutputItemKind, answering: &mut Answering) -> usize {
        self.find(keys, |known| known == kind).unwrap_or_else(|| {
            answering.count_held(ITEM);
            self.push(OutputItem { id: keys.id.to_string(), ..OutputItem::new(keys.index, kind) })
        })
    }

    /// Adds an item. Returns its position.
    fn push(&mut self, item: OutputItem) -> usize {
        let at = self.items.len();
        if !item.id.is_empty() {
            self.by_id.add(&item.id, at);
        }
        if !item.call_id.is_empty() {
            self.by_call.add(&item.call_id, at);
        }
        self.open.push(at);
        self.items.push(item);
        at
    }

    pub(super) fn kind_of(&self, value: &Value) -> OutputItemKind {
        match OutputItemKind::of(value.text_at("type").unwrap_or_default()) {
            OutputItemKind::CustomCall if self.is_xai => OutputItemKind::Other,
            kind => kind,
        }
    }

    /// Adds an item that begins, unless it is known: gateways announce items twice.
    pub(super) fn announce(&mut self, index: Option<u64>, value: &Value, answering: &mut Answering) {
        let keys = ItemKeys::of(index, value);
        let kind = self.kind_of(value);
        let is_known = |item: &OutputItem| {
            item.kind == kind
                && ((!keys.id.is_empty() && item.id == keys.id && item.call_id == keys.call_id)
                    || (!keys.call_id.is_empty() && item.call_id == keys.call_id && item.index == index))
        };
        if !self.with_ids(&keys).into_iter().filter_map(|at| self.items.get(at)).any(is_known) {
            self.add(index, value, answering);
        }
    }

    /// Adds an item that begins. Returns its position; `None` if there are too many calls.
    pub(super) fn add(
        &mut self,
        index: Option<u64>,
        value: &Value,
        answering: &mut Answering,
    ) -> Option<usize> {
        let keys = ItemKeys::of(index, value);
        let mut item = OutputItem::new(index, self.kind_of(value));
        (item.id, item.call_id) = (keys.id.to_string(), keys.call_id.to_string());
        match item.kind {
            OutputItemKind::Message => item.signature = signature_of_message(value),
            OutputItemKind::Call | OutputItemKind::CustomCall => {
                if !answering.count_call() {
                    return None;
                }
                value.text_at("name").unwrap_or_default().clone_into(&mut item.name);
                // A call begins when its name is known, which some servers tell at the end.
                if !item.name.is_empty() {
                    item.begin(answering);
                }
            }
            // Its end may come after the next item has begun, when its block is no longer open.
            OutputItemKind::Reasoning => {
                item.signature = signature_of_reasoning(value.clone(), "content", &[])
            }
            OutputItemKind::Other => {}
        }
        answering.count_held(ITEM + item.signature.len());
        Some(self.push(item))
    }

    pub(super) fn text_delta(
        &mut self,
        keys: &ItemKeys<'_>,
        (kind, part): (BlockKind, Option<u64>),
        piece: Piece<'_>,
        answering: &mut Answering,
    ) {
        if !piece.is_empty() {
            let at = self.find_or_add(keys, OutputItemKind::Message, answering);
            if let Some(item) = self.items.get_mut(at).filter(|item| item.part != part) {
                (item.part, item.part_from) = (part, item.emitted.len());
            }
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
        keys: &ItemKeys<'_>,
        source: &'static str,
        part: Option<u64>,
        piece: Option<Piece<'_>>,
        answering: &mut Answering,
    ) {
        let at = self.find_or_add(keys, OutputItemKind::Reasoning, answering);
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
            item.part_from = item.emitted.len();
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
        keys: &ItemKeys<'_>,
        piece: Piece<'_>,
        answering: &mut Answering,
    ) {
        match self.find(keys, OutputItemKind::is_call) {
            Some(at) => self.arguments(at, piece, answering),
            None => self.has_lost_pieces = true,
        }
    }

    /// The pieces of a part ended, and the event holds all of them: what did not come before is added. Some servers send
    /// no piece, and an item that ends with nothing.
    pub(super) fn end_pieces(
        &mut self,
        kind: &str,
        (keys, part, name): (&ItemKeys<'_>, Option<u64>, &str),
        whole: &str,
        answering: &mut Answering,
    ) {
        match kind {
            "output_text.done" | "refusal.done" => {
                let is_refusal = kind == "refusal.done";
                let kind = if is_refusal { BlockKind::Refusal } else { BlockKind::Text };
                let known = self.find(keys, |kind| kind == OutputItemKind::Message);
                let rest = match known.and_then(|at| self.items.get(at)) {
                    Some(item) => {
                        if is_refusal {
                            rest_of_part(whole, (&item.emitted_refusal, 0), item.part == part)
                        } else {
                            rest_of_part(whole, (&item.emitted, item.part_from), item.part == part)
                        }
                    }
                    None if self.items.iter().any(|item| item.emitted == whole) => "",
                    None => whole,
                };
                if !rest.is_empty() {
                    self.text_delta(keys, (kind, part), rest.into(), answering);
                }
            }
            "reasoning_summary_text.done" | "reasoning_text.done" => {
                let source = if kind == "reasoning_text.done" { "content" } else { "summary" };
                let known = self.find(keys, |kind| kind == OutputItemKind::Reasoning);
                let Some(item) = known.and_then(|at| self.items.get(at)) else { return };
                let rest = rest_of_part(whole, (&item.emitted, item.part_from), item.part == part);
                if !rest.is_empty() {
                    self.thinking_delta(keys, source, part, Some(rest.into()), answering);
                }
            }
            "function_call_arguments.done" | "custom_tool_call_input.done" => {
                if let Some(at) = self.find(keys, OutputItemKind::is_call) {
                    self.name(at, name, answering);
                    self.whole_arguments(at, whole, answering);
                    if let Some(item) = self.items.get_mut(at) {
                        item.is_whole = true;
                    }
                }
            }
            _ => {}
        }
    }

    /// Begins a call whose name was not known before.
    pub(super) fn name(&mut self, at: usize, name: &str, answering: &mut Answering) {
        if let Some(item) = self.items.get_mut(at).filter(|item| item.block.is_none())
            && !name.is_empty()
        {
            name.clone_into(&mut item.name);
            item.begin(answering);
            let emitted = std::mem::take(&mut item.emitted);
            self.arguments(at, emitted.as_str().into(), answering);
        }
    }

    /// Takes all arguments of a call: adds what its pieces did not hold.
    pub(super) fn whole_arguments(&mut self, at: usize, whole: &str, answering: &mut Answering) {
        let Some(item) = self.items.get(at) else { return };
        match whole.strip_prefix(item.emitted.as_str()) {
            Some(rest) => self.arguments(at, rest.into(), answering),
            None => self.has_conflict |= item.conflicts(whole),
        }
    }

    pub(super) fn arguments(&mut self, at: usize, piece: Piece<'_>, answering: &mut Answering) {
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        if piece.is_empty() || !item.kind.is_call() {
            return;
        }
        let Some(block) = item.block else {
            return answering.hold(&mut item.emitted, &piece.text);
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

    /// Ends the complete calls. Returns whether there are any. If the answer `is_whole`, so are the calls whose arguments
    /// arrived without an end.
    pub(super) fn end_calls(&mut self, is_whole: bool, answering: &mut Answering) -> bool {
        let mut has_calls = false;
        let has_lost_pieces = self.has_lost_pieces;
        for item in self.items.iter_mut().filter(|item| item.kind.is_call() && !item.is_cut) {
            let is_whole = is_whole
                && item.kind == OutputItemKind::Call
                && (item.is_whole || is_whole_object(&item.emitted));
            let is_lost = has_lost_pieces && item.emitted.is_empty();
            if is_lost || !(item.is_done || is_whole) {
                continue;
            }
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

impl OutputItemKind {
    /// Whether it is a call of a tool.
    pub(super) fn is_call(self) -> bool {
        matches!(self, OutputItemKind::Call | OutputItemKind::CustomCall)
    }
}

impl OutputItem {
    fn new(index: Option<u64>, kind: OutputItemKind) -> Self {
        OutputItem { index, kind, ..OutputItem::default() }
    }

    /// Begins the block of a call.
    fn begin(&mut self, answering: &mut Answering) {
        let id = if self.call_id.is_empty() { &self.id } else { &self.call_id };
        let block = answering.begin_call(id, &self.name);
        self.block = Some(block);
        if !self.id.is_empty() {
            answering.remarks.items.push((block, self.id.clone()));
        }
    }
}

/// Returns what a part holds after what was emitted of it. `from` is where the last part begins in what was emitted, and
/// `is_same` says that it is this one: otherwise nothing of it has been emitted, unless the part before ended with the
/// same text.
fn rest_of_part<'w>(whole: &'w str, (emitted, from): (&str, usize), is_same: bool) -> &'w str {
    let own = if is_same { emitted.get(from..).unwrap_or_default() } else { emitted };
    match whole.strip_prefix(own) {
        Some(rest) => rest,
        None if is_same || emitted.ends_with(whole) => "",
        None => whole,
    }
}
