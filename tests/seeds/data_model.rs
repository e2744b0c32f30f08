//! The validation rules and the state tables of the data model.

use std::cell::Cell;
use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, answers, brief, calls, config, deaf, failure, model, quick, slow, stage, text};
use turnwheel::error::ErrorKind;
use turnwheel::event::{AgentEvent, TurnEndReason};
use turnwheel::message::AgentMessage;
use turnwheel::policy::Transform;

use super::kit::{Notes, note, noting, shortens};

#[test]
fn events_must_be_emitted_in_lifecycle_order() {
    let mut stage = stage(vec![calls(&[("a", "t", "{}")]), text("so")], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(
        stage.names(),
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_update",
            "message_end",
            "tool_calls_proposed",
            "tool_execution_start",
            "tool_execution_end",
            "turn_end",
            "turn_start",
            "message_start",
            "message_update",
            "message_end",
            "turn_end",
            "agent_end",
        ]
    );
}

#[test]
fn tool_calls_must_execute_concurrently() {
    let clock = Clock::default();
    let tools = [("slow", 300), ("quick", 100), ("middle", 200)].map(|(name, ms)| slow(name, &clock, ms));
    let given = vec![calls(&[("a", "slow", "{}"), ("b", "quick", "{}"), ("c", "middle", "{}")])];
    let mut stage = Stage::new(clock.clone(), config(&clock, answers(given), tools.to_vec()));
    stage.prompt("go").finish().check();
    assert_eq!(clock.elapsed(), 300);
    // All have begun before the first one ends, each ends in its time, and the results stand in the order of the calls.
    let of_calls = |event: &AgentEvent| match event {
        AgentEvent::ToolExecutionStart { call_id, .. } => Some(format!("{call_id} begins")),
        AgentEvent::ToolExecutionEnd { result, .. } => Some(format!("{} ends", result.call_id)),
        _ => None,
    };
    let order: Vec<String> = stage.events.iter().filter_map(of_calls).collect();
    assert_eq!(order, ["a begins", "b begins", "c begins", "b ends", "c ends", "a ends"]);
    let results = ["a: slow is done", "b: quick is done", "c: middle is done"];
    assert_eq!(stage.history().get(2..5).unwrap(), results);
}

#[test]
fn overflow_signal_must_reset_after_transform_context() {
    let notes = Notes::default();
    let mut stage = stage(
        vec![failure(ErrorKind::ContextOverflow), calls(&[("a", "t", "{}")])],
        vec![quick("t")],
        |config| config.rules.transformers.push(Rc::new(shortens(&notes))),
    );
    stage.prompt("go").finish().check();
    assert_eq!(
        *notes.borrow(),
        ["transform, overflow false", "transform, overflow true", "transform, overflow false"]
    );
}

