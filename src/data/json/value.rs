//! A JSON tree.

use crate::data::text;

use super::JsonError;
use super::map::Map;
use super::numbers::{Number, parts};
use super::read::Reader;
use super::strings::write_str;
use super::write::{ObjectWriter, ToJson, bool_text, write_list};

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

    /// Like [`Value::parse`], for JSON that a stranger wrote: it may hold 65,536 values.
    ///
    /// # Errors
    /// As for [`Value::parse`], and if it holds more values.
    pub(crate) fn parse_bounded(text: &str) -> Result<Value, JsonError> {
        let mut reader = Reader::bounded(text);
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
    pub fn text_at(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Like [`Value::text_at`], but copied.
    pub fn owned_at(&self, key: &str) -> Option<String> {
        self.text_at(key).map(str::to_owned)
    }

    /// Returns the number at a key of an object, rounded down to a whole number: milliseconds may have a
    /// fraction.
    pub fn number_at(&self, key: &str) -> Option<u64> {
        let Value::Number(Number(text)) = self.get(key)? else { return None };
        let (whole, fraction) = parts(text);
        text::parse_u64(whole).filter(|_| fraction.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Returns the boolean at a key of an object.
    pub fn flag_at(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    /// Returns the items of the list at a key of an object; none if there is no list.
    pub fn list_at(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).unwrap_or_default()
    }

    /// Returns the members of the object at a key of an object; none if there is no object.
    pub fn members_at(&self, key: &str) -> &[(String, Value)] {
        match self.get(key) {
            Some(Value::Object(map)) => &map.0,
            _ => &[],
        }
    }

    /// Returns a member of an object, mutably.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let Value::Object(map) = self else { return None };
        map.get_mut(key)
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

/// A type that can be read from a [`Value`]. The error says what is wrong, without a position.
pub trait FromJson: Sized {
    /// Reads `self` from a value.
    ///
    /// # Errors
    /// A message in lower case that names the field and says what was found.
    fn from_json(value: &Value) -> Result<Self, String>;
}
