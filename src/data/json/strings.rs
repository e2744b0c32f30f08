//! Strings, read and written.

use crate::data::room::grow_text;
use crate::data::text::{ONES, Put, first_of};

use super::JsonError;
use super::read::Reader;

impl<'a> Reader<'a> {
    /// Reads a string. It is borrowed from the text unless it contains an escape; in that case it is
    /// appended to `spare`, and `None` is returned.
    ///
    /// # Errors
    /// If there is no string, or if it does not end.
    pub fn text_into(&mut self, spare: &mut String) -> Result<Option<&'a str>, JsonError> {
        if self.peek_byte() != b'"' {
            return Err(self.error("a string was expected"));
        }
        self.at += 1;
        let mut is_whole = true;
        loop {
            let from = self.at;
            self.at = self.plain_end(from);
            let plain = self.since(from);
            match self.byte() {
                b'"' => {
                    self.at += 1;
                    if is_whole {
                        return Ok(Some(plain));
                    }
                    spare.push_str(plain);
                    return Ok(None);
                }
                b'\\' => {
                    is_whole = false;
                    spare.push_str(plain);
                    self.escape(spare)?;
                }
                _ if self.at >= self.text.len() => return Err(self.error("the text ends inside a string")),
                _ => return Err(self.error("a raw control character in a string")),
            }
        }
    }

    /// Reads a string into a new `String`.
    ///
    /// # Errors
    /// As for [`Reader::text_into`].
    pub fn string(&mut self) -> Result<String, JsonError> {
        let mut spare = String::new();
        Ok(match self.text_into(&mut spare)? {
            Some(plain) => plain.to_owned(),
            None => spare,
        })
    }

    /// Reads a string. Anything else is skipped and gives `None`.
    ///
    /// # Errors
    /// If the value is malformed.
    pub fn optional_string(&mut self) -> Result<Option<String>, JsonError> {
        if self.peek_byte() == b'"' { self.string().map(Some) } else { self.skip().map(|_| None) }
    }

    #[allow(
        clippy::inline_always,
        reason = "it stands in two places, and every key and text goes through it"
    )]
    #[inline(always)]
    pub(super) fn plain_end(&self, start: usize) -> usize {
        start + plain_length(self.text.as_bytes().get(start..).unwrap_or_default())
    }

    pub(super) fn skip_string(&mut self) -> Result<(), JsonError> {
        let end = self.plain_end(self.at + 1);
        if self.byte_at(end) == b'"' {
            self.at = end + 1;
            return Ok(());
        }
        let mut spare = String::new();
        self.text_into(&mut spare).map(|_| ())
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        self.at += 1;
        let plain = match self.byte() {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            c @ (b'"' | b'\\' | b'/') => char::from(c),
            b'u' => return self.unicode_escape(out),
            _ if self.at >= self.text.len() => return Err(self.error("the text ends inside a string")),
            _ => return Err(self.error("an unknown escape in a string")),
        };
        self.at += 1;
        out.put_char(plain);
        Ok(())
    }

    fn unicode_escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let first = self.four_digits()?;
        if let Some(plain) = char::from_u32(first) {
            out.put_char(plain);
            return Ok(());
        }
        let follows = self.byte() == b'\\' && self.byte_at(self.at + 1) == b'u';
        if first < 0xdc00 && follows {
            let before = self.at;
            self.at += 1;
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                out.put_char(char::from_u32(code).unwrap_or('\u{fffd}'));
                return Ok(());
            }
            self.at = before;
        }
        self.mended = true;
        out.put_char('\u{fffd}');
        Ok(())
    }

    /// Reads the four hex digits after the `u` at the reader's position.
    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.as_bytes().get(self.at + 1..self.at + 5).unwrap_or_default();
        match hex(digits) {
            Some(code) if digits.len() == 4 => {
                self.at += 5;
                Ok(code)
            }
            _ => Err(self.error("four hex digits were expected")),
        }
    }
}

/// Returns the number that a few hex digits represent.
pub(crate) fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

/// Appends a JSON string. Quotes, backslashes and control characters are escaped, everything else is
/// written as it is.
pub fn write_str(text: &str, out: &mut String) {
    out.push_str("\"");
    write_plain(text, out);
    out.push_str("\"");
}

/// From this length on, there is room in the buffer for a text and for what follows it before it is written.
const LONG: usize = 1 << 12;

/// Like [`write_str`], without the quotes.
pub(super) fn write_plain(text: &str, out: &mut String) {
    let mut rest = text;
    loop {
        if rest.len() > LONG {
            // A buffer that doubles would take three times the memory of a long text.
            grow_text(out, rest.len() + LONG);
        }
        let plain = plain_length(rest.as_bytes());
        let Some(special) = rest.as_bytes().get(plain) else { break };
        out.push_str(rest.get(..plain).unwrap_or_default());
        let escaped = match special {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            control => {
                let digit = |code: u8| char::from_digit(code.into(), 16).unwrap_or('0');
                out.push_str("\\u00");
                out.put_char(digit(control >> 4));
                out.put_char(digit(control & 15));
                ""
            }
        };
        out.push_str(escaped);
        rest = rest.get(plain + 1..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// Returns the number of plain characters at the start of a text: those before a quote, a backslash, a
/// control character or the end of the text. Looks at eight bytes at a time; all of the stopping bytes are
/// ASCII, so the position is a character boundary.
#[allow(clippy::inline_always, reason = "see `Reader::plain_end`")]
#[inline(always)]
fn plain_length(bytes: &[u8]) -> usize {
    first_of(bytes, |w| {
        let quote = w ^ (ONES * u64::from(b'"'));
        let slash = w ^ (ONES * u64::from(b'\\'));
        (w.wrapping_sub(ONES * 0x20) & !w)
            | (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
    })
}
