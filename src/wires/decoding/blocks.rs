//! The blocks of a message on wires that do not number them: one is open at a time, and a piece of another kind closes
//! it. Also joins characters whose two surrogate halves arrive in two pieces.

use std::borrow::Cow;

use crate::data::json::{RawJson, Reader, hex};
use crate::data::text::Put;
use crate::rules::stream::AssistantMessageEvent as Event;

use super::fields::Read;

/// A piece of text from a JSON string, with what UTF-8 cannot hold: a lone surrogate at either end. In the text it is
/// replaced by U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Piece<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Its JSON source including the quotes; empty if it was not read as a string.
    written: &'a str,
    /// The low surrogate that the text begins with; 0 for none.
    low: u16,
    /// The high surrogate that the text ends with; 0 for none.
    high: u16,
}

impl<'a> Piece<'a> {
    /// Reads a string into a slot; anything else is skipped and leaves the slot as it is.
    pub(crate) fn read(reader: &mut Reader<'a>, slot: &mut Option<Piece<'a>>) -> Read {
        if reader.peek() != Some(b'"') {
            return reader.pass_over();
        }
        let (start, mended) = (reader.position(), reader.mended);
        reader.mended = false;
        let mut spare = String::new();
        let plain = reader.text_into(&mut spare)?;
        let written = reader.since(start);
        *slot = Some(match plain {
            Some(plain) => Piece { written, ..Piece::from(plain) },
            None if reader.mended => Piece::halved(spare, written),
            None => Piece { text: Cow::Owned(spare), written, low: 0, high: 0 },
        });
        reader.mended |= mended;
        Ok(())
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Where its source is in memory, and how long it is; `None` if it contains half a character.
    pub(crate) fn place(&self) -> Option<Place> {
        if self.written.is_empty() { None } else { Some(place_of(self.written)) }
    }

    /// A text in which a half was replaced, and how it was written.
    fn halved(text: String, written: &str) -> Piece<'a> {
        let inner = written.get(1..written.len().saturating_sub(1)).unwrap_or_default();
        let half = |escape: Option<&str>| u16::try_from(hex(escape?.strip_prefix("\\u")?.as_bytes())?).ok();
        let first = if text.starts_with("\u{fffd}") { half(inner.get(..6)) } else { None };
        let last = inner.len().checked_sub(6).and_then(|at| half(inner.get(at..)));
        let last = if text.ends_with("\u{fffd}") { last } else { None };
        Piece {
            text: Cow::Owned(text),
            written: "",
            low: first.filter(|code| (0xdc00..0xe000).contains(code)).unwrap_or(0),
            high: last.filter(|code| (0xd800..0xdc00).contains(code)).unwrap_or(0),
        }
    }
}

impl<'a> From<&'a str> for Piece<'a> {
    fn from(text: &'a str) -> Self {
        Piece { text: Cow::Borrowed(text), written: "", low: 0, high: 0 }
    }
}

/// What kind of block a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Text by which the model refuses.
    Refusal,
    Thinking,
}

/// The blocks begun so far.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    next: u32,
    open: Option<Open>,
    held: Option<Held>,
    /// The text blocks that are a refusal.
    pub(crate) refusals: Vec<u32>,
    /// The place of a piece of text that is all that its frame says: the same frame with another text may be taken for
    /// that text alone. Only where the decoder remembers nothing else of it, or hears of it (`Frames::repeated`).
    pub(crate) piece_place: Option<Place>,
    /// Beside it: what differs from frame to frame and says nothing.
    pub(crate) ignored_places: [Place; 2],
}

/// Where in memory something is written, and how long it is.
type Place = (usize, usize);

/// Where a text is written.
pub(crate) fn place_of(written: &str) -> Place {
    (written.as_ptr().addr(), written.len())
}

#[derive(Debug)]
struct Open {
    index: u32,
    kind: Kind,
    signature: Option<String>,
}

/// The first half of a character, which waits for the second.
#[derive(Debug)]
struct Held {
    index: u32,
    kind: Option<Kind>,
    high: u16,
}

impl Blocks {
    /// The number of the block that was begun last.
    pub(crate) fn last(&self) -> Option<u32> {
        self.next.checked_sub(1)
    }

    /// The open block, if it is of this kind.
    pub(crate) fn open(&self, kind: Kind) -> Option<u32> {
        self.open.as_ref().filter(|open| open.kind == kind).map(|open| open.index)
    }

    /// Adds text to the open block of a kind; begins one if none is open. Gives its number.
    pub(crate) fn text(&mut self, kind: Kind, piece: Piece<'_>, out: &mut Vec<Event>) -> u32 {
        let index = self.ensure(kind, out);
        let delta = self.join(index, Some(kind), piece, out);
        push_delta(index, Some(kind), delta, out);
        index
    }

    /// Opens a block of a kind, unless one is open. Gives its number.
    pub(crate) fn ensure(&mut self, kind: Kind, out: &mut Vec<Event>) -> u32 {
        if let Some(index) = self.open(kind) {
            return index;
        }
        self.close(out);
        let index = self.next_index();
        if kind == Kind::Refusal {
            self.refusals.push(index);
        }
        out.push(match kind {
            Kind::Text | Kind::Refusal => Event::TextStart { index },
            Kind::Thinking => Event::ThinkingStart { index },
        });
        self.open = Some(Open { index, kind, signature: None });
        index
    }

