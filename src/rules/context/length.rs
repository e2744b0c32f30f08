//! Whether a list of messages is shorter than another one.

use super::passes::Reducible;
use crate::words::message::AgentMessage;

/// How long a list of messages is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListLength {
    messages: usize,
    weight: u64,
}

impl ListLength {
    pub(crate) fn of(messages: &[AgentMessage]) -> Self {
        let weight = messages.iter().map(Reducible::weight).fold(0, u64::saturating_add);
        ListLength { messages: messages.len(), weight }
    }

    /// Whether there is less of it: fewer messages, or less in them. What custom messages become is not known here,
    /// so they count only by their number.
    pub(crate) fn is_shorter_than(self, other: ListLength) -> bool {
        self.messages < other.messages || self.weight < other.weight
    }
}
