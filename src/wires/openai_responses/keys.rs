//! How the events of an item are told from those of the others.

use std::borrow::Cow;
use std::cell::RefCell;

use crate::data::json::{Reader, Value};

use super::finished::texts;
use super::items::{OutputItem, OutputItemKind, OutputItems};

/// By what an event tells which item it belongs to. No key alone can be relied on: OpenAI sends all of them, Copilot
/// changes the ids from event to event, gateways share an index among items, change it at the end, or leave it out.
#[derive(Clone, Default)]
pub(super) struct ItemKeys<'a> {
    pub(super) index: Option<u64>,
    /// Empty if there is none.
    pub(super) id: Cow<'a, str>,
    /// Empty if there is none.
    pub(super) call_id: Cow<'a, str>,
}

impl<'a> ItemKeys<'a> {
    /// Returns the keys of an item.
    pub(super) fn of(index: Option<u64>, item: &'a Value) -> ItemKeys<'a> {
        let word = |key: &str| item.text_at(key).unwrap_or_default().into();
        ItemKeys { index, id: word("id"), call_id: word("call_id") }
    }

    fn is_empty(&self) -> bool {
        self.index.is_none() && self.id.is_empty() && self.call_id.is_empty()
    }
}

/// What is known of an item that the response repeats at the end.
pub(super) enum ItemState {
    /// It has begun and not ended.
    Open,
    /// A call that no event told of.
    UnknownCall,
    /// A call that has ended.
    KnownCall,
    /// Any other.
    Other,
}

impl OutputItems {
    /// What is known of an item that the response repeats.
    pub(super) fn state_of(&self, index: u64, value: &Value) -> ItemState {
        let kind = self.kind_of(value);
        match self.find_whole(Some(index), kind, value).and_then(|at| self.items.get(at)) {
            Some(item) if !item.is_done => ItemState::Open,
            Some(_) if kind.is_call() => ItemState::KnownCall,
            None if kind.is_call() => ItemState::UnknownCall,
            _ => ItemState::Other,
        }
    }

    /// Returns the position of the open item of a kind that a piece belongs to.
    pub(super) fn find(
        &self,
        keys: &ItemKeys<'_>,
        is_kind: impl Fn(OutputItemKind) -> bool,
    ) -> Option<usize> {
        // Most answers have one open item at a time.
        let of_kind = || self.entries(&self.open).filter(|(_, item)| is_kind(item.kind));
        let (mut best, mut found, mut count, mut same) = (0, None, 0, 0);
        for (at, item) in of_kind() {
            let score = item.score(keys);
            same = if score > best { 1 } else { same + usize::from(score == best) };
            count += 1;
            if score >= best {
                (best, found) = (score, Some(at));
            }
        }
        if best == 0 {
            // A piece without any key is one of the last item. Under a key that nothing has it may be one of an item that
            // was not announced; but a call must have been.
            let is_only = count == 1 && (keys.index.is_none() || is_kind(OutputItemKind::Call));
            return found.filter(|_| is_only || keys.is_empty());
        }
        if best > SCORE_OF_INDEX || same == 1 || !is_kind(OutputItemKind::Call) {
            return found;
        }
        // Several calls share the index. If all but one have their arguments, it is that one.
        let is_missing =
            |(_, item): &(usize, &OutputItem)| item.score(keys) == best && !is_whole_object(&item.emitted);
        let mut missing = of_kind().filter(is_missing);
        let one = missing.next();
        if missing.next().is_none() { one.map(|(at, _)| at) } else { None }
    }