#[test]
fn overflow_recovery_attempted_must_reset_at_the_start_of_each_turn() {
    let notes = Notes::default();
    let too_long = || failure(ErrorKind::ContextOverflow);
    let given = vec![too_long(), calls(&[("a", "t", "{}")]), too_long(), text("done")];
    let mut stage = stage(given, vec![quick("t")], |config| {
        let shorten = shortens(&notes);
        config.rules.transformers.push(Rc::new(move |messages: &[AgentMessage], overflow: bool| {
            match shorten(messages, overflow)? {
                // The newest message of the second turn is a result, which
                // cannot stand without its call.
                Transform::Replace { report, .. } if messages.len() > 1 => {
                    Ok(Transform::Replace { messages: messages.to_vec(), report })
                }
                transform => Ok(transform),
            }
        }));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends completed");
    assert_eq!(stage.count("context_compacted"), 2);
}

#[test]
fn emergency_overflow_recovery_must_not_occur_when_overflow_recovery_attempted_is_true() {
    let notes = Notes::default();
    let too_long = || failure(ErrorKind::ContextOverflow);
    let mut stage = stage(vec![too_long(), too_long(), text("never")], Vec::new(), |config| {
        config.rules.transformers.push(Rc::new(shortens(&notes)));
    });
    stage.prompt("go").finish().check();
    assert_eq!(notes.borrow().len(), 2);
    assert_eq!(
        stage.lines()[2..],
        ["compacted (overflow)", "assistant:  (error)", "turn ends error", "run ends error: it failed"]
    );
}

#[test]
fn error_and_abort_must_skip_follow_up_polling() {
    for kind in [ErrorKind::Auth, ErrorKind::Aborted] {
        let asked = Rc::new(Cell::new(0));
        let count = asked.clone();
        let mut stage = stage(vec![failure(kind)], Vec::new(), |config| {
            config.set_message_provider(Rc::new(Port(move |_| {
                count.set(count.get() + 1);
                ready(vec![AgentMessage::user("more")])
            })));
        });
        drop(stage.agent.follow_up("more".into()));
        stage.prompt("go").finish().check();
        assert_eq!((asked.get(), stage.count("turn_start")), (0, 1));
    }
}

#[test]
fn transform_must_run_before_convert_to_llm() {
    let notes = Notes::default();
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        config.rules.transformers.push(Rc::new(shortens(&notes)));
        let notes = notes.clone();
        config.rules.convert_to_llm = Some(Rc::new(move |message, _| {
            note(&notes, format!("convert {}", brief(message)));
            Ok(message.as_llm())
        }));
    });
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["transform, overflow false", "convert user: go"]);
}

#[test]
fn convert_to_llm_filters_messages_for_the_provider_and_is_asked_once_per_message() {
    let (asked, converted) = (Notes::default(), Notes::default());
    let clock = Clock::default();
    let mut config = config(&clock, noting(&asked, vec![calls(&[("a", "t", "{}")])]), vec![quick("t")]);
    let notes = converted.clone();
    config.rules.convert_to_llm = Some(Rc::new(move |message, _| {
        note(&notes, brief(message));
        Ok(message.as_llm().filter(|_| brief(message) != "user: secret"))
    }));
    let mut stage = Stage::over(clock, config, vec!["secret".into()]);
    stage.prompt("go").finish().check();
    assert_eq!(*asked.borrow(), ["user: go", "user: go | assistant: [a] | a: t is done"]);
    assert_eq!(*converted.borrow(), ["user: secret", "user: go", "assistant: [a]", "a: t is done"]);
    // Nor are they converted again in the next run, unless by another function.
    converted.borrow_mut().clear();
    stage.prompt("on").finish().check();
    assert_eq!(*converted.borrow(), ["assistant: done", "user: on"]);
    assert!(!asked.borrow().last().unwrap().contains("secret"));
    stage.agent.configure(|config| config.rules.convert_to_llm = Some(Rc::new(|m, _| Ok(m.as_llm()))));
    stage.prompt("still").finish().check();
    assert!(asked.borrow().last().unwrap().starts_with("user: secret | user: go"));
}

#[test]
fn transform_context_is_the_identity_if_absent() {
    let notes = Notes::default();
    let clock = Clock::default();
    let config = config(&clock, noting(&notes, Vec::new()), Vec::new());
    let mut stage = Stage::over(clock, config, vec!["before".into()]);
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["user: before | user: go"]);
}

#[test]
fn get_api_key_is_an_async_callback_for_dynamic_resolution() {
    let clock = Clock::default();
    let keys = Notes::default();
    let seen = keys.clone();
    let asks = model("m", move |request, _| {
        note(&seen, request.api_key.as_deref().unwrap_or("none"));
        futures::StreamExt::boxed_local(futures::stream::iter(text("hi")))
    });
    let mut config = config(&clock, asks, Vec::new());
    let slow_clock = clock.clone();
    config.ports.keys = Some(Rc::new(Port(move |provider: &str| {
        let (pause, key) = (slow_clock.pause(30), format!("key of {provider}"));
        async move {
            pause.await;
            Ok(Some(key.into()))
        }
    })));
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(*keys.borrow(), ["key of provider-of-m"]);
}

