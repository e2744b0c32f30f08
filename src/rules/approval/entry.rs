//! A call of the batch, from the question to the moment when it is handed out.

use crate::data::json::ToJson;
use crate::words::event::DecisionSource;
use crate::words::message::ToolCallBlock;

use super::decision::{ApprovalError, Resolution, ToolDecision};
use super::policy::ToolApprovalAction;

/// When a call may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalGate {
    /// When all calls of the batch have been decided.
    #[default]
    Batch,
    /// When this call and all earlier ones have been decided.
    Prefix,
}

/// A call of the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalEntry {
    /// The call, with the arguments to be decided on.
    pub call: ToolCallBlock,
    /// The state of the call.
    pub state: ApprovalState,
}

/// The state of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    /// Not decided yet.
    Pending,
    /// Decided, but not started.
    Ready {
        /// The decision.
        decision: ToolDecision,
        /// Who made the decision.
        by: DecisionSource,
    },
    /// Handed out by [`ApprovalStateMachine::next_ready`](super::ApprovalStateMachine::next_ready).
    Dispatched,
}

/// A call that may start, or whose rejection may be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyCall {
    /// The call.
    pub call: ToolCallBlock,
    /// The decision.
    pub decision: ToolDecision,
    /// Who made the decision.
    pub by: DecisionSource,
}

impl ApprovalEntry {
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.state, ApprovalState::Pending)
    }

    pub(super) fn would_resolve(&self, decision: &ToolDecision) -> Result<Resolution, ApprovalError> {
        if decision.flaw().is_some() {
            return Err(ApprovalError::InvalidArguments(self.call.call_id.clone()));
        }
        match &self.state {
            ApprovalState::Pending => Ok(Resolution::Applied),
            // Compared by JSON text, because comparing decisions block by block would need more code than
            // the writer.
            ApprovalState::Ready { decision: first, .. } if first.to_json() == decision.to_json() => {
                Ok(Resolution::Repeated)
            }
            _ => Err(ApprovalError::AlreadyResolved(self.call.call_id.clone())),
        }
    }

    pub(super) fn resolve(
        &mut self,
        decision: ToolDecision,
        by: DecisionSource,
    ) -> Result<Resolution, ApprovalError> {
        let resolution = self.would_resolve(&decision)?;
        if resolution == Resolution::Applied {
            self.state = ApprovalState::Ready { decision, by };
        }
        Ok(resolution)
    }
}

impl ApprovalState {
    /// The state that a rule gives to a call.
    pub(crate) fn ruled(action: ToolApprovalAction) -> Self {
        let decision = match action {
            ToolApprovalAction::Ask => return ApprovalState::Pending,
            ToolApprovalAction::Approve => ToolDecision::Accept,
            ToolApprovalAction::Deny => ToolDecision::Reject { reason: None },
        };
        ApprovalState::Ready { decision, by: DecisionSource::Rule }
    }
}
