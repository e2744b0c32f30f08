//! Why a turn ended, why a run ended, and who decided about a call.

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEndReason {
    /// The model called no tools.
    Complete,
    /// Tools ran; the loop continues.
    ToolsExecuted,
    /// A steering message arrived while tools ran.
    SteeringInterrupt,
    /// The model call, a hook or a fatal tool failed.
    Error,
    /// The run was aborted.
    Aborted,
    /// The conversation was handed over.
    Transfer,
}

impl TurnEndReason {
    const WORDS: [(Self, &'static str); 6] = [
        (Self::Complete, "complete"),
        (Self::ToolsExecuted, "tools_executed"),
        (Self::SteeringInterrupt, "steering_interrupt"),
        (Self::Error, "error"),
        (Self::Aborted, "aborted"),
        (Self::Transfer, "transfer"),
    ];

    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("error", |(_, word)| word)
    }

    /// Returns the reason for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(reason, _)| *reason)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStopReason {
    /// The model had nothing more to do.
    Completed,
    /// The turn limit was reached.
    MaxTurns,
    /// A policy stopped the run.
    PolicyStop,
    /// The conversation was handed over.
    Transfer,
    /// The budget was used up.
    Budget,
    /// The run was aborted.
    Aborted,
    /// Something failed.
    Error,
}

impl RunStopReason {
    const WORDS: [(Self, &'static str); 7] = [
        (Self::Budget, "budget"),
        (Self::Completed, "completed"),
        (Self::MaxTurns, "max_turns"),
        (Self::PolicyStop, "policy_stop"),
        (Self::Transfer, "transfer"),
        (Self::Aborted, "aborted"),
        (Self::Error, "error"),
    ];

    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(reason, _)| *reason == self).map_or("error", |(_, word)| word)
    }

    /// Returns the reason for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(reason, _)| *reason)
    }
}

/// Who decided about a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionSource {
    /// A rule or the approval mode.
    Rule,
    /// The approver.
    Callback,
    /// A command from the host.
    Command,
    /// Nobody: the call is no longer wanted.
    Abort,
}

impl DecisionSource {
    const WORDS: [(Self, &'static str); 4] = [
        (Self::Rule, "rule"),
        (Self::Callback, "callback"),
        (Self::Command, "command"),
        (Self::Abort, "abort"),
    ];

    /// Returns the word used in events.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(source, _)| *source == self).map_or("rule", |(_, word)| word)
    }

    /// Returns the source for a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, w)| *w == word).map(|(source, _)| *source)
    }
}
