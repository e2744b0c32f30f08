//! Messages: the entries of the history. The JSON form is the same as in the npm package, field for field.

use std::borrow::Cow;
use std::rc::Rc;

use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value, bool_text};
use crate::data::list::read_all;
use crate::words::error::ErrorInfo;
use crate::words::price::{Cost, read_cost, write_cost};

/// Token counts. `input` excludes tokens read from or written to a cache; `output` includes reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens not covered by a cache.
    pub input: u64,
    /// Tokens of the answer, including reasoning.
    pub output: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// The part of `output` spent on reasoning, if the provider reports it.
    pub reasoning: Option<u64>,
    /// All tokens.
    pub total: u64,
    /// The cost, if the host configured prices.
    pub cost: Option<Cost>,
}

impl Usage {
    /// Adds another usage; the sums saturate.
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.total = self.total.saturating_add(other.total);
        if let Some(reasoning) = other.reasoning {
            self.reasoning = Some(self.reasoning.unwrap_or(0).saturating_add(reasoning));
        }
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.unwrap_or(0).saturating_add(cost));
        }
    }

    /// Returns the same usage, with `total` computed from the parts if it was not reported.
    #[must_use]
    pub fn totalled(mut self) -> Self {
        if self.total == 0 {
            let prompt = self.input.saturating_add(self.cache_read).saturating_add(self.cache_write);
            self.total = prompt.saturating_add(self.output);
        }
        self
    }
}

/// Why an assistant message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStopReason {
    /// The model finished.
    Stop,
    /// The token limit cut the answer off.
    Length,
    /// The model asks for tools.
    ToolUse,
    /// A safety filter cut the answer off.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The provider asks to be called again with the same messages.
    Pause,
    /// The run was aborted.
    Aborted,
    /// The call failed.
    Error,
}

impl MessageStopReason {
    const WORDS: [(Self, &'static str); 8] = [
        (Self::Stop, "stop"),
        (Self::Length, "length"),
        (Self::ToolUse, "tool_use"),
        (Self::ContentFilter, "content_filter"),
        (Self::Refusal, "refusal"),
        (Self::Pause, "pause"),
        (Self::Aborted, "aborted"),
        (Self::Error, "error"),
    ];

    /// Returns the word used in messages.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("stop", |(_, word)| word)
    }

    /// Returns the reason for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(reason, _)| *reason)
    }
}

/// Why a tool result was written by the engine instead of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolResultCause {
    /// No tool has this name.
    UnknownTool,
    /// The arguments are not valid JSON or do not match the schema.
    InvalidArguments,
    /// The token limit cut the call off.
    Incomplete,
    /// The approver rejected the call.
    Rejected,
    /// A rule denied the call.
    Denied,
    /// A policy skipped the call.
    Skipped,
    /// A policy stopped the batch.
    PolicyStop,
    /// A steering message arrived.
    Steering,
    /// The run was aborted.
    Aborted,
    /// The conversation was handed over.
    Transfer,
    /// The tool took too long.
    Timeout,
    /// The tool threw, rejected, or panicked.
    Threw,
    /// The process ended while the tool ran.
    Interrupted,
}

impl ToolResultCause {
    const WORDS: [(Self, &'static str); 13] = [
        (Self::UnknownTool, "unknown_tool"),
        (Self::InvalidArguments, "invalid_arguments"),
        (Self::Incomplete, "incomplete"),
        (Self::Rejected, "rejected"),
        (Self::Denied, "denied"),
        (Self::Skipped, "skipped"),
        (Self::PolicyStop, "policy_stop"),
        (Self::Steering, "steering"),
        (Self::Aborted, "aborted"),
        (Self::Transfer, "transfer"),
        (Self::Timeout, "timeout"),
        (Self::Threw, "threw"),
        (Self::Interrupted, "interrupted"),
    ];

    /// Returns the word used in results.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(cause, _)| *cause == self).map_or("threw", |(_, word)| word)
    }

    /// Returns the cause for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(cause, _)| *cause)
    }
}

/// A block of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// The provider's signature, returned to it unchanged.
    pub signature: Option<String>,
}

