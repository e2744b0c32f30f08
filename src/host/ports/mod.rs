//! Ports: the traits a host implements. Everything asynchronous in a run goes through one of them.

mod hooks;
mod ids;
mod layers;
#[cfg(feature = "durable")]
mod steps;

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

pub use hooks::{AgentHook, HookCall, HookStages};
pub use layers::{Layers, ModelAttempt, ModelLayer, NextModel, NextTool, ToolLayer};
#[cfg(feature = "durable")]
pub use steps::{Step, StepEffect, Steps};

use crate::data::json::RawJson;
use crate::host::cancel::CancelToken;
use crate::host::config::TurnOptions;
use crate::host::tool::Nesting;
use crate::rules::approval::ToolDecision;
use crate::rules::policy::{RunInfo, Transform};
use crate::rules::stream::{AssistantMessageEvent, MAX_ANSWER, ModelRequest, NativeOutput};
use crate::wires::Tap;
use crate::words::event::CompactionReport;
use crate::words::message::{AgentMessage, Usage};
use crate::words::price::Price;

/// Identifies a run. Both ids come from the host; the engine never creates one. [`AgentRunContext::random`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRunContext {
    /// The id of this run.
    pub run_id: Rc<str>,
    /// The id of the conversation that the run belongs to.
    pub session_id: Rc<str>,
    /// What the host has started the run with, such as a user's id: an object. Checkpoints hold it.
    pub metadata: Option<RawJson>,
    /// The turn, counted from 0, wherever a function of the host is told. What a run is started with leaves it 0.
    pub turn_index: u32,
    /// How deep the run is inside others. The limit of a run that nobody called is that of its rules.
    pub nesting: Nesting,
}

impl AgentRunContext {
    /// Creates a context from the two ids.
    pub fn new(run_id: &str, session_id: &str) -> Self {
        let (run_id, session_id) = (run_id.into(), session_id.into());
        AgentRunContext { run_id, session_id, metadata: None, turn_index: 0, nesting: Nesting::default() }
    }

    /// What every function of the host is told of it.
    pub fn about(&self) -> RunInfo<'_> {
        RunInfo {
            run_id: &self.run_id,
            session_id: &self.session_id,
            turn_index: self.turn_index,
            metadata: self.metadata.as_ref(),
        }
    }
}

/// Calls a model: a wire format with a transport, or anything else that can answer.
pub trait StreamFn {
    /// Starts the call. The stream ends after `Done` or `Error`; if it ends without either, the call counts
    /// as a network failure. When the answer is no longer needed, `cancel` is set and then the stream is
    /// dropped.
    fn stream(
        &self,
        request: ModelRequest,
        context: &AgentRunContext,
        cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent>;

    /// Whether the model with this id honors [`ModelRequest::output`]. If not, it is offered a tool that receives the
    /// structured answer, and has to call it.
    fn native_output(&self, _model: &str) -> Option<NativeOutput> {
        None
    }

    /// Whether what a call of this model has used is estimated where the provider does not tell it: of an answer that was
    /// cut, and where usage is not told at all.
    fn estimates_usage(&self) -> bool {
        false
    }

    /// The price of its tokens, if it is known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// How many bytes an answer of this model may have: text, thinking, arguments, signatures and all else together,
    /// written as JSON. A longer answer ends with an error. `usize::MAX` is no limit.
    fn max_answer_bytes(&self) -> usize {
        MAX_ANSWER
    }

    /// The same model, the bytes of whose answers this one sees; `None` if there are no bytes.
    fn tapped(&self, _tap: &Rc<dyn Tap>) -> Option<Rc<dyn StreamFn>> {
        None
    }
}

/// Any closure of this shape is a model.
///
/// ```
/// use futures::stream::{self, StreamExt};
/// use turnwheel::cancel::CancelToken;
/// use turnwheel::config::Model;
/// use turnwheel::scripted;
/// use turnwheel::stream::ModelRequest;
///
/// let echo = |request: ModelRequest, _: CancelToken| {
///     let said = format!("I was told {} things.", request.messages.len());
///     stream::iter(scripted::text(&said)).boxed_local()
/// };
/// let model = Model::new("mine", "echo", std::rc::Rc::new(echo));
/// ```
impl<F> StreamFn for F
where
    F: Fn(ModelRequest, CancelToken) -> LocalBoxStream<'static, AssistantMessageEvent>,
{
    fn stream(
        &self,
        request: ModelRequest,
        _: &AgentRunContext,
        cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        self(request, cancel)
    }
}

/// Provides API keys. Asked once per turn; retries use the same key, and so do the provider's other models.
pub trait KeySource {
    /// Like [`KeySource::key_of`], for this run. This is what is called; by default, the run makes no difference.
    fn key_in(
        &self,
        _: &AgentRunContext,
        model: u32,
        provider: &str,
    ) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        self.key_of(model, provider)
    }

