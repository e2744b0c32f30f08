//! The pull reader.

use super::map::Map;
use super::numbers::Number;
use super::value::Value;
use super::{JsonError, MAX_DEPTH, MAX_NODES, TOO_LARGE};

/// Reads JSON from left to right without building a tree. Every method leaves the reader after what it has
/// read. After an error the reader must not be used any more.
pub struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    depth: u32,
    max_depth: u32,
    /// How many more values a tree may hold.
    nodes: u32,
    /// Whether a lone surrogate was found and replaced.
    pub mended: bool,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of the text.
    pub fn new(text: &'a str) -> Self {
        Reader { text, at: 0, depth: 0, max_depth: MAX_DEPTH, nodes: u32::MAX, mended: false }
    }

    /// Like `new`, for JSON that contains values which may themselves be nested to the full depth.
    pub(super) fn of_container(text: &'a str) -> Self {
        Reader { max_depth: MAX_DEPTH / 2 * 3, ..Reader::new(text) }
    }

    /// Like `new`, for JSON that a stranger wrote: a tree of it is bounded.
    pub(super) fn bounded(text: &'a str) -> Self {
        Reader { nodes: MAX_NODES, ..Reader::new(text) }
    }

    /// The error of JSON that holds too much.
    pub(crate) fn too_large(&self) -> JsonError {
        self.error(TOO_LARGE)
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

    fn peek_byte_outlined(&mut self) -> u8 {
        self.peek_byte()
    }

    /// Like `peek`, but returns 0 at the end: no value begins with it, and a plain number is returned in a
    /// register.
    // Inlined at every optimization level: most of a chunk is read through calls of this that find no
    // whitespace.
    #[allow(clippy::inline_always, reason = "a tenth of the time of a chunk at opt-level z")]
    #[inline(always)]
    pub(super) fn peek_byte(&mut self) -> u8 {
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
        self.nodes = self.nodes.checked_sub(1).ok_or_else(|| self.too_large())?;
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
    pub(super) fn byte(&self) -> u8 {
        self.byte_at(self.at)
    }

    /// Returns 0 after the end.
    #[allow(clippy::inline_always, reason = "one load and one comparison")]
    #[inline(always)]
    pub(super) fn byte_at(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
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

    pub(super) fn error(&self, message: &'static str) -> JsonError {
        JsonError(Box::new((message, self.at)))
    }
}
