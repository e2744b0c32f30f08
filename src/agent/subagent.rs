//! An agent as a tool of another agent: a new run for each call, its events emitted as `subagent_event`,
//! its last answer as the result.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use futures::future::LocalBoxFuture;
use futures::stream::Stream;

use crate::data::json::{RawJson, ToJson};
use crate::data::text;
use crate::driver::{AgentLoopResult, AgentStream, Inbox};
use crate::host::config::AgentLoopConfig;
use crate::host::ports::AgentRunContext;
use crate::host::tool::{
    AgentTool, AgentToolResult, ChildEvent, ChildRun, ToolContext, ToolOutcome, ToolSpec, Updates,
};
use crate::machine::AgentCommand;
use crate::rules::answer::Answer;
use crate::rules::checkpoint::CheckpointEnvelopeV1;
use crate::words::event::{AgentEvent, RunStopReason};
use crate::words::message::AgentMessage;

use super::Agent;

/// The parameters that the parent's model fills in: one text.
const PARAMETERS: &str = r#"{"type":"object","properties":{"prompt":{"type":"string","description":"What the agent is to do, with all it needs to know"}},"required":["prompt"]}"#;

/// A tool that runs an agent. The run id is the parent's run id, a slash, and the call id; the session is
/// the parent's. If the call is cancelled, the run ends first.
///
/// The run belongs to the run around it: its questions are among those of the parent, who answers them; its usage counts there;
/// a checkpoint of the parent has it inside, and the restored parent goes on with it.
pub struct SubAgent {
    spec: ToolSpec,
    configure: Rc<dyn Fn(&ToolContext) -> AgentLoopConfig>,
    keeps_questions: bool,
}

impl SubAgent {
    /// Creates a tool with this name. `configure` is called for every call, also for one that goes on from a checkpoint; runs
    /// share only what it shares between them.
    pub fn new(name: &str, description: &str, configure: impl Fn() -> AgentLoopConfig + 'static) -> Self {
        SubAgent::for_call(name, description, move |_| configure())
    }

    /// The same, for an agent that depends on the call: on its arguments, or on whose run it is.
    pub fn for_call(
        name: &str,
        description: &str,
        configure: impl Fn(&ToolContext) -> AgentLoopConfig + 'static,
    ) -> Self {
        let parameters = RawJson::parse(PARAMETERS).unwrap_or_else(|_| RawJson::empty_object());
        let spec = ToolSpec { is_sub_agent: true, ..ToolSpec::new(name, description, parameters) };
        SubAgent { spec, configure: Rc::new(configure), keeps_questions: false }
    }

    /// The same, with questions that are not the parent's too: only the agent's own approver can decide about its calls.
    #[must_use]
    pub fn with_own_approvals(self) -> Self {
        SubAgent { keeps_questions: true, ..self }
    }
}

impl AgentTool for SubAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        match self.start(context) {
            Ok(child) => Box::pin(run(child)),
            Err(outcome) => Box::pin(async { outcome }),
        }
    }
}

impl SubAgent {
    fn start(&self, context: ToolContext) -> Result<Rc<Child>, ToolOutcome> {
        let Some(nesting) = context.nesting.deeper() else {
            let limit = text::number(context.nesting.limit);
            let text = ["Sub-agents are nested too deep: `max_depth` is ", &limit, "."].concat();
            return Err(ToolOutcome::Completed(AgentToolResult::error(text)));
        };
        let run_id: Rc<str> = [&context.run_id, "/", &context.call_id].concat().into();
        let own = AgentRunContext {
            run_id: run_id.clone(),
            session_id: context.session_id.clone(),
            metadata: context.metadata.clone(),
            turn_index: 0,
            nesting,
        };
        let mut config = (self.configure)(&context);
        config.ports.layers = config.ports.layers.or(&context.layers);
        #[cfg(feature = "durable")]
        if context.durable.is_some() {
            config.ports.steps = None;
        }
        let (agent, stream) = match &context.checkpoint {
            None => {
                let arguments = context.arguments.to_value();
                let prompts = vec![AgentMessage::user(arguments.text_at("prompt").unwrap_or_default())];
                let agent = Agent::new(config, Vec::new());
                let stream = agent.prompt(prompts, own, context.cancel.clone());
                (agent, stream)
            }
            Some(checkpoint) => {
                let envelope = CheckpointEnvelopeV1::from_value(checkpoint.to_value());
                let agent = envelope.and_then(|envelope| Agent::restore(config, &envelope));
                let agent = agent.map_err(|error| ToolOutcome::Failed(error.to_string()))?;
                let stream = agent.continue_run(own, context.cancel.clone());
                (agent, stream)
            }
        };
        let stream = stream.map_err(|error| ToolOutcome::Failed(error.to_string()))?;
        let stream = stream.with_accounts(context.accounts.clone());
        #[cfg(feature = "durable")]
        let stream = stream.inside(context.durable.as_ref());
        let inbox = stream.inbox();
        if self.keeps_questions {
            inbox.close();
        }
        let child = Rc::new(Child {
            call_id: context.call_id.clone(),
            agent,
            inbox,
            run_id,
            stream: RefCell::new(stream),
            updates: context.updates.clone(),
            keeps_questions: self.keeps_questions,
        });
        context.updates.attach(child.clone());
        Ok(child)
    }
}

