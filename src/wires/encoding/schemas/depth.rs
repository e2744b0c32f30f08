//! How deep a schema is, and what becomes of the parts that a provider finds too deep.

use crate::data::json::{Map, ToJson, Value};

/// How many objects and lists inside each other Gemini takes in a schema. Its documentation names no number; this is the one
/// of public reports (Portkey-AI/gateway#1616, 2026-04-20; google-gemini/gemini-cli#5923, 2025-08-10).
pub(super) const MAX_LEVELS: usize = 4;

/// Whether there are more objects and lists inside each other.
pub(super) fn is_deeper(schema: &Value, levels: usize) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let inside = if is_level(map) { levels.checked_sub(1) } else { Some(levels) };
    let Some(inside) = inside else { return true };
    map.iter().any(|(key, value)| match value {
        Value::Object(members) if is_map_of_schemas(key) => {
            members.iter().any(|(_, member)| is_deeper(member, inside))
        }
        Value::Array(options) => options.iter().any(|option| is_deeper(option, inside)),
        Value::Object(_) => is_deeper(value, inside),
        _ => false,
    })
}

fn is_level(schema: &Map) -> bool {
    ["properties", "items", "additionalProperties"]
        .iter()
        .any(|key| schema.get(key).and_then(Value::as_object).is_some_and(|inside| !inside.is_empty()))
}

fn is_map_of_schemas(key: &str) -> bool {
    matches!(key, "properties" | "$defs" | "definitions")
}

/// Returns a schema with what is too deep as a text in the description of what contains it.
pub(super) fn shallow(schema: &Value, levels: usize) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let inside = if is_level(map) { levels.checked_sub(1) } else { Some(levels) };
    let mut taken = Map::new();
    let Some(inside) = inside else {
        if let Some(kind) = map.get("type") {
            taken.insert("type", kind.clone());
        }
        if schema.text_at("type") == Some("array") {
            taken.insert("items", Value::Object(Map::new()));
        }
        let text = ["It fits this JSON Schema: ", &schema.to_json()].concat();
        taken.insert("description", Value::String(text));
        return Value::Object(taken);
    };
    for (key, value) in map.iter() {
        let value = match value {
            Value::Object(members) if is_map_of_schemas(key) => {
                let mut all = Map::new();
                for (name, member) in members.iter() {
                    all.insert(name, shallow(member, inside));
                }
                Value::Object(all)
            }
            Value::Array(options) => {
                Value::Array(options.iter().map(|option| shallow(option, inside)).collect())
            }
            value => shallow(value, inside),
        };
        taken.insert(key, value);
    }
    Value::Object(taken)
}