/// The model's thinking before it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingBlock {
    /// The text; empty if the provider does not reveal it.
    pub thinking: String,
    /// The provider's signature, returned to it unchanged.
    pub signature: Option<String>,
    /// Whether the signature is an opaque block of its own.
    pub redacted: bool,
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallBlock {
    /// The id of the call, unique in the whole history.
    pub call_id: String,
    /// The tool name as given by the model.
    pub tool_name: String,
    /// The arguments: always a JSON object in the history; in `message_end`, the value as the model gave
    /// it.
    pub arguments: RawJson,
    /// What the wire needs to get back: the provider's own id, signatures.
    pub metadata: Option<RawJson>,
}

impl ToolCallBlock {
    /// Returns the arguments in the form that providers accept. A history from elsewhere may contain other
    /// JSON, and providers would refuse it in every request.
    pub(crate) fn object(&self) -> &str {
        if self.arguments.is_object() { self.arguments.as_str() } else { "{}" }
    }
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBlock {
    /// The MIME type, such as `image/png`.
    pub mime_type: String,
    /// The content, in Base64.
    pub data: Rc<str>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBlock {
    /// The MIME type, such as `application/pdf`.
    pub mime_type: String,
    /// The content, in Base64.
    pub data: Rc<str>,
    /// The file's name.
    pub name: Option<String>,
}

/// One block of a message. For the kinds allowed in each role, see [`UserMessage`], [`AssistantMessage`]
/// and [`ToolResultMessage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentBlock {
    /// Text, in any role.
    Text(TextBlock),
    /// Thinking, from the assistant.
    Thinking(ThinkingBlock),
    /// A tool call, from the assistant.
    ToolCall(ToolCallBlock),
    /// An image, from the user or in a tool result.
    Image(ImageBlock),
    /// A file, from the user.
    File(FileBlock),
    /// A block from the assistant that only its provider understands, kept as received: calls that the
    /// provider ran itself, their results, kinds of block not known yet. Returned unchanged to the same
    /// provider.
    Raw(RawJson),
}

impl ContentBlock {
    /// Creates a text block without a signature.
    pub fn text(text: impl Into<String>) -> Self {
        ContentBlock::Text(TextBlock { text: text.into(), signature: None })
    }
}

/// A message from the user: text, images, files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserMessage {
    /// Text, image and file blocks.
    pub content: Vec<ContentBlock>,
    /// Milliseconds since 1970, from the host's clock.
    pub timestamp: u64,
    /// Other members that a checkpoint of another engine has for this message. Written back to checkpoints,
    /// used nowhere else.
    pub foreign: Option<RawJson>,
}

impl UserMessage {
    /// Creates a message with one text block.
    pub fn from_text(text: impl Into<String>) -> Self {
        UserMessage { content: vec![ContentBlock::text(text)], ..UserMessage::default() }
    }
}

/// A message from the model: text, thinking, tool calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssistantMessage {
    /// Text, thinking, tool call and raw blocks.
    pub content: Vec<ContentBlock>,
    /// The name of the provider, such as `openai`.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// The usage of the call, as far as it was reported.
    pub usage: Usage,
    /// Why the message ended.
    pub stop_reason: MessageStopReason,
    /// The error, if the stop reason is error or aborted.
    pub error: Option<ErrorInfo>,
    /// Milliseconds since 1970, from the host's clock.
    pub timestamp: u64,
    /// Other members that a checkpoint of another engine has for this message. Written back to checkpoints,
    /// used nowhere else.
    pub foreign: Option<RawJson>,
}

impl AssistantMessage {
    /// Returns the tool calls, in the order of their declaration.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallBlock> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Returns all text, concatenated.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }

    /// Whether the call failed or was aborted.
    pub fn is_cut(&self) -> bool {
        matches!(self.stop_reason, MessageStopReason::Error | MessageStopReason::Aborted)
    }
}

/// A result from a tool, or from the engine in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResultMessage {
    /// The id of the call that this answers.
    pub call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// Text and image blocks, shown to the model.
    pub content: Vec<ContentBlock>,
    /// Data for the UI; never sent to the model.
    pub details: Option<RawJson>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Set if the engine wrote this result instead of the tool.
    pub cause: Option<ToolResultCause>,
    /// Milliseconds since 1970, from the host's clock.
    pub timestamp: u64,
    /// Other members that a checkpoint of another engine has for this message. Written back to checkpoints,
    /// used nowhere else.
    pub foreign: Option<RawJson>,
}

