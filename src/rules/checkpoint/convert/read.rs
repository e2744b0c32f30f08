//! The messages of a checkpoint, read.

use std::rc::Rc;

use super::{
    BASE64, FOREIGN_KIND, NAMES, ToolNames, default_stop_reason, is_plain_text, kind_of, merge, object,
    spaced,
};
use crate::data::json::{FromJson, Map, RawJson, ToJson, Value};
use crate::data::text;
use crate::rules::checkpoint::{OWN_STATE, check_message};
use crate::words::message::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, Media, ToolResultMessage, UserMessage,
};

pub(super) fn read(
    value: &Value,
    tools: &mut ToolNames,
    history: &mut Vec<AgentMessage>,
) -> Result<(), String> {
    check_message(value)?;
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

    fn answer(&mut self, parts: Vec<Value>, tools: &mut ToolNames) -> Result<AssistantMessage, String> {
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

    fn result(&mut self, part: Value, tools: &ToolNames) -> Result<ToolResultMessage, String> {
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
    let content = url.strip_prefix("data:").and_then(|url| text::split_once(url, BASE64));
    // What is not content that the engine takes stays a mention, and comes back as it was.
    if let Some((mime, data)) = content.filter(|(mime, data)| Media::data(*mime, *data).is_ok()) {
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
