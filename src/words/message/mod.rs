//! Messages: the entries of the history. The JSON form is the same as in the npm package, field for field.

mod blocks;
mod json;
mod media;
mod reasons;
mod roles;
mod text;
mod usage;

use std::rc::Rc;

pub(crate) use blocks::text_in;
pub use blocks::{ContentBlock, FileBlock, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock, text_of};
pub use media::{Media, MediaSource};
pub use reasons::{MessageStopReason, ToolResultCause};
pub use roles::{AssistantMessage, CustomMessage, ToolResultMessage, UserMessage};
pub use usage::Usage;

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

    /// Whether it shows an image or a file that is elsewhere.
    pub(crate) fn has_links(&self) -> bool {
        let content = match self {
            LlmMessage::User(message) => &message.content,
            LlmMessage::ToolResult(message) => &message.content,
            LlmMessage::Assistant(_) => return false,
        };
        content.iter().any(ContentBlock::is_link)
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