impl ToolResultMessage {
    /// Returns the text of a result that is nothing but text: a single text block from a tool that did not
    /// fail.
    pub fn plain_text(&self) -> Option<&str> {
        match &*self.content {
            [ContentBlock::Text(TextBlock { text, signature: None })]
                if !self.is_error && self.cause.is_none() && self.details.is_none() =>
            {
                Some(text)
            }
            _ => None,
        }
    }

    /// Returns all text, concatenated.
    pub fn text(&self) -> String {
        text_of(&self.content)
    }
}

/// A message of the host's own: kept in the history, but not shown to the model unless `convert_to_llm`
/// converts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomMessage {
    /// The host's name for this kind of message.
    pub kind: String,
    /// Any JSON.
    pub data: RawJson,
    /// Milliseconds since 1970, from the host's clock.
    pub timestamp: u64,
}

/// One entry of the history. Cloning copies a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentMessage {
    /// From the user.
    User(Rc<UserMessage>),
    /// From the model.
    Assistant(Rc<AssistantMessage>),
    /// From a tool.
    ToolResult(Rc<ToolResultMessage>),
    /// A message of the host's own.
    Custom(Rc<CustomMessage>),
}

impl AgentMessage {
    /// Creates a user message with one text block.
    pub fn user(text: impl Into<String>) -> Self {
        UserMessage::from_text(text).into()
    }

    /// Returns the message in the form given to providers; `None` for custom messages.
    pub fn as_llm(&self) -> Option<LlmMessage> {
        match self {
            AgentMessage::User(message) => Some(LlmMessage::User(message.clone())),
            AgentMessage::Assistant(message) => Some(LlmMessage::Assistant(message.clone())),
            AgentMessage::ToolResult(message) => Some(LlmMessage::ToolResult(message.clone())),
            AgentMessage::Custom(_) => None,
        }
    }

    /// Whether both are the same object (not merely equal).
    pub fn is_same(&self, other: &AgentMessage) -> bool {
        self.address() == other.address()
    }

    /// Whether this is the same object as a message shown to the model.
    pub fn shows(&self, shown: &LlmMessage) -> bool {
        self.address() == shown.address()
    }

    fn address(&self) -> *const () {
        match self {
            AgentMessage::User(message) => Rc::as_ptr(message).cast(),
            AgentMessage::Assistant(message) => Rc::as_ptr(message).cast(),
            AgentMessage::ToolResult(message) => Rc::as_ptr(message).cast(),
            AgentMessage::Custom(message) => Rc::as_ptr(message).cast(),
        }
    }

    /// Returns the same message, with a timestamp if it had none.
    #[must_use]
    pub fn stamped(self, now: u64) -> Self {
        match self {
            AgentMessage::User(message) if message.timestamp == 0 => {
                UserMessage { timestamp: now, ..(*message).clone() }.into()
            }
            AgentMessage::Custom(message) if message.timestamp == 0 => {
                AgentMessage::Custom(Rc::new(CustomMessage { timestamp: now, ..(*message).clone() }))
            }
            stamped => stamped,
        }
    }
}

impl From<UserMessage> for AgentMessage {
    fn from(message: UserMessage) -> Self {
        AgentMessage::User(Rc::new(message))
    }
}

impl From<AssistantMessage> for AgentMessage {
    fn from(message: AssistantMessage) -> Self {
        AgentMessage::Assistant(Rc::new(message))
    }
}

impl From<ToolResultMessage> for AgentMessage {
    fn from(message: ToolResultMessage) -> Self {
        AgentMessage::ToolResult(Rc::new(message))
    }
}

impl From<&str> for AgentMessage {
    fn from(text: &str) -> Self {
        AgentMessage::user(text)
    }
}

/// A message that can be sent to a provider. Cloning copies a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LlmMessage {
    /// From the user.
    User(Rc<UserMessage>),
    /// From the model.
    Assistant(Rc<AssistantMessage>),
    /// From a tool.
    ToolResult(Rc<ToolResultMessage>),
}

