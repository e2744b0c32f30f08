//! The pull reader.

use crate::data::text::Put;

use super::value::{Map, Number, Value, whole_number};
use super::write::{hex, plain_length};
use super::{JsonError, MAX_DEPTH};
/// Reads JSON from left to right without building a tree. Every method leaves the reader after what it has
/// read. After an error the reader must not be used any more.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    max_depth: u32,
    /// Whether a lone surrogate was found and replaced.
    pub mended: bool,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of the text.
    pub fn new(text: &'a str) -> Self {
        Reader { text, at: 0, depth: 0, max_depth: MAX_DEPTH, mended: false }
    }

    /// Like `new`, for JSON that contains values which may themselves be nested to the full depth.
    pub(super) fn of_container(text: &'a str) -> Self {
        Reader { max_depth: MAX_DEPTH / 2 * 3, ..Reader::new(text) }
    }

    /// Returns the first byte of the next value (`{`, `[`, `"`, `t`, `f`, `n`, a digit or `-`), or `None`
    /// at the end.
    #[allow(clippy::inline_always, reason = "what is left of it is a comparison")]
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        match self.peek_byte_outlined() {
            0 => None,
            byte => Some(byte),
        }
    }

    #[inline(never)]
    fn peek_byte_outlined(&mut self) -> u8 {
        self.peek_byte()
    }

    /// Like `peek`, but returns 0 at the end: no value begins with it, and a plain number is returned in a
    /// register.
    // Inlined at every optimization level: most of a chunk is read through calls of this that find no
    // whitespace.
    #[allow(clippy::inline_always, reason = "a tenth of the time of a chunk at opt-level z")]
    #[inline(always)]
    fn peek_byte(&mut self) -> u8 {
        match self.byte() {
            ..=b' ' => self.peek_after_blanks(),
            byte => byte,
        }
    }

    #[cold]
    fn peek_after_blanks(&mut self) -> u8 {
        while let b' ' | b'\t' | b'\n' | b'\r' = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Returns the number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the text read since a [`Reader::position`].
    pub fn since(&self, position: usize) -> &'a str {
        self.text.get(position..self.at).unwrap_or_default()
    }

    /// Checks that only whitespace is left.
    ///
    /// # Errors
    /// If anything else is left.
    pub fn end(&mut self) -> Result<(), JsonError> {
        self.peek_after_blanks();
        if self.at < self.text.len() { Err(self.error("more text after the JSON value")) } else { Ok(()) }
    }

    /// Reads an object. `member` is called with each key and must read exactly one value.
    ///
    /// # Errors
    /// If there is no object, if it is malformed, or if `member` fails.
    pub fn object(
        &mut self,
        member: impl FnMut(&mut Self, &str) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.members(true, member)
    }

    /// Like `object`, for a text whose first members are known already: starts at the comma at `known`, or
    /// at the beginning if it is 0.
    ///
    /// # Errors
    /// As for [`Reader::object`].
    pub(crate) fn object_after(
        &mut self,
        known: usize,
        member: impl FnMut(&mut Self, &str) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        (self.at, self.depth) = (known, u32::from(known > 0));
        self.members(known == 0, member)
    }

    fn members(
        &mut self,
        mut is_first: bool,
        mut member: impl FnMut(&mut Self, &str) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        let mut spare = String::new();
        while let Some(key) = self.next_key(is_first, &mut spare)? {
            is_first = false;
            member(self, key)?;
        }
        Ok(())
    }

    /// Reads a list. `item` is called before each item with its index and must read exactly one value.
    ///
    /// # Errors
    /// If there is no list, if it is malformed, or if `item` fails.
    pub fn array(
        &mut self,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        let mut index = 0;
        while self.next_item(index == 0)? {
            item(self, index)?;
            index += 1;
        }
        Ok(())
    }

    /// Reads the key of the next member including its colon, and the bracket before the first one; `None`
    /// after the last one. A key with an escape is put into `spare`. A single function for all objects,
    /// because the code of `object` is in the Wasm file once for each use.
    #[inline(never)]
    fn next_key<'k>(&mut self, is_first: bool, spare: &'k mut String) -> Result<Option<&'k str>, JsonError>
    where
        'a: 'k,
    {
        if is_first {
            self.open(b'{', "an object was expected")?;
        }
        let mut mark = self.peek_byte();
        if mark == b'}' {
            return self.close().map(|()| None);
        }
        if !is_first {
            if mark != b',' {
                return Err(self.error("a comma or `}` was expected"));
            }
            self.at += 1;
            mark = self.peek_byte();
        }
        if mark != b'"' {
            return Err(self.error("a key in quotes was expected"));
        }
        let start = self.at + 1;
        let end = self.plain_end(start);
        let key = if self.byte_at(end) == b'"' {
            self.at = end + 1;
            self.text.get(start..end).unwrap_or_default()
        } else {
            *spare = self.string()?;
            spare
        };
        if self.peek_byte() != b':' {
            return Err(self.error("a colon was expected"));
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Whether another item follows. Also reads the bracket before the first one.
    #[inline(never)]
    fn next_item(&mut self, is_first: bool) -> Result<bool, JsonError> {
        if is_first {
            self.open(b'[', "a list was expected")?;
        }
        match self.peek_byte() {
            b']' => return self.close().map(|()| false),
            b',' if !is_first => self.at += 1,
            _ if is_first => {}
            _ => return Err(self.error("a comma or `]` was expected")),
        }
        Ok(true)
    }

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

    /// Reads a non-negative whole number. Anything else is skipped and gives `None`.
    ///
    /// # Errors
    /// If the value is malformed.
    pub fn optional_u64(&mut self) -> Result<Option<u64>, JsonError> {
        self.skip().map(whole_number)
    }

    /// Skips a value and returns its text.
    ///
    /// # Errors
    /// If the value is malformed.
    pub fn skip(&mut self) -> Result<&'a str, JsonError> {
        self.peek_byte();
        let start = self.at;
        self.pass_over()?;
        Ok(self.since(start))
    }

    /// Skips a value.
    ///
    /// # Errors
    /// If the value is malformed.
    pub fn pass_over(&mut self) -> Result<(), JsonError> {
        match self.peek_byte() {
            b'{' => self.object(|reader, _| reader.pass_over()),
            b'[' => self.array(|reader, _| reader.pass_over()),
            b'"' => self.skip_string(),
            b't' => self.word(0, b"true"),
            b'f' => self.word(1, b"alse"),
            b'n' => self.word(0, b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ if self.at >= self.text.len() => {
                Err(self.error("the text ends where a JSON value was expected"))
            }
            _ => Err(self.error("a JSON value was expected")),
        }
    }

    /// Reads a value as a tree.
    ///
    /// # Errors
    /// If the value is malformed.
    pub fn value(&mut self) -> Result<Value, JsonError> {
        match self.peek_byte() {
            b'{' => {
                let mut map = Map::new();
                self.object(|reader, key| {
                    let key = key.to_owned();
                    let value = reader.value()?;
                    map.0.push((key, value));
                    Ok(())
                })?;
                map.deduplicate();
                Ok(Value::Object(map))
            }
            b'[' => {
                let mut items = Vec::new();
                self.array(|reader, _| {
                    items.push(reader.value()?);
                    Ok(())
                })?;
                Ok(Value::Array(items))
            }
            b'"' => self.string().map(Value::String),
            b't' => self.word(0, b"true").map(|()| Value::Bool(true)),
            b'f' => self.word(1, b"alse").map(|()| Value::Bool(false)),
            b'n' => self.word(0, b"null").map(|()| Value::Null),
            _ => self.skip().map(|raw| Value::Number(Number(raw.into()))),
        }
    }

    #[inline(never)]
    fn open(&mut self, bracket: u8, message: &'static str) -> Result<(), JsonError> {
        if self.peek_byte() != bracket {
            return Err(self.error(message));
        }
        self.at += 1;
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err(self.error("nested too deep"));
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    #[allow(clippy::inline_always, reason = "one load and one comparison")]
    #[inline(always)]
    fn byte(&self) -> u8 {
        self.byte_at(self.at)
    }

    /// Returns 0 after the end.
    #[allow(clippy::inline_always, reason = "one load and one comparison")]
    #[inline(always)]
    fn byte_at(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    #[allow(
        clippy::inline_always,
        reason = "it stands in two places, and every key and text goes through it"
    )]
    #[inline(always)]
    fn plain_end(&self, start: usize) -> usize {
        start + plain_length(self.text.as_bytes().get(start..).unwrap_or_default())
    }

    fn skip_string(&mut self) -> Result<(), JsonError> {
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

    /// Reads a word whose last four letters come after `known` letters that were already recognized.
    fn word(&mut self, known: usize, word: &[u8; 4]) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes().get(self.at + known..).unwrap_or_default();
        if bytes.first_chunk() != Some(word) {
            return Err(self.error("a JSON value was expected"));
        }
        self.at += known + word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.byte() == b'-' {
            self.at += 1;
        }
        if self.byte() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if let b'e' | b'E' = self.byte() {
            self.at += 1;
            if let b'+' | b'-' = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !self.byte().is_ascii_digit() {
            return Err(self.error("a digit was expected"));
        }
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    #[inline(never)]
    fn error(&self, message: &'static str) -> JsonError {
        JsonError(Box::new((message, self.at)))
    }
}
