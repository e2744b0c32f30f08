//! How a call ends.

use std::fmt::Display;

use crate::data::json::RawJson;
use crate::words::message::ContentBlock;

/// A request to hand the conversation over to another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The name of the agent.
    pub to: String,
    /// The reason.
    pub reason: Option<String>,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentToolResult {
    /// Text and image blocks, shown to the model.
    pub content: Vec<ContentBlock>,
    /// Data for the UI; never sent to the model.
    pub details: Option<RawJson>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Ends the run by transferring the conversation.
    pub transfer: Option<Transfer>,
}

impl AgentToolResult {
    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        AgentToolResult { content: vec![ContentBlock::text(text)], ..Default::default() }
    }

    /// A failed call's result of one text.
    pub fn error(text: impl Into<String>) -> Self {
        AgentToolResult { is_error: true, ..AgentToolResult::text(text) }
    }
}

impl From<&str> for AgentToolResult {
    fn from(text: &str) -> Self {
        AgentToolResult::text(text)
    }
}

impl From<String> for AgentToolResult {
    fn from(text: String) -> Self {
        AgentToolResult::text(text)
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// The tool returned a result.
    Completed(AgentToolResult),
    /// The tool threw, rejected or panicked, with this message.
    Failed(String),
    /// The arguments do not fit, which the schema check could not know.
    Invalid(String),
    /// The tool wants the run to end as if it had been aborted.
    Cancelled,
    /// The call was begun before, by a process that has ended since: whether it did its work is not known, and it must not
    /// begin twice.
    Interrupted,
}

impl<T: Into<AgentToolResult>> From<T> for ToolOutcome {
    fn from(result: T) -> Self {
        ToolOutcome::Completed(result.into())
    }
}

/// An error becomes the text that [`ToolOutcome::Failed`] carries.
impl<T: Into<AgentToolResult>, E: Display> From<Result<T, E>> for ToolOutcome {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(result) => ToolOutcome::Completed(result.into()),
            // `anyhow` writes the causes too, if it is asked in this form.
            Err(error) => ToolOutcome::Failed(format!("{error:#}")),
        }
    }
}
