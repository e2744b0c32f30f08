//! The sans-IO machine: the state of one run as plain data, and [`LoopState::step`], the only function that
//! changes it.
//!
//! A step takes one input and appends everything that follows from it to a list, in order: events to emit,
//! effects to start, effects to cancel. It never waits, never reads a clock, and calls nothing but
//! [`Rules`].
//!
//! The driver processes the list in order. Before it starts an effect, it emits all events that come before
//! it and delivers the mail that has arrived in the meantime. If that cancels the effect, the effect never
//! starts. A late reply to a cancelled effect changes nothing.
//!
//! ```
//! use std::rc::Rc;
//! use turnwheel::config::AgentLoopConfig;
//! use turnwheel::machine::{Effect, Input, LoopState, Output, Reply};
//! use turnwheel::ports::AgentRunContext;
//! use turnwheel::scripted::{self, Clock};
//! use turnwheel::state::SessionState;
//!
//! let rules = AgentLoopConfig::new(scripted::model([]), Rc::new(Clock::default())).rules;
//! let mut run = LoopState::new(AgentRunContext::new("run", "session"), Vec::new(), SessionState::default());
//! let mut out = Vec::new();
//! run.step(&rules, 0, Input::Begin(vec!["Hello".into()]), &mut out);
//!
//! // agent_start, turn_start, and a wish: that somebody prepares the context.
//! let [Output::Event(_), Output::Event(_), Output::Start { id, effect: Effect::Prepare { .. }, .. }] = out[..] else {
//!     panic!("{out:?}");
//! };
//! run.step(&rules, 0, Input::Reply(id, Reply::Prepared(Ok(Default::default()))), &mut out);
//! assert!(matches!(out.last(), Some(Output::Start { effect: Effect::Infer { .. }, .. })));
//! ```

mod asking;
mod checkpoint;
mod dispatch;
mod infer;
mod output;
mod resume;
mod settle;
mod state;
mod texts;
mod turn;

use std::rc::Rc;

use crate::data::json::RawJson;
use crate::host::config::Rules;
use crate::host::ports::{ApprovalRequest, Compaction, HookCall};
use crate::host::tool::{Progress, ToolOutcome};
use crate::rules::approval::ToolDecision;
use crate::rules::event::AgentEvent;
use crate::rules::policy::Transform;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest};
use crate::words::error::ErrorInfo;
use crate::words::message::AgentMessage;

pub use checkpoint::unsaid;
pub use output::OUTPUT_TOOL;
pub use resume::tell_first;
pub(crate) use state::History;
pub use state::{Letter, LoopState};
pub(crate) use turn::has_content;

/// Identifies an effect. Never reused within a run.
pub type EffectId = u64;

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
    /// Stops the run, for this reason.
    Abort(Rc<str>),
}

/// An output of a step. Outputs are processed in order.
#[derive(Debug)]
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
    /// What became of a letter.
    Receipt(u64, Receipt),
}

/// What became of a steering or follow-up message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It was added to the history in this turn.
    Delivered {
        /// The turn, counted from 0.
        turn_index: u32,
    },
    /// The queue was cleared.
    Cleared,
}

/// What the driver does for the machine.
#[derive(Debug)]
pub enum Effect {
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

/// A reply from an effect.
#[derive(Debug)]
pub enum Reply {
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
    /// A decision about one call.
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

impl LoopState {
    /// Takes one input and appends what follows from it. `now` is in milliseconds since 1970. Input that
    /// does not fit the state changes nothing.
    pub fn step(&mut self, rules: &Rules, now: u64, input: Input, out: &mut Vec<Output>) {
        Step { state: self, rules, now, out }.handle(input);
    }
}

/// A step in progress: the state, and what the step may use. Its methods are spread over the files of this
/// module, in the order in which they run in a turn.
pub(crate) struct Step<'a> {
    pub(crate) state: &'a mut LoopState,
    pub(crate) rules: &'a Rules,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) out: &'a mut Vec<Output>,
}

impl Step<'_> {
    pub(crate) fn emit(&mut self, event: AgentEvent) {
        self.out.push(Output::Event(event));
    }

    pub(crate) fn start(&mut self, effect: Effect) -> EffectId {
        self.start_announced(effect, None)
    }

    pub(crate) fn start_announced(&mut self, effect: Effect, announce: Option<AgentEvent>) -> EffectId {
        let id = self.state.new_effect();
        self.out.push(Output::Start { id, effect, announce });
        id
    }

    pub(crate) fn cancel(&mut self, id: EffectId) {
        self.out.push(Output::Cancel(id));
    }

    pub(crate) fn cancel_some(&mut self, id: Option<EffectId>) {
        if let Some(id) = id {
            self.cancel(id);
        }
    }
}
