//! Why a turn ended, why a run ended, and who decided about a call.

use crate::data::json::words;

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

words!(TurnEndReason {
    Complete = "complete", ToolsExecuted = "tools_executed", SteeringInterrupt = "steering_interrupt",
    Error = "error", Aborted = "aborted", Transfer = "transfer",
});

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

words!(RunStopReason {
    Budget = "budget", Completed = "completed", MaxTurns = "max_turns", PolicyStop = "policy_stop",
    Transfer = "transfer", Aborted = "aborted", Error = "error",
});

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

words!(DecisionSource { Rule = "rule", Callback = "callback", Command = "command", Abort = "abort" });
