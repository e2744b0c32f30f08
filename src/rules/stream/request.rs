//! The request to a model, and its options.

use std::rc::Rc;

use crate::data::json::members::plain;
use crate::data::json::{FromJson, Number, ObjectWriter, RawJson, ToJson, Value, members};
use crate::words::message::LlmMessage;

/// Which tool the model should call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool.
    None,
    /// At least one tool.
    Required,
    /// The tool with this name.
    Tool(String),
}

/// A model that honors [`ModelRequest::output`]: its answer is JSON that fits the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeOutput {
    /// It also does if it is offered tools.
    pub with_tools: bool,
    /// The schema may describe anything, not just an object.
    pub any_root: bool,
}

/// How much the model should think.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reasoning {
    /// One of `off`, `minimal`, `low`, `medium`, `high`.
    Effort(String),
    /// At most this many tokens.
    Budget(u64),
}

/// Options of a model call. Numbers keep the text they were written with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamOptions {
    /// The randomness of the answer.
    pub temperature: Option<Number>,
    /// Nucleus sampling.
    pub top_p: Option<Number>,
    /// The maximum number of tokens in the answer.
    pub max_tokens: Option<u64>,
    /// Which tool to call.
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may make several calls at once.
    pub parallel_tool_calls: Option<bool>,
    /// How much the model should think.
    pub reasoning: Option<Reasoning>,
    /// `false` turns prompt caching off, on wires that support it.
    pub cache: Option<bool>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Extra headers.
    pub headers: Vec<(String, String)>,
    /// Extra fields of the request body. They override the fields that the engine writes.
    pub body: Vec<(String, RawJson)>,
}

/// A tool, as described to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSchema {
    /// The name, unique among the tools of a run.
    pub name: Rc<str>,
    /// What the tool does; read by the model.
    pub description: Rc<str>,
    /// The JSON Schema of the arguments, an object.
    pub parameters: RawJson,
}

/// A request to a model. Cheap to clone, because messages and tools are shared.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The model's id.
    pub model: Rc<str>,
    /// The system prompt; empty for none.
    pub system_prompt: Rc<str>,
    /// The conversation. A message that has not changed is the same object in every request.
    pub messages: Rc<Vec<LlmMessage>>,
    /// The available tools. A list that has not changed is the same object in every request.
    pub tools: Rc<[ToolSchema]>,
    /// The options of the call.
    pub options: Rc<StreamOptions>,
    /// The API key, if the host gave one.
    pub api_key: Option<Rc<str>>,
    /// The JSON Schema of a structured answer.
    pub output: Option<RawJson>,
    /// The conversation that the request belongs to. Some servers use it to separate their caches.
    pub session_id: Option<Rc<str>>,
}

impl StreamOptions {
    /// These options, and where they say nothing, the others. Headers and fields of the body count by name.
    #[must_use]
    pub fn over(self, others: &StreamOptions) -> StreamOptions {
        StreamOptions {
            temperature: self.temperature.or_else(|| others.temperature.clone()),
            top_p: self.top_p.or_else(|| others.top_p.clone()),
            max_tokens: self.max_tokens.or(others.max_tokens),
            tool_choice: self.tool_choice.or_else(|| others.tool_choice.clone()),
            parallel_tool_calls: self.parallel_tool_calls.or(others.parallel_tool_calls),
            reasoning: self.reasoning.or_else(|| others.reasoning.clone()),
            cache: self.cache.or(others.cache),
            stop: if self.stop.is_empty() { others.stop.clone() } else { self.stop },
            headers: named_over(self.headers, &others.headers),
            body: named_over(self.body, &others.body),
        }
    }
}

fn named_over<T: Clone>(mut own: Vec<(String, T)>, others: &[(String, T)]) -> Vec<(String, T)> {
    for other in others {
        if !own.iter().any(|(name, _)| *name == other.0) {
            own.push(other.clone());
        }
    }
    own
}

