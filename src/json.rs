//! JSON without a tree on the hot path: a pull [`Reader`], a [`Value`] for what must be looked into, a
//! [`RawJson`] for what only passes through, and writers that append to a string.
//!
//! Written here because it is inside what this crate exists for: a chunk of a stream is read in one pass, numbers
//! keep their text (no float code in the wasm file), and a lone surrogate becomes U+FFFD instead of losing a frame.

use std::fmt;
use std::rc::Rc;

use crate::id_map::IdMap;
use crate::text::{self, Put};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// How deep arrays and objects may stand inside one another.
const MAX_DEPTH: u32 = 128;

/// Why a text is not the JSON that was wanted: a message in lower case and the byte where reading stopped. One pointer,
/// because every function that reads hands it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError(Box<(&'static str, usize)>);

impl JsonError {
    /// What was found, and what was wanted.
    pub fn message(&self) -> &str {
        self.0.0
    }

    /// Byte offset in the text.
    pub fn offset(&self) -> usize {
        self.0.1
    }

    /// Both, as one text.
    #[inline(never)]
    pub(crate) fn text(&self) -> String {
        [self.message(), " at byte ", &text::number(self.offset())].concat()
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl std::error::Error for JsonError {}

/// A JSON value. Numbers keep their text, objects their order; of equal keys the last one wins.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it was written.
    Number(Number),
    /// A text.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// An object in the order of its keys.
    Object(Map),
}

/// A JSON number, kept as text: nothing is rounded on the way through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(Box<str>);

impl Number {
    /// The number as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number, if it is a whole one that is not negative (`12`, `12.0`).
    pub fn as_u64(&self) -> Option<u64> {
        whole_number(&self.0)
    }
}

/// A whole number that is not negative (`12`, `12.0`).
fn whole_number(text: &str) -> Option<u64> {
    let (whole, fraction) = parts(text);
    text::whole(whole).filter(|_| fraction.bytes().all(|byte| byte == b'0'))
}

/// What stands before the point, and behind it.
fn parts(text: &str) -> (&str, &str) {
    text.split_once('.').unwrap_or((text, "0"))
}

impl From<u64> for Number {
    fn from(n: u64) -> Self {
        Number(text::number(n).into())
    }
}

/// The members of an object, in order.
#[derive(Clone, Debug, Default)]
pub struct Map(Vec<(String, Value)>);

impl PartialEq for Map {
    /// Order does not matter, as in JSON.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|(k, v)| other.get(k) == Some(v))
    }
}

