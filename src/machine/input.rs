//! What goes into the machine: the beginning of a run, replies of effects, mail, an abort.

use std::rc::Rc;

use crate::host::config::SteeringTime;
use crate::host::ports::{Compaction, TurnChoice};
use crate::host::tool::{Progress, ToolOutcome};
use crate::rules::answer::Answer;
use crate::rules::approval::ToolDecision;
use crate::rules::policy::Transform;
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::ErrorInfo;
use crate::words::message::AgentMessage;

use super::output::EffectId;

/// An input to the machine.
#[derive(Debug)]
pub enum Input {
    /// Begins a run with these messages.
    Begin(Vec<AgentMessage>),
    /// Continues from the history as it is.
    Continue,
    /// Continues a run that was restored from a checkpoint.
    Resume,
    /// A reply from an effect. `Infer` and `Execute` may reply many times.
    Reply(EffectId, Reply),
    /// Mail from the host.
    Command(AgentCommand),
    /// Steering messages that arrived together. They act as one.
    Steer(Vec<Letter>),
    /// Stops the run, for this reason. A run that has not begun begins, and is stopped at once.
    Abort(Rc<str>),
    /// No effect is running, and nothing more will be posted.
    Deserted,
    /// Every listener has received the events before [`Output::Flush`](super::Output::Flush).
    Flushed,
}

/// A reply from an effect.
#[derive(Debug)]
pub enum Reply {
    /// From `Choose`.
    Chosen(Result<Box<TurnChoice>, String>),
    /// From `Prepare`.
    Prepared(Result<Transform, String>),
    /// From `Infer`, many times.
    Stream(AssistantMessageEvent),
    /// From `Infer`: the stream has ended.
    StreamEnded,
    /// From `Hook`.
    Hook(Result<(), ErrorInfo>),
    /// From `Approve`.
    Approved(Result<ToolDecision, String>),
    /// From `Execute`, many times.
    Progress(Progress),
    /// From `Execute`.
    Executed(ToolOutcome),
    /// From `Poll`.
    Polled(Vec<AgentMessage>),
    /// From `Compact`; `None` if there is no engine.
    Compacted(Option<Result<Compaction, String>>),
    /// From `Sleep`.
    Slept,
}

/// A command to a run.
#[derive(Clone, Debug)]
pub enum AgentCommand {
    /// A message that interrupts the run.
    Steer(Letter),
    /// A message to read when the run would otherwise end.
    FollowUp(Letter),
    /// Answers to questions, each with the id of the question: all of them are applied, or none.
    Resolve(Vec<(String, Answer)>),
    /// A decision that the agent refused: the listeners are told.
    Refuse {
        /// The id of the question, if the decision named one.
        id: Option<String>,
        /// The id of the call, if the decision named one.
        call_id: Option<String>,
        /// Why it was refused.
        reason: String,
    },
    /// A decision about one call, which answers the open question about that call.
    ResolveTool {
        /// The id of the call.
        call_id: String,
        /// The decision.
        decision: ToolDecision,
    },
    /// Decisions about several calls: all of them are applied, or none.
    ResolveTools(Vec<(String, ToolDecision)>),
    /// The model in the configuration has changed.
    SwitchModel,
    /// Empties both queues.
    ClearQueues,
    /// Stops the run, for this reason.
    Cancel(Rc<str>),
}

/// A message on its way into the history.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The message.
    pub message: AgentMessage,
    /// Identifies the receipt that its sender holds; 0 for none.
    pub receipt: u64,
    /// When it interrupts a batch, if it steers; what the run's rules say unless it says it itself.
    pub when: Option<SteeringTime>,
}

impl Letter {
    /// A message that says nothing about when it is read.
    pub fn new(message: AgentMessage, receipt: u64) -> Self {
        Letter { message, receipt, when: None }
    }
}

/// The queues of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Read during a run.
    Steering,
    /// The steering queue, but only messages already posted: the message provider is not polled.
    Posted,
    /// Read when the run would otherwise end.
    FollowUp,
}
