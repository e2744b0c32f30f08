//! An agent as a tool of another agent.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails here says where")]

use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::{self, LocalBoxStream};
use turnwheel::agent::subagent::SubAgent;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model};
use turnwheel::driver::{AgentLoopResult, agent_loop};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::{AgentEvent, RunStopReason};
use turnwheel::json::RawJson;
use turnwheel::message::{LlmMessage, MessageStopReason};
use turnwheel::ports::{AgentRunContext, StreamFn, Timer};
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tool::{ApprovalNeed, ToolOutcome, ToolSpec, tool};

struct Script(fn(&ModelRequest) -> Vec<E>);

impl StreamFn for Script {
    fn stream(
        &self,
        request: ModelRequest,
        _: &AgentRunContext,
        _: CancelToken,
    ) -> LocalBoxStream<'static, E> {
        stream::iter((self.0)(&request)).boxed_local()
    }
}

struct NoTime;

impl Timer for NoTime {
    fn now(&self) -> u64 {
        0
    }
    fn sleep(&self, _: u64) -> LocalBoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

fn config(script: fn(&ModelRequest) -> Vec<E>) -> AgentLoopConfig {
    let model = Model::new("scripted", "m", Rc::new(Script(script)));
    AgentLoopConfig::new(model, Rc::new(NoTime))
}

fn answers_with(text: &str) -> Vec<E> {
    vec![
        E::TextStart { index: 0 },
        E::TextDelta { index: 0, delta: text.into() },
        E::TextEnd { index: 0, signature: None },
        E::Done { stop_reason: MessageStopReason::Stop, usage: None },
    ]
}

/// Asks the helper first; then repeats its answer.
fn parent(request: &ModelRequest) -> Vec<E> {
    if let Some(LlmMessage::ToolResult(result)) = request.messages.last() {
        return answers_with(&result.text());
    }
    vec![
        E::ToolCallStart { index: 0, call_id: "c".into(), tool_name: "helper".into() },
        E::ToolCallDelta { index: 0, delta: r#"{"prompt":"count"}"#.into() },
        E::ToolCallEnd { index: 0, metadata: None },
        E::Done { stop_reason: MessageStopReason::ToolUse, usage: None },
    ]
}

fn play(child: impl Fn() -> AgentLoopConfig + 'static) -> (Vec<AgentEvent>, AgentLoopResult) {
    let mut config = config(parent);
    let helper = SubAgent::new("helper", "helps", child);
    config.set_tools(vec![Rc::new(helper)]).unwrap();
    let context = AgentRunContext::new("r", "s");
    let mut run = pin!(agent_loop(vec!["Go.".into()], config, context, CancelToken::new()));
    // Nobody answers questions.
    run.inbox().close();
    let mut events = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..10_000 {
        match run.as_mut().poll_next_unpin(&mut cx) {
            Poll::Ready(Some(event)) => events.push(event),
            Poll::Ready(None) => return (events, run.result().unwrap().clone()),
            Poll::Pending => {}
        }
    }
    panic!("the run hangs");
}

#[test]
fn the_events_of_a_sub_agent_reach_the_parent_inside_its_call() {
    let (events, result) = play(|| config(|_| answers_with("three")));
    assert_eq!(result.text, "three");
    let names: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::SubagentEvent { call_id, path, event } => {
                assert_eq!(path, &["c"]);
                let event = event.to_value();
                assert_eq!(call_id, "c");
                assert_eq!(event.get("runId").unwrap().as_str(), Some("r/c"));
                Some(event.get("type").unwrap().as_str().unwrap().to_owned())
            }
            AgentEvent::ToolExecutionStart { .. } => Some("(".to_owned()),
            AgentEvent::ToolExecutionEnd { .. } => Some(")".to_owned()),
            _ => None,
        })
        .collect();
    let expected = "( agent_start turn_start message_start message_update message_end turn_end agent_end )";
    assert_eq!(names.join(" "), expected);
}

#[test]
fn a_sub_agent_does_not_wait_for_a_decision_that_nobody_can_give_it() {
    fn child() -> AgentLoopConfig {
        let asks = |_: &ModelRequest| {
            vec![
                E::ToolCallStart { index: 0, call_id: "d".into(), tool_name: "delete".into() },
                E::ToolCallEnd { index: 0, metadata: None },
                E::Done { stop_reason: MessageStopReason::ToolUse, usage: None },
            ]
        };
        let mut config = config(asks);
        let mut delete = ToolSpec::new("delete", "", RawJson::empty_object());
        delete.requires_approval = ApprovalNeed::Always;
        let never = tool(delete, async |_| -> ToolOutcome { panic!("nobody allowed it") });
        config.set_tools(vec![never]).unwrap();
        config
    }
    let (_, result) = play(child);
    assert_eq!(result.stop_reason, RunStopReason::Completed);
    assert_eq!(result.text, "Sub-agent cancelled.");
}

#[test]
fn a_sub_agent_that_fails_is_an_error_result_and_the_parent_goes_on() {
    let (_, result) = play(|| config(|_| vec![E::Error(ErrorInfo::new(ErrorKind::Auth, "no key"))]));
    assert_eq!(result.stop_reason, RunStopReason::Completed);
    assert_eq!(result.text, "Sub-agent error: no key");
}

#[test]
fn a_sub_agent_that_stops_before_it_said_anything_is_no_empty_answer() {
    let (_, result) = play(|| {
        let mut config = config(|_| Vec::new());
        config.rules.max_turns = Some(0);
        config
    });
    assert_eq!(result.text, "Sub-agent stopped without an answer: max_turns");
}
