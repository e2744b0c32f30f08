//! Schemas of tools in a form that each provider takes. One schema that is refused would end every request. What a
//! schema loses here is checked when the call comes.

use crate::data::json::{Map, Value};
use crate::data::text::{Put, contains, has_any};

use super::ids::{fitting_id, is_plain};

mod depth;

use depth::{MAX_LEVELS, is_deeper, shallow};

/// What a server refuses in the schema of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchemaRules {
    /// Names of properties with characters other than letters, digits, `_`, `.` and `-`, or longer than 64.
    pub(crate) odd_names: bool,
    /// A type beside `anyOf`.
    pub(crate) types_beside_unions: bool,
    /// Descriptions of tools that are longer than 1,024 characters.
    pub(crate) long_descriptions: bool,
    /// Objects and lists inside each other, if there are more than [`MAX_LEVELS`].
    pub(crate) deep: bool,
}

impl SchemaRules {
    /// Returns the rules of a server, by its name.
    pub(crate) fn of(server: &str) -> SchemaRules {
        SchemaRules {
            odd_names: matches!(server, "anthropic" | "gemini"),
            types_beside_unions: server == "moonshot",
            long_descriptions: matches!(server, "openai" | "azure"),
            deep: server == "gemini",
        }
    }
}

/// What the root of a schema may not have: the providers want an object with properties.
const ROOT: [&str; 10] =
    ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "$ref", "nullable", "dependentSchemas"];

/// What patterns may not have: the providers' regular expressions know no lookaround, no references back, no classes of
/// Unicode and no flags.
const PATTERNS: &str = r"(?=|(?!|(?<|(?i|(?s|(?m|(?x|\p{|\P{|\u{|\k<|\1|\2|\3|\A|\Z|\z|\G";

/// Whether a schema is taken as it is. Almost all are, and those that are not wait for the code that mends them.
pub(crate) fn is_fit(schema: &Value, rules: SchemaRules) -> bool {
    let is_plain_root =
        ROOT.iter().all(|key| schema.get(key).is_none()) && !schema.get("type").is_some_and(is_list);
    is_plain_root
        && is_fit_inside(schema, rules)
        && has_sound_references(schema, schema)
        && !(rules.deep && is_deeper(schema, MAX_LEVELS))
}

/// Whether all references lead to a place in the schema. A provider follows no others, and refuses the whole request.
fn has_sound_references(schema: &Value, whole: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(|item| has_sound_references(item, whole)),
        Value::Object(map) => {
            !is_lost(schema, whole) && map.iter().all(|(_, value)| has_sound_references(value, whole))
        }
        _ => true,
    }
}

/// Whether a schema refers to a place that is not there.
fn is_lost(schema: &Value, whole: &Value) -> bool {
    let leads = |path: &str| path == "#" || path.contains(['~', '%']) || at_path(whole, path).is_some();
    schema.text_at("$ref").is_some_and(|path| !leads(path))
}

fn is_list(value: &Value) -> bool {
    value.as_array().is_some()
}

fn is_fit_inside(schema: &Value, rules: SchemaRules) -> bool {
    match schema {
        Value::Array(items) => items.iter().all(|item| is_fit_inside(item, rules)),
        Value::Object(map) => {
            let has = |key: &str| map.get(key).is_some();
            let is_array = schema.text_at("type") == Some("array");
            let has_faults = has("patternProperties")
                || (has("type") && has("anyOf") && rules.types_beside_unions)
                || (is_array && !has("items"))
                || map.get("items").is_some_and(is_list)
                || schema.text_at("pattern").is_some_and(is_refused_pattern)
                || ["exclusiveMinimum", "exclusiveMaximum"].iter().any(|key| schema.flag_at(key).is_some())
                || schema.flag_at("required").is_some()
                || map.get("enum").and_then(Value::as_array).is_some_and(<[Value]>::is_empty);
            !has_faults
                && map.iter().all(|(key, value)| match key {
                    "properties" => value.as_object().is_none_or(|members| {
                        members.iter().all(|(name, member)| {
                            (!rules.odd_names || is_taken_name(name)) && is_fit_inside(member, rules)
                        })
                    }),
                    "enum" | "const" | "default" | "example" | "examples" | "required" => true,
                    _ => is_fit_inside(value, rules),
                })
        }
        _ => true,
    }
}

fn is_taken_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    is_plain(c) || c == '.'
}