    /// Returns the position of the item that a whole one is. Items that have ended are found by their ids only.
    pub(super) fn find_whole(
        &self,
        index: Option<u64>,
        kind: OutputItemKind,
        value: &Value,
    ) -> Option<usize> {
        let keys = ItemKeys::of(index, value);
        let is_other_call = |item: &OutputItem| {
            !keys.call_id.is_empty() && !item.call_id.is_empty() && item.call_id != keys.call_id
        };
        let mut places = self.with_ids(&keys);
        places.extend(&self.open);
        places.sort_unstable();
        let may_be = |(_, item): &(usize, &OutputItem)| item.kind == kind && !is_other_call(item);
        let mut best = None;
        for (at, item) in self.entries(&places).filter(may_be) {
            let score = item.score(&keys);
            let is_match = if item.is_done { score >= SCORE_OF_ID } else { score > 0 };
            if is_match && best.is_none_or(|(known, _)| score > known) {
                best = Some((score, at));
            }
        }
        // llama.cpp sends no index, and ends all items at the end of the answer, in the order in which they began.
        let mut open = self.entries(&self.open).filter(may_be);
        best.map(|(_, at)| at).or_else(|| open.find(|(_, item)| item.begins(value)).map(|(at, _)| at))
    }

    /// The items at some positions, with these.
    fn entries<'i>(&'i self, places: &'i [usize]) -> impl Iterator<Item = (usize, &'i OutputItem)> {
        places.iter().filter_map(|at| Some((*at, self.items.get(*at)?)))
    }

    /// The positions of the items with one of these ids, whether they have ended or not.
    pub(super) fn with_ids(&self, keys: &ItemKeys<'_>) -> Vec<usize> {
        let places = RefCell::new(Vec::new());
        let collect = |at: usize, is_same: bool| {
            if is_same {
                places.borrow_mut().push(at);
            }
            // There may be several.
            false
        };
        let item = |at: usize| self.items.get(at);
        if !keys.id.is_empty() {
            self.by_id.find(&keys.id, |at| collect(at, item(at).is_some_and(|item| item.id == keys.id)));
        }
        if !keys.call_id.is_empty() {
            let is_same = |at: usize| item(at).is_some_and(|item| item.call_id == keys.call_id);
            self.by_call.find(&keys.call_id, |at| collect(at, is_same(at)));
        }
        places.into_inner()
    }
}

/// How much a common index says, a common id, and a common id of a call.
const SCORE_OF_INDEX: u32 = 1;
const SCORE_OF_ID: u32 = 2;
const SCORE_OF_CALL: u32 = 4;

impl OutputItem {
    /// How well some keys fit this item; 0 if none of them does.
    fn score(&self, keys: &ItemKeys<'_>) -> u32 {
        let is_same = |known: &str, key: &str| !key.is_empty() && known == key;
        let mut score = 0;
        if self.index.is_some() && self.index == keys.index {
            score += SCORE_OF_INDEX;
        }
        if is_same(&self.id, &keys.id) {
            score += SCORE_OF_ID;
        }
        if is_same(&self.call_id, &keys.call_id) {
            score += SCORE_OF_CALL;
        }
        score
    }

    /// Whether what was emitted of this item is how a whole item begins.
    fn begins(&self, value: &Value) -> bool {
        if self.kind == OutputItemKind::Message {
            return texts(value, "content", "text").concat().starts_with(&self.emitted);
        }
        let is_named = self.name.is_empty() || value.text_at("name").is_none_or(|name| name == self.name);
        let whole = value.text_at("arguments").or_else(|| value.text_at("input")).unwrap_or_default();
        is_named && (!self.kind.is_call() || !self.conflicts(whole))
    }

    /// Whether the whole arguments are others than those that were emitted. Some servers write them with other
    /// whitespace at the end, and some end an item with nothing in it.
    pub(super) fn conflicts(&self, whole: &str) -> bool {
        if whole.starts_with(self.emitted.as_str()) || matches!(whole.trim_ascii(), "" | "{}" | "null") {
            return false;
        }
        self.kind == OutputItemKind::CustomCall
            || match (Value::parse_bounded(&self.emitted), Value::parse_bounded(whole)) {
                (Ok(emitted), Ok(whole)) => emitted != whole,
                // What is no JSON is the model's own mistake, which it is told.
                (_, whole) => whole.is_ok(),
            }
    }
}

/// Whether a text is one whole object.
pub(super) fn is_whole_object(json: &str) -> bool {
    let mut reader = Reader::new(json);
    reader.peek() == Some(b'{') && reader.skip().is_ok() && reader.end().is_ok()
}