impl LlmMessage {
    /// Whether both are the same object. If so, an earlier encoding can be reused.
    pub fn is_same(&self, other: &LlmMessage) -> bool {
        self.address() == other.address()
    }

    fn address(&self) -> *const () {
        match self {
            LlmMessage::User(message) => Rc::as_ptr(message).cast(),
            LlmMessage::Assistant(message) => Rc::as_ptr(message).cast(),
            LlmMessage::ToolResult(message) => Rc::as_ptr(message).cast(),
        }
    }
}

impl From<LlmMessage> for AgentMessage {
    fn from(message: LlmMessage) -> Self {
        match message {
            LlmMessage::User(message) => AgentMessage::User(message),
            LlmMessage::Assistant(message) => AgentMessage::Assistant(message),
            LlmMessage::ToolResult(message) => AgentMessage::ToolResult(message),
        }
    }
}

/// Returns all text of the blocks, concatenated.
pub fn text_of(content: &[ContentBlock]) -> String {
    text_in(content).into_owned()
}

/// Like [`text_of`], but copies only if the text is in several blocks.
#[inline(never)]
pub(crate) fn text_in(content: &[ContentBlock]) -> Cow<'_, str> {
    let mut all = Cow::Borrowed("");
    for block in content {
        match block {
            ContentBlock::Text(block) if all.is_empty() => all = Cow::Borrowed(&block.text),
            ContentBlock::Text(block) => all.to_mut().push_str(&block.text),
            _ => {}
        }
    }
    all
}

impl Usage {
    /// Writes the members of the JSON object.
    pub(crate) fn write_members(&self, object: &mut ObjectWriter<'_>) {
        object.field("input", &self.input).field("output", &self.output);
        object.field("cacheRead", &self.cache_read).field("cacheWrite", &self.cache_write);
        object.optional("reasoning", &self.reasoning).field("total", &self.total);
        if let Some(cost) = self.cost {
            write_cost(cost, object.key("cost"));
        }
    }
}

impl ToJson for Usage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        self.write_members(&mut object);
        object.end();
    }
}

impl FromJson for Usage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let tokens = |key: &str| value.number_at(key);
        Ok(Usage {
            input: tokens("input").unwrap_or(0),
            output: tokens("output").unwrap_or(0),
            cache_read: tokens("cacheRead").unwrap_or(0),
            cache_write: tokens("cacheWrite").unwrap_or(0),
            reasoning: tokens("reasoning"),
            total: tokens("total").unwrap_or(0),
            cost: value.get("cost").and_then(read_cost),
        }
        .totalled())
    }
}

