//! Steering, questions and budgets, asleep and awake: each moment is the one that was promised.

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{Stage, asking, calls, config, deaf, model, quick, slow, text};
use turnwheel::agent::Agent;
use turnwheel::answer::Answer;
use turnwheel::approval::ToolDecision;
use turnwheel::budget::{Amounts, Budget, OnExceed};
use turnwheel::config::{AgentLoopConfig, SteeringTime};
use turnwheel::event::{AgentEvent, BudgetKind, BudgetState, RunStopReason};
use turnwheel::message::{AgentMessage, MessageStopReason, ToolResultCause, Usage};
use turnwheel::stream::{AssistantMessageEvent as E, ToolChoice};

fn restored(clock: &Clock, first: &mut Stage, config: AgentLoopConfig) -> Stage {
    let checkpoint = first.stream.as_mut().unwrap().checkpoint();
    first.stream = None;
    let mut second = Stage::new(clock.clone(), config.clone());
    second.agent = Agent::restore(config, &checkpoint).unwrap();
    second
}

fn causes(messages: &[AgentMessage]) -> Vec<Option<ToolResultCause>> {
    let cause = |message: &AgentMessage| match message {
        AgentMessage::ToolResult(result) => Some(result.cause),
        _ => None,
    };
    messages.iter().filter_map(cause).collect()
}

#[test]
fn the_last_call_of_a_budget_runs_no_tools_though_the_model_asks() {
    let clock = Clock::default();
    let ran = Rc::new(Cell::new(0));
    let counted = ran.clone();
    let work = rig::host::tool(rig::host::spec("work"), move |_| {
        counted.set(counted.get() + 1);
        ready(turnwheel::tool::ToolOutcome::from("done".to_owned()))
    });
    let number = Cell::new(0);
    let stubborn = model("m", move |_, _| {
        number.set(number.get() + 1);
        stream::iter(calls(&[(&format!("c{}", number.get()), "work", "{}")])).boxed_local()
    });
    let mut config = config(&clock, stubborn, vec![work]);
    config.rules.budget = Some(Budget { turns: Some(1), on_exceed: OnExceed::WrapUp, ..Budget::default() });
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(stage.result().stop_reason, RunStopReason::Budget);
    assert_eq!(causes(&stage.agent.messages()), [None, Some(ToolResultCause::Budget)]);
    assert_eq!(ran.get(), 1);
}

#[test]
fn only_time_awake_counts() {
    let clock = Clock::default();
    let make = |given| {
        let mut config =
            config(&clock, rig::host::answers(given), vec![asking("look"), slow("work", &clock, 40)]);
        config.rules.budget = Some(Budget { ms: Some(100), ..Budget::default() });
        config
    };
    let mut first = Stage::new(clock.clone(), make(vec![calls(&[("w", "work", "{}"), ("l", "look", "{}")])]));
    first.prompt("go").until("tool_approval_requested").settle();
    let mut second = restored(
        &clock,
        &mut first,
        make(vec![calls(&[("w2", "work", "{}")]), calls(&[("w3", "work", "{}")])]),
    );
    clock.at(clock.elapsed() + 86_400_000, || {});
    assert!(clock.advance());
    second.resume().settle();
    let id = second.agent.pending_questions()[0].id.clone();
    assert!(second.agent.resolve(&id, Answer::Decision(ToolDecision::Accept)));
    second.finish();
    assert_eq!(second.result().stop_reason, RunStopReason::Budget);
    let exceeded = second.events.iter().find_map(|event| match event {
        AgentEvent::Budget { state: BudgetState::Exceeded, kind: BudgetKind::Ms, used, .. } => Some(*used),
        _ => None,
    });
    assert_eq!(exceeded, Some(120), "{:?}", second.lines());
}

