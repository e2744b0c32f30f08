//! What a checkpoint must have to be understood by every reader of the format.

use crate::data::json::Value;
use crate::data::text;

/// Returns the messages unchanged, if each of them can be understood.
pub(super) fn checked_messages(messages: Option<Value>) -> Result<Vec<Value>, String> {
    let Some(Value::Array(messages)) = messages else {
        return Err("`messages` must be a list".to_owned());
    };
    for (at, message) in messages.iter().enumerate() {
        check_message(message).map_err(|reason| ["message ", &at.to_string(), ": ", &reason].concat())?;
    }
    Ok(messages)
}

pub(super) fn check_message(message: &Value) -> Result<(), String> {
    match message.text_at("role") {
        Some("system" | "user" | "assistant" | "tool") => {}
        Some(other) => return Err(["unknown role `", other, "`"].concat()),
        None => return Err("it has no `role`".to_owned()),
    }
    if !matches!(message.get("name"), None | Some(Value::Null | Value::String(_))) {
        return Err("`name` must be a text".to_owned());
    }
    match message.get("content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => parts.iter().try_for_each(check_part),
        _ => Err("`content` must be a text or a list".to_owned()),
    }
}

fn check_part(part: &Value) -> Result<(), String> {
    let (texts, any): (&[&str], &[&str]) = match part.text_at("type") {
        Some("text") => (&["text"], &[]),
        Some("image") => (&["url"], &[]),
        Some("tool_call") => (&["id", "name"], &["arguments"]),
        Some("tool_result") => (&["tool_call_id"], &["content"]),
        Some(other) => return Err(["unknown part `", other, "`"].concat()),
        None => return Err("a part has no `type`".to_owned()),
    };
    if !matches!(part.get("detail"), None | Some(Value::Null))
        && !matches!(part.text_at("detail"), Some("low" | "high" | "auto"))
        && part.text_at("type") == Some("image")
    {
        return Err("`detail` of an image must be `low`, `high` or `auto`".to_owned());
    }
    let missing = texts.iter().find(|key| part.text_at(key).is_none());
    match missing.or_else(|| any.iter().find(|key| part.get(key).is_none())) {
        Some(key) => Err(["a part has no `", key, "`"].concat()),
        None => Ok(()),
    }
}

/// Returns a UUID in its usual form, from any of its forms.
pub(super) fn uuid(text: &str) -> Option<String> {
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let text = text.strip_prefix("{").and_then(|text| text.strip_suffix("}")).unwrap_or(text);
    let groups: Vec<&str> = text::split(text, "-").collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let has_form = matches!(lengths.as_slice(), [32] | [8, 4, 4, 4, 12]);
    if !has_form || !groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return None;
    }
    let mut id = String::with_capacity(36);
    for (at, digit) in groups.concat().to_ascii_lowercase().char_indices() {
        if matches!(at, 8 | 12 | 16 | 20) {
            id.push('-');
        }
        id.push(digit);
    }
    Some(id)
}
