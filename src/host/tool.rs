//! Tools: how a tool is described to the model, what the engine knows about it, and how it runs.

use std::fmt::Display;
use std::rc::Rc;

use futures::future::LocalBoxFuture;

use crate::data::json::{JsonError, RawJson, Value};
use crate::host::cancel::CancelToken;
use crate::host::state::SessionState;
use crate::rules::stream::ToolSchema;
use crate::words::message::ContentBlock;

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
pub type DependsOn = dyn Fn(&RawJson) -> Result<bool, String>;

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

/// A request to hand the conversation over to another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The name of the agent.
    pub to: String,
    /// The reason.
    pub reason: Option<String>,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentToolResult {
    /// Text and image blocks, shown to the model.
    pub content: Vec<ContentBlock>,
    /// Data for the UI; never sent to the model.
    pub details: Option<RawJson>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Ends the run by transferring the conversation.
    pub transfer: Option<Transfer>,
}

impl AgentToolResult {
    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        AgentToolResult { content: vec![ContentBlock::text(text)], ..Default::default() }
    }

    /// A failed call's result of one text.
    pub fn error(text: impl Into<String>) -> Self {
        AgentToolResult { is_error: true, ..AgentToolResult::text(text) }
    }
}

impl From<&str> for AgentToolResult {
    fn from(text: &str) -> Self {
        AgentToolResult::text(text)
    }
}

impl From<String> for AgentToolResult {
    fn from(text: String) -> Self {
        AgentToolResult::text(text)
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// The tool returned a result.
    Completed(AgentToolResult),
    /// The tool threw, rejected or panicked, with this message.
    Failed(String),
    /// The arguments do not fit, which the schema check could not know.
    Invalid(String),
    /// The tool wants the run to end as if it had been aborted.
    Cancelled,
}

impl<T: Into<AgentToolResult>> From<T> for ToolOutcome {
    fn from(result: T) -> Self {
        ToolOutcome::Completed(result.into())
    }
}

/// An error becomes the text that [`ToolOutcome::Failed`] carries.
impl<T: Into<AgentToolResult>, E: Display> From<Result<T, E>> for ToolOutcome {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(result) => ToolOutcome::Completed(result.into()),
            // `anyhow` writes the causes too, if it is asked in this form.
            Err(error) => ToolOutcome::Failed(format!("{error:#}")),
        }
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
    /// The arguments, a JSON object that fits the schema.
    pub arguments: RawJson,
    /// Is cancelled when the call is no longer wanted.
    pub cancel: CancelToken,
    /// Reports progress.
    pub updates: Updates,
    /// The session state, shared with the other tools of the run.
    pub state: SessionState,
}

/// What a tool reports while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Any JSON: becomes a `tool_execution_update` event.
    Update(RawJson),
    /// An event of an agent that runs inside the tool, as JSON: becomes a `subagent_event`.
    Event(RawJson),
}

/// Reports the progress of one call. At most 128 updates wait; beyond that, the two oldest are joined.
#[derive(Clone, Default)]
pub struct Updates(Rc<UpdateQueue>);

#[derive(Default)]
struct UpdateQueue {
    waiting: std::cell::RefCell<std::collections::VecDeque<Update>>,
    waker: std::cell::RefCell<Option<std::task::Waker>>,
    closed: std::cell::Cell<bool>,
    /// Shared by the calls of a run: something was shown.
    has_progress: Rc<std::cell::Cell<bool>>,
}

enum Update {
    Text(String),
    Json(RawJson),
    Event(RawJson),
}

const UPDATES_WAITING: usize = 128;

impl Updates {
    /// `has_progress` is set whenever something was shown.
    pub(crate) fn with_flag(has_progress: Rc<std::cell::Cell<bool>>) -> Self {
        Updates(Rc::new(UpdateQueue { has_progress, ..UpdateQueue::default() }))
    }

    /// Reports a text.
    pub fn text(&self, text: &str) {
        self.push(Update::Text(text.to_owned()));
    }

    /// Reports any JSON. After the call has ended, this does nothing.
    pub fn send(&self, update: RawJson) {
        let text = update.as_str().starts_with("\"").then(|| update.to_value());
        self.push(match text {
            Some(Value::String(text)) => Update::Text(text),
            _ => Update::Json(update),
        });
    }

    /// Reports an event of an agent that runs inside the tool. Events are never joined: whoever reports many must let the
    /// loop emit them in between.
    pub fn event(&self, event: RawJson) {
        self.push(Update::Event(event));
    }

    fn push(&self, update: Update) {
        if self.0.closed.get() {
            return;
        }
        let mut waiting = self.0.waiting.borrow_mut();
        waiting.push_back(update);
        if waiting.len() > UPDATES_WAITING {
            join_oldest(&mut waiting);
        }
        drop(waiting);
        self.0.has_progress.set(true);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn take(&self) -> Option<Progress> {
        let update = self.0.waiting.borrow_mut().pop_front()?;
        Some(match update {
            Update::Text(text) => Progress::Update(RawJson::string(&text)),
            Update::Json(update) => Progress::Update(update),
            Update::Event(event) => Progress::Event(event),
        })
    }

    pub(crate) fn wake_by(&self, waker: &std::task::Waker) {
        *self.0.waker.borrow_mut() = Some(waker.clone());
    }

    pub(crate) fn close(&self) {
        self.0.closed.set(true);
    }
}

/// Joins the two oldest updates: two texts become one, of anything else the later one is kept.
fn join_oldest(waiting: &mut std::collections::VecDeque<Update>) {
    let (Some(first), Some(second)) = (waiting.pop_front(), waiting.pop_front()) else { return };
    match (first, second) {
        (Update::Text(mut first), Update::Text(second)) => {
            first.push_str(&second);
            waiting.push_front(Update::Text(first));
        }
        (first @ Update::Event(_), second) | (first, second @ Update::Event(_)) => {
            waiting.push_front(second);
            waiting.push_front(first);
        }
        (_, second) => waiting.push_front(second),
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
