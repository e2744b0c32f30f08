//! A single model call: the request, the streamed answer, and the [`Assembler`] that builds a message from
//! it.

use std::cell::Cell;
use std::rc::Rc;

use crate::data::json::{FromJson, Number, ObjectWriter, RawJson, ToJson, Value};
use crate::data::text;
use crate::rules::call_ids::keep_original;
use crate::words::error::ErrorInfo;
use crate::words::message::{
    ContentBlock, LlmMessage, MessageStopReason, TextBlock, ThinkingBlock, ToolCallBlock, Usage,
};

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

/// What a model call yields, in order: `Start`, then blocks numbered from 0 without gaps, then `Done` or
/// `Error`.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantMessageEvent {
    /// The provider answered. A second `Start` means that the answer begins again and everything before it
    /// is void.
    Start,
    /// A text block begins.
    TextStart {
        /// The index of the block.
        index: u32,
    },
    /// More text.
    TextDelta {
        /// The index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// A text block is complete.
    TextEnd {
        /// The index of the block.
        index: u32,
        /// Returned unchanged in later requests.
        signature: Option<String>,
    },
    /// A thinking block begins.
    ThinkingStart {
        /// The index of the block.
        index: u32,
    },
    /// More thinking.
    ThinkingDelta {
        /// The index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// The index of the block.
        index: u32,
        /// Returned unchanged in later requests.
        signature: Option<String>,
        /// Whether the signature is an opaque block of its own.
        redacted: bool,
    },
    /// A tool call begins.
    ToolCallStart {
        /// The index of the block.
        index: u32,
        /// The provider's id for the call; empty if it has none.
        call_id: String,
        /// The tool's name.
        tool_name: String,
    },
    /// More of the text of the arguments.
    ToolCallDelta {
        /// The index of the block.
        index: u32,
        /// The added text.
        delta: String,
    },
    /// A tool call is complete. A call that never gets this event was cut off and does not run.
    ToolCallEnd {
        /// The index of the block.
        index: u32,
        /// What the wire needs to get back; a JSON object.
        metadata: Option<RawJson>,
    },
    /// A complete block that only its provider understands.
    Raw {
        /// The index of the block.
        index: u32,
        /// The block as received.
        data: RawJson,
    },
    /// The usage so far. Each report replaces the one before.
    Usage(Usage),
    /// A sign of life without content, such as a comment on the wire.
    Ping,
    /// The answer is complete.
    Done {
        /// Why the answer ended.
        stop_reason: MessageStopReason,
        /// The usage of the call.
        usage: Option<Usage>,
    },
    /// The call failed. Nothing follows.
    Error(ErrorInfo),
}

/// A piece of a message, shown while it streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The index of the block that it belongs to.
    pub content_index: u32,
    /// The kind of the block.
    pub kind: DeltaKind,
    /// The added text.
    pub text: String,
}

/// The kind of block that a [`Delta`] belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeltaKind {
    /// Text.
    Text,
    /// Thinking.
    Thinking,
    /// The text of a call's arguments.
    ToolCall {
        /// The id of the call.
        call_id: Rc<str>,
        /// The name of the tool.
        tool_name: Rc<str>,
    },
}

impl ToJson for Delta {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        let kind = match &self.kind {
            DeltaKind::Text => "text",
            DeltaKind::Thinking => "thinking",
            DeltaKind::ToolCall { .. } => "tool_call",
        };
        object.field("type", kind).field("contentIndex", &self.content_index);
        if let DeltaKind::ToolCall { call_id, tool_name } = &self.kind {
            object.field("callId", call_id).field("toolName", tool_name);
        }
        object.field("delta", &self.text);
        object.end();
    }
}

/// Why a call in a finished message cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The token limit cut the call off.
    Cut,
    /// The arguments are not valid JSON. The text is the parse error, so that the model can correct the
    /// call.
    Malformed(String),
    /// The arguments are JSON, but not an object.
    NotAnObject,
}

/// Assembles a message from the events of one model call.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    blocks: Vec<Partial>,
    /// The usage reported last.
    pub usage: Usage,
}

#[derive(Clone, Debug)]
enum Partial {
    Text(TextBlock),
    Thinking(ThinkingBlock),
    Call(PartialCall),
    Raw(RawJson),
}

