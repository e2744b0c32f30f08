//! Ports: what the host fills in. Everything asynchronous a run does goes through one of these.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

use crate::approval::ToolDecision;
use crate::cancel::CancelToken;
use crate::error::ErrorInfo;
use crate::event::CompactionReport;
use crate::json::RawJson;
use crate::message::{AgentMessage, AssistantMessage, LlmMessage, ToolCallBlock, ToolResultMessage, Usage};
use crate::policy::Transform;
use crate::stream::{AssistantMessageEvent, ModelRequest};

/// Who runs: both ids come from the host, the engine never makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRunContext {
    /// This run.
    pub run_id: Rc<str>,
    /// The conversation that it belongs to.
    pub session_id: Rc<str>,
}

impl AgentRunContext {
    /// Names a run.
    pub fn new(run_id: &str, session_id: &str) -> Self {
        AgentRunContext { run_id: run_id.into(), session_id: session_id.into() }
    }
}

/// Asks a model. Built on a wire and a transport, or on anything that answers.
pub trait StreamFn {
    /// Starts the call. The stream ends after `Done` or `Error`; one that ends without either counts as a network
    /// failure. It is dropped when nobody wants it any more; `cancel` is set just before.
    fn stream(
        &self,
        request: ModelRequest,
        context: &AgentRunContext,
        cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent>;

    /// Whether [`ModelRequest::output`] is heeded. Otherwise the model is offered a tool that takes the answer.
    fn native_output(&self) -> bool {
        false
    }
}

/// A closure is a model.
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

/// Gives the key of a provider. Asked once per turn; retries use the same key, and so do its other models.
pub trait KeySource {
    /// The key, if there is one.
    fn key(&self, provider: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>>;

    /// Whether models of the same provider have keys of their own. Then it is asked for each that is tried.
    fn is_by_model(&self) -> bool {
        false
    }

    /// The key for one of the models, by its place among them: as a rule that of its provider.
    fn key_of(
        &self,
        _model: usize,
        provider: &str,
    ) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        self.key(provider)
    }
}

/// Shortens or enriches the context with the help of something slow.
pub trait AsyncContextTransformer {
    /// Called before every turn, ahead of the synchronous transformers. An error ends the run.
    fn transform(
        &self,
        messages: Rc<[AgentMessage]>,
        overflow_signal: bool,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>>;
}

/// A queue of the host that is polled at the points of the specification.
pub trait MessageProvider {
    /// After each finished tool, and after each turn.
    fn poll_steering(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>>;

    /// When the run would end.
    fn poll_follow_up(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>>;
}

/// A question to the approver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The call.
    pub call_id: String,
    /// Its tool, which need not exist.
    pub tool_name: String,
    /// As the policies left them.
    pub arguments: RawJson,
    /// Whether the tool itself asks for it.
    pub requires_approval: bool,
}

/// Decides about tool calls.
pub trait Approver {
    /// Asked for all calls of a batch at once. An error or a panic rejects that call only.
    fn decide(
        &self,
        request: ApprovalRequest,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>>;
}

/// An asynchronous closure is an approver.
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
    /// Called when the model refused the conversation and no transformer shortened it. An error ends the turn.
    fn compact(
        &self,
        context: &AgentRunContext,
        call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>>;
}

/// What is to be shortened.
#[derive(Clone)]
pub struct CompactionCall {
    /// The whole history.
    pub messages: Rc<[AgentMessage]>,
    /// The model's id.
    pub model: Rc<str>,
    /// Set when nobody wants it any more.
    pub cancel: CancelToken,
}

/// A shortened history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// The new history.
    pub messages: Vec<AgentMessage>,
    /// What was done.
    pub report: Option<CompactionReport>,
    /// What it cost.
    pub usage: Usage,
}

/// A stage of a run that hooks are told of.
#[derive(Clone, Debug)]
pub enum HookCall {
    /// The model is about to be asked.
    BeforeInference {
        /// From 0.
        turn_index: u32,
        /// From 1.
        attempt: u32,
        /// The model's id.
        model: Rc<str>,
        /// The conversation as the provider gets it.
        messages: Rc<Vec<LlmMessage>>,
    },
    /// The model answered.
    AfterInference {
        /// From 0.
        turn_index: u32,
        /// The model's id.
        model: Rc<str>,
        /// The answer.
        message: Rc<AssistantMessage>,
    },
    /// A tool is about to run.
    BeforeToolExecution {
        /// The call, with the arguments the tool gets.
        call: ToolCallBlock,
    },
    /// A tool has run and its result is in the history.
    AfterToolExecution {
        /// The call.
        call: ToolCallBlock,
        /// The result.
        result: Rc<ToolResultMessage>,
    },
    /// The run ends by an error.
    OnError {
        /// The error.
        error: ErrorInfo,
    },
}

/// The stages, for [`AgentHook::stages`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookStages {
    /// Wants [`HookCall::BeforeInference`].
    pub before_inference: bool,
    /// Wants [`HookCall::AfterInference`].
    pub after_inference: bool,
    /// Wants [`HookCall::BeforeToolExecution`].
    pub before_tool_execution: bool,
    /// Wants [`HookCall::AfterToolExecution`].
    pub after_tool_execution: bool,
    /// Wants [`HookCall::OnError`].
    pub on_error: bool,
}

impl HookStages {
    /// All of them.
    pub const ALL: HookStages = HookStages {
        before_inference: true,
        after_inference: true,
        before_tool_execution: true,
        after_tool_execution: true,
        on_error: true,
    };

    /// What either wants.
    #[must_use]
    pub fn or(self, other: HookStages) -> HookStages {
        HookStages {
            before_inference: self.before_inference || other.before_inference,
            after_inference: self.after_inference || other.after_inference,
            before_tool_execution: self.before_tool_execution || other.before_tool_execution,
            after_tool_execution: self.after_tool_execution || other.after_tool_execution,
            on_error: self.on_error || other.on_error,
        }
    }

    /// Whether this stage is among them.
    pub fn has(self, call: &HookCall) -> bool {
        match call {
            HookCall::BeforeInference { .. } => self.before_inference,
            HookCall::AfterInference { .. } => self.after_inference,
            HookCall::BeforeToolExecution { .. } => self.before_tool_execution,
            HookCall::AfterToolExecution { .. } => self.after_tool_execution,
            HookCall::OnError { .. } => self.on_error,
        }
    }
}

/// Observes a run and is waited for.
pub trait AgentHook {
    /// Which stages it wants to be told of.
    fn stages(&self) -> HookStages {
        HookStages::ALL
    }

    /// Called in registration order, one after the other. An error ends the run; in `OnError` it is ignored.
    fn call(&self, context: &AgentRunContext, call: HookCall) -> LocalBoxFuture<'static, Result<(), String>>;
}

/// The host's clock and timers.
pub trait Timer {
    /// Milliseconds since 1970.
    fn now(&self) -> u64;

    /// Ready after so many milliseconds. Dropped when it is not wanted any more.
    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()>;
}