impl ToJson for ContentBlock {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            ContentBlock::Text(block) => {
                object.fill(r#""type":"text","text":"$""#, &[&block.text]);
                object.optional("signature", &block.signature);
            }
            ContentBlock::Thinking(block) => {
                object.fill(r#""type":"thinking","thinking":"$""#, &[&block.thinking]);
                object.optional("signature", &block.signature);
                if block.redacted {
                    object.field("redacted", &true);
                }
            }
            ContentBlock::ToolCall(call) => write_call(call, &mut object),
            ContentBlock::Image(image) => {
                let template = r#""type":"image","mimeType":"$","data":"$""#;
                object.fill(template, &[&image.mime_type, &image.data]);
            }
            ContentBlock::File(file) => {
                let template = r#""type":"file","mimeType":"$","data":"$""#;
                object.fill(template, &[&file.mime_type, &file.data]).optional("name", &file.name);
            }
            ContentBlock::Raw(data) => drop(object.fill(r#""type":"raw","data":#"#, &[data.as_str()])),
        }
        object.end();
    }
}

fn write_call(call: &ToolCallBlock, object: &mut ObjectWriter<'_>) {
    let template = r#""type":"tool_call","callId":"$","toolName":"$","arguments":#"#;
    object.fill(template, &[&call.call_id, &call.tool_name, call.arguments.as_str()]);
    object.optional("metadata", &call.metadata);
}

impl ToJson for ToolCallBlock {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        write_call(self, &mut object);
        object.end();
    }
}

impl FromJson for ToolCallBlock {
    fn from_json(value: &Value) -> Result<Self, String> {
        let arguments = value.get("arguments").unwrap_or(&Value::Null);
        Ok(ToolCallBlock {
            call_id: text_field(value, "callId")?,
            tool_name: text_field(value, "toolName")?,
            arguments: if arguments.is_null() { RawJson::empty_object() } else { arguments.to_raw() },
            metadata: value.get("metadata").map(ToJson::to_raw),
        })
    }
}

impl FromJson for ContentBlock {
    fn from_json(value: &Value) -> Result<Self, String> {
        let optional = |key: &str| value.owned_at(key);
        Ok(match value.text_at("type") {
            Some("text") => ContentBlock::Text(TextBlock {
                text: text_field(value, "text")?,
                signature: optional("signature"),
            }),
            Some("thinking") => ContentBlock::Thinking(ThinkingBlock {
                thinking: text_field(value, "thinking")?,
                signature: optional("signature"),
                redacted: value.flag_at("redacted").unwrap_or(false),
            }),
            Some("tool_call") => ContentBlock::ToolCall(ToolCallBlock::from_json(value)?),
            Some("image") => ContentBlock::Image(ImageBlock {
                mime_type: text_field(value, "mimeType")?,
                data: text_field(value, "data")?.into(),
            }),
            Some("file") => ContentBlock::File(FileBlock {
                mime_type: text_field(value, "mimeType")?,
                data: text_field(value, "data")?.into(),
                name: optional("name"),
            }),
            Some("raw") => ContentBlock::Raw(value.get("data").unwrap_or(&Value::Null).to_raw()),
            Some(other) => return Err(["unknown block type `", other, "`"].concat()),
            None => {
                let got = ["a block must be an object with a `type`, got ", value.kind()];
                return Err(got.concat());
            }
        })
    }
}

/// Reads blocks, and refuses kinds that the role does not allow. A bare string is one text block.
fn blocks(value: &Value, role: &str, takes: fn(&ContentBlock) -> bool) -> Result<Vec<ContentBlock>, String> {
    let items = match value.get("content") {
        Some(Value::String(text)) => return Ok(vec![ContentBlock::text(text.as_str())]),
        Some(Value::Array(items)) => items,
        other => {
            let got = other.map_or("nothing", Value::kind);
            return Err(["`content` of a ", role, " message must be a list of blocks, got ", got].concat());
        }
    };
    let mut content = Vec::with_capacity(items.len());
    for item in items {
        let block = ContentBlock::from_json(item)?;
        if !takes(&block) {
            let kind = item.text_at("type").unwrap_or_default();
            return Err(["a ", role, " message takes no `", kind, "` block"].concat());
        }
        content.push(block);
    }
    Ok(content)
}

fn text_field(value: &Value, key: &str) -> Result<String, String> {
    match value.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => Err(["`", key, "` must be a string, got ", other.map_or("nothing", Value::kind)].concat()),
    }
}

fn timestamp(value: &Value) -> u64 {
    value.number_at("timestamp").unwrap_or(0)
}

impl ToJson for UserMessage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.fill(r#""role":"user""#, &[]).field("content", &self.content);
        object.field("timestamp", &self.timestamp);
        object.end();
    }
}

impl FromJson for UserMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let takes = |b: &ContentBlock| {
            matches!(b, ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::File(_))
        };
        Ok(UserMessage { content: blocks(value, "user", takes)?, timestamp: timestamp(value), foreign: None })
    }
}

