//! A message in the form of a checkpoint.

use std::rc::Rc;

use super::{
    BASE64, FOREIGN_KIND, NAMES, default_stop_reason, from_stakai, is_plain_text, merge, object, spaced,
};
use crate::data::json::{Map, RawJson, ToJson, Value};
use crate::rules::checkpoint::OWN_STATE;
use crate::words::message::{AgentMessage, AssistantMessage, ContentBlock, CustomMessage};

pub(super) fn written(message: &AgentMessage) -> Value {
    let Ok(Value::Object(mut own)) = Value::parse_container(&message.to_json()) else { return Value::Null };
    own.remove("role");
    let blocks = match own.remove("content") {
        Some(Value::Array(blocks)) => blocks,
        _ => Vec::new(),
    };
    let (role, foreign) = match message {
        AgentMessage::User(message) => ("user", &message.foreign),
        AgentMessage::Assistant(message) => ("assistant", &message.foreign),
        AgentMessage::ToolResult(message) => ("tool", &message.foreign),
        AgentMessage::Custom(message) => match foreign_original(message) {
            Some(original) => return original,
            None => ("user", &None),
        },
    };
    let foreign = foreign.as_ref().map(RawJson::to_value).unwrap_or_default();
    let mut parts = match message {
        AgentMessage::ToolResult(_) => vec![result_part(blocks, &mut own, foreign.get("json").is_some())],
        _ => parts_of(blocks, message, &mut own),
    };
    overlay(&mut parts, &foreign);
    let is_text = foreign.get("text").and_then(Value::as_bool);
    let content = match parts.as_mut_slice() {
        // Readers leave out an empty text.
        _ if matches!(message, AgentMessage::Custom(_)) => Value::from(""),
        [part] if is_plain_text(part) && is_text.unwrap_or(role == "user") => {
            std::mem::take(part).take("text")
        }
        _ => Value::Array(parts),
    };
    let mut whole = object([("role", Value::from(role)), ("content", content)]);
    merge(&mut whole, foreign.get("message"));
    add_own(own, &mut whole);
    whole.into()
}

/// Returns the parts for the blocks of a question or an answer. What they cannot hold goes into `own`.
fn parts_of(blocks: Vec<Value>, message: &AgentMessage, own: &mut Map) -> Vec<Value> {
    let mut kept = Vec::new();
    let parts = blocks
        .into_iter()
        .enumerate()
        .filter_map(|(at, block)| part_of(at, block, &mut kept))
        .collect::<Vec<_>>();
    if let AgentMessage::Assistant(message) = message {
        mark_layouts(message, &mut kept);
        if own.get("stopReason").and_then(Value::as_str) == Some(default_stop_reason(&parts)) {
            own.remove("stopReason");
        }
    }
    if !kept.is_empty() {
        own.insert("blocks", Value::Array(kept));
    }
    parts
}

/// Adds what only this engine needs, except for what a reader assumes anyway.
fn add_own(own: Map, whole: &mut Map) {
    let own: Map = own.into_iter().filter(|(key, value)| !is_default(key, value)).collect();
    if own.is_empty() {
        return;
    }
    let mut options = match whole.remove("provider_options") {
        Some(Value::Object(options)) => options,
        _ => Map::new(),
    };
    options.insert(OWN_STATE, own.into());
    whole.insert("provider_options", options.into());
}

/// Returns the content of a custom message, if reading it back would give the same message.
fn foreign_original(custom: &Rc<CustomMessage>) -> Option<Value> {
    let original = (custom.kind == FOREIGN_KIND).then(|| custom.data.to_value())?;
    let again = from_stakai(std::slice::from_ref(&original)).ok()?;
    (again == [AgentMessage::Custom(custom.clone())]).then_some(original)
}

/// Whether a reader assumes this value if the key is absent.
fn is_default(key: &str, value: &Value) -> bool {
    match key {
        "timestamp" | "input" | "output" | "cacheRead" | "cacheWrite" | "total" => value.as_u64() == Some(0),
        "provider" | "model" => value.as_str() == Some(""),
        "isError" => value.as_bool() == Some(false),
        "usage" => value.as_object().is_some_and(|usage| usage.iter().all(|(key, n)| is_default(key, n))),
        _ => false,
    }
}

/// Returns the part for a block, if there is one. Whatever the part cannot hold is kept, with the index of
/// the block.
fn part_of(at: usize, block: Value, kept: &mut Vec<Value>) -> Option<Value> {
    let Value::Object(mut rest) = block else { return None };
    let place =
        rest.get("type").and_then(Value::as_str).and_then(|kind| NAMES.iter().find(|(k, _)| *k == kind));
    let part = match place {
        Some((kind, names)) => {
            let mut part = object([("type", Value::from(*kind))]);
            for (own_key, foreign_key) in *names {
                if let Some(value) = rest.remove(own_key) {
                    part.insert(*foreign_key, value);
                }
            }
            Some(part)
        }
        None => data_url(&rest).map(|url| {
            rest.remove("mimeType");
            rest.remove("data");
            object([("type", Value::from("image")), ("url", Value::from(url))])
        }),
    };
    if part.is_some() {
        rest.remove("type");
    }
    if !rest.is_empty() {
        rest.insert("at", Value::from(u64::try_from(at).unwrap_or(u64::MAX)));
        kept.push(rest.into());
    }
    part.map(Value::Object)
}

fn data_url(block: &Map) -> Option<String> {
    let [kind, mime, data] = ["type", "mimeType", "data"].map(|key| block.get(key).and_then(Value::as_str));
    let mime = mime.filter(|_| kind == Some("image"))?;
    Some(["data:", mime, BASE64, data?].concat())
}

/// Writes a single text as that text, and any other content as the list of its blocks.
fn result_part(mut blocks: Vec<Value>, own: &mut Map, is_json: bool) -> Value {
    let content = match blocks.as_mut_slice() {
        [only] if is_plain_text(only) => {
            let text = std::mem::take(only).take("text");
            text.as_str().filter(|_| is_json).and_then(|text| Value::parse(text).ok()).unwrap_or(text)
        }
        _ => {
            own.insert("parts", Value::Bool(true));
            Value::Array(blocks)
        }
    };
    let id = own.remove("callId").unwrap_or_default();
    object([("type", Value::from("tool_result")), ("tool_call_id", id), ("content", content)]).into()
}

/// Arguments must go back to the model exactly as it wrote them, including whitespace, or its cache would
/// miss.
fn mark_layouts(message: &AssistantMessage, kept: &mut Vec<Value>) {
    for (at, block) in message.content.iter().enumerate() {
        let ContentBlock::ToolCall(call) = block else { continue };
        let arguments = call.arguments.as_str();
        let compact = call.arguments.to_value().to_json();
        if compact == arguments {
            continue;
        }
        let is_spaced = spaced(&compact) == arguments;
        let layout = if is_spaced { Value::Bool(true) } else { Value::from(arguments) };
        kept.push(
            object([("at", Value::from(u64::try_from(at).unwrap_or(u64::MAX))), ("layout", layout)]).into(),
        );
    }
}

/// Adds back to the parts what another engine had in them.
fn overlay(parts: &mut [Value], foreign: &Value) {
    let foreign_parts = foreign.get("parts").and_then(Value::as_array).unwrap_or_default();
    for (part, foreign_part) in parts.iter_mut().zip(foreign_parts) {
        match part {
            Value::Object(part) if foreign_part.get("type").is_none() => merge(part, Some(foreign_part)),
            part => *part = foreign_part.clone(),
        }
    }
}