#[test]
fn each_state_of_a_budget_is_told_once_wherever_the_run_sleeps() {
    let make = |from: usize| {
        let clock = Clock::default();
        let number = Cell::new(from);
        let usage = Usage { input: 30, output: 10, total: 40, ..Usage::default() };
        let tireless = model("m", move |_, _| {
            number.set(number.get() + 1);
            let mut answer = calls(&[(&format!("c{}", number.get()), "look", "{}")]);
            answer.pop();
            answer.push(E::Done { stop_reason: MessageStopReason::ToolUse, usage: Some(usage) });
            stream::iter(answer).boxed_local()
        });
        let mut config = config(&clock, tireless, vec![quick("look")]);
        config.rules.budget = Some(Budget {
            tokens: Some(200),
            turns: Some(6),
            tool_calls: Some(4),
            on_exceed: OnExceed::Ask,
            ..Budget::default()
        });
        (clock, config)
    };
    for kill in 1..60 {
        let (clock, config) = make(0);
        let mut first = Stage::new(clock.clone(), config);
        first.prompt("go");
        let mut events = Vec::new();
        for _ in 0..kill {
            events.extend(first.poll_once());
        }
        if events.len() < kill {
            assert!(kill > 20);
            return;
        }
        let mut second = restored(&clock, &mut first, make(100).1);
        second.resume().settle();
        while let Some(question) = second.agent.pending_questions().first() {
            assert!(
                second.agent.resolve(&question.id, Answer::Decision(ToolDecision::Reject { reason: None }))
            );
            second.settle();
        }
        assert_eq!(second.result().stop_reason, RunStopReason::Budget);
        events.extend(second.events.clone());
        let mut told: Vec<String> = Vec::new();
        for event in &events {
            if let AgentEvent::Budget { state, kind, .. } = event {
                told.push(format!("{state:?} {kind:?}"));
            }
        }
        let all = told.len();
        told.sort();
        told.dedup();
        assert_eq!(told.len(), all, "killed after {kill}: {told:?}");
        let asked = |event: &&AgentEvent| matches!(event, AgentEvent::QuestionAsked { .. });
        assert_eq!(events.iter().filter(asked).count(), 1, "killed after {kill}");
    }
}

#[test]
fn a_filtered_answer_does_not_run_its_calls_in_the_middle_of_steering() {
    for when in [SteeringTime::Immediate, SteeringTime::AfterTool, SteeringTime::AfterBatch] {
        let clock = Clock::default();
        let open = Rc::new(RefCell::new(None));
        let gate = open.clone();
        let number = Cell::new(0);
        let model = model("m", move |_, _| {
            number.set(number.get() + 1);
            if number.get() > 1 {
                return stream::iter(text("done")).boxed_local();
            }
            let mut begun = calls(&[("a", "look", "{}"), ("b", "wipe", "{}")]);
            begun.pop();
            let (send, receive) = futures::channel::oneshot::channel::<()>();
            *gate.borrow_mut() = Some(send);
            let end = async {
                let _ = receive.await;
                E::Done { stop_reason: MessageStopReason::ContentFilter, usage: None }
            };
            stream::iter(begun).chain(stream::once(end)).boxed_local()
        });
        let mut stage = Stage::new(clock.clone(), config(&clock, model, vec![quick("look"), asking("wipe")]));
        stage.prompt("go").until("message_update").settle();
        let mut receipt = stage.agent.steer_when("Stop.".into(), when);
        stage.settle();
        drop(open.take());
        stage.finish().check();
        assert_eq!(causes(&stage.agent.messages()), [Some(ToolResultCause::Filtered); 2]);
        assert_eq!(stage.count("tool_execution_start") + stage.count("tool_approval_requested"), 0);
        let receipt = format!("{:?}", receipt.try_recv());
        assert!(receipt.contains("Delivered { turn_index: 1 }"), "{receipt}");
    }
}