fn is_refused_pattern(pattern: &str) -> bool {
    has_any(pattern, PATTERNS)
}

/// Returns a schema as providers take it, and names what it lost.
#[cold]
pub(crate) fn fitted(schema: &Value, rules: SchemaRules) -> (Value, Vec<&'static str>) {
    let root = Value::Object(folded(schema, schema, 0));
    let mut lost = Vec::new();
    let mut fitted = mended(&root, &mut Mending { rules, whole: &root, lost: &mut lost });
    if rules.deep && is_deeper(&fitted, MAX_LEVELS) {
        lost.push("what is nested deeper than 4 levels");
        fitted = shallow(&fitted, MAX_LEVELS);
    }
    lost.sort_unstable();
    lost.dedup();
    (fitted, lost)
}

/// How deep references and unions at the root are followed.
const MAX_FOLDS: usize = 16;

/// Returns the root of a schema as one object: a union of objects becomes the object that may have the members of all of
/// them, and must have those that each of them must have.
fn folded(schema: &Value, whole: &Value, depth: usize) -> Map {
    let mut root = Map::new();
    for (key, value) in schema.as_object().into_iter().flat_map(Map::iter) {
        let is_dropped = ROOT.contains(&key) || matches!(key, "then" | "else" | "type" | "discriminator");
        if !is_dropped {
            root.insert(key, value.clone());
        }
    }
    root.insert("type", Value::from("object"));
    if depth >= MAX_FOLDS {
        return root;
    }
    let parts =
        |key: &str| schema.list_at(key).iter().map(|part| folded(part, whole, depth + 1)).collect::<Vec<_>>();
    if let Some(target) = schema.text_at("$ref").and_then(|path| at_path(whole, path)) {
        add(&mut root, &[folded(target, whole, depth + 1)], Names::all);
    }
    add(&mut root, &parts("allOf"), Names::all);
    for key in ["anyOf", "oneOf"] {
        let options = parts(key);
        let alternatives = described(&options);
        add(&mut root, &options, Names::common);
        if options.len() > 1 && !alternatives.is_empty() {
            let before = root.get("description").and_then(Value::as_str).unwrap_or_default();
            let space = if before.is_empty() { "" } else { " " };
            let text = [before, space, "Has the members of one of: ", &alternatives].concat();
            root.insert("description", Value::String(text));
        }
    }
    root
}

/// Returns the schema that a reference inside the document points to.
fn at_path<'v>(whole: &'v Value, path: &str) -> Option<&'v Value> {
    let mut place = whole;
    for step in path.strip_prefix("#/")?.split('/') {
        place = place.get(step)?;
    }
    Some(place)
}

/// Names the members of each option.
fn described(options: &[Map]) -> String {
    let mut text = String::new();
    for option in options {
        let names = option.get("properties").and_then(Value::as_object);
        let names: Vec<&str> = names.into_iter().flat_map(Map::iter).map(|(name, _)| name).collect();
        if !names.is_empty() {
            text.put(if text.is_empty() { "" } else { "; " });
            text.put(&names.join(", "));
        }
    }
    text
}

/// Which names of several lists count.
struct Names;

impl Names {
    fn all(lists: &[Vec<Value>]) -> Vec<Value> {
        lists.concat()
    }

    fn common(lists: &[Vec<Value>]) -> Vec<Value> {
        let Some((first, others)) = lists.split_first() else { return Vec::new() };
        first.iter().filter(|name| others.iter().all(|list| list.contains(name))).cloned().collect()
    }
}

/// Adds the members of some objects to another one. `chosen` says which of the names that they require it requires.
fn add(root: &mut Map, parts: &[Map], chosen: fn(&[Vec<Value>]) -> Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    let mut members = match root.get("properties") {
        Some(Value::Object(members)) => members.clone(),
        _ => Map::new(),
    };
    let mut required = Vec::new();
    for part in parts {
        for (name, member) in
            part.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter)
        {
            let joined = match members.get(name) {
                Some(known) if known != member => either(known, member),
                _ => member.clone(),
            };
            members.insert(name, joined);
        }
        required.push(part.get("required").and_then(Value::as_array).unwrap_or_default().to_vec());
        for key in ["$defs", "definitions", "description", "title"] {
            if let (None, Some(value)) = (root.get(key), part.get(key)) {
                root.insert(key, value.clone());
            }
        }
    }
    let mut names = root.get("required").and_then(Value::as_array).unwrap_or_default().to_vec();
    for name in chosen(&required) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // What one of them forbids another one may have.
    root.remove("additionalProperties");
    root.remove("unevaluatedProperties");
    root.insert("properties", Value::Object(members));
    if !names.is_empty() {
        root.insert("required", Value::Array(names));
    }
}

