//! A JSON tree, and the text of a value that is passed on without being inspected.

use std::fmt;
use std::rc::Rc;

use crate::data::id_map::Index;
use crate::data::text;

use super::JsonError;
use super::read::Reader;
use super::write::{ObjectWriter, ToJson, bool_text, without_comma, write_list, write_str};
/// A JSON value. Numbers keep their text, and objects keep their order; of equal keys the last one wins.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as it was written.
    Number(Number),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// An object, with its keys in their order.
    Object(Map),
}

/// A JSON number, kept as text so that nothing is rounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(pub(super) Box<str>);

impl Number {
    /// Returns the number as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number if it is a non-negative whole number (`12`, `12.0`).
    pub fn as_u64(&self) -> Option<u64> {
        whole_number(&self.0)
    }
}

/// Parses a non-negative whole number (`12`, `12.0`).
pub(super) fn whole_number(text: &str) -> Option<u64> {
    text::parse_u64(text).or_else(|| {
        let (whole, fraction) = text::split_once(text, ".")?;
        text::parse_u64(whole).filter(|_| fraction.bytes().all(|byte| byte == b'0'))
    })
}

/// Returns what is before the decimal point, and what is after it.
fn parts(text: &str) -> (&str, &str) {
    text::split_once(text, ".").unwrap_or((text, "0"))
}

impl From<u64> for Number {
    fn from(n: u64) -> Self {
        Number(text::number(n).into())
    }
}

/// The members of an object, in order.
#[derive(Clone, Debug, Default)]
pub struct Map(pub(super) Vec<(String, Value)>);

impl PartialEq for Map {
    /// Order does not matter, as in JSON.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|(k, v)| other.get(k) == Some(v))
    }
}

impl Map {
    /// Creates an object without members.
    pub fn new() -> Self {
        Map(Vec::new())
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Sets a key. An existing key keeps its place.
    pub fn insert(&mut self, key: impl Into<String>, value: Value) {
        let key = key.into();
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some(entry) => entry.1 = value,
            None => self.0.push((key, value)),
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().rposition(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Removes all but the last of equal keys, in less than quadratic time.
    pub(super) fn deduplicate(&mut self) {
        if self.0.len() < 2 {
            return;
        }
        let mut seen = Index::default();
        let mut kept = Vec::with_capacity(self.0.len());
        while let Some((key, value)) = self.0.pop() {
            if seen.find(&key, |at| kept.get(at).is_some_and(|(other, _)| *other == key)).is_none() {
                seen.add(&key, kept.len());
                kept.push((key, value));
            }
        }
        kept.reverse();
        self.0 = kept;
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
    /// Parses a single value. Only whitespace may follow it.
    ///
    /// # Errors
    /// If the text is not valid JSON, if something follows it, or if it is nested deeper than 128.
    pub fn parse(text: &str) -> Result<Value, JsonError> {
        let mut reader = Reader::new(text);
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// Like [`Value::parse`], for JSON that contains values of others: it may be nested deeper than any of
    /// them.
    ///
    /// # Errors
    /// As for [`Value::parse`], with 192 instead of 128.
    pub fn parse_container(text: &str) -> Result<Value, JsonError> {
        let mut reader = Reader::of_container(text);
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// Returns a member of an object; `None` for anything else.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Returns the string at a key of an object.
    #[inline(never)]
    pub fn text_at(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Like [`Value::text_at`], but copied.
    #[inline(never)]
    pub fn owned_at(&self, key: &str) -> Option<String> {
        self.text_at(key).map(str::to_owned)
    }

    /// Returns the number at a key of an object, rounded down to a whole number: milliseconds may have a
    /// fraction.
    #[inline(never)]
    pub fn number_at(&self, key: &str) -> Option<u64> {
        let Value::Number(Number(text)) = self.get(key)? else { return None };
        let (whole, fraction) = parts(text);
        text::parse_u64(whole).filter(|_| fraction.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Returns the boolean at a key of an object.
    #[inline(never)]
    pub fn flag_at(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    /// Returns the items of the list at a key of an object; none if there is no list.
    #[inline(never)]
    pub fn list_at(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).unwrap_or_default()
    }

    /// Returns the members of the object at a key of an object; none if there is no object.
    #[inline(never)]
    pub fn members_at(&self, key: &str) -> &[(String, Value)] {
        match self.get(key) {
            Some(Value::Object(map)) => &map.0,
            _ => &[],
        }
    }

    /// Returns a member of an object, mutably.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let Value::Object(map) = self else { return None };
        map.0.iter_mut().rev().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// Removes a member from an object and returns it; null if there is none.
    pub fn take(&mut self, key: &str) -> Value {
        let Value::Object(map) = self else { return Value::Null };
        map.remove(key).unwrap_or_default()
    }

    /// Returns the value at a path of keys.
    pub fn path(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// Returns a non-negative whole number.
    pub fn as_u64(&self) -> Option<u64> {
        if let Value::Number(number) = self { number.as_u64() } else { None }
    }

    /// Returns a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(flag) = self { Some(*flag) } else { None }
    }

    /// Returns the members of an object.
    pub fn as_object(&self) -> Option<&Map> {
        if let Value::Object(map) = self { Some(map) } else { None }
    }

    /// Returns the items of a list.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(items) = self { Some(items) } else { None }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Returns `null`, `a boolean`, `a number`, `a string`, `a list` or `an object`, for error messages.
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
            Value::Bool(flag) => out.push_str(bool_text(*flag)),
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

/// The text of one JSON value, known to be valid, which the engine passes on without inspecting it. Cloning
/// copies a pointer. Two are equal if their texts are equal.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(pub(super) Rc<str>);

impl RawJson {
    /// Validates a text and keeps it. Whitespace around the value is removed; a lone surrogate is replaced
    /// with U+FFFD.
    ///
    /// # Errors
    /// If the text is not exactly one JSON value.
    pub fn parse(text: &str) -> Result<RawJson, JsonError> {
        let mut reader = Reader::new(text);
        let value = reader.skip()?;
        reader.end()?;
        if reader.mended {
            return Ok(Value::parse(text)?.to_raw());
        }
        Ok(RawJson(value.into()))
    }

    /// Creates an object from members that are each written with a comma before them; `None` if there are
    /// none.
    #[inline(never)]
    pub(crate) fn object_of(members: &str) -> Option<RawJson> {
        if members.is_empty() {
            None
        } else {
            Some(RawJson(["{", without_comma(members), "}"].concat().into()))
        }
    }

    /// `{}`
    pub fn empty_object() -> RawJson {
        RawJson("{}".into())
    }

    /// `null`
    pub fn null() -> RawJson {
        RawJson("null".into())
    }

    /// Creates a JSON string with this text.
    pub fn string(text: &str) -> RawJson {
        let mut out = String::with_capacity(text.len() + 2);
        write_str(text, &mut out);
        RawJson(out.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are the same object (not merely equal).
    pub fn is_same(&self, other: &RawJson) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with("{")
    }

    /// Parses the value into a tree.
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

/// A type that can be read from a [`Value`]. The error says what is wrong, without a position.
pub trait FromJson: Sized {
    /// Reads `self` from a value.
    ///
    /// # Errors
    /// A message in lower case that names the field and says what was found.
    fn from_json(value: &Value) -> Result<Self, String>;
}
