//! Layers: what stands around the execution of a tool, and around an attempt to call a model.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

use super::AgentRunContext;
use crate::host::cancel::CancelToken;
use crate::host::tool::{ToolContext, ToolOutcome};
use crate::rules::stream::{AssistantMessageEvent, ModelRequest};

/// Executes a tool.
pub type NextTool = Box<dyn FnOnce(ToolContext) -> LocalBoxFuture<'static, ToolOutcome>>;

/// Calls a model.
pub type NextModel =
    Box<dyn FnOnce(ModelRequest, CancelToken) -> LocalBoxStream<'static, AssistantMessageEvent>>;

/// Stands around the execution of every tool: a span, a transaction, a cache. The id of the run has the calls that lead to the
/// agent, after slashes.
pub trait ToolLayer {
    /// Executes a call: `next` does the work. What comes back is the tool's outcome. Called once per call; a panic is
    /// the tool's failure. After an abort, `next` starts nothing.
    fn execute(&self, call: ToolContext, next: NextTool) -> LocalBoxFuture<'static, ToolOutcome>;
}

impl<F, T> ToolLayer for F
where
    F: Fn(ToolContext, NextTool) -> T,
    T: Future<Output = ToolOutcome> + 'static,
{
    fn execute(&self, call: ToolContext, next: NextTool) -> LocalBoxFuture<'static, ToolOutcome> {
        Box::pin(self(call, next))
    }
}

/// An attempt to call a model.
#[derive(Clone)]
pub struct ModelAttempt {
    /// The run.
    pub context: AgentRunContext,
    /// The turn, counted from 0.
    pub turn_index: u32,
    /// The attempt with this model, counted from 1.
    pub attempt: u32,
    /// The name of the provider.
    pub provider: Rc<str>,
    /// What is asked, with the id of the model.
    pub request: ModelRequest,
    /// Is cancelled when the answer is not wanted any more.
    pub cancel: CancelToken,
}

/// Stands around every attempt to call a model.
pub trait ModelLayer {
    /// Calls the model: `next` does it. What comes back is the model's answer, so it may be observed and changed. After an
    /// abort, `next` starts nothing.
    fn call(&self, attempt: ModelAttempt, next: NextModel) -> LocalBoxStream<'static, AssistantMessageEvent>;
}

impl<F> ModelLayer for F
where
    F: Fn(ModelAttempt, NextModel) -> LocalBoxStream<'static, AssistantMessageEvent>,
{
    fn call(&self, attempt: ModelAttempt, next: NextModel) -> LocalBoxStream<'static, AssistantMessageEvent> {
        self(attempt, next)
    }
}

/// What stands around execution. Sub-agents have the layers of the agent around them, where they set none of their own.
#[derive(Clone, Default)]
pub struct Layers {
    /// Around tools.
    pub tool: Option<Rc<dyn ToolLayer>>,
    /// Around models.
    pub model: Option<Rc<dyn ModelLayer>>,
}

impl Layers {
    /// These, and where there are none, the others.
    pub(crate) fn or(self, others: &Layers) -> Layers {
        Layers {
            tool: self.tool.or_else(|| others.tool.clone()),
            model: self.model.or_else(|| others.model.clone()),
        }
    }
}
