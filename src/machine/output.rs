//! What comes out of the machine, in order: events, effects to start and to cancel, receipts.

use std::rc::Rc;

use crate::data::json::RawJson;
use crate::host::ports::{ApprovalRequest, HookCall};
use crate::rules::answer::Answer;
use crate::rules::stream::ModelRequest;
use crate::words::event::AgentEvent;

use super::input::Queue;

/// Identifies an effect. Never reused within a run.
pub type EffectId = u64;

/// An output of a step. Outputs are processed in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Emit an event to the listeners.
    Event(AgentEvent),
    /// Start an effect. The announcement is emitted immediately before, unless the effect has been
    /// cancelled by then.
    Start {
        /// The id of the effect.
        id: EffectId,
        /// What to do.
        effect: Effect,
        /// An event to emit immediately before the effect starts.
        announce: Option<AgentEvent>,
    },
    /// Drop an effect, even if it has not started yet.
    Cancel(EffectId),
    /// An answer to a question of a running tool.
    Answer {
        /// The effect of the tool.
        id: EffectId,
        /// The number of the question among those of the call.
        number: u64,
        /// The answer.
        answer: Answer,
    },
    /// What became of a letter.
    Receipt(u64, Receipt),
    /// Policies decide next. As soon as the listeners have received every event before this, and what they posted has
    /// entered, [`Input::Flushed`](super::Input::Flushed) follows.
    Flush,
}

/// What the driver does for the machine.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask what holds for the turn, and put it into force.
    Choose,
    /// Run the asynchronous transformer, if there is one, on the history as it is.
    Prepare {
        /// Whether the model refused the conversation as too long.
        overflow: bool,
    },
    /// Call a model: first get the key, once per turn, then start the call.
    Infer {
        /// The index of the model.
        model: usize,
        /// The turn that the key belongs to.
        turn_index: u32,
        /// The request.
        request: ModelRequest,
    },
    /// Call the hooks of a stage.
    Hook(HookCall),
    /// Ask the approver.
    Approve(ApprovalRequest),
    /// Run a tool.
    Execute {
        /// The index of the tool.
        tool: usize,
        /// The id of the call.
        call_id: Rc<str>,
        /// The arguments that the tool receives.
        arguments: RawJson,
    },
    /// Poll the message provider, if there is one.
    Poll(Queue),
    /// Run the compaction engine, if there is one, on the history as it is.
    Compact {
        /// The model's id.
        model: Rc<str>,
    },
    /// Wait.
    Sleep {
        /// The time in milliseconds.
        ms: u64,
    },
}

/// What became of a steering or follow-up message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It was added to the history in this turn.
    Delivered {
        /// The turn, counted from 0.
        turn_index: u32,
    },
    /// It was not read: the queues were cleared, or the agent was reset.
    Cleared,
}
