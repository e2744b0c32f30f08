//! Converts messages to the form of a checkpoint, and back.
//!
//! Any reader of the format finds what it knows: roles, texts, images, calls and results. What has no place
//! in the format goes into `provider_options.turnwheel` of the same message. Nothing is written twice, and
//! reading restores exactly the same message. Messages of another engine are read as far as they have a
//! meaning here; the rest is kept in the message's `foreign` and written back.

mod from_stakai;
mod to_stakai;

pub use from_stakai::from_stakai;
pub use to_stakai::to_stakai;

use crate::data::json::{Map, Value};

/// The kind of a custom message that holds a message of another engine with no meaning here, such as a
/// system prompt. It is kept, never shown to the model, and written back unchanged.
pub const FOREIGN_KIND: &str = "stakai_message";

/// Kinds of block that are parts under another name, with the name of each member here and there.
pub(super) const NAMES: [(&str, &[(&str, &str)]); 2] = [
    ("text", &[("text", "text")]),
    (
        "tool_call",
        &[("callId", "id"), ("toolName", "name"), ("arguments", "arguments"), ("metadata", "metadata")],
    ),
];

pub(super) const BASE64: &str = ";base64,";

pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Map {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

pub(super) fn kind_of(part: &Value) -> Option<&str> {
    part.get("type").and_then(Value::as_str)
}

pub(super) fn merge(into: &mut Map, from: Option<&Value>) {
    for (key, value) in from.and_then(Value::as_object).map(Map::iter).into_iter().flatten() {
        into.insert(key, value.clone());
    }
}

pub(super) fn default_stop_reason(parts: &[Value]) -> &'static str {
    if parts.iter().any(|part| kind_of(part) == Some("tool_call")) { "tool_use" } else { "stop" }
}

pub(super) fn is_plain_text(part: &Value) -> bool {
    kind_of(part) == Some("text") && part.as_object().is_some_and(|part| part.len() == 2)
}

/// Adds a space after every comma and colon, as Python writes JSON.
pub(super) fn spaced(compact: &str) -> String {
    let mut spaced = String::with_capacity(compact.len() + compact.len() / 8);
    let (mut in_text, mut is_escaped) = (false, false);
    for c in compact.chars() {
        spaced.push(c);
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => in_text = !in_text,
            ',' | ':' if !in_text => spaced.push(' '),
            _ => {}
        }
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_stand_where_python_writes_them() {
        let compact = r#"{"a,b:":"c\",:","d":[1,{"e":"\\"},2]}"#;
        let python = r#"{"a,b:": "c\",:", "d": [1, {"e": "\\"}, 2]}"#;
        assert_eq!(spaced(compact), python);
    }
}
