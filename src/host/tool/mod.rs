//! Tools: how a tool is described to the model, what the engine knows about it, and how it runs.

mod ask;
mod child;
mod result;
mod typed;
mod updates;

use std::rc::Rc;

use futures::future::LocalBoxFuture;

pub use ask::{Ask, Asking};
pub use child::{ChildEvent, ChildRun, Nesting};
pub use result::{AgentToolResult, ToolOutcome, Transfer};
pub use typed::typed_tool;
pub use updates::{Progress, Updates};

use crate::data::json::{JsonError, RawJson};
use crate::host::cancel::CancelToken;
use crate::host::ports::Layers;
use crate::host::state::SessionState;
use crate::rules::answer::Answer;
use crate::rules::budget::Accounts;
use crate::rules::policy::RunInfo;
use crate::rules::stream::ToolSchema;

/// Whether calls of a tool need approval.
#[derive(Clone, Default)]
pub enum ApprovalNeed {
    /// They never do.
    #[default]
    Never,
    /// They always do.
    Always,
    /// It depends on the arguments. A function that fails counts as yes.
    Depends(Rc<DependsOn>),
}

/// Whether a call with these arguments needs approval.
pub type DependsOn = dyn Fn(&RawJson, &RunInfo<'_>) -> Result<bool, String>;

/// What the loop knows about a tool.
#[derive(Clone)]
pub struct ToolSpec {
    /// The description for the model.
    pub schema: ToolSchema,
    /// Whether its calls need approval.
    pub requires_approval: ApprovalNeed,
    /// The time limit of a call in milliseconds; after it the call gets an error result.
    pub timeout_ms: Option<u64>,
    /// The largest result in bytes; longer texts are truncated, with a note.
    pub max_result_bytes: Option<u64>,
    /// Whether a call that was running when a checkpoint was taken may be run again.
    pub idempotent: bool,
    /// Whether the tool runs an agent. A call that was running when a checkpoint was taken then goes on from the checkpoint of
    /// that agent: [`ToolContext::checkpoint`].
    pub is_sub_agent: bool,
    /// Whether a call is answered elsewhere: it becomes a question of the kind
    /// [`ToolCall`](crate::question::QuestionKind::ToolCall), and the answer is its result. See [`external_tool`].
    pub is_external: bool,
    /// Whether a failure ends the run instead of becoming an error result.
    pub fatal: bool,
    /// With [`ToolExecutionPolicy::Priority`](crate::host::config::ToolExecutionPolicy): higher runs first.
    pub priority: i32,
}

impl ToolSpec {
    /// Creates a tool that needs no approval, never ends a run and has no limits.
    pub fn new(name: &str, description: &str, parameters: RawJson) -> Self {
        ToolSpec {
            schema: ToolSchema { name: name.into(), description: description.into(), parameters },
            requires_approval: ApprovalNeed::Never,
            timeout_ms: None,
            max_result_bytes: None,
            idempotent: false,
            is_sub_agent: false,
            is_external: false,
            fatal: false,
            priority: 0,
        }
    }

    /// Like [`ToolSpec::new`], with the JSON Schema of the parameters as a text.
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn parse(name: &str, description: &str, parameters: &str) -> Result<Self, JsonError> {
        Ok(ToolSpec::new(name, description, RawJson::parse(parameters)?))
    }
}

/// What a tool is given.
#[derive(Clone)]
pub struct ToolContext {
    /// The id of the call.
    pub call_id: Rc<str>,
    /// The name of the tool.
    pub tool_name: Rc<str>,
    /// The id of the run.
    pub run_id: Rc<str>,
    /// The id of the session.
    pub session_id: Rc<str>,
    /// The turn, counted from 0.
    pub turn_index: u32,
    /// What the host has started the run with: an object.
    pub metadata: Option<RawJson>,
    /// The arguments, a JSON object that fits the schema.
    pub arguments: RawJson,
    /// How deep the run is inside others.
    pub nesting: Nesting,
    /// The budgets that an agent inside this call uses too.
    pub accounts: Accounts,
    /// What stands around the execution of an agent inside this call, too.
    pub layers: Layers,
    /// The checkpoint of the agent inside this call, if the call goes on from one: a JSON object.
    pub checkpoint: Option<RawJson>,
    /// Is cancelled when the call is no longer wanted.
    pub cancel: CancelToken,
    /// Reports progress.
    pub updates: Updates,
    /// The session state, shared with the other tools of the run.
    pub state: SessionState,
    /// The durable run that an agent inside this call is part of: for [`AgentStream::enter_journal`](crate::AgentStream::enter_journal).
    #[cfg(feature = "durable")]
    pub durable: Option<Rc<dyn std::any::Any>>,
}

impl ToolContext {
    /// Whose run it is.
    pub fn about(&self) -> RunInfo<'_> {
        RunInfo {
            run_id: &self.run_id,
            session_id: &self.session_id,
            turn_index: self.turn_index,
            metadata: self.metadata.as_ref(),
        }
    }

    /// Asks a person, and waits for the answer: [`Answer::Accept`], [`Answer::Decline`] or [`Answer::Cancel`]. The question
    /// is among those of the agent, like one about a call that needs approval. Meanwhile the time limit of the call stands
    /// still. A question that is open when a checkpoint is taken is not in it: the call is interrupted, or runs again.
    pub fn ask(&self, ask: Ask) -> impl Future<Output = Answer> + use<> {
        self.updates.ask(ask)
    }
}

