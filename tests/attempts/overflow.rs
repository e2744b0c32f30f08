//! Conversations that are too long for the model.

use std::cell::Cell;
use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, config, failure, stage, text};
use turnwheel::error::ErrorKind;
use turnwheel::event::CompactionReport;
use turnwheel::message::AgentMessage;
use turnwheel::policy::Transform;
use turnwheel::ports::Compaction;

use super::kit::{Notes, noting, refused_in_the_middle};

#[test]
fn the_compaction_engine_is_asked_when_no_transformer_makes_room() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let given = vec![failure(ErrorKind::ContextOverflow)];
    let mut config = config(&clock, noting("m", &notes, given), Vec::new());
    config.ports.compaction = Some(Rc::new(Port(|messages: Rc<[AgentMessage]>| {
        let kept = messages.last().cloned().into_iter();
        let messages = std::iter::once(AgentMessage::user("summary")).chain(kept).collect();
        ready(Ok(Compaction { messages, report: Some(CompactionReport::default()), ..Compaction::default() }))
    })));
    let mut stage = Stage::over(clock, config, vec!["old".into()]);
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["m: user: old | user: go", "m: user: summary | user: go"]);
    assert_eq!(stage.lines()[2], "compacted (overflow)");
    assert_eq!(stage.history(), ["user: summary", "user: go", "assistant: done"]);
    assert_eq!(stage.end().0, ["user: go", "assistant: done"]);
}

#[test]
fn a_compaction_that_fails_ends_the_turn_in_error_with_both_reasons() {
    let mut stage = stage(vec![failure(ErrorKind::ContextOverflow)], Vec::new(), |config| {
        config.ports.compaction = Some(Rc::new(Port(|_| ready(Err("no summary".to_owned())))));
    });
    stage.prompt("go").finish().check();
    let end = "run ends error: it failed; the compaction engine failed: no summary";
    assert_eq!(stage.lines().last().unwrap(), end);
}

#[test]
fn more_recoveries_a_turn_are_made_where_the_host_wants_them_but_never_without_end() {
    let too_long = || failure(ErrorKind::ContextOverflow);
    let compactions = Rc::new(Cell::new(0));
    let count = compactions.clone();
    let mut stage = stage((0..9).map(|_| too_long()).collect(), Vec::new(), |config| {
        config.rules.max_recoveries_per_turn = 3;
        config.ports.compaction = Some(Rc::new(Port(move |messages: Rc<[AgentMessage]>| {
            count.set(count.get() + 1);
            ready(Ok(Compaction { messages: messages.to_vec(), ..Compaction::default() }))
        })));
    });
    stage.prompt("go").finish().check();
    assert_eq!((compactions.get(), stage.lines().last().unwrap().as_str()), (3, "run ends error: it failed"));
}

#[test]
fn what_has_arrived_is_appended_before_the_call_that_is_repeated_after_an_overflow() {
    for has_engine in [true, false] {
        let (notes, clock) = (Notes::default(), Clock::default());
        let mut config =
            config(&clock, noting("m", &notes, vec![failure(ErrorKind::ContextOverflow)]), Vec::new());
        if has_engine {
            config.ports.compaction = Some(Rc::new(Port(|messages: Rc<[AgentMessage]>| {
                ready(Ok(Compaction { messages: messages.to_vec(), ..Compaction::default() }))
            })));
        } else {
            config.rules.transformers.push(Rc::new(|messages: &[AgentMessage], overflow: bool| {
                let report = overflow.then(CompactionReport::default);
                Ok(Transform::Replace { messages: messages.to_vec(), report })
            }));
        }
        let mut stage = Stage::new(clock, config);
        drop(stage.agent.steer("and this".into()));
        stage.prompt("go").finish().check();
        assert_eq!(notes.borrow()[1], "m: user: go | user: and this");
        assert_eq!(stage.count("turn_start"), 1);
    }
}

