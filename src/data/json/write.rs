//! Values as JSON text, appended to a string.

use std::rc::Rc;

use crate::data::text::{ONES, Put, first_of};

use super::value::{Map, RawJson};
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

    /// Writes a member.
    pub fn field<T: ToJson + ?Sized>(&mut self, key: &str, value: &T) -> &mut Self {
        value.write_json(self.key(key));
        self
    }

    /// Writes members from a template. Each `$`, which stands in quotes, is replaced with the next value, escaped as in a
    /// JSON string; each `#` with the next value as it is.
    #[inline(never)]
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
    #[inline(never)]
    pub fn end(self) {
        self.out.push_str(if self.empty { "{}" } else { "}" });
    }
}

/// Appends JSON from a template. Each `$`, which stands in quotes, is replaced with the next value, escaped
/// as in a JSON string; each `#` with the next value as it is.
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

/// Items of a list, each written with a comma before it.
pub(crate) fn without_comma(items: &str) -> &str {
    items.strip_prefix(",").unwrap_or(items)
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

/// Returns the number that a few hex digits represent.
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

/// Appends a JSON string. Quotes, backslashes and control characters are escaped, everything else is
/// written as it is.
pub fn write_str(text: &str, out: &mut String) {
    out.push_str("\"");
    write_plain(text, out);
    out.push_str("\"");
}

/// Like [`write_str`], without the quotes.
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

/// Returns the number of plain characters at the start of a text: those before a quote, a backslash, a
/// control character or the end of the text. Looks at eight bytes at a time; all of the stopping bytes are
/// ASCII, so the position is a character boundary.
#[allow(clippy::inline_always, reason = "see `Reader::plain_end`")]
#[inline(always)]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    first_of(bytes, |w| {
        let quote = w ^ (ONES * u64::from(b'"'));
        let slash = w ^ (ONES * u64::from(b'\\'));
        (w.wrapping_sub(ONES * 0x20) & !w)
            | (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
    })
}