    /// Returns the key of a provider, if there is one.
    fn key(&self, provider: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>>;

    /// Whether models of the same provider have their own keys. If so, a key is requested for each model
    /// that is tried.
    fn is_by_model(&self) -> bool {
        false
    }

    /// Returns the key for one of the models, by the number that the host has given it: [`Model::number`]. By default, that
    /// is the key of its provider.
    ///
    /// [`Model::number`]: crate::config::Model::number
    fn key_of(
        &self,
        _model: u32,
        provider: &str,
    ) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        self.key(provider)
    }
}

/// A turn that is about to begin.
#[derive(Clone)]
pub struct TurnCall {
    /// The run.
    pub context: AgentRunContext,
    /// The turn, counted from 0.
    pub turn_index: u32,
    /// The whole history.
    pub messages: Rc<[AgentMessage]>,
    /// The usage of the run so far.
    pub usage: Usage,
    /// Set when the answer is no longer needed.
    pub cancel: CancelToken,
}

/// What holds for a turn.
#[derive(Clone, Debug, Default)]
pub struct TurnChoice {
    /// In place of what the agent is set to. A tool choice here holds for this turn, forced or not.
    pub options: TurnOptions,
    /// What the model is shown of the history, before the transformers.
    pub messages: Option<Vec<AgentMessage>>,
}

/// Chooses what holds for a turn.
pub trait TurnPreparer {
    /// Called once per turn, before the transformers, and again for a turn that a restored run continues before its answer.
    /// An error ends the run.
    fn prepare(&self, turn: TurnCall) -> LocalBoxFuture<'static, Result<TurnChoice, String>>;
}

/// Any asynchronous closure of this shape chooses.
///
/// ```
/// use std::rc::Rc;
/// use turnwheel::config::{AgentLoopConfig, TurnOptions};
/// use turnwheel::ports::{TurnCall, TurnChoice};
/// use turnwheel::scripted::{self, Clock};
///
/// let mut config = AgentLoopConfig::new(scripted::model([]), Rc::new(Clock::default()));
/// config.set_turn_preparer(Rc::new(async |turn: TurnCall| {
///     // The last turn has no tools, so it answers.
///     let active_tools = (turn.turn_index > 3).then(Vec::new);
///     Ok(TurnChoice { options: TurnOptions { active_tools, ..Default::default() }, messages: None })
/// }));
/// ```
impl<F, T> TurnPreparer for F
where
    F: Fn(TurnCall) -> T,
    T: Future<Output = Result<TurnChoice, String>> + 'static,
{
    fn prepare(&self, turn: TurnCall) -> LocalBoxFuture<'static, Result<TurnChoice, String>> {
        Box::pin(self(turn))
    }
}

