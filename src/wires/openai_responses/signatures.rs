//! What must be known of an item to send it back unchanged. It is kept as the signature of the block.

use crate::data::json::{Map, ToJson, Value, fill};

/// Separates the parts of one thinking.
pub(super) const PART_SEPARATOR: &str = "\n\n";

/// Returns the phase of a message; nothing if it has none.
pub(super) fn signature_of_message(value: &Value) -> String {
    let Some(phase) = value.text_at("phase") else {
        return String::new();
    };
    let mut text = String::new();
    fill("{\"phase\":\"$\"}", &[phase], &mut text);
    text
}

/// Returns a reasoning item without its texts, and the lengths of its parts.
pub(super) fn signature_of_reasoning(value: Value, source: &str, lengths: &[u64]) -> String {
    let mut signature = Map::new();
    if let Value::Object(item) = value {
        for (key, value) in item {
            if !value.is_null() && !matches!(key.as_str(), "type" | "summary" | "content" | "status") {
                signature.insert(key, value);
            }
        }
    }
    if source != "summary" {
        signature.insert("source", Value::from(source));
    }
    if lengths.len() > 1 {
        signature.insert("parts", Value::Array(lengths.iter().map(|length| Value::from(*length)).collect()));
    }
    Value::Object(signature).to_json()
}

/// Splits thinking into the parts that were joined, by their lengths.
pub(super) fn parts<'t>(thinking: &'t str, lengths: Option<&Value>) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let mut rest = thinking;
    for length in lengths.and_then(Value::as_array).unwrap_or_default() {
        let length = length.as_u64().and_then(|length| usize::try_from(length).ok());
        let Some((part, after)) = length.and_then(|length| rest.split_at_checked(length)) else {
            break;
        };
        parts.push(part);
        rest = after.strip_prefix(PART_SEPARATOR).unwrap_or(after);
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}
