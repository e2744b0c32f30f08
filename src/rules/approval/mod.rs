//! The decisions about a batch of tool calls, and which call may start. This is plain data: it can be
//! cloned, and stored in a checkpoint while a person takes days to decide.

mod decision;
mod entry;
mod policy;
mod stored;
mod table;

pub use decision::{ApprovalError, Resolution, ToolDecision};
pub(crate) use decision::{read_decision, read_output};
pub use entry::{ApprovalEntry, ApprovalGate, ApprovalState, ReadyCall};
pub use policy::{
    ApprovalMode, ApprovalOptions, RuleNames, ToolApprovalAction, ToolApprovalPolicy, strip_tool_prefix,
};
pub use table::ApprovalStateMachine;

pub use crate::words::event::DecisionSource;
