//! What an event adds to the text of the answer, and when it happened.

use super::AgentEvent;
use super::DeltaKind;

impl AgentEvent {
    /// Returns the text that this event adds to the answer, which is what a terminal prints while the answer streams.
    /// Thinking and the arguments of calls are not part of it. After `message_reset` the answer begins again.
    pub fn added_text(&self) -> Option<&str> {
        match self {
            AgentEvent::MessageUpdate(delta) if delta.kind == DeltaKind::Text => Some(&delta.text),
            _ => None,
        }
    }

    /// Returns when something began or ended, in milliseconds since 1970, by the clock of the run
    /// ([`Timer::now`](crate::ports::Timer::now)); `None` for events that begin and end nothing.
    pub fn at(&self) -> Option<u64> {
        match self {
            AgentEvent::AgentStart { at }
            | AgentEvent::RunResumed { at, .. }
            | AgentEvent::AgentEnd { at, .. }
            | AgentEvent::TurnStart { at, .. }
            | AgentEvent::TurnEnd { at, .. }
            | AgentEvent::MessageStart { at }
            | AgentEvent::MessageEnd { at, .. }
            | AgentEvent::ToolExecutionStart { at, .. }
            | AgentEvent::ToolExecutionEnd { at, .. } => Some(*at),
            _ => None,
        }
    }
}
