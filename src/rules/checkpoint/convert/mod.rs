//! Converts messages to the form of a checkpoint, and back.
//!
//! Any reader of the format finds what it knows: roles, texts, images, calls and results. What has no place
//! in the format goes into `provider_options.turnwheel` of the same message. Nothing is written twice, and
//! reading restores exactly the same message. Messages of another engine are read as far as they have a
//! meaning here; the rest is kept in the message's `foreign` and written back.

mod read;
mod write;

use crate::data::id_map::IdMap;
use crate::data::json::{Map, Value};
use crate::data::text;
use crate::words::message::AgentMessage;
use read::read;
use write::written;

/// The kind of a custom message that holds a message of another engine with no meaning here, such as a
/// system prompt. It is kept, never shown to the model, and written back unchanged.
pub const FOREIGN_KIND: &str = "stakai_message";

/// Converts messages to the form of the checkpoint.
pub fn to_stakai(messages: &[AgentMessage]) -> Vec<Value> {
    messages.iter().map(written).collect()
}

/// Converts the messages of a checkpoint. A single message of another engine may hold the results of
/// several calls; here each result is a message of its own.
///
/// # Errors
/// If a message is invalid, or if what the engine itself added to it is damaged. The text names the
/// message.
pub fn from_stakai(messages: &[Value]) -> Result<Vec<AgentMessage>, String> {
    let mut history = Vec::with_capacity(messages.len());
    let mut tools = IdMap::default();
    for (at, value) in messages.iter().enumerate() {
        read(value, &mut tools, &mut history)
            .map_err(|reason| ["message ", &text::number(at), ": ", &reason].concat())?;
    }
    Ok(history)
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Map {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn kind_of(part: &Value) -> Option<&str> {
    part.get("type").and_then(Value::as_str)
}

fn merge(into: &mut Map, from: Option<&Value>) {
    for (key, value) in from.and_then(Value::as_object).map(Map::iter).into_iter().flatten() {
        into.insert(key, value.clone());
    }
}

fn default_stop_reason(parts: &[Value]) -> &'static str {
    if parts.iter().any(|part| kind_of(part) == Some("tool_call")) { "tool_use" } else { "stop" }
}

fn is_plain_text(part: &Value) -> bool {
    kind_of(part) == Some("text") && part.as_object().is_some_and(|part| part.len() == 2)
}

/// Kinds of block that are parts under another name, with the name of each member here and there.
const NAMES: [(&str, &[(&str, &str)]); 2] = [
    ("text", &[("text", "text")]),
    (
        "tool_call",
        &[("callId", "id"), ("toolName", "name"), ("arguments", "arguments"), ("metadata", "metadata")],
    ),
];

const BASE64: &str = ";base64,";

/// Adds a space after every comma and colon, as Python writes JSON.
fn spaced(compact: &str) -> String {
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

/// The tool of each call, because the results of another engine do not name it.
type ToolNames = IdMap<String, String>;

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