#[test]
fn a_letter_for_the_end_of_the_batch_waits_asleep_too_and_is_told_of_an_abort() {
    let clock = Clock::default();
    let make =
        |given| config(&clock, rig::host::answers(given), vec![slow("one", &clock, 10), asking("two")]);
    let batch = calls(&[("a", "one", "{}"), ("b", "two", "{}")]);
    let mut first = Stage::new(clock.clone(), make(vec![batch.clone()]));
    first.prompt("go").until("tool_approval_requested").settle();
    drop(first.agent.steer_when("And then?".into(), SteeringTime::AfterBatch));
    first.settle();
    let mut second = restored(&clock, &mut first, make(Vec::new()));
    second.resume().settle();
    let id = second.agent.pending_questions()[0].id.clone();
    assert!(second.agent.resolve(&id, Answer::Decision(ToolDecision::Accept)));
    second.finish();
    assert_eq!(causes(&second.agent.messages()), [None, None]);
    let history = second.history();
    assert!(history.contains(&"user: And then?".to_owned()), "{history:?}");
    // The same, aborted.
    let mut stage = Stage::new(clock.clone(), make(vec![batch]));
    stage.prompt("go").until("tool_approval_requested").settle();
    let mut receipt = stage.agent.steer_when("And then?".into(), SteeringTime::AfterBatch);
    stage.settle();
    stage.agent.abort("enough");
    stage.finish().check();
    // It waits for the next run.
    assert_eq!(receipt.try_recv(), Ok(None));
    assert!(stage.agent.has_waiting());
    stage.agent.clear_queues();
    assert_eq!(format!("{:?}", receipt.try_recv()), "Ok(Some(Cleared))");
}

#[test]
fn an_answer_to_an_old_question_is_refused_aloud() {
    let clock = Clock::default();
    let ids = Rc::new(Cell::new(0));
    let make = |given| {
        let mut config = config(&clock, rig::host::answers(given), vec![asking("look")]);
        let ids = ids.clone();
        config.rules.new_id = Rc::new(move || {
            ids.set(ids.get() + 1);
            format!("q{}", ids.get())
        });
        config
    };
    let mut first = Stage::new(clock.clone(), make(vec![calls(&[("a", "look", "{\"at\":1}")])]));
    first.prompt("go").until("tool_approval_requested").settle();
    let old = first.agent.pending_questions()[0].id.clone();
    let mut second = restored(&clock, &mut first, {
        let mut config = make(Vec::new());
        // The policies of this process change what would run.
        config.rules.pre_dispatch.push(Rc::new(|call: &mut turnwheel::policy::DispatchCall<'_>| {
            call.arguments = turnwheel::json::RawJson::parse("{\"at\":2}").unwrap();
            Ok(turnwheel::policy::DispatchVerdict::Continue)
        }));
        config
    });
    // While it sleeps: what is open still is answered, and then asked anew because something else would run.
    second.resume().settle();
    let new = second.agent.pending_questions()[0].clone();
    assert_ne!(new.id, old);
    assert!(!second.agent.resolve(&old, Answer::Decision(ToolDecision::Accept)));
    second.settle();
    assert_eq!(second.count("command_refused"), 1);
    assert_eq!(second.count("tool_execution_start"), 0);
    assert!(second.agent.resolve(&new.id, Answer::Decision(ToolDecision::Accept)));
    assert!(!second.agent.resolve(&new.id, Answer::Decision(ToolDecision::Accept)));
    second.finish();
    assert_eq!(second.count("tool_execution_start"), 1);
    assert!(!second.agent.resolve(&new.id, Answer::Decision(ToolDecision::Accept)));
}

#[test]
fn a_forced_choice_is_spent_when_the_first_call_was_answered_before_sleep() {
    for kill in 1..40 {
        let clock = Clock::default();
        let seen: Rc<RefCell<Vec<bool>>> = Rc::default();
        let make = || {
            let (seen, number) = (seen.clone(), Cell::new(seen.borrow().len()));
            let noting = model("m", move |request: turnwheel::stream::ModelRequest, _| {
                let is_first = !request
                    .messages
                    .iter()
                    .any(|message| matches!(message, turnwheel::message::LlmMessage::ToolResult(_)));
                let is_forced = request.options.tool_choice == Some(ToolChoice::Required);
                assert_eq!(is_first, is_forced);
                seen.borrow_mut().push(is_forced);
                number.set(number.get() + 1);
                let answer = if is_first { calls(&[("a", "look", "{}")]) } else { text("done") };
                stream::iter(answer).boxed_local()
            });
            let mut config = config(&clock, noting, vec![quick("look")]);
            config.rules.stream_options = Rc::new(turnwheel::stream::StreamOptions {
                tool_choice: Some(ToolChoice::Required),
                ..Default::default()
            });
            config
        };
        let mut first = Stage::new(clock.clone(), make());
        first.prompt("go");
        for _ in 0..kill {
            if first.poll_once().is_none() {
                return;
            }
        }
        if first.is_over() {
            return;
        }
        let mut second = restored(&clock, &mut first, make());
        second.resume().finish();
        assert_eq!(second.result().stop_reason, RunStopReason::Completed);
    }
}