impl ToJson for AssistantMessage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.fill(r#""role":"assistant""#, &[]).field("content", &self.content);
        object
            .fill(r#""provider":"$","model":"$""#, &[&self.provider, &self.model])
            .field("usage", &self.usage);
        object.fill(r#""stopReason":"$""#, &[self.stop_reason.as_str()]).optional("error", &self.error);
        object.field("timestamp", &self.timestamp);
        object.end();
    }
}

impl FromJson for AssistantMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let takes = |b: &ContentBlock| {
            matches!(
                b,
                ContentBlock::Text(_)
                    | ContentBlock::Thinking(_)
                    | ContentBlock::ToolCall(_)
                    | ContentBlock::Raw(_)
            )
        };
        let word = value.text_at("stopReason");
        let stop_reason = match word {
            None => MessageStopReason::Stop,
            Some(word) => MessageStopReason::from_word(word)
                .ok_or_else(|| ["unknown stop reason `", word, "`"].concat())?,
        };
        Ok(AssistantMessage {
            content: blocks(value, "assistant", takes)?,
            provider: value.text_at("provider").unwrap_or_default().to_owned(),
            model: value.text_at("model").unwrap_or_default().to_owned(),
            usage: value.get("usage").map_or(Ok(Usage::default()), Usage::from_json)?,
            stop_reason,
            error: value.get("error").map(ErrorInfo::from_json).transpose()?,
            timestamp: timestamp(value),
            foreign: None,
        })
    }
}

impl ToJson for ToolResultMessage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        let template = r#""role":"tool_result","callId":"$","toolName":"$""#;
        object.fill(template, &[&self.call_id, &self.tool_name]);
        object.field("content", &self.content).optional("details", &self.details);
        object.fill(r#""isError":#"#, &[bool_text(self.is_error)]);
        if let Some(cause) = self.cause {
            object.field("cause", cause.as_str());
        }
        object.field("timestamp", &self.timestamp);
        object.end();
    }
}

impl FromJson for ToolResultMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let takes = |b: &ContentBlock| matches!(b, ContentBlock::Text(_) | ContentBlock::Image(_));
        Ok(ToolResultMessage {
            call_id: text_field(value, "callId")?,
            tool_name: value.text_at("toolName").unwrap_or_default().to_owned(),
            content: blocks(value, "tool_result", takes)?,
            details: value.get("details").map(ToJson::to_raw),
            is_error: value.flag_at("isError").unwrap_or(false),
            cause: value.text_at("cause").and_then(ToolResultCause::from_word),
            timestamp: timestamp(value),
            foreign: None,
        })
    }
}

impl ToJson for CustomMessage {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.fill(r#""role":"custom","kind":"$","data":#"#, &[&self.kind, self.data.as_str()]);
        object.field("timestamp", &self.timestamp);
        object.end();
    }
}

impl FromJson for CustomMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        let data = value.get("data").unwrap_or(&Value::Null);
        Ok(CustomMessage {
            kind: text_field(value, "kind")?,
            data: data.to_raw(),
            timestamp: timestamp(value),
        })
    }
}

impl ToJson for AgentMessage {
    fn write_json(&self, out: &mut String) {
        match self {
            AgentMessage::User(message) => message.write_json(out),
            AgentMessage::Assistant(message) => message.write_json(out),
            AgentMessage::ToolResult(message) => message.write_json(out),
            AgentMessage::Custom(message) => message.write_json(out),
        }
    }
}

impl ToJson for LlmMessage {
    fn write_json(&self, out: &mut String) {
        match self {
            LlmMessage::User(message) => message.write_json(out),
            LlmMessage::Assistant(message) => message.write_json(out),
            LlmMessage::ToolResult(message) => message.write_json(out),
        }
    }
}

impl FromJson for AgentMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        match value.text_at("role") {
            Some("user") => UserMessage::from_json(value).map(Into::into),
            Some("assistant") => AssistantMessage::from_json(value).map(Into::into),
            Some("tool_result") => ToolResultMessage::from_json(value).map(Into::into),
            Some("custom") => CustomMessage::from_json(value).map(|m| AgentMessage::Custom(Rc::new(m))),
            Some(other) => Err([
                "unknown role `",
                other,
                "`; a message is one of `user`, `assistant`, `tool_result`, `custom`",
            ]
            .concat()),
            None => Err(["a message must be an object with a `role`, got ", value.kind()].concat()),
        }
    }
}

impl FromJson for LlmMessage {
    fn from_json(value: &Value) -> Result<Self, String> {
        AgentMessage::from_json(value)?
            .as_llm()
            .ok_or_else(|| "a custom message cannot be sent to a model".to_owned())
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: &Value) -> Result<Self, String> {
        read_all(value, T::from_json)
    }
}
