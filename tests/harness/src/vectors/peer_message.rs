//! Messages in the form of the vectors: any role may hold any parts, and a text differs from a list with
//! one text. A second implementation of [`Reducible`], so that the passes are the crate's own.

use turnwheel::context::{
    Link, PART_TRIMMED, PartSize, Reducible, Role, TRUNCATED, weight_of_parts, weight_of_text,
};
use turnwheel::json::{Map, ToJson, Value};

#[derive(Clone, Debug)]
pub(super) struct PeerMessage {
    fields: Map,
    role: Role,
}

impl PeerMessage {
    pub(super) fn read(message: &Value) -> Result<Self, String> {
        let role = match message.get("role").and_then(Value::as_str) {
            Some("system") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool") => Role::Tool,
            _ => return Err(format!("no role in {}", message.to_json())),
        };
        let fields = message.as_object().cloned().unwrap_or_default();
        Ok(PeerMessage { fields, role })
    }

    pub(super) fn write(self) -> Value {
        self.fields.into()
    }

    fn list(&self) -> &[Value] {
        self.fields.get("content").and_then(Value::as_array).unwrap_or_default()
    }

    fn text(&self) -> Option<&str> {
        self.fields.get("content").and_then(Value::as_str)
    }

    fn set(&mut self, content: impl Into<Value>) {
        self.fields.insert("content", content.into());
    }

    fn set_list(&mut self, parts: Vec<Value>) {
        self.fields.insert("content", Value::Array(parts));
    }

    fn into_list(self) -> Vec<Value> {
        match self.fields.get("content") {
            Some(Value::Array(parts)) => parts.clone(),
            Some(Value::String(text)) if !text.is_empty() => vec![text_part(text)],
            _ => Vec::new(),
        }
    }
}

fn text_part(text: &str) -> Value {
    super::object([("type", "text".into()), ("text", text.into())])
}

fn kind(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn bytes(value: Option<&Value>) -> u64 {
    let length = match value {
        None => 0,
        Some(Value::String(text)) => text.len(),
        Some(other) => other.to_json().len(),
    };
    length as u64
}

impl Reducible for PeerMessage {
    fn role(&self) -> Role {
        self.role
    }

    fn parts(&self) -> usize {
        self.list().len()
    }

    fn link(&self, part: usize) -> Link<'_> {
        let Some(part) = self.list().get(part) else { return Link::None };
        let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
        match kind(part) {
            "tool_call" => Link::Call(text("id")),
            "tool_result" => Link::Result(text("tool_call_id")),
            _ => Link::None,
        }
    }

    fn is_empty(&self) -> bool {
        self.text().map_or(self.list().is_empty(), str::is_empty)
    }

    fn retain(&mut self, keep: &dyn Fn(usize) -> bool) -> bool {
        let parts = self.list().iter().enumerate().filter(|(at, _)| keep(*at));
        let parts: Vec<Value> = parts.map(|(_, part)| part.clone()).collect();
        let is_left = !parts.is_empty();
        self.set_list(parts);
        is_left
    }

    fn merges_with(&self, next: &Self) -> bool {
        self.role == next.role
    }

    fn append(&mut self, next: Self) {
        let mut parts = self.clone().into_list();
        parts.extend(next.into_list());
        self.set_list(parts);
    }

    fn joins(&self, _next: &Self) -> bool {
        false
    }

    fn shorten(&mut self) {
        if let Some(text) = self.text() {
            if !text.is_empty() {
                self.set(TRUNCATED);
            }
            return;
        }
        let calls: Vec<Value> =
            self.list().iter().filter(|part| kind(part) == "tool_call").cloned().collect();
        if calls.is_empty() {
            self.set(TRUNCATED);
        } else {
            self.set_list(calls);
        }
    }

    fn trim(&mut self) {
        if self.text().is_some() {
            return self.set(PART_TRIMMED);
        }
        let trimmed = self.list().iter().map(|part| {
            let key = match kind(part) {
                "text" => "text",
                "tool_result" => "content",
                _ => return part.clone(),
            };
            let mut fields = part.as_object().cloned().unwrap_or_default();
            fields.insert(key, PART_TRIMMED.into());
            fields.into()
        });
        let trimmed = trimmed.collect();
        self.set_list(trimmed);
    }

    fn weight(&self) -> u64 {
        if let Some(text) = self.text() {
            return weight_of_text(text.len() as u64);
        }
        weight_of_parts(self.list().iter().map(|part| match kind(part) {
            "text" => PartSize::Text(bytes(part.get("text"))),
            "tool_call" => {
                let arguments = part.get("arguments").map_or(0, |arguments| arguments.to_json().len() as u64);
                PartSize::Call(bytes(part.get("name")) + arguments)
            }
            "tool_result" => PartSize::Result(bytes(part.get("content"))),
            _ => PartSize::Picture,
        }))
    }
}