#[test]
fn raised_in_a_listener_a_budget_has_room_at_once() {
    let clock = Clock::default();
    let number = Cell::new(0);
    let model = model("m", move |_, _| {
        number.set(number.get() + 1);
        let answer = if number.get() < 4 {
            calls(&[(&format!("c{}", number.get()), "look", "{}")])
        } else {
            text("done")
        };
        stream::iter(answer).boxed_local()
    });
    let mut config = config(&clock, model, vec![quick("look"), deaf("deaf")]);
    config.rules.budget = Some(Budget { turns: Some(1), on_exceed: OnExceed::Ask, ..Budget::default() });
    let mut stage = Stage::new(clock, config);
    let agent = stage.agent.clone();
    let raised = Rc::new(Cell::new(0));
    let counted = raised.clone();
    let subscription = stage.agent.subscribe(move |event: &AgentEvent| {
        if let AgentEvent::QuestionAsked { question } = event {
            counted.set(counted.get() + 1);
            assert!(agent.resolve(&question.id, Answer::Raise(Amounts { turns: 1, ..Amounts::default() })));
        }
    });
    stage.prompt("go").finish().check();
    assert_eq!((stage.result().turns, raised.get()), (4, 3));
    stage.agent.unsubscribe(subscription);
}

#[test]
fn what_a_run_of_before_a_reset_has_used_is_not_taken_from_those_after_it() {
    let clock = Clock::default();
    let number = Cell::new(0);
    let tireless = model("m", move |_, _| {
        number.set(number.get() + 1);
        stream::iter(calls(&[(&format!("c{}", number.get()), "look", "{}")])).boxed_local()
    });
    let mut config = config(&clock, tireless, vec![quick("look")]);
    let scope = turnwheel::budget::BudgetScope::Agent;
    config.rules.budget = Some(Budget { turns: Some(3), scope, ..Budget::default() });
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").until("turn_end").until("turn_end");
    stage.agent.reset();
    // The old run hears of it only now.
    stage.finish();
    stage.prompt("go").finish();
    assert_eq!(stage.result().turns, 3);
}

#[test]
fn an_answer_that_sleep_cut_is_asked_for_again_only_within_the_budget() {
    for (tokens, calls) in [(100, 0), (1_000, 1)] {
        let clock = Clock::default();
        let asked = Rc::new(Cell::new(0));
        let make = || {
            let counted = asked.clone();
            let usage = Usage { input: 80, output: 5, total: 85, ..Usage::default() };
            let silent = model("m", move |_, _| {
                counted.set(counted.get() + 1);
                stream::iter([E::Usage(usage)]).chain(stream::once(std::future::pending())).boxed_local()
            });
            let mut config = config(&clock, silent, Vec::new());
            config.rules.budget = Some(Budget { tokens: Some(tokens), ..Budget::default() });
            config.rules.stream_options =
                Rc::new(turnwheel::stream::StreamOptions { max_tokens: Some(50), ..Default::default() });
            config
        };
        let mut first = Stage::new(clock.clone(), make());
        first.prompt("go").settle();
        assert_eq!(asked.replace(0), 1);
        let mut second = restored(&clock, &mut first, make());
        second.resume().settle();
        assert_eq!(asked.get(), calls, "{tokens}: {:?}", second.lines());
        assert_eq!(second.is_over(), calls == 0);
    }
}
