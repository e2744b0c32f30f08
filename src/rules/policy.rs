//! Policies decide, synchronously, at four points of a run. Transformers give the model a different view of
//! the history.
//!
//! Policies run in registration order. The first `Stop` wins and discards what earlier policies of the same
//! slot injected; the first `Skip` discards what they injected for the same call. A policy that fails or
//! panics counts as `Continue`, and its changes are undone.
//!
//! ```
//! use std::rc::Rc;
//! use turnwheel::config::AgentLoopConfig;
//! use turnwheel::policy::{DispatchCall, DispatchVerdict, PolicyContext, Verdict};
//! use turnwheel::scripted::{self, Clock};
//!
//! let mut config = AgentLoopConfig::new(scripted::model([]), Rc::new(Clock::default()));
//! config.rules.pre_turn.push(Rc::new(|context: &PolicyContext<'_>| {
//!     let spent = context.usage.total > 50_000;
//!     Ok(if spent { Verdict::Stop("the budget is spent".into()) } else { Verdict::Continue })
//! }));
//! config.rules.pre_dispatch.push(Rc::new(|call: &mut DispatchCall<'_>| {
//!     let shell = call.tool_name == "shell";
//!     Ok(if shell { DispatchVerdict::Skip("no shell today".into()) } else { DispatchVerdict::Continue })
//! }));
//! ```

use crate::data::json::{Map, RawJson};
use crate::words::event::CompactionReport;
use crate::words::message::{AgentMessage, AssistantMessage, ToolResultMessage, Usage};

/// Whose run it is: what every function of the host is told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunInfo<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// The id of the session.
    pub session_id: &'a str,
    /// The turn, counted from 0.
    pub turn_index: u32,
    /// What the host has started the run with: an object.
    pub metadata: Option<&'a RawJson>,
}

/// What a policy is told about the run.
#[derive(Clone, Copy, Debug)]
pub struct PolicyContext<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// The id of the session.
    pub session_id: &'a str,
    /// The turn, counted from 0.
    pub turn_index: u32,
    /// What the host has started the run with: an object.
    pub metadata: Option<&'a RawJson>,
    /// The usage of the run so far.
    pub usage: &'a Usage,
    /// The number of messages in the context.
    pub message_count: usize,
    /// In the first slot of a turn, the messages appended since the last turn; later, those that the turn
    /// appended.
    pub new_messages: &'a [AgentMessage],
    /// Whether the conversation was too long in this turn, so that room had to be made: the model had refused it,
    /// or was known to have too small a window.
    pub overflow_signal: bool,
    /// The session state, as it was when the slot began.
    pub state: &'a Map,
}

impl<'a> PolicyContext<'a> {
    /// Whose run it is.
    pub fn about(&self) -> RunInfo<'a> {
        let PolicyContext { run_id, session_id, turn_index, metadata, .. } = *self;
        RunInfo { run_id, session_id, turn_index, metadata }
    }
}

/// The decision of a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Changes nothing.
    Continue,
    /// Ends the run, for this reason.
    Stop(String),
    /// Adds messages for the model.
    Inject(Vec<AgentMessage>),
}

/// The decision of a policy about one tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum DispatchVerdict {
    /// Changes nothing.
    Continue,
    /// Runs no call of the batch and ends the run, for this reason.
    Stop(String),
    /// Adds messages after the results.
    Inject(Vec<AgentMessage>),
    /// Does not run this call. The text becomes its error result.
    Skip(String),
}

/// A tool call, before approval and execution. A policy may change `arguments`: the approver and the tool
/// see the change, the history keeps the model's own.
#[derive(Clone, Debug)]
pub struct DispatchCall<'a> {
    /// The id of the run.
    pub run_id: &'a str,
    /// The id of the session.
    pub session_id: &'a str,
    /// The turn, counted from 0.
    pub turn_index: u32,
    /// What the host has started the run with: an object.
    pub metadata: Option<&'a RawJson>,
    /// The id of the call.
    pub call_id: &'a str,
    /// The name of the tool, which may not exist.
    pub tool_name: &'a str,
    /// A JSON object, unless the model gave something else.
    pub arguments: RawJson,
    /// The session state, as it was when the batch began.
    pub state: &'a Map,
}

impl<'a> DispatchCall<'a> {
    /// Whose run it is.
    pub fn about(&self) -> RunInfo<'a> {
        let DispatchCall { run_id, session_id, turn_index, metadata, .. } = *self;
        RunInfo { run_id, session_id, turn_index, metadata }
    }
}

