//! The blocks of a message, for wires that do not number them: one is open at a time, and a piece of another
//! kind closes it.

use crate::data::json::RawJson;
use crate::rules::stream::AssistantMessageEvent as Event;

use super::answering::Answering;
use super::piece::Piece;

/// The kind of a block of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    /// Text by which the model refuses.
    Refusal,
    Thinking,
}

/// The blocks so far.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    next: u32,
    open: Option<OpenBlock>,
    held: Option<HeldHalf>,
    /// The text blocks that are a refusal.
    pub(super) refusals: Vec<u32>,
}

#[derive(Debug)]
struct OpenBlock {
    index: u32,
    kind: BlockKind,
    signature: Option<String>,
}

/// The first half of a character, which waits for the second.
#[derive(Debug)]
struct HeldHalf {
    index: u32,
    kind: Option<BlockKind>,
    high: u16,
}

impl Blocks {
    fn next_index(&mut self) -> u32 {
        let index = self.next;
        self.next += 1;
        index
    }
}

impl Answering {
    /// Returns the number of the block that was begun last.
    pub(crate) fn last_block(&self) -> Option<u32> {
        self.blocks.next.checked_sub(1)
    }

    /// Whether the open block is of this kind.
    pub(crate) fn is_open(&self, kind: BlockKind) -> bool {
        self.blocks.open.as_ref().is_some_and(|open| open.kind == kind)
    }

    /// Whether there is text by which the model refuses.
    pub(crate) fn is_refused(&self) -> bool {
        !self.blocks.refusals.is_empty()
    }

    /// Adds text to the open block of a kind; opens one if none is open.
    pub(crate) fn text(&mut self, kind: BlockKind, piece: Piece<'_>) {
        let index = self.open(kind);
        let delta = self.join(index, Some(kind), piece);
        self.push_delta(index, Some(kind), delta);
    }

    /// Opens a block of a kind, unless one is open. Returns its number.
    pub(crate) fn open(&mut self, kind: BlockKind) -> u32 {
        if let Some(open) = self.blocks.open.as_ref().filter(|open| open.kind == kind) {
            return open.index;
        }
        self.close();
        let index = self.blocks.next_index();
        if kind == BlockKind::Refusal {
            self.blocks.refusals.push(index);
        }
        self.out.push(match kind {
            BlockKind::Text | BlockKind::Refusal => Event::TextStart { index },
            BlockKind::Thinking => Event::ThinkingStart { index },
        });
        self.blocks.open = Some(OpenBlock { index, kind, signature: None });
        index
    }

    /// Adds to the signature of the open block.
    pub(crate) fn sign(&mut self, signature: &str) {
        if let Some(mut open) = self.blocks.open.take() {
            self.hold(open.signature.get_or_insert_default(), signature);
            self.blocks.open = Some(open);
        }
    }

    /// Sets the signature of the open block; an empty one is none.
    pub(crate) fn set_signature(&mut self, signature: &str) {
        if let Some(open) = &mut self.blocks.open {
            open.signature = if signature.is_empty() { None } else { Some(signature.to_owned()) };
        }
    }

    /// Adds a thinking block that only its provider can read.
    pub(crate) fn redacted(&mut self, data: String) {
        self.close();
        let index = self.blocks.next_index();
        self.out.push(Event::ThinkingStart { index });
        self.out.push(Event::ThinkingEnd { index, signature: Some(data), redacted: true });
    }

    /// Adds a block that only its provider understands.
    pub(crate) fn raw(&mut self, data: RawJson) {
        self.close();
        let index = self.blocks.next_index();
        self.out.push(Event::Raw { index, data });
    }

    /// Begins a call. Returns its number.
    pub(crate) fn begin_call(&mut self, call_id: &str, tool_name: &str) -> u32 {
        self.close();
        let index = self.blocks.next_index();
        let (call_id, tool_name) = (call_id.to_owned(), tool_name.to_owned());
        self.out.push(Event::ToolCallStart { index, call_id, tool_name });
        index
    }

    /// Adds to the arguments of a call, and counts them.
    pub(crate) fn arguments(&mut self, index: u32, piece: Piece<'_>) {
        if !self.is_ended {
            let bytes = self.push_arguments(index, piece);
            self.count_bytes(bytes);
        }
    }

    /// Adds to the arguments of a call. Returns the number of bytes, which the caller must count.
    pub(crate) fn push_arguments(&mut self, index: u32, piece: Piece<'_>) -> usize {
        let delta = self.join(index, None, piece);
        let length = delta.len();
        self.push_delta(index, None, delta);
        length
    }

    /// Ends a call.
    pub(crate) fn end_call(&mut self, index: u32, metadata: Option<RawJson>) {
        self.release();
        self.out.push(Event::ToolCallEnd { index, metadata });
    }