/// Returns a schema for what fits one of two.
fn either(one: &Value, other: &Value) -> Value {
    // The words by which options are told apart.
    let words = |schema: &Value| match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(word), _) => Some(vec![word.clone()]),
        (None, Some(words)) => Some(words.to_vec()),
        _ => None,
    };
    let mut union = Map::new();
    if let (Some(mut all), Some(more)) = (words(one), words(other)) {
        all.extend(more.into_iter().filter(|word| !all.contains(word)).collect::<Vec<_>>());
        if all.iter().all(|word| word.as_str().is_some()) {
            union.insert("type", Value::from("string"));
        }
        union.insert("enum", Value::Array(all));
        return Value::Object(union);
    }
    let mut options = one.list_at("anyOf").to_vec();
    if options.is_empty() {
        options.push(one.clone());
    }
    if !options.contains(other) {
        options.push(other.clone());
    }
    union.insert("anyOf", Value::Array(options));
    Value::Object(union)
}

/// What a schema is mended by, and what it lost so far.
struct Mending<'s> {
    rules: SchemaRules,
    whole: &'s Value,
    lost: &'s mut Vec<&'static str>,
}

/// Returns a schema without what is refused inside it.
fn mended(schema: &Value, by: &mut Mending<'_>) -> Value {
    let rules = by.rules;
    let map = match schema {
        Value::Array(items) => return Value::Array(items.iter().map(|item| mended(item, by)).collect()),
        Value::Object(map) => map,
        other => return other.clone(),
    };
    let mut taken = Map::new();
    for (key, value) in map.iter() {
        let value = match key {
            "patternProperties" => {
                let first = value.as_object().and_then(|patterns| patterns.iter().next());
                if let (Some((_, member)), None) = (first, map.get("additionalProperties")) {
                    taken.insert("additionalProperties", mended(member, by));
                }
                continue;
            }
            "pattern" if value.as_str().is_some_and(is_refused_pattern) => {
                by.lost.push("a `pattern`");
                continue;
            }
            "$ref" if is_lost(schema, by.whole) => {
                by.lost.push("a `$ref` to what is not in it");
                continue;
            }
            // The form of draft 4: the limit itself is excluded.
            "exclusiveMinimum" | "exclusiveMaximum" if value.as_bool().is_some() => {
                let limit = if key == "exclusiveMinimum" { "minimum" } else { "maximum" };
                match (value.as_bool(), map.get(limit)) {
                    (Some(true), Some(limit)) => limit.clone(),
                    _ => continue,
                }
            }
            "required" if value.as_bool().is_some() => continue,
            "enum" if value.as_array().is_some_and(<[Value]>::is_empty) => continue,
            "items" if is_list(value) => any_of(value.as_array().unwrap_or_default(), by),
            "properties" => match value.as_object() {
                Some(members) => renamed(members, by),
                None => continue,
            },
            "required" if rules.odd_names => {
                Value::Array(value.as_array().unwrap_or_default().iter().map(wire_name_of).collect())
            }
            "enum" | "const" | "default" | "example" | "examples" | "required" => value.clone(),
            _ => mended(value, by),
        };
        taken.insert(key, value);
    }
    if schema.text_at("type") == Some("array") && map.get("items").is_none() {
        taken.insert("items", Value::Object(Map::new()));
    }
    if rules.types_beside_unions && taken.get("anyOf").is_some() {
        move_type(&mut taken);
    }
    Value::Object(taken)
}

/// Returns a schema for what fits any of a list.
fn any_of(options: &[Value], by: &mut Mending<'_>) -> Value {
    let mut all: Vec<Value> = Vec::new();
    for option in options {
        let option = mended(option, by);
        if !all.contains(&option) {
            all.push(option);
        }
    }
    if all.len() == 1 {
        return all.pop().unwrap_or_default();
    }
    let mut union = Map::new();
    if !all.is_empty() {
        union.insert("anyOf", Value::Array(all));
    }
    Value::Object(union)
}