#[test]
fn what_has_arrived_before_an_overflow_is_not_compacted_away_and_waits_where_no_room_is_made() {
    for has_engine in [true, false] {
        let (notes, clock) = (Notes::default(), Clock::default());
        let mut config =
            config(&clock, noting("m", &notes, vec![failure(ErrorKind::ContextOverflow)]), Vec::new());
        if has_engine {
            config.ports.compaction = Some(Rc::new(Port(|_| {
                ready(Ok(Compaction { messages: vec!["notes".into()], ..Compaction::default() }))
            })));
        }
        let mut stage = Stage::new(clock, config);
        drop(stage.agent.steer("and this".into()));
        stage.prompt("go").finish().check();
        if has_engine {
            assert_eq!(notes.borrow()[1], "m: user: notes | user: and this");
        } else {
            assert_eq!(stage.history(), ["user: go", "assistant:  (error)"]);
            assert!(stage.agent.has_waiting());
        }
    }
}

#[test]
fn what_was_said_before_an_overflow_stays_where_no_room_is_made() {
    for engine in [None, Some(false)] {
        let mut stage = stage(vec![refused_in_the_middle()], Vec::new(), |config| {
            config.ports.compaction = engine.map(|_| {
                Rc::new(Port(|_| ready(Err("no".to_owned())))) as Rc<dyn turnwheel::ports::CompactionEngine>
            });
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.history(), ["user: go", "assistant: hal (error)"]);
        assert_eq!((stage.count("message_reset"), stage.agent.usage().total), (0, 11));
        let messages = stage.agent.messages();
        assert!(matches!(&messages[1], AgentMessage::Assistant(answer) if answer.usage.total == 11));
    }
    let mut stage = stage(vec![refused_in_the_middle()], Vec::new(), |config| {
        config.rules.transformers.push(Rc::new(|_: &[AgentMessage], overflow: bool| {
            if overflow { Err("no".to_owned()) } else { Ok(Transform::Unchanged) }
        }));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.history(), ["user: go", "assistant: hal (error)"]);
}

#[test]
fn an_engine_that_leaves_nothing_has_failed() {
    let mut stage = stage(vec![failure(ErrorKind::ContextOverflow)], Vec::new(), |config| {
        config.ports.compaction = Some(Rc::new(Port(|_| ready(Ok(Compaction::default())))));
    });
    stage.prompt("go").finish().check();
    let end = "run ends error: it failed; the compaction engine failed: it left no message";
    assert_eq!(stage.lines().last().unwrap(), end);
    assert_eq!(stage.history()[0], "user: go");
}

#[test]
fn what_was_said_before_an_overflow_is_taken_back_where_room_is_made() {
    for has_engine in [true, false] {
        let mut stage = stage(vec![refused_in_the_middle(), text("whole")], Vec::new(), |config| {
            if has_engine {
                config.ports.compaction = Some(Rc::new(Port(|_| {
                    ready(Ok(Compaction { messages: vec!["notes".into()], ..Compaction::default() }))
                })));
            } else {
                config.rules.transformers.push(Rc::new(|messages: &[AgentMessage], overflow: bool| {
                    let report = overflow.then(CompactionReport::default);
                    Ok(Transform::Replace { messages: messages.to_vec(), report })
                }));
            }
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.history().last().unwrap(), "assistant: whole");
        assert_eq!((stage.count("message_reset"), stage.agent.usage().total), (1, 11));
        // The void message is reset before the compaction is reported.
        let names = stage.names();
        let place = |name: &str| names.iter().position(|event| *event == name);
        assert!(place("message_reset") < place("context_compacted").or(Some(names.len())));
    }
}

#[test]
fn what_arrives_while_room_is_made_goes_with_the_repeated_call_too() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let mut config =
        config(&clock, noting("m", &notes, vec![failure(ErrorKind::ContextOverflow)]), Vec::new());
    let thinks = clock.clone();
    config.ports.compaction = Some(Rc::new(Port(move |messages: Rc<[AgentMessage]>| {
        let pause = thinks.pause(50);
        async move {
            pause.await;
            Ok(Compaction { messages: messages.to_vec(), ..Compaction::default() })
        }
    })));
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").settle();
    drop(stage.agent.steer("and this".into()));
    stage.finish().check();
    assert_eq!(notes.borrow()[1], "m: user: go | user: and this");
    assert_eq!(stage.count("turn_start"), 1);
}
