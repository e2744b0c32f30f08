//! Policies around a turn, and another configuration from the next one on.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::ready;
use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{Port, Stage, calls, config, failure, model, quick, stage, text};
use turnwheel::agent::Agent;
use turnwheel::error::ErrorKind;
use turnwheel::message::AgentMessage;
use turnwheel::policy::{PolicyContext, PostTurn, Transform, Verdict};
use turnwheel::ports::Compaction;

use super::kit::{Notes, noting};

#[test]
fn max_turns_is_a_policy_before_the_turn() {
    let given = (0..9).map(|n| calls(&[(&format!("c{n}"), "t", "{}")])).collect();
    let mut stage = stage(given, vec![quick("t")], |config| config.rules.max_turns = Some(2));
    stage.prompt("go").finish().check();
    let ends = stage.lines();
    assert_eq!(ends[ends.len() - 3..], ["turn 2", "turn ends complete", "run ends max_turns"]);
    assert_eq!(stage.end().1, 2);
}

#[test]
fn nothing_is_shortened_for_a_turn_that_max_turns_stops() {
    let asked = Rc::new(Cell::new(0));
    let count = asked.clone();
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |config| {
        config.rules.max_turns = Some(1);
        config.rules.transformers.push(Rc::new(move |messages: &[AgentMessage], _: bool| {
            count.set(count.get() + 1);
            Ok(Transform::Replace { messages: messages.to_vec(), report: None })
        }));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends max_turns");
    assert_eq!(asked.get(), 1);
}

#[test]
fn a_transformer_that_leaves_results_alone_is_an_error_and_no_empty_request() {
    let asked = Rc::new(Cell::new(0));
    let count = asked.clone();
    let clock = Clock::default();
    let given = RefCell::new(VecDeque::from([calls(&[("a", "t", "{}")])]));
    let model = model("m", move |_, _| {
        count.set(count.get() + 1);
        stream::iter(given.borrow_mut().pop_front().unwrap_or_else(|| text("done"))).boxed_local()
    });
    let mut config = config(&clock, model, vec![quick("t")]);
    config.rules.transformers.push(Rc::new(|messages: &[AgentMessage], _: bool| {
        Ok(Transform::Replace { messages: messages[messages.len() - 1..].to_vec(), report: None })
    }));
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish();
    let last = "run ends error: the messages that are left have none for the model; a tool's result goes with the answer \
                that has its call";
    assert_eq!(stage.lines().last().unwrap(), last);
    assert_eq!(asked.get(), 1, "nothing was asked for");
}

#[test]
fn pre_turn_injections_go_into_this_turns_call() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let mut config = config(&clock, noting("m", &notes, Vec::new()), Vec::new());
    config
        .rules
        .pre_turn
        .push(Rc::new(|_: &PolicyContext<'_>| Ok(Verdict::Inject(vec!["mind the gap".into()]))));
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["m: user: go | user: mind the gap"]);
}

#[test]
fn the_first_stop_of_a_slot_wins_and_drops_the_injections_before_it() {
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        let policies = &mut config.rules.pre_turn;
        policies.push(Rc::new(|_: &PolicyContext<'_>| Ok(Verdict::Inject(vec!["dropped".into()]))));
        policies.push(Rc::new(|_: &PolicyContext<'_>| Ok(Verdict::Stop("first".to_owned()))));
        policies.push(Rc::new(|_: &PolicyContext<'_>| std::panic::resume_unwind(Box::new("not asked"))));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.history(), ["user: go"]);
}

#[test]
fn a_stop_at_the_end_of_the_loop_leaves_the_follow_ups_in_their_queue() {
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        config.rules.post_loop.push(Rc::new(|_: &PolicyContext<'_>| Ok(Verdict::Stop("late".to_owned()))));
    });
    drop(stage.agent.follow_up("and then".into()));
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends policy_stop");
    assert_eq!(stage.history(), ["user: go", "assistant: done"]);
    assert!(stage.agent.has_waiting());
}

#[test]
fn behind_the_call_policies_count_the_history_whatever_the_model_was_shown() {
    let notes = Notes::default();
    let count = |notes: &Notes, slot: &'static str| {
        let notes = notes.clone();
        move |context: &PolicyContext<'_>| {
            notes.borrow_mut().push(format!("{slot} {}", context.message_count));
            Ok(Verdict::Continue)
        }
    };
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |config| {
        config.rules.transformers.push(Rc::new(|messages: &[AgentMessage], _| {
            Ok(Transform::View(messages.iter().take(1).cloned().collect()))
        }));
        config.rules.pre_turn.push(Rc::new(count(&notes, "before")));
        let after = count(&notes, "after");
        config.rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| after(&turn.context)));
        config.rules.post_loop.push(Rc::new(count(&notes, "at the end")));
    });
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["before 1", "after 3", "before 1", "after 4", "at the end 4"]);
}

#[test]
fn no_message_is_new_to_a_policy_behind_the_turn_however_early_it_was_stopped() {
    for point in ["agent_start", "turn_start", "message_end"] {
        let fresh = Rc::new(Cell::new(usize::MAX));
        let seen = fresh.clone();
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            config.rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
                seen.set(turn.context.new_messages.len());
                Ok(Verdict::Continue)
            }));
        });
        stage.prompt("go").until(point);
        stage.agent.abort("enough");
        stage.finish().check();
        assert_eq!(fresh.get(), 0, "{point}");
    }
}

#[test]
fn another_configuration_holds_from_the_next_turn_on() {
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |_| {});
    stage.prompt("go").until("tool_calls_proposed");
    stage.agent.configure(|config| {
        config.set_models(vec![model("other", |_, _| stream::iter(text("other")).boxed_local())]);
        config.set_tools(vec![quick("u")]).unwrap();
    });
    stage.finish().check();
    assert_eq!(
        stage.lines()[4..9],
        [
            "a starts with {}",
            "a: t is done",
            "turn ends tools_executed",
            "turn 1",
            "switched from m to other"
        ]
    );
}

#[test]
fn another_configuration_waits_for_the_next_turn_also_where_room_is_made() {
    for asked_first in [true, false] {
        let notes = Notes::default();
        let given = match asked_first {
            true => vec![failure(ErrorKind::ContextOverflow), calls(&[("a", "t", "{}")])],
            false => vec![calls(&[("a", "t", "{}")])],
        };
        let mut first = noting("m", &notes, given);
        first.context_window = (!asked_first).then_some(5);
        let clock = Clock::default();
        let mut config = config(&clock, first, vec![quick("t")]);
        let (changes, asks) = (Rc::new(RefCell::new(None::<Agent>)), notes.clone());
        let agent = changes.clone();
        config.ports.compaction = Some(Rc::new(Port(move |messages: Rc<[AgentMessage]>| {
            if let Some(agent) = agent.borrow_mut().take() {
                let other = noting("other", &asks, Vec::new());
                agent.configure(move |config| config.set_models(vec![other]));
            }
            let messages = messages.to_vec();
            ready(Ok(Compaction { messages, ..Compaction::default() }))
        })));
        let mut stage = Stage::new(clock, config);
        *changes.borrow_mut() = Some(stage.agent.clone());
        stage.prompt(&"go ".repeat(20)).finish().check();
        let asked: Vec<String> =
            notes.borrow().iter().filter_map(|note| Some(note.split_once(':')?.0.to_owned())).collect();
        let expected: &[&str] = if asked_first { &["m", "m", "other"] } else { &["m", "other"] };
        assert_eq!(asked, expected);
        assert_eq!(stage.count("model_switched"), 1);
    }
}