#[derive(Clone, Debug)]
struct PartialCall {
    call_id: Rc<str>,
    tool_name: Rc<str>,
    text: String,
    metadata: Option<RawJson>,
    /// The model's own id, if the call was given another one because it is not unique.
    original: Option<String>,
    open: bool,
}

/// The blocks of a finished message, and what is wrong with its calls.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    /// The blocks in order. The arguments of a call are the model's own value, or `{}` if the call was cut
    /// off.
    pub content: Vec<ContentBlock>,
    /// The id and the fault of each faulty call, in the order of the calls.
    pub faults: Vec<(String, CallFault)>,
}

impl Assembler {
    /// Adds an event, and returns the piece to show, if there is one. The caller handles `Done` and
    /// `Error`.
    ///
    /// # Errors
    /// If the order described at [`AssistantMessageEvent`] is violated. The text says how.
    pub fn push(&mut self, event: AssistantMessageEvent) -> Result<Option<Delta>, String> {
        use AssistantMessageEvent as E;
        match event {
            E::Start => self.clear(),
            E::Ping | E::Done { .. } | E::Error(_) => {}
            E::Raw { index, data } => self.open(index, Partial::Raw(data))?,
            E::Usage(usage) => self.usage = usage,
            E::TextStart { index } => self.open(index, Partial::Text(TextBlock::default()))?,
            E::ThinkingStart { index } => self.open(index, Partial::Thinking(ThinkingBlock::default()))?,
            E::ToolCallStart { index, call_id, tool_name } => {
                let call = PartialCall {
                    call_id: call_id.into(),
                    tool_name: tool_name.into(),
                    text: String::new(),
                    metadata: None,
                    original: None,
                    open: true,
                };
                self.open(index, Partial::Call(call))?;
            }
            E::TextDelta { index, delta } => match self.block(index) {
                Some(Partial::Text(block)) => {
                    block.text.push_str(&delta);
                    return Ok(Some(Delta { content_index: index, kind: DeltaKind::Text, text: delta }));
                }
                _ => return Err(misplaced("text_delta", index)),
            },
            E::ThinkingDelta { index, delta } => match self.block(index) {
                Some(Partial::Thinking(block)) => {
                    block.thinking.push_str(&delta);
                    return Ok(Some(Delta { content_index: index, kind: DeltaKind::Thinking, text: delta }));
                }
                _ => return Err(misplaced("thinking_delta", index)),
            },
            E::ToolCallDelta { index, delta } => match self.block(index) {
                Some(Partial::Call(call)) if call.open => {
                    call.text.push_str(&delta);
                    let kind = DeltaKind::ToolCall {
                        call_id: call.call_id.clone(),
                        tool_name: call.tool_name.clone(),
                    };
                    return Ok(Some(Delta { content_index: index, kind, text: delta }));
                }
                _ => return Err(misplaced("tool_call_delta", index)),
            },
            E::TextEnd { index, signature } => match self.block(index) {
                Some(Partial::Text(block)) => block.signature = signature,
                _ => return Err(misplaced("text_end", index)),
            },
            E::ThinkingEnd { index, signature, redacted } => match self.block(index) {
                Some(Partial::Thinking(block)) => {
                    block.signature = signature;
                    block.redacted = redacted;
                }
                _ => return Err(misplaced("thinking_end", index)),
            },
            E::ToolCallEnd { index, metadata } => match self.block(index) {
                Some(Partial::Call(call)) => {
                    call.open = false;
                    call.metadata = metadata;
                }
                _ => return Err(misplaced("tool_call_end", index)),
            },
        }
        Ok(None)
    }

    /// Discards the blocks received so far, but keeps the usage.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Whether nothing has arrived yet that could be shown.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Records the model's own id of a call that was given a different one.
    pub fn note_original_id(&mut self, index: u32, original: String) {
        if let Some(Partial::Call(call)) = self.block(index) {
            call.original = Some(original);
        }
    }