/// Shortens or enriches the context asynchronously.
pub trait AsyncContextTransformer {
    /// The same, with the run and the turn, counted from 0, that it is for. This is what is called; by default, they make no
    /// difference.
    fn transform_in(
        &self,
        _: &AgentRunContext,
        _turn_index: u32,
        messages: Rc<[AgentMessage]>,
        overflow: bool,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>> {
        self.transform(messages, overflow, cancel)
    }

    /// Called before every turn, ahead of the synchronous transformers. An error ends the run.
    fn transform(
        &self,
        messages: Rc<[AgentMessage]>,
        overflow_signal: bool,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>>;
}

/// A message queue of the host, polled at the points where the specification says so.
pub trait MessageProvider {
    /// Calls one of the others, for this run. By default, the run makes no difference.
    fn poll_in(&self, _: &AgentRunContext, follow_up: bool) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        if follow_up { self.poll_follow_up() } else { self.poll_steering() }
    }

    /// Called after each finished tool, and after each turn.
    fn poll_steering(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>>;

    /// Called when the run would otherwise end.
    fn poll_follow_up(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>>;
}

/// Asks the approver about one tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The id of the question.
    pub id: String,
    /// The id of the call.
    pub call_id: String,
    /// The name of the tool, which may not exist.
    pub tool_name: String,
    /// The arguments, as the policies left them.
    pub arguments: RawJson,
    /// Whether the tool itself requires approval.
    pub requires_approval: bool,
}

/// Decides about tool calls.
pub trait Approver {
    /// The same, with the run and the turn, counted from 0, that the call is of. This is what is called; by default, they make
    /// no difference.
    fn decide_in(
        &self,
        _: &AgentRunContext,
        _turn_index: u32,
        request: ApprovalRequest,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        self.decide(request, cancel)
    }

    /// Called for all calls of a batch at once. An error or a panic rejects only that call.
    fn decide(
        &self,
        request: ApprovalRequest,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>>;
}

/// Any asynchronous closure of this shape is an approver.
///
/// ```
/// use std::rc::Rc;
/// use turnwheel::approval::ToolDecision;
/// use turnwheel::config::AgentLoopConfig;
/// use turnwheel::ports::ApprovalRequest;
/// use turnwheel::scripted::{self, Clock};
///
/// let mut config = AgentLoopConfig::new(scripted::model([]), Rc::new(Clock::default()));
/// config.set_approver(Rc::new(async |call: ApprovalRequest| match call.tool_name.as_str() {
///     "delete" => Err("nobody deletes anything here".to_owned()),
///     _ => Ok(ToolDecision::Accept),
/// }));
/// ```
impl<F, T> Approver for F
where
    F: Fn(ApprovalRequest) -> T,
    T: Future<Output = Result<ToolDecision, String>> + 'static,
{
    fn decide(
        &self,
        request: ApprovalRequest,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        Box::pin(self(request))
    }
}

/// Shortens a history that is too long for the model.
pub trait CompactionEngine {
    /// Called when the model refused the conversation as too long and no transformer shortened it. An error
    /// ends the turn.
    fn compact(
        &self,
        context: &AgentRunContext,
        call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>>;
}

/// What to compact.
#[derive(Clone)]
pub struct CompactionCall {
    /// The whole history.
    pub messages: Rc<[AgentMessage]>,
    /// The model's id.
    pub model: Rc<str>,
    /// Set when the result is no longer needed.
    pub cancel: CancelToken,
}

/// The result of a compaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// The new history.
    pub messages: Vec<AgentMessage>,
    /// What the compaction did.
    pub report: Option<CompactionReport>,
    /// The tokens it used.
    pub usage: Usage,
    /// Why there is no new history, where what was tried has used something. It is an error like any other, but `usage`
    /// counts.
    pub failed: Option<String>,
}

/// The host's clock and timers.
pub trait Timer {
    /// Returns the time in milliseconds since 1970.
    fn now(&self) -> u64;

    /// Completes after `ms` milliseconds. Dropped when it is no longer needed.
    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()>;

    /// The same, for a delay between two attempts to call a model: a host may have a sleep that outlives the process, which
    /// would be too much for a time limit. By default, both are the same.
    fn back_off(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        self.sleep(ms)
    }
}
