//! Why a message ended, and why a result is not the tool's own.

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

impl ToolResultCause {
    const WORDS: [(Self, &'static str); 15] = [
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
        (Self::Filtered, "filtered"),
        (Self::Budget, "budget"),
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