/// The run of an agent inside a call.
struct Child {
    call_id: Rc<str>,
    agent: Agent,
    inbox: Inbox,
    run_id: Rc<str>,
    stream: RefCell<AgentStream>,
    updates: Updates,
    keeps_questions: bool,
}

impl Child {
    /// Reports an event to the run around it.
    fn report(&self, event: &AgentEvent) {
        let child = match event {
            AgentEvent::SubagentEvent { path, event, .. } => ChildEvent {
                path: path.clone(),
                event: event.clone(),
                keeps_questions: self.keeps_questions,
                shares_budget: true,
            },
            event => ChildEvent {
                path: Vec::new(),
                event: event.to_json_with(&self.run_id),
                keeps_questions: self.keeps_questions,
                shares_budget: true,
            },
        };
        self.updates.event(child);
    }
}

impl ChildRun for Child {
    fn call_id(&self) -> &str {
        &self.call_id
    }

    fn checkpoint(&self) -> Option<RawJson> {
        let mut stream = self.stream.try_borrow_mut().ok()?;
        Some(stream.checkpoint().to_raw())
    }

    fn has_question(&self, id: &str) -> bool {
        // Those inside it are known to the run around it before this one has told its own listeners.
        let is_inside = || self.stream.try_borrow().is_ok_and(|stream| stream.has_question_inside(id));
        !self.keeps_questions && (self.agent.published().borrow().questions.is_open(id) || is_inside())
    }

    fn answer(&self, answers: Vec<(String, Answer)>) {
        self.inbox.post(AgentCommand::Resolve(answers));
    }

    fn desert(&self) {
        self.inbox.close();
    }

    fn close(&self, reason: &str) {
        if let Ok(mut stream) = self.stream.try_borrow_mut() {
            stream.stop(reason, &mut |event| self.report(event));
        }
    }
}

async fn run(child: Rc<Child>) -> ToolOutcome {
    loop {
        let next = std::future::poll_fn(|cx| match child.stream.try_borrow_mut() {
            Ok(mut stream) => Pin::new(&mut *stream).poll_next(cx),
            Err(_) => Poll::Pending,
        });
        let Some(event) = next.await else { break };
        child.report(&event);
        // Not a moment later: a checkpoint of the parent has an agent that runs, or the result of the call.
        if matches!(event, AgentEvent::AgentEnd { .. }) {
            break;
        }
        // The parent emits each event before the next one is produced, so that none pile up.
        yield_now().await;
    }
    let result = child.stream.try_borrow().ok().and_then(|stream| stream.result().cloned());
    result.map_or_else(|| ToolOutcome::Failed("the sub-agent ended in silence".to_owned()), outcome)
}

fn outcome(result: AgentLoopResult) -> ToolOutcome {
    ToolOutcome::Completed(match (result.stop_reason, &result.error) {
        (RunStopReason::Aborted, _) => AgentToolResult::error("Sub-agent cancelled."),
        (RunStopReason::Error, error) => {
            let message = error.as_ref().map_or("", |error| error.info().message.as_str());
            AgentToolResult::error(["Sub-agent error: ", message].concat())
        }
        (reason, _) if result.text.is_empty() && reason != RunStopReason::Completed => {
            AgentToolResult::error(["Sub-agent stopped without an answer: ", reason.as_str()].concat())
        }
        _ => AgentToolResult::text(result.text.as_str()),
    })
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