    /// Closes the open block, if there is one.
    pub(crate) fn close(&mut self) {
        self.release();
        let Some(OpenBlock { index, kind, signature }) = self.blocks.open.take() else {
            return;
        };
        self.out.push(match kind {
            BlockKind::Text | BlockKind::Refusal => Event::TextEnd { index, signature },
            BlockKind::Thinking => Event::ThinkingEnd { index, signature, redacted: false },
        });
    }

    /// The answer failed: what is open stays open.
    pub(super) fn abandon(&mut self) {
        self.release();
        self.blocks.open = None;
    }

    /// Adds a text to a block. No kind means the arguments of a call.
    pub(super) fn push_delta(&mut self, index: u32, kind: Option<BlockKind>, delta: String) {
        if delta.is_empty() {
            return;
        }
        self.out.push(match kind {
            None => Event::ToolCallDelta { index, delta },
            Some(BlockKind::Text | BlockKind::Refusal) => Event::TextDelta { index, delta },
            Some(BlockKind::Thinking) => Event::ThinkingDelta { index, delta },
        });
    }

    /// Gives up waiting for the second half of a character.
    fn release(&mut self) {
        if let Some(held) = self.blocks.held.take() {
            self.push_delta(held.index, held.kind, "\u{fffd}".to_owned());
        }
    }

    /// Returns the text of a piece with the half that waited for it, and without the half that waits for the
    /// next piece.
    fn join(&mut self, index: u32, kind: Option<BlockKind>, piece: Piece<'_>) -> String {
        if piece.text.is_empty() || (self.blocks.held.is_none() && piece.is_whole()) {
            return piece.text.into_owned();
        }
        if self.blocks.held.as_ref().is_some_and(|held| held.index != index) {
            self.release();
        }
        let (joined, high) = piece.join(self.blocks.held.take().map(|held| held.high));
        self.blocks.held = if high > 0 { Some(HeldHalf { index, kind, high }) } else { None };
        joined
    }
}

#[cfg(test)]
mod tests {
    use crate::data::json::Reader;

    use super::*;

    fn read(string: &str) -> Piece<'_> {
        let mut piece = None;
        Piece::read(&mut Reader::new(string), &mut piece).unwrap();
        piece.unwrap()
    }

    /// The text that comes of JSON strings given one after the other.
    fn joined(strings: &[&str]) -> String {
        let mut answering = Answering::default();
        for string in strings {
            answering.text(BlockKind::Text, read(string));
        }
        answering.close();
        let deltas = answering.out.iter().filter_map(|event| match event {
            Event::TextDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        deltas.collect()
    }

    #[test]
    fn halves_of_a_character_find_each_other_over_pieces() {
        assert_eq!(joined(&[r#""a\ud83d""#, r#""\ude00b""#]), "a😀b");
        assert_eq!(joined(&[r#""\ud83d""#, r#""""#, r#""\ude00""#]), "😀");
        assert_eq!(joined(&[r#""\ud83d""#, r#""\ude00\ud83d""#, r#""\ude01""#]), "😀😁");
    }

    #[test]
    fn a_half_alone_is_replaced_once() {
        assert_eq!(joined(&[r#""a\ud83d""#]), "a\u{fffd}");
        assert_eq!(joined(&[r#""a\ud83d""#, r#""b""#]), "a\u{fffd}b");
        assert_eq!(joined(&[r#""\ude00b""#]), "\u{fffd}b");
        assert_eq!(joined(&[r#""\ud83d""#, r#""\ud83d""#, r#""\ude00""#]), "\u{fffd}😀");
        assert_eq!(joined(&[r#""\ud83dx\ude00""#]), "\u{fffd}x\u{fffd}");
    }

    #[test]
    fn a_half_is_given_up_when_another_block_begins() {
        let mut answering = Answering::default();
        let half = || read(r#""\ud83d""#);
        answering.text(BlockKind::Thinking, half());
        let call = answering.begin_call("a", "t");
        answering.push_arguments(call, half());
        answering.text(BlockKind::Text, "x".into());
        answering.close();
        let wanted = vec![
            Event::ThinkingStart { index: 0 },
            Event::ThinkingDelta { index: 0, delta: "\u{fffd}".into() },
            Event::ThinkingEnd { index: 0, signature: None, redacted: false },
            Event::ToolCallStart { index: 1, call_id: "a".into(), tool_name: "t".into() },
            Event::ToolCallDelta { index: 1, delta: "\u{fffd}".into() },
            Event::TextStart { index: 2 },
            Event::TextDelta { index: 2, delta: "x".into() },
            Event::TextEnd { index: 2, signature: None },
        ];
        assert_eq!(answering.out, wanted);
    }
}
