//! Tools: what the model is told of one, what the engine must know, and what it does.

use std::rc::Rc;

use futures::future::LocalBoxFuture;

use crate::cancel::CancelToken;
use crate::json::{RawJson, Value};
use crate::message::ContentBlock;
use crate::state::SessionState;
use crate::stream::ToolSchema;

/// Whether a tool asks before it runs.
#[derive(Clone, Default)]
pub enum ApprovalNeed {
    /// Never.
    #[default]
    Never,
    /// Always.
    Always,
    /// Depends on the arguments. One that fails counts as yes.
    Depends(Rc<DependsOn>),
}

/// Whether a call with these arguments asks before it runs.
pub type DependsOn = dyn Fn(&RawJson) -> Result<bool, String>;

/// A tool as the loop must know it.
#[derive(Clone)]
pub struct ToolSpec {
    /// What the model is told.
    pub schema: ToolSchema,
    /// Whether it asks before it runs.
    pub requires_approval: ApprovalNeed,
    /// After so many milliseconds the call gets an error result.
    pub timeout_ms: Option<u64>,
    /// Longer results are cut, with a note.
    pub max_result_bytes: Option<u64>,
    /// After a restore, a call that was running may be run again.
    pub idempotent: bool,
    /// A failure ends the run instead of becoming an error result.
    pub fatal: bool,
    /// With the priority policy: higher first.
    pub priority: i32,
}

impl ToolSpec {
    /// A tool that never asks, never ends a run and has no limits.
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
}

/// Hand the conversation over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// To whom.
    pub to: String,
    /// Why.
    pub reason: Option<String>,
}

/// What a tool answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentToolResult {
    /// Text and image blocks, shown to the model.
    pub content: Vec<ContentBlock>,
    /// For the UI; never sent to the model.
    pub details: Option<RawJson>,
    /// Whether this tells of a failure.
    pub is_error: bool,
    /// Ends the run by handing the conversation over.
    pub transfer: Option<Transfer>,
}

impl AgentToolResult {
    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        AgentToolResult { content: vec![ContentBlock::text(text)], ..Default::default() }
    }

    /// One text that tells of a failure.
    pub fn error(text: impl Into<String>) -> Self {
        AgentToolResult { is_error: true, ..AgentToolResult::text(text) }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOutcome {
    /// The tool answered.
    Completed(AgentToolResult),
    /// The tool threw, rejected or panicked; its words.
    Failed(String),
    /// The arguments do not fit; found out too late for the schema check.
    Invalid(String),
    /// The tool wants the run to end as by abort.
    Cancelled,
}

/// What a tool gets.
#[derive(Clone)]
pub struct ToolContext {
    /// The call.
    pub call_id: Rc<str>,
    /// The tool.
    pub tool_name: Rc<str>,
    /// The run.
    pub run_id: Rc<str>,
    /// The session.
    pub session_id: Rc<str>,
    /// A JSON object that fits the schema.
    pub arguments: RawJson,
    /// Set when the call is not wanted any more.
    pub cancel: CancelToken,
    /// Shows progress.
    pub updates: Updates,
    /// Shared with the other tools of the run.
    pub state: SessionState,
}

/// What a tool shows while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Whatever the tool says, as JSON: `tool_execution_update`.
    Update(RawJson),
    /// An event of an agent that runs inside the tool, as JSON: `subagent_event`.
    Event(RawJson),
}

/// Shows the progress of one call. At most 128 updates wait; beyond that the two oldest are joined.
#[derive(Clone, Default)]
pub struct Updates(Rc<UpdateQueue>);

#[derive(Default)]
struct UpdateQueue {
    waiting: std::cell::RefCell<std::collections::VecDeque<Update>>,
    waker: std::cell::RefCell<Option<std::task::Waker>>,
    closed: std::cell::Cell<bool>,
    /// Shared by the calls of a run: something was shown.
    shown: Rc<std::cell::Cell<bool>>,
}

enum Update {
    Text(String),
    Json(RawJson),
    Event(RawJson),
}

const UPDATES_WAITING: usize = 128;

impl Updates {
    /// `shown` is set whenever something was shown.
    pub(crate) fn noted_in(shown: Rc<std::cell::Cell<bool>>) -> Self {
        Updates(Rc::new(UpdateQueue { shown, ..UpdateQueue::default() }))
    }

    /// Shows a text.
    pub fn text(&self, text: &str) {
        self.push(Update::Text(text.to_owned()));
    }

    /// Shows any JSON. After the call's end nothing is shown.
    pub fn send(&self, update: RawJson) {
        let text = update.as_str().starts_with("\"").then(|| update.to_value());
        self.push(match text {
            Some(Value::String(text)) => Update::Text(text),
            _ => Update::Json(update),
        });
    }

    /// Shows an event of an agent that runs inside the tool. Events are never joined: who sends many must let the
    /// loop tell them in between.
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
        self.0.shown.set(true);
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

/// Joins the two oldest updates: texts become one, of anything else the later one stays.
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

/// A tool. A host with one dispatcher for all registers it under many specs.
pub trait AgentTool {
    /// What the loop must know.
    fn spec(&self) -> &ToolSpec;

    /// Runs the call. Called once per call; a panic, also of the future, is that call's error result.
    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome>;
}

struct FnTool<R> {
    spec: ToolSpec,
    run: R,
}

impl<R: Fn(ToolContext) -> F, F: Future<Output = ToolOutcome> + 'static> AgentTool for FnTool<R> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        Box::pin((self.run)(context))
    }
}

/// A tool made of an asynchronous closure.
///
/// ```
/// use turnwheel::json::RawJson;
/// use turnwheel::tool::{AgentToolResult, ToolContext, ToolOutcome, ToolSpec, tool};
///
/// let spec = ToolSpec::new("shout", "Says it louder", RawJson::parse(r#"{"type":"object"}"#)?);
/// let shout = tool(spec, async |context: ToolContext| {
///     context.updates.text("taking a breath");
///     ToolOutcome::Completed(AgentToolResult::text(context.arguments.as_str().to_uppercase()))
/// });
/// assert_eq!(&*shout.spec().schema.name, "shout");
/// # Ok::<(), turnwheel::json::JsonError>(())
/// ```
pub fn tool<F: Future<Output = ToolOutcome> + 'static>(
    spec: ToolSpec,
    run: impl Fn(ToolContext) -> F + 'static,
) -> Rc<dyn AgentTool> {
    Rc::new(FnTool { spec, run })
}