impl Map {
    /// An object without members.
    pub fn new() -> Self {
        Map(Vec::new())
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Sets a key; an existing one keeps its place.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) {
        let key = key.into();
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().rposition(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Drops all but the last of equal keys, at a cost that stays below quadratic.
    fn deduplicate(&mut self) {
        if self.0.len() < 2 {
            return;
        }
        let mut seen = IdMap::default();
        let mut doomed = vec![false; self.0.len()];
        for (at, (key, _)) in self.0.iter().enumerate() {
            let before = seen.insert(key.as_str(), at).and_then(|before| doomed.get_mut(before));
            if let Some(before) = before {
                *before = true;
            }
        }
        if doomed.contains(&true) {
            let mut doomed = doomed.into_iter();
            self.0.retain(|_| doomed.next() != Some(true));
        }
    }
}

impl FromIterator<(String, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        let mut map = Map(members.into_iter().collect());
        map.deduplicate();
        map
    }
}

impl IntoIterator for Map {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Value {
    /// Reads one value; what follows it may only be blanks.
    ///
    /// # Errors
    /// Where the text is no JSON, is followed by something, or is nested deeper than 128.
    pub fn parse(text: &str) -> Result<Value, JsonError> {
        let mut reader = Reader::new(text);
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// As [`Value::parse`], for what holds values of others: it may be nested deeper than any of them.
    ///
    /// # Errors
    /// As [`Value::parse`], with 192 in place of 128.
    pub(crate) fn parse_container(text: &str) -> Result<Value, JsonError> {
        let mut reader = Reader { deepest: MAX_DEPTH / 2 * 3, ..Reader::new(text) };
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// A member of an object; `None` for anything else.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The text at a key of an object.
    #[inline(never)]
    pub(crate) fn text_at(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// As [`Value::text_at`], copied.
    #[inline(never)]
    pub(crate) fn owned_at(&self, key: &str) -> Option<String> {
        self.text_at(key).map(str::to_owned)
    }

    /// The number at a key of an object, down to a whole one: milliseconds may come with a fraction.
    #[inline(never)]
    pub(crate) fn number_at(&self, key: &str) -> Option<u64> {
        let Value::Number(Number(text)) = self.get(key)? else { return None };
        let (whole, fraction) = parts(text);
        text::whole(whole).filter(|_| fraction.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// `true` or `false` at a key of an object.
    #[inline(never)]
    pub(crate) fn flag_at(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    /// The items of the list at a key of an object; none where there is no list.
    #[inline(never)]
    pub(crate) fn list_at(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).unwrap_or_default()
    }

    /// The members of the object at a key of an object; none where there is no object.
    #[inline(never)]
    pub(crate) fn members_at(&self, key: &str) -> &[(String, Value)] {
        match self.get(key) {
            Some(Value::Object(map)) => &map.0,
            _ => &[],
        }
    }

    /// A member of an object, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let Value::Object(map) = self else { return None };
        map.0.iter_mut().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Takes a member out of an object; null where there is none.
    pub fn take(&mut self, key: &str) -> Value {
        let Value::Object(map) = self else { return Value::Null };
        map.remove(key).unwrap_or_default()
    }

    /// The value at a path of keys.
    pub fn path(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// A whole number that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        if let Value::Number(number) = self { number.as_u64() } else { None }
    }

    /// `true` or `false`.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(flag) = self { Some(*flag) } else { None }
    }

    /// The members of an object.
    pub fn as_object(&self) -> Option<&Map> {
        if let Value::Object(map) = self { Some(map) } else { None }
    }

    /// The items of a list.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(items) = self { Some(items) } else { None }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// `null`, `a boolean`, `a number`, `a string`, `a list` or `an object`: for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}

impl ToJson for Value {
    fn write_json(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(flag) => out.push_str(truth(*flag)),
            Value::Number(number) => out.push_str(number.as_str()),
            Value::String(text) => write_str(text, out),
            Value::Array(items) => write_list(items, out),
            Value::Object(map) => {
                let mut object = ObjectWriter::new(out);
                for (key, value) in map.iter() {
                    object.field(key, value);
                }
                object.end();
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Value::Number(n.into())
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Value::Object(map)
    }
}

/// The text of one JSON value, known to be valid: what the engine hands on without looking into it.
/// Cloning it copies a pointer. Two are equal when their texts are.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Rc<str>);

impl RawJson {
    /// Checks a text and keeps it. Blanks around the value are cut off; a lone surrogate is mended to U+FFFD.
    ///
    /// # Errors
    /// Where the text is not exactly one JSON value.
    pub fn parse(text: &str) -> Result<RawJson, JsonError> {
        let mut reader = Reader::new(text);
        let value = reader.skip()?;
        reader.end()?;
        if reader.mended {
            return Ok(Value::parse(text)?.to_raw());
        }
        Ok(RawJson(value.into()))
    }

    /// An object with members that were written here, with a comma before each; `None` where there is none.
    #[inline(never)]
    pub(crate) fn object_of(members: &str) -> Option<RawJson> {
        if members.is_empty() { None } else { Some(RawJson(["{", listed(members), "}"].concat().into())) }
    }

    /// `{}`
    pub fn empty_object() -> RawJson {
        RawJson("{}".into())
    }

    /// `null`
    pub fn null() -> RawJson {
        RawJson("null".into())
    }

    /// A JSON string with this text.
    pub fn string(text: &str) -> RawJson {
        let mut out = String::with_capacity(text.len() + 2);
        write_str(text, &mut out);
        RawJson(out.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are the very same object.
    pub fn is_same(&self, other: &RawJson) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// The value as a tree.
    pub fn to_value(&self) -> Value {
        Value::parse(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ToJson for RawJson {
    fn write_json(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

/// What can be written as JSON text.
pub trait ToJson {
    /// Appends the JSON text of `self`.
    fn write_json(&self, out: &mut String);

    /// The JSON text of `self`.
    fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// The JSON text of `self`, to be handed on unread.
    fn to_raw(&self) -> RawJson {
        RawJson(self.to_json().into())
    }
}

/// What can be read from a [`Value`]. The error says what is wrong, without a place.
pub trait FromJson: Sized {
    /// Reads `self` from a value.
    ///
    /// # Errors
    /// A message in lower case that names the field and says what was got.
    fn from_json(value: &Value) -> Result<Self, String>;
}

impl ToJson for str {
    fn write_json(&self, out: &mut String) {
        write_str(self, out);
    }
}

impl ToJson for String {
    fn write_json(&self, out: &mut String) {
        write_str(self, out);
    }
}

impl ToJson for bool {
    fn write_json(&self, out: &mut String) {
        out.push_str(truth(*self));
    }
}

impl ToJson for u64 {
    fn write_json(&self, out: &mut String) {
        write_u64(*self, out);
    }
}

impl ToJson for u32 {
    fn write_json(&self, out: &mut String) {
        write_u64(u64::from(*self), out);
    }
}

impl<T: ToJson + ?Sized> ToJson for Rc<T> {
    fn write_json(&self, out: &mut String) {
        (**self).write_json(out);
    }
}

impl ToJson for Map {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        for (key, value) in self.iter() {
            object.field(key, value);
        }
        object.end();
    }
}

impl<T: ToJson> ToJson for [T] {
    fn write_json(&self, out: &mut String) {
        write_list(self, out);
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn write_json(&self, out: &mut String) {
        write_list(self, out);
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn write_json(&self, out: &mut String) {
        match self {
            Some(value) => value.write_json(out),
            None => out.push_str("null"),
        }
    }
}

/// Writes one object, member by member.
pub struct ObjectWriter<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Opens the object.
    pub fn new(out: &'a mut String) -> Self {
        ObjectWriter { out, empty: true }
    }

    /// Writes the key; the caller appends exactly one value to what it gets.
    pub fn key(&mut self, key: &str) -> &mut String {
        self.out.push_str(if self.empty { "{\"" } else { ",\"" });
        self.empty = false;
        write_plain(key, self.out);
        self.out.push_str("\":");
        self.out
    }

    /// A member.
    pub fn field<T: ToJson + ?Sized>(&mut self, key: &str, value: &T) -> &mut Self {
        value.write_json(self.key(key));
        self
    }

    /// Members by a template, see [`fill`].
    #[inline(never)]
    pub(crate) fn fill(&mut self, template: &str, values: &[&str]) -> &mut Self {
        self.out.push_str(if self.empty { "{" } else { "," });
        self.empty = false;
        fill(template, values, self.out);
        self
    }

    /// A member that is left out when there is no value.
    pub fn optional<T: ToJson>(&mut self, key: &str, value: &Option<T>) -> &mut Self {
        if let Some(value) = value {
            self.field(key, value);
        }
        self
    }

    /// Closes the object.
    #[inline(never)]
    pub fn end(self) {
        self.out.push_str(if self.empty { "{}" } else { "}" });
    }
}

/// Appends JSON by a template: each `$` in it, which stands in quotes, becomes the next value as a
/// JSON string has it, each `#` the next value as it is.
#[inline(never)]
pub(crate) fn fill(template: &str, values: &[&str], out: &mut String) {
    let mut from = 0;
    for value in values {
        let mut at = from;
        let mark = loop {
            match template.as_bytes().get(at) {
                Some(b'$') => break true,
                Some(b'#') => break false,
                Some(_) => at += 1,
                None => return out.push_str(template.get(from..).unwrap_or_default()),
            }
        };
        out.push_str(template.get(from..at).unwrap_or_default());
        if mark {
            write_plain(value, out);
        } else {
            out.push_str(value);
        }
        from = at + 1;
    }
    out.push_str(template.get(from..).unwrap_or_default());
}

/// Items that were written with a comma before each, as they stand in a list.
pub(crate) fn listed(items: &str) -> &str {
    items.strip_prefix(',').unwrap_or(items)
}

/// `true` or `false`
pub(crate) fn truth(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

/// Appends a list.
pub fn write_list<T: ToJson>(items: &[T], out: &mut String) {
    let mut mark = "[";
    for item in items {
        out.push_str(mark);
        item.write_json(out);
        mark = ",";
    }
    out.push_str(if items.is_empty() { "[]" } else { "]" });
}

/// The number that a few hex digits are.
#[inline(never)]
pub(crate) fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, digit| Some(code * 16 + char::from(*digit).to_digit(16)?))
}

/// Appends a whole number.
pub fn write_u64(mut n: u64, out: &mut String) {
    let mut digits = [b'0'; 20];
    let mut from = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit += u8::try_from(n % 10).unwrap_or(0);
        from = at;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.push_str(digits.get(from..).and_then(|digits| str::from_utf8(digits).ok()).unwrap_or_default());
}

/// Appends a JSON string: quotes, backslashes and control characters escaped, everything else as it is.
pub fn write_str(text: &str, out: &mut String) {
    out.push_str("\"");
    write_plain(text, out);
    out.push_str("\"");
}

/// As [`write_str`], without the quotes.
#[inline(never)]
fn write_plain(text: &str, out: &mut String) {
    let mut rest = text;
    loop {
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

/// How many plain characters a text begins with: those before a quote, a backslash, a control character or the end of
/// the text. Eight bytes at a time; all of them are ASCII, so the place is a character boundary.
#[allow(clippy::inline_always, reason = "see `Reader::plain_end`")]
#[inline(always)]
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, tail) = bytes.as_chunks::<8>();
    let mut at = 0;
    for word in words {
        let w = u64::from_le_bytes(*word);
        let quote = w ^ (ONES * u64::from(b'"'));
        let slash = w ^ (ONES * u64::from(b'\\'));
        let hit = (w.wrapping_sub(ONES * 0x20) & !w)
            | (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash);
        if hit & HIGH != 0 {
            // A borrow makes false hits above a true one only: the lowest is true.
            return at + (hit & HIGH).trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    for byte in tail {
        if *byte < 0x20 || *byte == b'"' || *byte == b'\\' {
            break;
        }
        at += 1;
    }
    at
}

/// Reads JSON from left to right without building a tree. Every method leaves the reader behind what it read; after
/// an error the reader is of no use.
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    deepest: u32,
    /// A lone surrogate was met and replaced.
    pub mended: bool,
}

impl<'a> Reader<'a> {
    /// Reads from the start of the text.
    pub fn new(text: &'a str) -> Self {
        Reader { text, at: 0, depth: 0, deepest: MAX_DEPTH, mended: false }
    }

    /// The first byte of the next value (`{`, `[`, `"`, `t`, `f`, `n`, a digit or `-`); `None` at the end.
    #[allow(clippy::inline_always, reason = "what is left of it is a comparison")]
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        // A plain number comes back in a register, an option would not.
        match self.look() {
            0 => None,
            byte => Some(byte),
        }
    }

    /// As `peek`, 0 at the end.
    #[inline(never)]
    fn look(&mut self) -> u8 {
        self.ahead().unwrap_or(0)
    }

    // Inlined whatever the level of optimisation: most of a chunk is read by calls of this that find no blank.
    #[allow(clippy::inline_always, reason = "a tenth of the time of a chunk at opt-level z")]
    #[inline(always)]
    fn ahead(&mut self) -> Option<u8> {
        match self.byte() {
            Some(byte) if byte > b' ' => Some(byte),
            _ => self.peek_behind_blanks(),
        }
    }

    #[cold]
    fn peek_behind_blanks(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// How many bytes were read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The text that was read since a [`Reader::position`].
    pub fn since(&self, position: usize) -> &'a str {
        self.text.get(position..self.at).unwrap_or_default()
    }

    /// Nothing but blanks may be left.
    ///
    /// # Errors
    /// Where something is.
    pub fn end(&mut self) -> Result<(), JsonError> {
        self.peek_behind_blanks();
        match self.byte() {
            None => Ok(()),
            Some(_) => Err(self.error("more text after the JSON value")),
        }
    }

    /// Reads an object: `member` is called with each key and must read exactly one value.
    ///
    /// # Errors
    /// Where there is no object, it is broken, or `member` fails.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        let mut is_first = true;
        let mut spare = String::new();
        while let Some(key) = self.next_key(is_first, &mut spare)? {
            is_first = false;
            member(self, key)?;
        }
        Ok(())
    }

    /// Reads a list: `item` is called before each item with its index and must read exactly one value.
    ///
    /// # Errors
    /// Where there is no list, it is broken, or `item` fails.
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

    /// The key of the next member, its colon read too, and before the first one the bracket; `None` behind the last one.
    /// A key with an escape is put into `spare`.
    /// One function for all objects: the code of `object` stands in the wasm file once for each use.
    #[inline(never)]
    fn next_key<'k>(&mut self, is_first: bool, spare: &'k mut String) -> Result<Option<&'k str>, JsonError>
    where
        'a: 'k,
    {
        if is_first {
            self.open(b'{', "an object was expected")?;
        }
        match self.ahead() {
            Some(b'}') => return self.close().map(|()| None),
            Some(b',') if !is_first => self.at += 1,
            _ if is_first => {}
            _ => return Err(self.error("a comma or `}` was expected")),
        }
        let key = match self.plain_string() {
            Some(key) => key,
            None => {
                *spare = self.key()?;
                spare
            }
        };
        if self.ahead() != Some(b':') {
            return Err(self.error("a colon was expected"));
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Whether another item follows. Before the first one the bracket is read.
    #[inline(never)]
    fn next_item(&mut self, is_first: bool) -> Result<bool, JsonError> {
        if is_first {
            self.open(b'[', "a list was expected")?;
        }
        match self.ahead() {
            Some(b']') => return self.close().map(|()| false),
            Some(b',') if !is_first => self.at += 1,
            _ if is_first => {}
            _ => return Err(self.error("a comma or `]` was expected")),
        }
        Ok(true)
    }

    /// Reads a string. It is borrowed from the text unless it holds an escape; then it is appended to `spare` and
    /// `None` comes back.
    ///
    /// # Errors
    /// Where there is no string or it does not end.
    pub fn text_into(&mut self, spare: &mut String) -> Result<Option<&'a str>, JsonError> {
        if self.ahead() != Some(b'"') {
            return Err(self.error("a string was expected"));
        }
        self.at += 1;
        let mut is_whole = true;
        loop {
            let from = self.at;
            self.at = self.plain_end(from);
            let plain = self.since(from);
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    if is_whole {
                        return Ok(Some(plain));
                    }
                    spare.push_str(plain);
                    return Ok(None);
                }
                Some(b'\\') => {
                    is_whole = false;
                    spare.push_str(plain);
                    self.escape(spare)?;
                }
                Some(_) => return Err(self.error("a raw control character in a string")),
                None => return Err(self.error("the text ends inside a string")),
            }
        }
    }

    /// Reads a string into a new `String`.
    ///
    /// # Errors
    /// As [`Reader::text_into`].
    pub fn string(&mut self) -> Result<String, JsonError> {
        let mut spare = String::new();
        Ok(match self.text_into(&mut spare)? {
            Some(plain) => plain.to_owned(),
            None => spare,
        })
    }

    /// Reads a string; anything else is skipped and gives `None`.
    ///
    /// # Errors
    /// Where the value is broken.
    pub fn optional_string(&mut self) -> Result<Option<String>, JsonError> {
        if self.ahead() == Some(b'"') { self.string().map(Some) } else { self.skip().map(|_| None) }
    }

    /// Reads a whole number that is not negative; anything else is skipped and gives `None`.
    ///
    /// # Errors
    /// Where the value is broken.
    pub fn optional_u64(&mut self) -> Result<Option<u64>, JsonError> {
        self.skip().map(whole_number)
    }

    /// Skips one value and gives its text.
    ///
    /// # Errors
    /// Where the value is broken.
    pub fn skip(&mut self) -> Result<&'a str, JsonError> {
        self.ahead();
        let start = self.at;
        self.pass_over()?;
        Ok(self.since(start))
    }

    /// Skips one value.
    ///
    /// # Errors
    /// Where the value is broken.
    pub fn pass_over(&mut self) -> Result<(), JsonError> {
        match self.ahead() {
            Some(b'{') => self.object(|reader, _| reader.pass_over()),
            Some(b'[') => self.array(|reader, _| reader.pass_over()),
            Some(b'"') => self.skip_string(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.error("a JSON value was expected")),
            None => Err(self.error("the text ends where a JSON value was expected")),
        }
    }

    /// Reads one value as a tree.
    ///
    /// # Errors
    /// Where the value is broken.
    pub fn value(&mut self) -> Result<Value, JsonError> {
        match self.ahead() {
            Some(b'{') => {
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
            Some(b'[') => {
                let mut items = Vec::new();
                self.array(|reader, _| {
                    items.push(reader.value()?);
                    Ok(())
                })?;
                Ok(Value::Array(items))
            }
            Some(b'"') => self.string().map(Value::String),
            Some(b't') => self.word("true").map(|()| Value::Bool(true)),
            Some(b'f') => self.word("false").map(|()| Value::Bool(false)),
            Some(b'n') => self.word("null").map(|()| Value::Null),
            _ => self.skip().map(|raw| Value::Number(Number(raw.into()))),
        }
    }

    #[inline(never)]
    fn open(&mut self, bracket: u8, otherwise: &'static str) -> Result<(), JsonError> {
        if self.ahead() != Some(bracket) {
            return Err(self.error(otherwise));
        }
        self.at += 1;
        self.depth += 1;
        if self.depth > self.deepest {
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
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads a string without escapes; anything else is left where it is.
    fn plain_string(&mut self) -> Option<&'a str> {
        if self.ahead() != Some(b'"') {
            return None;
        }
        let start = self.at + 1;
        let end = self.plain_end(start);
        if self.byte_at(end) != Some(b'"') {
            return None;
        }
        self.at = end + 1;
        self.text.get(start..end)
    }

    /// Reads a key that is no plain string.
    #[cold]
    fn key(&mut self) -> Result<String, JsonError> {
        if self.ahead() == Some(b'"') {
            self.string()
        } else {
            Err(self.error("a key in quotes was expected"))
        }
    }

    fn byte_at(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
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
        if self.byte_at(end) == Some(b'"') {
            self.at = end + 1;
            return Ok(());
        }
        let mut spare = String::new();
        self.text_into(&mut spare).map(|_| ())
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        self.at += 1;
        let plain = match self.byte() {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'u') => return self.unicode_escape(out),
            Some(_) => return Err(self.error("an unknown escape in a string")),
            None => return Err(self.error("the text ends inside a string")),
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
        let follows = self.byte() == Some(b'\\') && self.byte_at(self.at + 1) == Some(b'u');
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

    /// The four hex digits after the `u` that the reader stands on.
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

    fn word(&mut self, word: &str) -> Result<(), JsonError> {
        let found = self.text.as_bytes().get(self.at..self.at + word.len());
        if found != Some(word.as_bytes()) {
            return Err(self.error("a JSON value was expected"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !self.byte().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.error("a digit was expected"));
        }
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    #[inline(never)]
    fn error(&self, message: &'static str) -> JsonError {
        JsonError(Box::new((message, self.at)))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => match (number.as_str().parse::<u64>(), number.as_str().parse::<i64>()) {
                (Ok(n), _) => serializer.serialize_u64(n),
                (_, Ok(n)) => serializer.serialize_i64(n),
                _ => serializer.serialize_f64(number.as_str().parse().unwrap_or(f64::NAN)),
            },
            Value::String(text) => serializer.serialize_str(text),
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Value::Object(map) => {
                let mut object = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map.iter() {
                    object.serialize_entry(key, value)?;
                }
                object.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(n.into())
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Number(Number(n.to_string().into())))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Value, E> {
        Ok(if n.is_finite() { Value::Number(Number(n.to_string().into())) } else { Value::Null })
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(Value::Object(members.into_iter().collect()))
    }
}

/// Gives a type `Serialize` and `Deserialize` in the one shape that [`ToJson`] and [`FromJson`] define.
macro_rules! serde_as_json {
    ($($name:ty),+ $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use crate::json::ToJson;
                crate::json::Value::parse(&self.to_json())
                    .map_err(serde::ser::Error::custom)?
                    .serialize(serializer)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = crate::json::Value::deserialize(deserializer)?;
                <$name as crate::json::FromJson>::from_json(&value).map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use serde_as_json;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        for text in [
            r#"{"a":1,"b":[true,false,null],"c":"x\ny\"\\"}"#,
            "[]",
            "{}",
            "-1.5e+10",
            "12345678901234567890123",
            r#""\u0001""#,
        ] {
            assert_eq!(Value::parse(text).unwrap().to_json(), text);
        }
    }

    #[test]
    fn a_template_gets_its_values_in_order() {
        let mut out = String::new();
        fill("{\"a\":\"$\",\"b\":[#]}", &["x\"$#", listed(",1,2"), "more"], &mut out);
        assert_eq!(out, "{\"a\":\"x\\\"$#\",\"b\":[1,2]}");
    }

    #[test]
    fn surrogates_are_joined_and_lone_ones_mended() {
        assert_eq!(Value::parse(r#""\ud83d\ude00""#).unwrap(), "😀".into());
        assert_eq!(Value::parse(r#""\ud83d!""#).unwrap(), "\u{fffd}!".into());
        assert_eq!(Value::parse(r#""\ud83d\u0041""#).unwrap(), "\u{fffd}A".into());
        assert_eq!(RawJson::parse(r#" {"a":"\ud83d"} "#).unwrap().as_str(), "{\"a\":\"\u{fffd}\"}");
    }

    #[test]
    fn broken_json_is_refused() {
        for text in ["", "{", "[1,]", "{\"a\"}", "01", "1.", "tru", "\"a", "\"\\x\"", "{} x", "\"\n\"", "+1"]
        {
            assert!(Value::parse(text).is_err(), "{text}");
            assert!(RawJson::parse(text).is_err(), "{text}");
        }
        assert!(Value::parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn of_equal_keys_the_last_wins() {
        assert_eq!(Value::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap().to_json(), r#"{"b":2,"a":3}"#);
    }

    #[test]
    fn plain_text_is_found_to_its_end_at_every_length() {
        for n in 0..40 {
            for mark in ["\"", "\\\"\"", "\u{e9}\"", "\\n\""] {
                let text = format!("\"{}{mark}", "é".repeat(n));
                assert!(Reader::new(&text).string().unwrap().starts_with(&"é".repeat(n)));
            }
        }
    }
}
