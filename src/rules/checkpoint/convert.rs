//! Converts messages to the form of a checkpoint, and back.
//!
//! Any reader of the format finds what it knows: roles, texts, images, calls and results. What has no place
//! in the format goes into `provider_options.turnwheel` of the same message. Nothing is written twice, and
//! reading restores exactly the same message. Messages of another engine are read as far as they have a
//! meaning here; the rest is kept in the message's `foreign` and written back.

use std::rc::Rc;

use super::OWN_STATE;
use crate::data::id_map::IdMap;
use crate::data::json::{FromJson, Map, RawJson, ToJson, Value};
use crate::data::text;
use crate::words::message::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, ToolResultMessage, UserMessage,
};

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

fn written(message: &AgentMessage) -> Value {
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
    let mut parts = Vec::new();
    if role == "tool" {
        parts.push(result_part(blocks, &mut own, foreign.get("json").is_some()));
    } else {
        let mut kept = Vec::new();
        parts =
            blocks.into_iter().enumerate().filter_map(|(at, block)| part_of(at, block, &mut kept)).collect();
        if let AgentMessage::Assistant(message) = message {
            mark_layouts(message, &mut kept);
            if own.get("stopReason").and_then(Value::as_str) == Some(default_stop_reason(&parts)) {
                own.remove("stopReason");
            }
        }
        if !kept.is_empty() {
            own.insert("blocks", Value::Array(kept));
        }
    }
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
    let own: Map = own.into_iter().filter(|(key, value)| !is_default(key, value)).collect();
    if !own.is_empty() {
        let mut options = match whole.remove("provider_options") {
            Some(Value::Object(options)) => options,
            _ => Map::new(),
        };
        options.insert(OWN_STATE, own.into());
        whole.insert("provider_options", options.into());
    }
    whole.into()
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

fn default_stop_reason(parts: &[Value]) -> &'static str {
    if parts.iter().any(|part| kind_of(part) == Some("tool_call")) { "tool_use" } else { "stop" }
}