/// Decides before the model is called.
pub trait PreTurnPolicy {
    /// Called once per turn, on the transformed context.
    ///
    /// # Errors
    /// Count as [`Verdict::Continue`].
    fn evaluate(&self, context: &PolicyContext<'_>) -> Result<Verdict, String>;
}

/// Decides about tool calls before any call of their batch is approved or run.
pub trait PreDispatchPolicy {
    /// Called once per call, and again if the approver changed the arguments.
    ///
    /// # Errors
    /// Count as [`DispatchVerdict::Continue`]; changes to the arguments are undone.
    fn evaluate(&self, call: &mut DispatchCall<'_>) -> Result<DispatchVerdict, String>;
}

/// Decides when a turn is over, even if the turn failed or was stopped.
pub trait PostTurnPolicy {
    /// Called once per turn, on the committed history. An injected assistant message replaces that of the
    /// turn if it has the same tool calls.
    ///
    /// # Errors
    /// Count as [`Verdict::Continue`].
    fn evaluate(&self, turn: &PostTurn<'_>) -> Result<Verdict, String>;
}

/// A finished turn.
#[derive(Clone, Copy, Debug)]
pub struct PostTurn<'a> {
    /// What every policy is told about the run.
    pub context: PolicyContext<'a>,
    /// The answer of the turn.
    pub message: &'a std::rc::Rc<AssistantMessage>,
    /// The results of the turn, in the order of the calls.
    pub tool_results: &'a [std::rc::Rc<ToolResultMessage>],
    /// The history, including this turn.
    pub messages: &'a [AgentMessage],
}

/// Decides when the run would otherwise end.
pub trait PostLoopPolicy {
    /// Called when nothing is left to do, before follow-ups are requested.
    ///
    /// # Errors
    /// Count as [`Verdict::Continue`].
    fn evaluate(&self, context: &PolicyContext<'_>) -> Result<Verdict, String>;
}

/// The result of a transformer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Transform {
    /// Keeps the history as it is.
    #[default]
    Unchanged,
    /// Shows the model a different view in this request only.
    View(Vec<AgentMessage>),
    /// Like [`Transform::View`], and `context_compacted` is emitted.
    Reduced {
        /// What the model is shown in this request.
        view: Vec<AgentMessage>,
        /// What was left out of it.
        report: CompactionReport,
    },
    /// Replaces the history from now on. `context_compacted` is emitted only if there is a report.
    Replace {
        /// The new history.
        messages: Vec<AgentMessage>,
        /// What was done.
        report: Option<CompactionReport>,
    },
}

impl Transform {
    /// Returns the messages that it gives instead of those that it was given.
    pub fn messages(&self) -> Option<&[AgentMessage]> {
        match self {
            Transform::Unchanged => None,
            Transform::View(messages)
            | Transform::Reduced { view: messages, .. }
            | Transform::Replace { messages, .. } => Some(messages),
        }
    }
}

/// Gives the model a different view of the history, synchronously.
pub trait ContextTransformer {
    /// Called before every turn, and again when the model refused the conversation as too long.
    ///
    /// # Errors
    /// End the run.
    fn transform(&self, messages: &[AgentMessage], overflow_signal: bool) -> Result<Transform, String>;

    /// The same, with whose run it is. This is what is called; by default it forgets that.
    ///
    /// # Errors
    /// End the run.
    fn transform_in(
        &self,
        _: &RunInfo<'_>,
        messages: &[AgentMessage],
        overflow_signal: bool,
    ) -> Result<Transform, String> {
        self.transform(messages, overflow_signal)
    }
}

macro_rules! closures_are_policies {
    ($($policy:ident($input:ty) -> $verdict:ty),+ $(,)?) => {$(
        impl<F: Fn($input) -> Result<$verdict, String>> $policy for F {
            fn evaluate(&self, input: $input) -> Result<$verdict, String> {
                self(input)
            }
        }
    )+};
}

closures_are_policies!(
    PreTurnPolicy(&PolicyContext<'_>) -> Verdict,
    PreDispatchPolicy(&mut DispatchCall<'_>) -> DispatchVerdict,
    PostTurnPolicy(&PostTurn<'_>) -> Verdict,
    PostLoopPolicy(&PolicyContext<'_>) -> Verdict,
);

impl<F: Fn(&[AgentMessage], bool) -> Result<Transform, String>> ContextTransformer for F {
    fn transform(&self, messages: &[AgentMessage], overflow_signal: bool) -> Result<Transform, String> {
        self(messages, overflow_signal)
    }
}
