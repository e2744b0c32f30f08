//! The sans-IO machine: the state of one run as plain data, and [`LoopState::step`], the only thing that changes it.
//!
//! A step takes one input and appends everything that follows from it, in order, to a list: events to tell, effects
//! to start, effects to cancel. It never waits, never looks at a clock and calls nothing but [`Rules`].
//!
//! The driver walks the list in order. Before it starts an effect it has told all events before it and has handed
//! over the mail that came meanwhile; if that cancelled the effect, it never starts. A late reply to a cancelled
//! effect changes nothing.
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

use crate::approval::ToolDecision;
use crate::config::Rules;
use crate::error::ErrorInfo;
use crate::event::AgentEvent;
use crate::json::RawJson;
use crate::message::AgentMessage;
use crate::policy::Transform;
use crate::ports::{ApprovalRequest, Compaction, HookCall};
use crate::stream::{AssistantMessageEvent, ModelRequest};
use crate::tool::{Progress, ToolOutcome};

pub use checkpoint::unsaid;
pub use output::OUTPUT_TOOL;
pub use resume::tell_first;
pub(crate) use state::History;
pub use state::{Letter, LoopState};
pub(crate) use turn::is_something;

/// Names an effect. Never used twice in a run.
pub type EffectId = u64;

/// What the outside tells the machine.
#[derive(Debug)]
pub enum Input {
    /// A run begins with these messages.
    Begin(Vec<AgentMessage>),
    /// A run goes on from the history as it is.
    Continue,
    /// A run that was read from a checkpoint goes on.
    Resume,
    /// An effect answers. `Infer` and `Execute` may answer many times.
    Reply(EffectId, Reply),
    /// Mail.
    Command(AgentCommand),
    /// Steering that came together: it acts as one.
    Steer(Vec<Letter>),
    /// Somebody stops the run; why.
    Abort(Rc<str>),
}

/// What follows from a step, in order.
#[derive(Debug)]
pub enum Output {
    /// Tell the listeners.
    Event(AgentEvent),
    /// Start an effect. The announcement is told right before, unless the effect was cancelled by then.
    Start {
        /// Its name.
        id: EffectId,
        /// What to do.
        effect: Effect,
        /// An event that belongs to the start.
        announce: Option<AgentEvent>,
    },
    /// Drop an effect, also one that was not started yet.
    Cancel(EffectId),
    /// What became of a letter.
    Receipt(u64, Receipt),
}

/// What became of a steering or follow-up message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It stands in the history since this turn.
    Delivered {
        /// From 0.
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
    /// Ask a model: first the key, once per turn, then the call.
    Infer {
        /// Which of the models.
        model: usize,
        /// Names the turn, for the key.
        turn_index: u32,
        /// What to ask.
        request: ModelRequest,
    },
    /// Call the hooks of a stage.
    Hook(HookCall),
    /// Ask the approver.
    Approve(ApprovalRequest),
    /// Run a tool.
    Execute {
        /// Which of the tools.
        tool: usize,
        /// The call.
        call_id: Rc<str>,
        /// What it gets.
        arguments: RawJson,
    },
    /// Ask the message provider, if there is one.
    Poll(Queue),
    /// Run the compaction engine, if there is one, on the history as it is.
    Compact {
        /// The model's id.
        model: Rc<str>,
    },
    /// Wait.
    Sleep {
        /// Milliseconds.
        ms: u64,
    },
}

/// The two queues of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Seen during a run.
    Steering,
    /// The same, so far as somebody has posted it: nobody is asked.
    Posted,
    /// Seen when the run would end.
    FollowUp,
}

/// The answer of an effect.
#[derive(Debug)]
pub enum Reply {
    /// Of `Prepare`.
    Prepared(Result<Transform, String>),
    /// Of `Infer`, many times.
    Stream(AssistantMessageEvent),
    /// Of `Infer`: the stream is over.
    StreamEnded,
    /// Of `Hook`.
    Hook(Result<(), ErrorInfo>),
    /// Of `Approve`.
    Approved(Result<ToolDecision, String>),
    /// Of `Execute`, many times.
    Progress(Progress),
    /// Of `Execute`.
    Executed(ToolOutcome),
    /// Of `Poll`.
    Polled(Vec<AgentMessage>),
    /// Of `Compact`; `None` where there is no engine.
    Compacted(Option<Result<Compaction, String>>),
    /// Of `Sleep`.
    Slept,
}

/// Mail to a run.
#[derive(Clone, Debug)]
pub enum AgentCommand {
    /// A message that interrupts.
    Steer(Letter),
    /// A message for when the run would end.
    FollowUp(Letter),
    /// A decision about one call.
    ResolveTool {
        /// The call.
        call_id: String,
        /// The decision.
        decision: ToolDecision,
    },
    /// Decisions about several calls: all or none.
    ResolveTools(Vec<(String, ToolDecision)>),
    /// The model was changed in the configuration.
    SwitchModel,
    /// Both queues are emptied.
    ClearQueues,
    /// The run is stopped; why.
    Cancel(Rc<str>),
}

impl LoopState {
    /// Takes one input and appends what follows from it; `now` is milliseconds since 1970. Input that does not fit the state changes nothing.
    pub fn step(&mut self, rules: &Rules, now: u64, input: Input, out: &mut Vec<Output>) {
        Step { s: self, rules, now, out }.take(input);
    }
}

/// One step in the making: the state and what it may use. Its methods are spread over the files of this module, in
/// the order in which a turn happens.
pub(crate) struct Step<'a> {
    pub(crate) s: &'a mut LoopState,
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
        let id = self.s.new_effect();
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
