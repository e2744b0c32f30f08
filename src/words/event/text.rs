//! What an event adds to the text of the answer.

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
}