fn is_plain_text(part: &Value) -> bool {
    kind_of(part) == Some("text") && part.as_object().is_some_and(|part| part.len() == 2)
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

/// Kinds of block that are parts under another name, with the name of each member here and there.
const NAMES: [(&str, &[(&str, &str)]); 2] = [
    ("text", &[("text", "text")]),
    (
        "tool_call",
        &[("callId", "id"), ("toolName", "name"), ("arguments", "arguments"), ("metadata", "metadata")],
    ),
];

const BASE64: &str = ";base64,";

fn data_url(block: &Map) -> Option<String> {
    let [kind, mime, data] = ["type", "mimeType", "data"].map(|key| block.get(key).and_then(Value::as_str));
    let mime = mime.filter(|mime| kind == Some("image") && !text::contains(mime, BASE64))?;
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

/// The tool of each call, because the results of another engine do not name it.
type Tools = IdMap<String, String>;

fn read(value: &Value, tools: &mut Tools, history: &mut Vec<AgentMessage>) -> Result<(), String> {
    super::check_message(value)?;
    let mut others = value.as_object().cloned().unwrap_or_default();
    let role = others.remove("role").unwrap_or_default();
    let (is_text, parts) = match others.remove("content") {
        Some(Value::Array(parts)) => (false, parts),
        text => {
            (true, vec![object([("type", Value::from("text")), ("text", text.unwrap_or_default())]).into()])
        }
    };
    let mut draft = Draft { own: take_own(&mut others), others, is_text };
    let is_user = role.as_str() == Some("user");
    if is_user && draft.own.get("kind").is_some() {
        draft.own.insert("role", Value::from("custom"));
        history.push(AgentMessage::from_json(&draft.own.into())?);
        return Ok(());
    }
    if role.as_str() == Some("assistant") {
        history.push(draft.answer(parts, tools)?.into());
        return Ok(());
    }
    let (results, rest): (Vec<Value>, Vec<Value>) =
        parts.into_iter().partition(|part| kind_of(part) == Some("tool_result"));
    if role.as_str() == Some("system") || (results.is_empty() && !is_user) {
        let kept = CustomMessage { kind: FOREIGN_KIND.to_owned(), data: value.to_raw(), timestamp: 0 };
        history.push(AgentMessage::Custom(Rc::new(kept)));
        return Ok(());
    }
    let is_question = results.is_empty() || !rest.is_empty();
    for result in results {
        history.push(draft.result(result, tools)?.into());
    }
    if is_question {
        history.push(draft.question(rest)?.into());
    }
    Ok(())
}

/// Removes from a message what the engine itself has written, and returns it.
fn take_own(message: &mut Map) -> Map {
    let Some(Value::Object(options)) = message.get("provider_options") else { return Map::new() };
    let mut options = options.clone();
    let Some(own) = options.remove(OWN_STATE) else { return Map::new() };
    if options.is_empty() {
        message.remove("provider_options");
    } else {
        message.insert("provider_options", options.into());
    }
    if let Value::Object(own) = own { own } else { Map::new() }
}

/// A message without its content: what the engine itself added, and what has no meaning here. If the
/// message becomes several, the first one gets both.
struct Draft {
    own: Map,
    others: Map,
    /// Whether the content was a text instead of a list of parts, because some engines distinguish the two.
    is_text: bool,
}

impl Draft {
    fn question(&mut self, parts: Vec<Value>) -> Result<UserMessage, String> {
        let (fields, foreign) = self.filled(parts, true);
        Ok(UserMessage { foreign, ..UserMessage::from_json(&fields.into())? })
    }

    fn answer(&mut self, parts: Vec<Value>, tools: &mut Tools) -> Result<AssistantMessage, String> {
        if self.own.get("stopReason").is_none() {
            self.own.insert("stopReason", Value::from(default_stop_reason(&parts)));
        }
        let kept = self.own.get("blocks").cloned().unwrap_or_default();
        let (fields, foreign) = self.filled(parts, false);
        let mut message = AssistantMessage { foreign, ..AssistantMessage::from_json(&fields.into())? };
        for layout in kept.as_array().unwrap_or_default() {
            set_layout(layout, &mut message);
        }
        for call in message.tool_calls() {
            tools.insert(call.call_id.clone(), call.tool_name.clone());
        }
        Ok(message)
    }

    fn result(&mut self, part: Value, tools: &Tools) -> Result<ToolResultMessage, String> {
        let Value::Object(mut part) = part else { return Err("a part must be an object".to_owned()) };
        let mut fields = std::mem::take(&mut self.own);
        let id = part.remove("tool_call_id").unwrap_or_default();
        if fields.get("toolName").is_none() {
            let tool = id.as_str().and_then(|id| tools.get(id));
            fields.insert("toolName", Value::from(tool.map_or("", String::as_str)));
        }
        fields.insert("callId", id);
        let is_ours = fields.remove("parts").is_some();
        let content = part.remove("content").unwrap_or_default();
        let is_json = !is_ours && content.as_str().is_none();
        fields.insert("content", if is_json { Value::from(content.to_json()) } else { content });
        part.remove("type");
        let foreign = self.foreign(vec![part.into()], is_json.then_some(("json", Value::Bool(true))));
        Ok(ToolResultMessage { foreign, ..ToolResultMessage::from_json(&fields.into())? })
    }

    /// Returns the fields including the content, and everything that has no meaning here. `texts` says how
    /// a lone text would be written.
    fn filled(&mut self, parts: Vec<Value>, texts: bool) -> (Map, Option<RawJson>) {
        let form = matches!(parts.as_slice(), [part] if is_plain_text(part) && texts != self.is_text);
        let form = form.then_some(("text", Value::Bool(self.is_text)));
        let mut fields = std::mem::take(&mut self.own);
        let (mut blocks, leftovers): (Vec<Value>, Vec<Value>) = parts.into_iter().map(block_of).unzip();
        if let Some(Value::Array(kept)) = fields.remove("blocks") {
            kept.into_iter().for_each(|kept| put_back(kept, &mut blocks));
        }
        fields.insert("content", Value::Array(blocks));
        (fields, self.foreign(leftovers, form))
    }

    fn foreign(&mut self, leftovers: Vec<Value>, form: Option<(&str, Value)>) -> Option<RawJson> {
        let mut foreign = Map::new();
        if !self.others.is_empty() {
            foreign.insert("message", std::mem::take(&mut self.others).into());
        }
        if leftovers.iter().any(|part| part.as_object().is_some_and(|members| !members.is_empty())) {
            foreign.insert("parts", Value::Array(leftovers));
        }
        if let Some((key, value)) = form {
            foreign.insert(key, value);
        }
        (!foreign.is_empty()).then(|| Value::Object(foreign).to_raw())
    }
}

/// Returns the block for a part, and what has no meaning here. If that has a `type`, it is the whole part.
fn block_of(part: Value) -> (Value, Value) {
    let Value::Object(mut rest) = part else { return (Value::Null, Value::Null) };
    let kind = rest.remove("type").unwrap_or_default();
    let kind = kind.as_str().unwrap_or_default();
    if let Some((_, names)) = NAMES.iter().find(|(k, _)| *k == kind) {
        let mut block = object([("type", Value::from(kind))]);
        for (own_key, foreign_key) in *names {
            if let Some(value) = rest.remove(foreign_key) {
                block.insert(*own_key, value);
            }
        }
        if let Some(non_object) = block.get("arguments").filter(|value| value.as_object().is_none()).cloned()
        {
            let object = non_object.as_str().and_then(|text| Value::parse(text).ok());
            block.insert("arguments", object.filter(|v| v.as_object().is_some()).unwrap_or_default());
            rest.insert("arguments", non_object);
        }
        return (block.into(), rest.into());
    }
    let url = rest.get("url").and_then(Value::as_str).unwrap_or_default();
    if let Some((mime, data)) = url.strip_prefix("data:").and_then(|url| text::split_once(url, BASE64)) {
        let [mime, data] = [mime, data].map(Value::from);
        rest.remove("url");
        return (
            object([("type", Value::from("image")), ("mimeType", mime), ("data", data)]).into(),
            rest.into(),
        );
    }
    let name = if url.is_empty() { ["[", kind, "]"].concat() } else { ["[", kind, ": ", url, "]"].concat() };
    rest.insert("type", Value::from(kind));
    (object([("type", Value::from("text")), ("text", Value::from(name))]).into(), rest.into())
}

/// Puts a whole block back in its place, or the rest of a block back into it.
fn put_back(kept: Value, blocks: &mut Vec<Value>) {
    let at = place_of(&kept);
    let Value::Object(mut kept) = kept else { return };
    kept.remove("at");
    if kept.get("type").is_some() {
        blocks.insert(at.min(blocks.len()), kept.into());
    } else if let Some(Value::Object(block)) = blocks.get_mut(at) {
        merge(block, Some(&kept.into()));
    }
}

fn place_of(kept: &Value) -> usize {
    let at = kept.get("at").and_then(Value::as_u64);
    at.and_then(|at| usize::try_from(at).ok()).unwrap_or(usize::MAX)
}

fn set_layout(kept: &Value, message: &mut AssistantMessage) {
    let Some(layout) = kept.get("layout") else { return };
    let Some(ContentBlock::ToolCall(call)) = message.content.get_mut(place_of(kept)) else { return };
    let text = match layout {
        Value::String(text) => text.clone(),
        _ => spaced(call.arguments.as_str()),
    };
    if let Some(arguments) = RawJson::parse(&text).ok().filter(RawJson::is_object) {
        call.arguments = arguments;
    }
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
