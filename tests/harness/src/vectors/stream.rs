use std::collections::{BTreeMap, BTreeSet};

use turnwheel::json::{Map, RawJson, ToJson, Value};
use turnwheel::message::ContentBlock;
use turnwheel::stream_parts::{IndexedPart, PartPiece, StreamAssemblyError, assemble_parts};

use super::{Case, Player, list_of, object, same, text_of};

pub(super) const PLAYER: Player = Player { set: "stream", play, meets, meets_recommendation };

fn play(input: &Value) -> Result<Value, String> {
    let pieces: Result<Vec<IndexedPart>, String> = list_of(input, "events")?.iter().map(piece).collect();
    Ok(match assemble_parts(pieces?) {
        Ok(parts) => object([("ok", Value::Array(parts.iter().map(part).collect()))]),
        Err(error) => object([("err", shown(&error))]),
    })
}

fn piece(event: &Value) -> Result<IndexedPart, String> {
    let text = |key: &str| text_of(event, key).map(str::to_owned);
    let piece = match text_of(event, "type")? {
        "text_delta" => PartPiece::Text(text("delta")?),
        "thinking_delta" => PartPiece::Thinking(text("delta")?),
        "tool_call_start" => PartPiece::CallStart { id: text("id")?, name: text("name")? },
        "tool_call_arguments_delta" => PartPiece::CallArguments { id: text("id")?, delta: text("delta")? },
        "tool_call_end" => PartPiece::CallEnd {
            id: text("id")?,
            name: text("name")?,
            arguments: event.get("arguments").map_or_else(RawJson::null, ToJson::to_raw),
            metadata: event.get("metadata").filter(|metadata| !metadata.is_null()).map(ToJson::to_raw),
        },
        other => return Err(format!("unknown event `{other}`")),
    };
    let index = event.get("index").and_then(Value::as_u64).ok_or("no `index`")?;
    Ok(IndexedPart { index, piece })
}

fn part(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text(block) => object([("type", "text".into()), ("text", block.text.clone().into())]),
        ContentBlock::Thinking(block) => {
            object([("type", "thinking".into()), ("text", block.thinking.clone().into())])
        }
        ContentBlock::ToolCall(call) => {
            let mut part = Map::new();
            part.insert("type", "tool_call".into());
            part.insert("id", call.call_id.clone().into());
            part.insert("name", call.tool_name.clone().into());
            part.insert("arguments", call.arguments.to_value());
            if let Some(metadata) = &call.metadata {
                part.insert("metadata", metadata.to_value());
            }
            part.into()
        }
        other => Value::String(other.to_json()),
    }
}

fn shown(error: &StreamAssemblyError) -> Value {
    let message = ("message", Value::String(error.to_string()));
    match error {
        StreamAssemblyError::ContentTypeMismatch(index) => {
            object([("kind", "content_type_mismatch".into()), ("index", (*index).into()), message])
        }
        StreamAssemblyError::ToolCallIdMismatch(index) => {
            object([("kind", "tool_call_id_mismatch".into()), ("index", (*index).into()), message])
        }
        StreamAssemblyError::InvalidToolCallArguments { call_id, .. } => object([
            ("kind", "invalid_tool_call_arguments".into()),
            ("tool_call_id", call_id.clone().into()),
            message,
        ]),
    }
}

/// An error message is compared only if it is marked as exact.
fn meets(expected: &Value, actual: &Value) -> bool {
    let (Some(expected), Some(Value::Object(actual))) = (expected.get("err"), actual.get("err")) else {
        return same(expected, actual);
    };
    let mut actual = actual.clone();
    if expected.get("message").is_none() {
        actual.remove("message");
    }
    same(expected, &actual.into())
}

fn meets_recommendation(case: &Case<'_>, actual: &Value) -> bool {
    match case.wanted.and_then(|wanted| wanted.get("proposed_ids_distinct")) {
        Some(_) => actual.get("ok").and_then(Value::as_array).is_some_and(has_distinct_ids),
        None => case.recommended.is_some() && treats_empty_ids_as_the_same_call(case.input, actual),
    }
}

fn has_distinct_ids(parts: &[Value]) -> bool {
    let mut seen = BTreeSet::new();
    parts.iter().filter_map(|part| part.get("id").and_then(Value::as_str)).all(|id| seen.insert(id))
}

/// Whether the output is the same as when every empty id is replaced by that of the call at its index.
fn treats_empty_ids_as_the_same_call(input: &Value, actual: &Value) -> bool {
    let Ok(events) = list_of(input, "events") else { return false };
    let index_of = |event: &Value| event.get("index").and_then(Value::as_u64);
    let id_of = |event: &Value| event.get("id").and_then(Value::as_str).map(str::to_owned);
    let mut ids = BTreeMap::new();
    for event in events {
        if let Some(id) = id_of(event).filter(|id| !id.is_empty()) {
            ids.entry(index_of(event)).or_insert(id);
        }
    }
    let mut replaced = 0;
    let filled = events.iter().map(|event| match (event, ids.get(&index_of(event))) {
        (Value::Object(fields), Some(id)) if id_of(event).as_deref() == Some("") => {
            let mut fields = fields.clone();
            fields.insert("id", id.as_str().into());
            replaced += 1;
            fields.into()
        }
        _ => event.clone(),
    });
    let filled = Value::Array(filled.collect());
    replaced > 0 && play(&object([("events", filled)])).is_ok_and(|wanted| wanted == *actual)
}
