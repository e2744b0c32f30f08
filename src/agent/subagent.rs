//! An agent as a tool of another agent: a new run for each call, its events emitted as `subagent_event`,
//! its last answer as the result.

use std::rc::Rc;
use std::task::Poll;

use futures::future::LocalBoxFuture;

use crate::data::json::{ObjectWriter, RawJson};
use crate::driver::{AgentStream, agent_loop};
use crate::host::config::AgentLoopConfig;
use crate::host::ports::AgentRunContext;
use crate::host::tool::{AgentTool, AgentToolResult, ToolContext, ToolOutcome, ToolSpec, Updates};
use crate::words::event::{AgentEvent, RunStopReason};
use crate::words::message::AgentMessage;

/// The parameters that the parent's model fills in: one text.
const PARAMETERS: &str = r#"{"type":"object","properties":{"prompt":{"type":"string","description":"What the agent is to do, with all it needs to know"}},"required":["prompt"]}"#;

/// A tool that runs an agent. The run id is the parent's run id, a slash, and the call id; the session is
/// the parent's. If the call is cancelled, the run is dropped, which stops it.
pub struct SubAgent {
    spec: ToolSpec,
    configure: Rc<dyn Fn() -> AgentLoopConfig>,
}

impl SubAgent {
    /// Creates a tool with this name. `configure` is called for every call; runs share only what it shares
    /// between them.
    pub fn new(name: &str, description: &str, configure: impl Fn() -> AgentLoopConfig + 'static) -> Self {
        let parameters = RawJson::parse(PARAMETERS).unwrap_or_else(|_| RawJson::empty_object());
        SubAgent { spec: ToolSpec::new(name, description, parameters), configure: Rc::new(configure) }
    }
}

impl AgentTool for SubAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        let arguments = context.arguments.to_value();
        let prompt = arguments.text_at("prompt").unwrap_or_default();
        let run_id: Rc<str> = [&context.run_id, "/", &context.call_id].concat().into();
        let child = AgentRunContext {
            run_id,
            session_id: context.session_id.clone(),
            metadata: context.metadata.clone(),
        };
        let prompts = vec![AgentMessage::user(prompt)];
        let stream = agent_loop(prompts, (self.configure)(), child, context.cancel.clone());
        // Only its own approver can decide about its calls.
        stream.inbox().close();
        Box::pin(run(stream, context.updates))
    }
}

async fn run(mut stream: AgentStream, updates: Updates) -> ToolOutcome {
    let run_id = stream.context().run_id.clone();
    while let Some(event) = stream.next().await {
        updates.event(with_run_id(&run_id, &event));
        // The parent emits each event before the next one is produced, so that none pile up.
        yield_now().await;
    }
    let Some(result) = stream.result() else {
        return ToolOutcome::Failed("the sub-agent ended in silence".to_owned());
    };
    match (result.stop_reason, &result.error) {
        (RunStopReason::Aborted, _) => ToolOutcome::Completed(AgentToolResult::error("Sub-agent cancelled.")),
        (RunStopReason::Error, error) => {
            let message = error.as_ref().map_or("", |error| error.info().message.as_str());
            ToolOutcome::Completed(AgentToolResult::error(["Sub-agent error: ", message].concat()))
        }
        (reason, _) if result.text.is_empty() && reason != RunStopReason::Completed => {
            let text = ["Sub-agent stopped without an answer: ", reason.as_str()].concat();
            ToolOutcome::Completed(AgentToolResult::error(text))
        }
        _ => ToolOutcome::Completed(AgentToolResult::text(result.text.as_str())),
    }
}

fn with_run_id(run_id: &str, event: &AgentEvent) -> RawJson {
    let mut text = String::new();
    let mut object = ObjectWriter::new(&mut text);
    event.write_members(&mut object);
    object.field("runId", run_id);
    object.end();
    RawJson::parse(&text).unwrap_or_else(|_| RawJson::null())
}

/// Yields to the executor once.
fn yield_now() -> impl Future<Output = ()> {
    let mut has_yielded = false;
    std::future::poll_fn(move |cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}