#[test]
fn get_steering_messages_is_polled_after_each_tool_completion() {
    let clock = Clock::default();
    let tools = vec![slow("s", &clock, 10), slow("l", &clock, 50)];
    let given = vec![calls(&[("a", "s", "{}"), ("b", "l", "{}")])];
    let mut config = config(&clock, answers(given), tools);
    let polls = Notes::default();
    let (notes, at) = (polls.clone(), clock.clone());
    config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
        note(&notes, format!("{} at {}", if follow_up { "follow-up" } else { "steering" }, at.elapsed()));
        ready(Vec::new())
    })));
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(
        *polls.borrow(),
        [
            "steering at 10",
            "steering at 50", // after the tools
            "steering at 50", // after their turn
            "steering at 50",
            "follow-up at 50", // after the text
        ]
    );
}

#[test]
fn get_follow_up_messages_is_polled_when_the_agent_would_stop() {
    let left = Cell::new(2);
    let mut stage = stage(vec![text("one"), text("two"), text("three")], Vec::new(), |config| {
        config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
            let some = follow_up && left.get() > 0;
            left.set(left.get() - i32::from(some));
            ready(if some { vec!["more".into()] } else { Vec::new() })
        })));
    });
    stage.prompt("go").finish().check();
    assert_eq!(
        stage.history(),
        ["user: go", "assistant: one", "user: more", "assistant: two", "user: more", "assistant: three"]
    );
}

#[test]
fn agent_end_carries_all_produced_messages() {
    let clock = Clock::default();
    let config = config(&clock, answers(vec![calls(&[("a", "t", "{}")])]), vec![quick("t")]);
    let mut stage = Stage::over(clock, config, vec!["before".into()]);
    drop(stage.agent.follow_up("and?".into()));
    stage.prompt("go").finish().check();
    assert_eq!(
        stage.end().0,
        ["user: go", "assistant: [a]", "a: t is done", "assistant: done", "user: and?", "assistant: done"]
    );
}

#[test]
fn pending_messages_are_steering_and_follow_up_messages_queued_for_the_next_turn() {
    let mut stage = stage(Vec::new(), Vec::new(), |_| {});
    drop(stage.agent.follow_up("later".into()));
    drop(stage.agent.steer("sooner".into()));
    stage.prompt("go").finish().check();
    let users: Vec<String> = stage.history().into_iter().filter(|line| line.starts_with("user")).collect();
    assert_eq!(users, ["user: go", "user: sooner", "user: later"]);
}

#[test]
fn turn_end_reasons() {
    let reasons = |stage: &Stage| -> Vec<TurnEndReason> {
        let ends = stage.events.iter().filter_map(|event| match event {
            AgentEvent::TurnEnd { reason, .. } => Some(*reason),
            _ => None,
        });
        ends.collect()
    };
    let mut watched = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |_| {});
    watched.prompt("go").finish();
    assert_eq!(reasons(&watched), [TurnEndReason::ToolsExecuted, TurnEndReason::Complete]);
    let mut watched = stage(vec![failure(ErrorKind::Auth)], Vec::new(), |_| {});
    watched.prompt("go").finish();
    assert_eq!(reasons(&watched), [TurnEndReason::Error]);
    let mut watched = stage(vec![calls(&[("a", "t", "{}")])], vec![deaf("t")], |_| {});
    watched.prompt("go").until("tool_execution_start");
    watched.cancel.cancel("stop");
    watched.finish();
    assert_eq!(reasons(&watched), [TurnEndReason::Aborted]);
    let clock = Clock::default();
    let tools = vec![slow("s", &clock, 10), deaf("d")];
    let given = vec![calls(&[("a", "s", "{}"), ("b", "d", "{}")])];
    let mut watched = Stage::new(clock.clone(), config(&clock, answers(given), tools));
    watched.prompt("go").until("tool_execution_start");
    drop(watched.agent.steer("this".into()));
    watched.finish();
    assert_eq!(reasons(&watched), [TurnEndReason::SteeringInterrupt, TurnEndReason::Complete]);
}
