use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::json::{Map, ToJson, Value};

use super::{Player, gives_wanted, list_of, object, same, text_of};

pub(super) const PLAYER: Player =
    Player { set: "checkpoint", play, meets, meets_recommendation: gives_wanted };

fn play(input: &Value) -> Result<Value, String> {
    if text_of(input, "op")? == "serialize" {
        let run_id = input.get("run_id").and_then(Value::as_str);
        let metadata = input.get("metadata").cloned().unwrap_or_default();
        let envelope = CheckpointEnvelopeV1::new(run_id, list_of(input, "messages")?.to_vec(), metadata);
        return Ok(object([("json", written(&envelope)?)]));
    }
    let bytes = match input.get("payload_hex").and_then(Value::as_str) {
        Some(hex) => from_hex(hex)?,
        None => text_of(input, "payload")?.as_bytes().to_vec(),
    };
    Ok(match CheckpointEnvelopeV1::decode(&bytes) {
        Ok(envelope) => object([("ok", as_read_by_others(written(&envelope)?))]),
        Err(error) => {
            let message = Value::String(error.to_string());
            object([("err", object([("kind", error.kind().into()), ("message", message)]))])
        }
    })
}

/// An error message is compared only if it is marked as exact.
fn meets(expected: &Value, actual: &Value) -> bool {
    let (Some(expected), Some(actual)) = (expected.get("err"), actual.get("err")) else {
        return same(expected, actual);
    };
    let message = expected.get("message");
    expected.get("kind") == actual.get("kind") && (message.is_none() || message == actual.get("message"))
}

fn written(envelope: &CheckpointEnvelopeV1) -> Result<Value, String> {
    Value::parse(&envelope.to_json()).map_err(|error| error.to_string())
}

fn from_hex(hex: &str) -> Result<Vec<u8>, String> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|error| error.to_string())).collect()
}

/// Returns an envelope as a reader sees it that drops unknown fields; this crate keeps them.
fn as_read_by_others(envelope: Value) -> Value {
    let mut envelope = only(envelope, &["version", "format", "run_id", "messages", "metadata"]);
    if let Value::Object(fields) = &mut envelope
        && let Some(Value::Array(messages)) = fields.remove("messages")
    {
        fields.insert("messages", Value::Array(messages.into_iter().map(known_message).collect()));
    }
    envelope
}

fn known_message(message: Value) -> Value {
    let message = only(message, &["role", "content", "name", "provider_options"]);
    let Value::Object(mut fields) = without_nulls(message, &["name", "provider_options"]) else {
        return Value::Null;
    };
    if let Some(Value::Array(parts)) = fields.get("content").cloned() {
        fields.insert("content", Value::Array(parts.into_iter().map(known_part).collect()));
    }
    fields.into()
}

fn known_part(part: Value) -> Value {
    let known: &[&str] = match part.get("type").and_then(Value::as_str) {
        Some("text") => &["type", "text", "provider_options"],
        Some("image") => &["type", "url", "detail", "provider_options"],
        Some("tool_call") => &["type", "id", "name", "arguments", "metadata", "provider_options"],
        _ => &["type", "tool_call_id", "content", "provider_options"],
    };
    without_nulls(only(part, known), &["detail", "metadata", "provider_options"])
}

fn only(value: Value, keys: &[&str]) -> Value {
    let Value::Object(fields) = value else { return value };
    fields.into_iter().filter(|(key, _)| keys.contains(&key.as_str())).collect::<Map>().into()
}

fn without_nulls(value: Value, keys: &[&str]) -> Value {
    let Value::Object(fields) = value else { return value };
    let is_kept = |key: &str, value: &Value| !(keys.contains(&key) && value.is_null());
    fields.into_iter().filter(|(key, value)| is_kept(key, value)).collect::<Map>().into()
}