/// A tool. A host with one dispatcher for all tools registers it under several specs.
pub trait AgentTool {
    /// What the loop knows about the tool.
    fn spec(&self) -> &ToolSpec;

    /// Runs a call; called once per call. A panic, including one of the future, becomes the call's error result.
    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome>;
}

struct FnTool<R> {
    spec: ToolSpec,
    run: R,
}

impl<R, F> AgentTool for FnTool<R>
where
    R: Fn(ToolContext) -> F,
    F: Future<Output: Into<ToolOutcome>> + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        let running = (self.run)(context);
        Box::pin(async { running.await.into() })
    }
}

/// Makes a tool without an implementation: a call of it is a question, and [`Agent::resolve`](crate::Agent::resolve) gives its
/// result, by [`Answer::output`], [`Answer::error`] or a rejection. The page, a person or another service may do the work.
/// The question is in checkpoints, and stays the same one when the run goes on from there. Of the tool's limits, its own
/// `timeout_ms` counts: then the call gets an error result.
pub fn external_tool(spec: ToolSpec) -> Rc<dyn AgentTool> {
    let spec = ToolSpec { is_external: true, ..spec };
    // It is not called: the loop asks in its place.
    tool(spec, async |_| ToolOutcome::Interrupted)
}

/// Makes a tool of an asynchronous closure. What the closure returns is a text, an [`AgentToolResult`], a `Result` of
/// either, or a [`ToolOutcome`].
///
/// ```
/// use turnwheel::{ToolOutcome, ToolSpec, tool};
///
/// let words = r#"{"type":"object","properties":{"words":{"type":"string"}},"required":["words"]}"#;
/// let shout = tool(ToolSpec::parse("shout", "Says it louder", words)?, async |call| {
///     call.updates.text("taking a breath");
///     let arguments = call.arguments.to_value();
///     arguments.text_at("words").map(str::to_uppercase).ok_or("there is nothing to say")
/// });
/// assert_eq!(&*shout.spec().schema.name, "shout");
///
/// let limits = ToolSpec { timeout_ms: Some(5_000), idempotent: true, ..ToolSpec::parse("wait", "Waits", "{}")? };
/// let wait = tool(limits, async |_| ToolOutcome::Cancelled);
/// # Ok::<(), turnwheel::json::JsonError>(())
/// ```
pub fn tool<F>(spec: ToolSpec, run: impl Fn(ToolContext) -> F + 'static) -> Rc<dyn AgentTool>
where
    F: Future<Output: Into<ToolOutcome>> + 'static,
{
    Rc::new(FnTool { spec, run })
}