    /// Adds to the signature of the open block.
    pub(crate) fn sign(&mut self, signature: &str) {
        if let Some(open) = &mut self.open {
            open.signature.get_or_insert_default().push_str(signature);
        }
    }

    /// Sets the signature of the open block; an empty one is none.
    pub(crate) fn set_signature(&mut self, signature: &str) {
        if let Some(open) = &mut self.open {
            open.signature = if signature.is_empty() { None } else { Some(signature.to_owned()) };
        }
    }

    /// An opaque thinking block. Gives its number.
    pub(crate) fn redacted(&mut self, data: String, out: &mut Vec<Event>) -> u32 {
        self.close(out);
        let index = self.next_index();
        out.push(Event::ThinkingStart { index });
        out.push(Event::ThinkingEnd { index, signature: Some(data), redacted: true });
        index
    }

    /// A block that only its provider understands.
    pub(crate) fn raw(&mut self, data: RawJson, out: &mut Vec<Event>) {
        self.close(out);
        let index = self.next_index();
        out.push(Event::Raw { index, data });
    }

    /// Begins a call. Gives its number.
    pub(crate) fn call(&mut self, call_id: &str, tool_name: &str, out: &mut Vec<Event>) -> u32 {
        self.close(out);
        let index = self.next_index();
        let (call_id, tool_name) = (call_id.to_owned(), tool_name.to_owned());
        out.push(Event::ToolCallStart { index, call_id, tool_name });
        index
    }

    /// Adds to the arguments of a call. Gives the number of bytes.
    pub(crate) fn arguments(&mut self, index: u32, piece: Piece<'_>, out: &mut Vec<Event>) -> usize {
        let delta = self.join(index, None, piece, out);
        let length = delta.len();
        push_delta(index, None, delta, out);
        length
    }

    /// Closes the open block, if there is one.
    pub(crate) fn close(&mut self, out: &mut Vec<Event>) {
        self.release(out);
        let Some(Open { index, kind, signature }) = self.open.take() else {
            return;
        };
        out.push(match kind {
            Kind::Text | Kind::Refusal => Event::TextEnd { index, signature },
            Kind::Thinking => Event::ThinkingEnd { index, signature, redacted: false },
        });
    }

    /// The answer failed: what is open stays open.
    pub(crate) fn abandon(&mut self, out: &mut Vec<Event>) {
        self.release(out);
        self.open = None;
    }

    /// Gives up waiting for the second half of a character.
    pub(crate) fn release(&mut self, out: &mut Vec<Event>) {
        if let Some(held) = self.held.take() {
            push_delta(held.index, held.kind, "\u{fffd}".to_owned(), out);
        }
    }

    fn next_index(&mut self) -> u32 {
        let index = self.next;
        self.next += 1;
        index
    }

    /// The text of a piece, with the half that waited for it, without the half that waits for the next.
    fn join(&mut self, index: u32, kind: Option<Kind>, piece: Piece<'_>, out: &mut Vec<Event>) -> String {
        let Piece { text, low, high, .. } = piece;
        if text.is_empty() || (self.held.is_none() && high == 0) {
            return text.into_owned();
        }
        if self.held.as_ref().is_some_and(|held| held.index != index) {
            self.release(out);
        }
        let mut joined = String::with_capacity(text.len() + 4);
        let mut rest = &*text;
        if let Some(held) = self.held.take() {
            let whole = rest.strip_prefix("\u{fffd}").filter(|_| low > 0).and_then(|rest| {
                let code = 0x10000 + (u32::from(held.high - 0xd800) << 10) + u32::from(low - 0xdc00);
                Some((char::from_u32(code)?, rest))
            });
            let (character, after) = whole.unwrap_or(('\u{fffd}', rest));
            joined.put_char(character);
            rest = after;
        }
        if high > 0 {
            rest = rest.strip_suffix("\u{fffd}").unwrap_or(rest);
            self.held = Some(Held { index, kind, high });
        }
        joined.push_str(rest);
        joined
    }
}

pub(crate) fn push_delta(index: u32, kind: Option<Kind>, delta: String, out: &mut Vec<Event>) {
    if delta.is_empty() {
        return;
    }
    out.push(match kind {
        None => Event::ToolCallDelta { index, delta },
        Some(Kind::Text | Kind::Refusal) => Event::TextDelta { index, delta },
        Some(Kind::Thinking) => Event::ThinkingDelta { index, delta },
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(string: &str) -> Piece<'_> {
        let mut piece = None;
        Piece::read(&mut Reader::new(string), &mut piece).unwrap();
        piece.unwrap()
    }

    /// The text that comes of JSON strings given one after the other.
    fn joined(strings: &[&str]) -> String {
        let mut blocks = Blocks::default();
        let mut out = Vec::new();
        for string in strings {
            blocks.text(Kind::Text, read(string), &mut out);
        }
        blocks.close(&mut out);
        let deltas = out.iter().filter_map(|event| match event {
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
        let mut blocks = Blocks::default();
        let mut out = Vec::new();
        let half = || read(r#""\ud83d""#);
        blocks.text(Kind::Thinking, half(), &mut out);
        let call = blocks.call("a", "t", &mut out);
        blocks.arguments(call, half(), &mut out);
        blocks.text(Kind::Text, "x".into(), &mut out);
        blocks.close(&mut out);
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
        assert_eq!(out, wanted);
    }
}
