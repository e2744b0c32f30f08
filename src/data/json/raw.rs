//! The text of a value that is passed on without being inspected.

use std::fmt;
use std::rc::Rc;

use super::JsonError;
use super::read::Reader;
use super::strings::write_str;
use super::template::without_comma;
use super::value::Value;
use super::write::ToJson;

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

    /// What kind of value it is; see [`Value::kind`].
    pub fn kind(&self) -> &'static str {
        match self.0.as_bytes().first() {
            Some(b'n') | None => "null",
            Some(b't' | b'f') => "a boolean",
            Some(b'"') => "a string",
            Some(b'[') => "a list",
            Some(b'{') => "an object",
            Some(_) => "a number",
        }
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
