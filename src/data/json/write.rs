//! Values as JSON text, appended to a string.

use std::rc::Rc;

use super::map::Map;
use super::numbers::write_u64;
use super::raw::RawJson;
use super::strings::{write_plain, write_str};
use super::template::fill;

/// A type that can be written as JSON text.
pub trait ToJson {
    /// Appends the JSON text of `self`.
    fn write_json(&self, out: &mut String);

    /// Returns the JSON text of `self`.
    fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    /// Returns the JSON text of `self`, to be passed on without being read.
    fn to_raw(&self) -> RawJson {
        RawJson(self.to_json().into())
    }
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
        out.push_str(bool_text(*self));
    }
}

impl ToJson for u64 {
    fn write_json(&self, out: &mut String) {
        write_u64(*self, out);
    }
}

impl ToJson for u16 {
    fn write_json(&self, out: &mut String) {
        write_u64(u64::from(*self), out);
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

/// Writes an object, member by member.
pub struct ObjectWriter<'a> {
    out: &'a mut String,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Opens the object.
    pub fn new(out: &'a mut String) -> Self {
        ObjectWriter { out, empty: true }
    }

    /// Writes a key. The caller must append exactly one value to the returned string.
    pub fn key(&mut self, key: &str) -> &mut String {
        self.out.push_str(if self.empty { "{\"" } else { ",\"" });
        self.empty = false;
        write_plain(key, self.out);
        self.out.push_str("\":");
        self.out
    }

    /// Writes members that are JSON already. The caller may go on in the returned string.
    pub(crate) fn raw(&mut self, members: &str) -> &mut String {
        self.out.push_str(if self.empty { "{" } else { "," });
        self.empty = false;
        self.out.push_str(members);
        self.out
    }

    /// Writes a member.
    pub fn field<T: ToJson + ?Sized>(&mut self, key: &str, value: &T) -> &mut Self {
        value.write_json(self.key(key));
        self
    }

    /// Writes members from a template. Each `$`, which stands in quotes, is replaced with the next value, escaped as in a
    /// JSON string; each `#` with the next value as it is.
    pub fn fill(&mut self, template: &str, values: &[&str]) -> &mut Self {
        self.out.push_str(if self.empty { "{" } else { "," });
        self.empty = false;
        fill(template, values, self.out);
        self
    }

    /// Writes a member, or nothing if there is no value.
    pub fn optional<T: ToJson>(&mut self, key: &str, value: &Option<T>) -> &mut Self {
        if let Some(value) = value {
            self.field(key, value);
        }
        self
    }

    /// Closes the object.
    pub fn end(self) {
        self.out.push_str(if self.empty { "{}" } else { "}" });
    }
}

/// `true` or `false`
pub(crate) fn bool_text(flag: bool) -> &'static str {
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
