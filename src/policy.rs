//! Policies decide, synchronously, at four points of a run; transformers give the model another view of the history.
//!
//! In registration order; the first `Stop` wins and drops earlier injections of its slot, the first `Skip` those about
//! its call. One that fails or panics counts as `Continue`, and its changes are taken back.
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

use crate::event::CompactionReport;
use crate::json::{Map, RawJson};
use crate::message::{AgentMessage, AssistantMessage, ToolResultMessage, Usage};

/// What a policy is told of the run.
#[derive(Clone, Copy, Debug)]
pub struct PolicyContext<'a> {
    /// The run.
    pub run_id: &'a str,
    /// From 0.
    pub turn_index: u32,
    /// What the run used so far.
    pub usage: &'a Usage,
    /// How many messages the context has.
    pub message_count: usize,
    /// In a turn's first slot: what was appended since the last turn. Later: what the turn appended.
    pub new_messages: &'a [AgentMessage],
    /// Whether the model refused the conversation as too long.
    pub overflow_signal: bool,
    /// The session state, as it was when the slot began.
    pub state: &'a Map,
}

/// What a policy decides.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing.
    Continue,
    /// The run ends; why.
    Stop(String),
    /// Messages for the model.
    Inject(Vec<AgentMessage>),
}

/// What a policy decides about one tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum DispatchVerdict {
    /// Nothing.
    Continue,
    /// No call of the batch runs and the run ends; why.
    Stop(String),
    /// Messages that follow the results.
    Inject(Vec<AgentMessage>),
    /// This call does not run; the text is its error result.
    Skip(String),
}

/// A tool call before anything was asked or run. `arguments` may be changed: approver and tool see the change, the
/// history keeps the model's own.
#[derive(Clone, Debug)]
pub struct DispatchCall<'a> {
    /// The call.
    pub call_id: &'a str,
    /// Its tool, which need not exist.
    pub tool_name: &'a str,
    /// A JSON object, unless the model gave something else.
    pub arguments: RawJson,
    /// The session state, as it was when the batch began.
    pub state: &'a Map,
}

/// Decides before the model is asked.
pub trait PreTurnPolicy {
    /// Called once per turn, on the transformed context.
    ///
    /// # Errors
    /// Count as [`Verdict::Continue`].
    fn evaluate(&self, context: &PolicyContext<'_>) -> Result<Verdict, String>;
}

/// Decides about tool calls before any of their batch is asked for or run.
pub trait PreDispatchPolicy {
    /// Called once per call, and again when the approver changed its arguments.
    ///
    /// # Errors
    /// Count as [`DispatchVerdict::Continue`]; changed arguments are taken back.
    fn evaluate(&self, call: &mut DispatchCall<'_>) -> Result<DispatchVerdict, String>;
}

/// Decides when a turn is over, also one that failed or was stopped.
pub trait PostTurnPolicy {
    /// Called once per turn, on the committed history. An injected assistant message replaces the turn's, if its
    /// tool calls are the same.
    ///
    /// # Errors
    /// Count as [`Verdict::Continue`].
    fn evaluate(&self, turn: &PostTurn<'_>) -> Result<Verdict, String>;
}

/// A turn that is over.
#[derive(Clone, Copy, Debug)]
pub struct PostTurn<'a> {
    /// The run.
    pub context: PolicyContext<'a>,
    /// The turn's answer.
    pub message: &'a std::rc::Rc<AssistantMessage>,
    /// The turn's results in the order of the calls.
    pub tool_results: &'a [std::rc::Rc<ToolResultMessage>],
    /// The history, the turn included.
    pub messages: &'a [AgentMessage],
}

/// Decides when the run would end.
pub trait PostLoopPolicy {
    /// Called when nothing is left to do, before follow-ups are asked for.
    ///
    /// # Errors
    /// Count as [`Verdict::Continue`].
    fn evaluate(&self, context: &PolicyContext<'_>) -> Result<Verdict, String>;
}

/// What a transformer answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Transform {
    /// The history as it is.
    #[default]
    Unchanged,
    /// Another view, for this request only.
    View(Vec<AgentMessage>),
    /// Another history from now on. `context_compacted` comes out only with a report.
    Replace {
        /// The new history.
        messages: Vec<AgentMessage>,
        /// What was done.
        report: Option<CompactionReport>,
    },
}

/// Gives the model another view of the history, synchronously.
pub trait ContextTransformer {
    /// Called before every turn, and again when the model refused the conversation as too long.
    ///
    /// # Errors
    /// End the run.
    fn transform(&self, messages: &[AgentMessage], overflow_signal: bool) -> Result<Transform, String>;
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
