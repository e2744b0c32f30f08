//! Why a message ended, and why a result is not the tool's own.

use crate::data::json::words;

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
    /// A steering message cut the answer off.
    Interrupted,
    /// The run was aborted.
    Aborted,
    /// The call failed.
    Error,
}

words!(MessageStopReason {
    Stop = "stop", Length = "length", ToolUse = "tool_use", ContentFilter = "content_filter",
    Refusal = "refusal", Pause = "pause", Interrupted = "interrupted", Aborted = "aborted", Error = "error",
});

impl MessageStopReason {
    /// Whether the answer was filtered or refused: then none of its calls may run.
    pub fn forbids_calls(self) -> bool {
        matches!(self, Self::ContentFilter | Self::Refusal)
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
    /// The answer with the call was filtered or refused.
    Filtered,
    /// The budget has no room for another call.
    Budget,
}

words!(ToolResultCause {
    UnknownTool = "unknown_tool", InvalidArguments = "invalid_arguments", Incomplete = "incomplete",
    Rejected = "rejected", Denied = "denied", Skipped = "skipped", PolicyStop = "policy_stop",
    Steering = "steering", Aborted = "aborted", Transfer = "transfer", Timeout = "timeout", Threw = "threw",
    Interrupted = "interrupted", Filtered = "filtered", Budget = "budget",
});
