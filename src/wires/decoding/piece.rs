//! Pieces of text, and the characters whose two surrogate halves arrive in two pieces.

use std::borrow::Cow;

use crate::data::json::{Reader, hex};
use crate::data::text::Put;

use super::fields::ReadResult;
use super::template::{Span, span_of};

/// A piece of text from a JSON string, with what UTF-8 cannot hold: a lone surrogate at either end. In the
/// text it is replaced by U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Piece<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Its JSON source including the quotes; empty if it was not read as a string.
    written: &'a str,
    /// The low surrogate that the text begins with; 0 if there is none.
    low: u16,
    /// The high surrogate that the text ends with; 0 if there is none.
    high: u16,
}

impl<'a> Piece<'a> {
    /// Reads a string into a slot; anything else is skipped and leaves the slot as it is.
    pub(crate) fn read(reader: &mut Reader<'a>, slot: &mut Option<Piece<'a>>) -> ReadResult {
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

    /// Returns where its source is; `None` if it contains half a character.
    pub(crate) fn span(&self) -> Option<Span> {
        if self.written.is_empty() { None } else { Some(span_of(self.written)) }
    }

    /// Creates a piece from a text in which a half was replaced, and from how it was written.
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

    /// Whether no half at its end waits for the next piece.
    pub(super) fn is_whole(&self) -> bool {
        self.high == 0
    }

    /// Joins the text with the high surrogate that waited for it, if one did. Returns the text and the high
    /// surrogate that now waits for the next piece; 0 stands for none.
    pub(super) fn join(&self, waiting: Option<u16>) -> (String, u16) {
        let mut joined = String::with_capacity(self.text.len() + 4);
        let mut rest = &*self.text;
        if let Some(high) = waiting {
            let whole = rest.strip_prefix("\u{fffd}").filter(|_| self.low > 0).and_then(|rest| {
                let code = 0x10000 + (u32::from(high - 0xd800) << 10) + u32::from(self.low - 0xdc00);
                Some((char::from_u32(code)?, rest))
            });
            let (character, after) = whole.unwrap_or(('\u{fffd}', rest));
            joined.put_char(character);
            rest = after;
        }
        if self.high > 0 {
            rest = rest.strip_suffix("\u{fffd}").unwrap_or(rest);
        }
        joined.push_str(rest);
        (joined, self.high)
    }
}

impl<'a> From<&'a str> for Piece<'a> {
    fn from(text: &'a str) -> Self {
        Piece { text: Cow::Borrowed(text), written: "", low: 0, high: 0 }
    }
}
