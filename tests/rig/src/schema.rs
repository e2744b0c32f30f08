//! The part of JSON Schema that scenarios use.

use serde_json::Value;

/// The keywords that [`violations`] checks or may ignore.
const KEYWORDS: [&str; 36] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "format",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "$id",
    "$comment",
    "$anchor",
    "title",
    "description",
    "default",
    "$schema",
];

/// Returns a keyword that is not supported, if there is one.
pub fn unknown_keyword(schema: &Value) -> Option<&str> {
    let object = schema.as_object()?;
    if let Some(keyword) = object.keys().find(|key| !KEYWORDS.contains(&key.as_str())) {
        return Some(keyword);
    }
    let properties = schema["properties"].as_object().into_iter().flat_map(|map| map.values());
    let branches = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    let others = [&schema["items"], &schema["additionalProperties"], &schema["not"]];
    properties.chain(branches).chain(others).find_map(unknown_keyword)
}

/// Adds one line for each thing that is wrong with a value.
pub fn violations(schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else {
        if *schema == Value::Bool(false) {
            out.push(format!("{at} is not allowed"));
        }
        return;
    };
    for (keyword, rule) in rules {
        let holds = match keyword.as_str() {
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_a(kind, value)),
                kind => is_a(kind, value),
            },
            "enum" => rule.as_array().is_none_or(|allowed| allowed.contains(value)),
            "const" => rule == value,
            "minimum" => value.as_f64().is_none_or(|n| n >= rule.as_f64().unwrap_or(n)),
            "maximum" => value.as_f64().is_none_or(|n| n <= rule.as_f64().unwrap_or(n)),
            "minLength" => value.as_str().is_none_or(|t| t.chars().count() >= size(rule, 0)),
            "maxLength" => value.as_str().is_none_or(|t| t.chars().count() <= size(rule, usize::MAX)),
            "minItems" => value.as_array().is_none_or(|a| a.len() >= size(rule, 0)),
            "maxItems" => value.as_array().is_none_or(|a| a.len() <= size(rule, usize::MAX)),
            "exclusiveMinimum" => value.as_f64().is_none_or(|n| n > rule.as_f64().unwrap_or(f64::MIN)),
            "exclusiveMaximum" => value.as_f64().is_none_or(|n| n < rule.as_f64().unwrap_or(f64::MAX)),
            "multipleOf" => value.as_f64().is_none_or(|n| (n / rule.as_f64().unwrap_or(1.0)).fract() == 0.0),
            "uniqueItems" => value.as_array().is_none_or(|items| {
                *rule != Value::Bool(true)
                    || items.iter().enumerate().all(|(at, item)| !items[..at].contains(item))
            }),
            "minProperties" => value.as_object().is_none_or(|map| map.len() >= size(rule, 0)),
            "maxProperties" => value.as_object().is_none_or(|map| map.len() <= size(rule, usize::MAX)),
            "anyOf" => fitting(rule, value) > 0,
            "oneOf" => fitting(rule, value) == 1,
            "allOf" => fitting(rule, value) == rule.as_array().map_or(0, Vec::len),
            "not" => !fits(rule, value),
            _ => true,
        };
        if !holds {
            out.push(format!("{at}: {value} does not fit `{keyword}: {rule}`"));
        }
    }
    object_violations(schema, value, at, out);
    if let (Some(items), Some(rule)) = (value.as_array(), rules.get("items")) {
        for (index, item) in items.iter().enumerate() {
            violations(rule, item, &format!("{at}[{index}]"), out);
        }
    }
}

fn fits(schema: &Value, value: &Value) -> bool {
    let mut wrong = Vec::new();
    violations(schema, value, "", &mut wrong);
    wrong.is_empty()
}

/// Counts how many of several schemas a value fits.
fn fitting(schemas: &Value, value: &Value) -> usize {
    schemas.as_array().map_or(0, |schemas| schemas.iter().filter(|schema| fits(schema, value)).count())
}

fn object_violations(schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return };
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(key) {
            out.push(format!("{at}: `{key}` is missing"));
        }
    }
    for (key, member) in object {
        let rule = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
        violations(rule, member, &format!("{at}.{key}"), out);
    }
}

fn size(rule: &Value, default: usize) -> usize {
    rule.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(default)
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