/// Moves the type beside a union into its options.
fn move_type(schema: &mut Map) {
    let Some(kind) = schema.remove("type") else { return };
    if let Some(Value::Array(options)) = schema.get_mut("anyOf") {
        for option in options {
            if let Value::Object(option) = option
                && ["type", "$ref", "anyOf", "enum", "const"].iter().all(|key| option.get(key).is_none())
            {
                option.insert("type", kind.clone());
            }
        }
    }
}

fn renamed(members: &Map, by: &mut Mending<'_>) -> Value {
    let mut all = Map::new();
    for (name, member) in members.iter() {
        let name = if by.rules.odd_names { wire_name(name) } else { name.to_owned() };
        all.insert(name, mended(member, by));
    }
    Value::Object(all)
}

/// Returns the name of a property in a request. It depends on our name alone.
fn wire_name(name: &str) -> String {
    if is_taken_name(name) { name.to_owned() } else { fitting_id(name, 64, is_name_char).into_owned() }
}

fn wire_name_of(name: &Value) -> Value {
    name.as_str().map_or_else(|| name.clone(), |name| Value::String(wire_name(name)))
}

/// Whether a schema may have names that are others in a request.
pub(crate) fn has_odd_names(schema: &str) -> bool {
    // Almost every schema is plain: a key with any other character stands between quotes, before a colon.
    let mut rest = schema;
    while let Some((before, after)) = rest.split_once("\":") {
        let key = before.rsplit_once('"').map_or(before, |(_, key)| key);
        if !matches!(key, "$ref" | "$defs" | "$schema" | "$id" | "$comment" | "$anchor")
            && !is_taken_name(key)
        {
            return true;
        }
        rest = after;
    }
    false
}

/// Gives the members of arguments the names that they have in the schema; `None` if they have them already.
#[cold]
pub(crate) fn with_own_names(arguments: &Value, schema: &Value) -> Option<Value> {
    let restored = restored(arguments, schema, 0);
    if restored == *arguments { None } else { Some(restored) }
}

fn restored(arguments: &Value, schema: &Value, depth: usize) -> Value {
    if depth >= MAX_FOLDS {
        return arguments.clone();
    }
    match arguments {
        Value::Array(items) => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            Value::Array(items.iter().map(|item| restored(item, of_items, depth + 1)).collect())
        }
        Value::Object(map) => {
            let mut all = Map::new();
            for (key, value) in map.iter() {
                let (name, member) = member_of(schema, key, 0).unwrap_or((key, &Value::Null));
                all.insert(name, restored(value, member, depth + 1));
            }
            Value::Object(all)
        }
        other => other.clone(),
    }
}

/// Returns the property that has a name in requests, by its own name, in a schema or in what it is made of.
fn member_of<'v>(schema: &'v Value, key: &str, depth: usize) -> Option<(&'v str, &'v Value)> {
    let members = schema.get("properties").and_then(Value::as_object);
    let mut members = members.into_iter().flat_map(Map::iter);
    let found = members.find(|(name, _)| *name == key || (!is_taken_name(name) && wire_name(name) == key));
    if found.is_some() || depth >= MAX_FOLDS {
        return found;
    }
    let mut parts = ["anyOf", "oneOf", "allOf"].iter().flat_map(|key| schema.list_at(key));
    parts.find_map(|part| member_of(part, key, depth + 1))
}

/// How many characters the description of a tool may have where it is limited.
const MAX_DESCRIPTION: usize = 1_024;

/// Splits a description that is too long: what is left for the tool, and the whole, which the schema takes.
pub(crate) fn split_description(description: &str, rules: SchemaRules) -> Option<(&str, &str)> {
    if !rules.long_descriptions || description.len() <= MAX_DESCRIPTION {
        return None;
    }
    let (end, _) = description.char_indices().nth(MAX_DESCRIPTION)?;
    let head = description.get(..end)?;
    let cut = head.rfind(['\n', ' ']).filter(|cut| *cut > MAX_DESCRIPTION / 2).unwrap_or(end);
    description.split_at_checked(cut)
}

/// Puts the rest of a description into the schema, where its length is not limited.
#[cold]
pub(crate) fn add_description(schema: &mut Value, rest: &str) {
    if let Value::Object(map) = schema {
        let own = map.get("description").and_then(Value::as_str).unwrap_or_default();
        let space = if own.is_empty() || contains(own, "\n") { "" } else { "\n" };
        let text = [own, space, "(the description of the tool goes on) ", rest.trim_ascii()].concat();
        map.insert("description", Value::String(text));
    }
}

#[cfg(test)]
mod tests;