    /// Returns the ids of the calls that have begun.
    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            Partial::Call(call) => Some(call.call_id.as_ref()),
            _ => None,
        })
    }

    /// Returns the blocks of a message that ended with `stop_reason`.
    pub fn finish(self, stop_reason: MessageStopReason) -> Assembled {
        let mut assembled = Assembled::default();
        for block in self.blocks {
            assembled.content.push(match block {
                Partial::Text(block) => ContentBlock::Text(block),
                Partial::Thinking(block) => ContentBlock::Thinking(block),
                Partial::Raw(data) => ContentBlock::Raw(data),
                Partial::Call(call) => {
                    let (block, fault) = call.finish(stop_reason);
                    if let Some(fault) = fault {
                        assembled.faults.push((block.call_id.clone(), fault));
                    }
                    ContentBlock::ToolCall(block)
                }
            });
        }
        assembled
    }

    /// Returns what was shown of a message that was aborted or failed: text, thinking and complete calls,
    /// but no cut-off calls.
    pub fn partial(self) -> Vec<ContentBlock> {
        let whole = |block: &Partial| !matches!(block, Partial::Call(call) if call.open);
        let blocks = self.blocks.into_iter().filter(whole).collect();
        let assembled = Assembler { blocks, usage: self.usage }.finish(MessageStopReason::Aborted);
        let faulty = |id: &str| assembled.faults.iter().any(|(faulty, _)| faulty == id);
        let sound = |block: &ContentBlock| !matches!(block, ContentBlock::ToolCall(c) if faulty(&c.call_id));
        assembled.content.into_iter().filter(sound).collect()
    }

    fn open(&mut self, index: u32, block: Partial) -> Result<(), String> {
        if usize::try_from(index) != Ok(self.blocks.len()) {
            let next = text::number(self.blocks.len());
            return Err(
                ["block ", &text::number(index), " was started where ", &next, " comes next"].concat()
            );
        }
        self.blocks.push(block);
        Ok(())
    }

    fn block(&mut self, index: u32) -> Option<&mut Partial> {
        self.blocks.get_mut(usize::try_from(index).ok()?)
    }
}

impl PartialCall {
    fn finish(self, stop_reason: MessageStopReason) -> (ToolCallBlock, Option<CallFault>) {
        let length = stop_reason == MessageStopReason::Length;
        let text = self.text.trim();
        let (arguments, fault) = if self.open {
            (RawJson::empty_object(), Some(CallFault::Cut))
        } else if matches!(text, "" | "null" | "\"null\"" | "{}\"\"") {
            (RawJson::empty_object(), None)
        } else {
            match RawJson::parse(text) {
                Ok(value) if value.is_object() => (value, None),
                Ok(value) => (value, Some(CallFault::NotAnObject)),
                Err(_) if length => (RawJson::empty_object(), Some(CallFault::Cut)),
                Err(error) => (RawJson::string(text), Some(CallFault::Malformed(error.text()))),
            }
        };
        let mut block = ToolCallBlock {
            call_id: self.call_id.as_ref().to_owned(),
            tool_name: self.tool_name.as_ref().to_owned(),
            arguments,
            metadata: self.metadata,
        };
        if let Some(original) = self.original {
            keep_original(&mut block, original);
        }
        (block, fault)
    }
}

fn misplaced(event: &str, index: u32) -> String {
    ["`", event, "` for block ", &text::number(index), ", which is not open or of another kind"].concat()
}

