//! Tools without an implementation: a call is a question, and the answer is its result.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails here says where")]

use std::cell::Cell;
use std::rc::Rc;

use futures::executor::block_on;
use futures::stream::{self, StreamExt};
use turnwheel::agent::Agent;
use turnwheel::agent::subagent::SubAgent;
use turnwheel::answer::Answer;
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::config::{AgentLoopConfig, InFlight, Model, SteeringTime};
use turnwheel::driver::AgentStream;
use turnwheel::event::{AgentEvent, RunStopReason};
use turnwheel::message::{
    AgentMessage, ContentBlock, LlmMessage, MessageStopReason, ToolResultCause, ToolResultMessage,
};
use turnwheel::ports::AgentRunContext;
use turnwheel::question::{Question, QuestionKind};
use turnwheel::scripted::Clock;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tool::{AgentTool, ApprovalNeed, ToolSpec, external_tool, tool};

/// A model that calls these tools at once in its first answer, and then says that it is done.
fn calls(tools: &'static [&'static str]) -> Model {
    let answer = move |request: ModelRequest, _: CancelToken| {
        let is_answered = request.messages.iter().any(|message| matches!(message, LlmMessage::ToolResult(_)));
        let mut events = Vec::new();
        for (index, name) in (0..).zip(tools).filter(|_| !is_answered) {
            events.push(E::ToolCallStart { index, call_id: format!("c{index}"), tool_name: (*name).into() });
            events.push(E::ToolCallDelta { index, delta: r#"{"prompt":"x"}"#.into() });
            events.push(E::ToolCallEnd { index, metadata: None });
        }
        if is_answered {
            events.push(E::TextStart { index: 0 });
            events.push(E::TextDelta { index: 0, delta: "Done.".into() });
            events.push(E::TextEnd { index: 0, signature: None });
        }
        let stop_reason = if is_answered { MessageStopReason::Stop } else { MessageStopReason::ToolUse };
        events.push(E::Done { stop_reason, usage: None });
        stream::iter(events).boxed_local()
    };
    Model::new("own", "m", Rc::new(answer))
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec::parse(name, "", r#"{"type":"object"}"#).unwrap()
}

fn config(called: &'static [&'static str], tools: Vec<Rc<dyn AgentTool>>) -> AgentLoopConfig {
    let mut config = AgentLoopConfig::new(calls(called), Rc::new(Clock::default()));
    let ids = Cell::new(0);
    config.rules.new_id = Rc::new(move || {
        ids.set(ids.get() + 1);
        format!("q{}", ids.get())
    });
    config.set_tools(tools).unwrap();
    config
}

fn pays() -> Vec<Rc<dyn AgentTool>> {
    vec![external_tool(spec("pay")), tool(spec("look"), async |_| "seen".to_owned())]
}

fn go(agent: &Agent) -> AgentStream {
    agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap()
}

fn who() -> AgentRunContext {
    AgentRunContext::new("r", "s")
}

fn results(agent: &Agent) -> Vec<Rc<ToolResultMessage>> {
    let messages = agent.messages().into_iter();
    messages
        .filter_map(|message| match message {
            AgentMessage::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect()
}

fn text(result: &ToolResultMessage) -> String {
    result
        .content
        .iter()
        .map(|block| if let ContentBlock::Text(block) = block { block.text.as_str() } else { "" })
        .collect()
}

/// Runs to the end, and answers each question as it is asked.
fn answered(agent: &Agent, mut run: AgentStream, mut answer: impl FnMut(&Question)) -> Vec<&'static str> {
    let mut names = Vec::new();
    block_on(async {
        while let Some(event) = run.next().await {
            names.push(event.name());
            if let AgentEvent::QuestionAsked { question } = &event {
                assert!(agent.pending_questions().contains(question));
                answer(question);
            }
        }
        assert_eq!(run.result().unwrap().stop_reason, RunStopReason::Completed);
    });
    names
}

#[test]
fn a_call_is_a_question_and_the_answer_is_its_result() {
    let agent = Agent::new(config(&["pay", "look"], pays()), Vec::new());
    let names = answered(&agent, go(&agent), |question| {
        assert_eq!((question.kind, question.call_id()), (QuestionKind::ToolCall, Some("c0")));
        assert_eq!(question.call.as_ref().unwrap().arguments.as_str(), r#"{"prompt":"x"}"#);
        // What is no result answers nothing.
        assert!(!agent.resolve(&question.id, ToolDecision::Accept));
        assert!(!agent.resolve(&question.id, Answer::Decline));
        assert!(agent.resolve(&question.id, Answer::output("paid")));
        // So does a second answer.
        assert!(!agent.resolve(&question.id, Answer::error("not paid")));
    });
    let seen: Vec<_> = results(&agent).iter().map(|result| text(result)).collect();
    assert_eq!(seen, ["paid", "seen"]);
    let told: Vec<_> = names.into_iter().filter(|name| !name.starts_with("message")).collect();
    assert_eq!(
        told,
        [
            "agent_start",
            "turn_start",
            "tool_calls_proposed",
            "tool_execution_start",
            "question_asked",
            "tool_execution_start",
            "command_refused",
            "command_refused",
            "question_resolved",
            "tool_execution_end",
            "command_refused",
            "tool_execution_end",
            "turn_end",
            "turn_start",
            "turn_end",
            "agent_end",
        ]
    );
}

#[test]
fn an_error_and_a_rejection_are_results_that_say_so() {
    let ends: [(Answer, bool, Option<ToolResultCause>, &str); 2] = [
        (Answer::error("no money"), true, None, "no money"),
        (
            ToolDecision::Reject { reason: Some("too late".into()) }.into(),
            true,
            Some(ToolResultCause::Rejected),
            "too late",
        ),
    ];
    for (answer, is_error, cause, says) in ends {
        let agent = Agent::new(config(&["pay"], pays()), Vec::new());
        answered(&agent, go(&agent), |question| assert!(agent.resolve(&question.id, answer.clone())));
        let result = &results(&agent)[0];
        assert_eq!((result.is_error, result.cause), (is_error, cause));
        assert!(text(result).contains(says), "{}", text(result));
    }
}

#[test]
fn whoever_answers_may_do_so_in_any_later_process() {
    for kill in 1..12 {
        let agent = Agent::new(config(&["pay", "look"], pays()), Vec::new());
        let mut first = go(&agent);
        let envelope = block_on(async {
            for _ in 0..kill {
                first.next().await;
            }
            first.checkpoint()
        });
        let known = agent.pending_questions();
        let envelope = CheckpointEnvelopeV1::decode(envelope.encode().as_bytes()).unwrap();
        let again = Agent::restore(config(&["pay", "look"], pays()), &envelope).unwrap();
        let open = again.pending_questions();
        for question in &known {
            assert_eq!(open.first(), Some(question), "the question is the same, killed after {kill}");
            assert!(again.resolve(&question.id, Answer::output("paid")));
            assert!(!again.resolve(&question.id, Answer::output("twice")));
        }
        let run = again.continue_run(who(), CancelToken::new()).unwrap();
        answered(&again, run, |question| {
            if known.is_empty() {
                assert!(again.resolve(&question.id, Answer::output("paid")));
            }
        });
        let seen = results(&again);
        assert_eq!(text(&seen[0]), "paid", "killed after {kill}");
        assert_eq!(seen.len(), 2);
    }
}

#[test]
fn a_tool_that_is_another_now_is_treated_as_that() {
    let asked = || {
        let agent = Agent::new(config(&["pay"], pays()), Vec::new());
        let mut run = go(&agent);
        block_on(async {
            while !matches!(run.next().await, Some(AgentEvent::QuestionAsked { .. })) {}
            run.checkpoint()
        })
    };
    let runs_here = vec![tool(spec("pay"), async |_| "paid here".to_owned())];
    let approved = external_tool(ToolSpec { requires_approval: ApprovalNeed::Always, ..spec("pay") });
    for (tools, says) in [
        (runs_here, "paid here"),
        (vec![tool(spec("look"), async |_| "seen".to_owned())], "no tool named"),
        // Nothing of a checkpoint stands for an approval.
        (vec![approved], "paid"),
    ] {
        let agent = Agent::restore(config(&["pay"], tools), &asked()).unwrap();
        let mut run = agent.continue_run(who(), CancelToken::new()).unwrap();
        let mut closed = Vec::new();
        block_on(async {
            while let Some(event) = run.next().await {
                match event {
                    AgentEvent::ToolApprovalRequested { id, .. } => {
                        assert_eq!(closed, ["q1"]);
                        assert!(agent.resolve(&id, ToolDecision::Accept));
                    }
                    AgentEvent::QuestionAsked { question } => {
                        assert!(agent.resolve(&question.id, Answer::output("paid")));
                    }
                    AgentEvent::QuestionResolved { id, .. } => closed.push(id),
                    _ => {}
                }
            }
        });
        let seen = text(&results(&agent)[0]).to_lowercase();
        assert!(seen.contains(says), "{seen}");
        assert!(agent.pending_questions().is_empty());
    }
}

#[test]
fn a_call_inside_a_sub_agent_is_answered_at_the_outermost_one() {
    let research = || -> Vec<Rc<dyn AgentTool>> {
        vec![Rc::new(SubAgent::new("research", "", || config(&["pay"], pays())))]
    };
    for kill in 0..20 {
        let agent = Agent::new(config(&["research"], research()), Vec::new());
        let mut run = go(&agent);
        let (agent, run) = if kill == 0 {
            (agent, run)
        } else {
            let envelope = block_on(async {
                for _ in 0..kill {
                    if let Some(AgentEvent::QuestionAsked { .. }) = run.next().await {
                        break;
                    }
                }
                run.checkpoint()
            });
            let again = Agent::restore(config(&["research"], research()), &envelope).unwrap();
            let run = again.continue_run(who(), CancelToken::new()).unwrap();
            (again, run)
        };
        for question in agent.pending_questions() {
            assert_eq!(
                (question.kind, question.path.as_slice()),
                (QuestionKind::ToolCall, &["c0".to_owned()][..])
            );
            assert!(agent.resolve(&question.id, Answer::output("paid")));
        }
        answered(&agent, run, |question| {
            if question.kind == QuestionKind::ToolCall {
                agent.resolve(&question.id, Answer::output("paid"));
            }
        });
        assert_eq!(text(&results(&agent)[0]), "Done.", "killed after {kill}");
    }
}

#[test]
fn its_own_time_limit_counts_and_that_of_all_tools_does_not() {
    let timed = |ms| vec![external_tool(ToolSpec { timeout_ms: ms, ..spec("pay") })];
    let agent = Agent::new(config(&["pay"], timed(Some(50))), Vec::new());
    answered(&agent, go(&agent), |_| {});
    assert_eq!(results(&agent)[0].cause, Some(ToolResultCause::Timeout));

    let mut patient = config(&["pay"], timed(None));
    patient.rules.timeouts.tool = Some(1);
    let agent = Agent::new(patient, Vec::new());
    let mut run = go(&agent);
    block_on(async {
        while !matches!(run.next().await, Some(AgentEvent::QuestionAsked { .. })) {}
        for _ in 0..20 {
            assert!(futures::poll!(Box::pin(run.next())).is_pending());
        }
    });
}

#[test]
fn a_message_of_the_user_does_not_wait_for_it() {
    let agent = Agent::new(config(&["pay"], pays()), Vec::new());
    let mut run = go(&agent);
    let mut closed = false;
    block_on(async {
        while let Some(event) = run.next().await {
            match event {
                AgentEvent::QuestionAsked { .. } => drop(agent.steer("Never mind.".into())),
                AgentEvent::QuestionResolved { accepted, .. } => closed = !accepted,
                _ => {}
            }
        }
    });
    assert!(closed);
    assert_eq!(results(&agent)[0].cause, Some(ToolResultCause::Steering));

    // Unless what has begun is to be finished.
    let mut finishing = config(&["pay"], pays());
    finishing.rules.steering.in_flight = InFlight::Finish;
    finishing.rules.steering.when = SteeringTime::Immediate;
    let agent = Agent::new(finishing, Vec::new());
    let run = go(&agent);
    answered(&agent, run, |question| {
        drop(agent.steer("Never mind.".into()));
        assert!(agent.resolve(&question.id, Answer::output("paid")));
    });
    assert_eq!(text(&results(&agent)[0]), "paid");
}

#[test]
fn an_abort_closes_it() {
    let agent = Agent::new(config(&["pay"], pays()), Vec::new());
    let mut run = go(&agent);
    block_on(async {
        while let Some(event) = run.next().await {
            if let AgentEvent::QuestionAsked { .. } = event {
                agent.abort("enough");
            }
        }
    });
    assert_eq!(results(&agent)[0].cause, Some(ToolResultCause::Aborted));
    assert!(agent.pending_questions().is_empty());
}