impl FromJson for StreamOptions {
    fn from_json(value: &Value) -> Result<Self, String> {
        let number = |key: &str| match value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(other) => Err(["`", key, "` must be a number, got ", other.kind()].concat()),
        };
        let mut options = StreamOptions {
            parallel_tool_calls: value.flag_at("parallelToolCalls"),
            cache: value.text_at("cache").map(|word| word != "none"),
            ..StreamOptions::default()
        };
        options.temperature = number("temperature")?;
        options.top_p = number("topP")?;
        options.max_tokens = number("maxTokens")?.and_then(|n| n.as_u64());
        options.tool_choice = match value.get("toolChoice") {
            None | Some(Value::Null) => None,
            Some(Value::String(word)) if word == "auto" => Some(ToolChoice::Auto),
            Some(Value::String(word)) if word == "none" => Some(ToolChoice::None),
            Some(Value::String(word)) if word == "required" => Some(ToolChoice::Required),
            Some(other) => {
                let wrong = || "`toolChoice` must be `auto`, `none`, `required` or { toolName }".to_owned();
                Some(ToolChoice::Tool(other.owned_at("toolName").ok_or_else(wrong)?))
            }
        };
        options.reasoning = match value.get("reasoning") {
            None | Some(Value::Null) => None,
            Some(Value::String(effort)) => Some(Reasoning::Effort(effort.clone())),
            Some(other) => {
                let wrong = || "`reasoning` must be an effort or { budgetTokens }".to_owned();
                Some(Reasoning::Budget(other.number_at("budgetTokens").ok_or_else(wrong)?))
            }
        };
        for text in value.list_at("stop").iter().filter_map(Value::as_str) {
            options.stop.push(text.to_owned());
        }
        for (name, header) in value.members_at("headers") {
            if let Some(text) = header.as_str() {
                options.headers.push((name.clone(), text.to_owned()));
            }
        }
        for (name, field) in value.members_at("body") {
            options.body.push((name.clone(), field.to_raw()));
        }
        Ok(options)
    }
}

impl ToJson for StreamOptions {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        let number = |n: &Option<Number>| n.clone().map(Value::Number);
        object.optional("temperature", &number(&self.temperature)).optional("topP", &number(&self.top_p));
        object.optional("maxTokens", &self.max_tokens);
        match &self.tool_choice {
            None => {}
            Some(ToolChoice::Auto) => drop(object.field("toolChoice", "auto")),
            Some(ToolChoice::None) => drop(object.field("toolChoice", "none")),
            Some(ToolChoice::Required) => drop(object.field("toolChoice", "required")),
            Some(ToolChoice::Tool(name)) => {
                let mut choice = ObjectWriter::new(object.key("toolChoice"));
                choice.field("toolName", name);
                choice.end();
            }
        }
        object.optional("parallelToolCalls", &self.parallel_tool_calls);
        match &self.reasoning {
            None => {}
            Some(Reasoning::Effort(effort)) => drop(object.field("reasoning", effort)),
            Some(Reasoning::Budget(budget)) => {
                let mut reasoning = ObjectWriter::new(object.key("reasoning"));
                reasoning.field("budgetTokens", budget);
                reasoning.end();
            }
        }
        if let Some(cache) = self.cache {
            object.field("cache", if cache { "auto" } else { "none" });
        }
        if !self.stop.is_empty() {
            object.field("stop", &self.stop);
        }
        if !self.headers.is_empty() {
            let mut headers = ObjectWriter::new(object.key("headers"));
            for (name, value) in &self.headers {
                headers.field(name, value);
            }
            headers.end();
        }
        if !self.body.is_empty() {
            let mut body = ObjectWriter::new(object.key("body"));
            for (name, value) in &self.body {
                body.field(name, value);
            }
            body.end();
        }
        object.end();
    }
}

members!(write ToolSchema {
    "name" => name: plain,
    "description" => description: plain,
    "parameters" => parameters: plain,
});