impl FromJson for AssistantMessageEvent {
    fn from_json(value: &Value) -> Result<Self, String> {
        use AssistantMessageEvent as E;
        let Some(kind) = value.text_at("type") else {
            return Err(["an event must be an object with a `type`, got ", value.kind()].concat());
        };
        // Missing fields are reported once at the end, which gives one exit instead of one for each field.
        let missing = Cell::new("");
        let text = |key: &'static str| {
            value.owned_at(key).unwrap_or_else(|| {
                missing.set(key);
                String::new()
            })
        };
        let optional = |key: &str| value.owned_at(key);
        let index = value.number_at("contentIndex").and_then(|n| u32::try_from(n).ok());
        let needs_index = !matches!(kind, "start" | "ping" | "usage" | "done" | "error");
        let event = match (kind, index.unwrap_or_default()) {
            ("start", _) => E::Start,
            ("ping", _) => E::Ping,
            ("text_start", index) => E::TextStart { index },
            ("text_delta", index) => E::TextDelta { index, delta: text("delta") },
            ("text_end", index) => E::TextEnd { index, signature: optional("signature") },
            ("thinking_start", index) => E::ThinkingStart { index },
            ("thinking_delta", index) => E::ThinkingDelta { index, delta: text("delta") },
            ("thinking_end", index) => E::ThinkingEnd {
                index,
                signature: optional("signature"),
                redacted: value.flag_at("redacted").unwrap_or(false),
            },
            ("tool_call_start", index) => E::ToolCallStart {
                index,
                call_id: optional("callId").unwrap_or_default(),
                tool_name: text("toolName"),
            },
            ("tool_call_delta", index) => E::ToolCallDelta { index, delta: text("delta") },
            ("tool_call_end", index) => {
                E::ToolCallEnd { index, metadata: value.get("metadata").map(ToJson::to_raw) }
            }
            ("usage", _) => E::Usage(Usage::from_json(value)?),
            ("done", _) => E::Done {
                stop_reason: match value.text_at("stopReason") {
                    None => MessageStopReason::Stop,
                    Some(word) => MessageStopReason::from_word(word)
                        .ok_or_else(|| ["unknown stop reason `", word, "`"].concat())?,
                },
                usage: value.get("usage").map(Usage::from_json).transpose()?,
            },
            ("error", _) => E::Error(ErrorInfo::from_json(value.get("error").unwrap_or(&Value::Null))?),
            _ => return Err(["unknown event type `", kind, "`"].concat()),
        };
        if needs_index && index.is_none() {
            return Err(["`", kind, "` needs a `contentIndex`, a whole number from 0"].concat());
        }
        match missing.get() {
            "" => Ok(event),
            key => Err(["`", kind, "` needs a text `", key, "`"].concat()),
        }
    }
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

impl ToJson for ToolSchema {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.field("name", &self.name).field("description", &self.description);
        object.field("parameters", &self.parameters);
        object.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str, closed: bool, stop: MessageStopReason) -> (RawJson, Option<CallFault>) {
        use AssistantMessageEvent as E;
        let mut assembler = Assembler::default();
        let start = E::ToolCallStart { index: 0, call_id: "a".into(), tool_name: "t".into() };
        assembler.push(start).unwrap();
        assembler.push(E::ToolCallDelta { index: 0, delta: text.into() }).unwrap();
        if closed {
            assembler.push(E::ToolCallEnd { index: 0, metadata: None }).unwrap();
        }
        let done = assembler.finish(stop);
        let ContentBlock::ToolCall(block) = &done.content[0] else { panic!("no call") };
        (block.arguments.clone(), done.faults.first().map(|(_, fault)| fault.clone()))
    }

    #[test]
    fn arguments_are_read_as_the_contract_says() {
        use MessageStopReason::{Length, ToolUse};
        assert_eq!(call("", true, ToolUse), (RawJson::empty_object(), None));
        assert_eq!(call("\"null\"", true, ToolUse), (RawJson::empty_object(), None));
        assert_eq!(call("{}\"\"", true, ToolUse), (RawJson::empty_object(), None));
        assert_eq!(call("{\"a\":1}", true, Length).1, None);
        assert_eq!(call("{\"a\":1}", false, Length), (RawJson::empty_object(), Some(CallFault::Cut)));
        assert_eq!(call("{\"a\":", true, Length).1, Some(CallFault::Cut));
        assert!(matches!(call("{\"a\":", true, ToolUse).1, Some(CallFault::Malformed(_))));
        assert_eq!(call("[1]", true, ToolUse).1, Some(CallFault::NotAnObject));
    }

    #[test]
    fn a_second_start_voids_what_came_before() {
        let mut assembler = Assembler::default();
        for text in ["void", "new"] {
            assembler.push(AssistantMessageEvent::Start).unwrap();
            assembler.push(AssistantMessageEvent::TextStart { index: 0 }).unwrap();
            assembler.push(AssistantMessageEvent::TextDelta { index: 0, delta: text.into() }).unwrap();
        }
        let assembled = assembler.finish(MessageStopReason::Stop);
        assert_eq!(assembled.content, [ContentBlock::text("new")]);
    }

    #[test]
    fn a_gap_in_the_numbers_is_refused() {
        let mut assembler = Assembler::default();
        assert!(assembler.push(AssistantMessageEvent::TextStart { index: 1 }).is_err());
        assert!(assembler.push(AssistantMessageEvent::TextDelta { index: 0, delta: "x".into() }).is_err());
    }
}
