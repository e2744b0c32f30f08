//! Model calls: attempts, delays, fallback models, context overflow, and streams that end early.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::ready;
use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{
    Port, ScriptedAnswer, Stage, answers, asking_model, brief, calls, config, failure, model, native_model,
    quick, stage, text,
};
use turnwheel::agent::Agent;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{Model, Timeouts};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::{CompactionReport, RunStopReason};
use turnwheel::json::RawJson;
use turnwheel::message::{AgentMessage, MessageStopReason, Usage};
use turnwheel::policy::{PolicyContext, PostTurn, Transform, Verdict};
use turnwheel::ports::{Compaction, HookCall};
use turnwheel::retry::RetryConfig;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest, NativeOutput};

type Notes = Rc<RefCell<Vec<String>>>;

/// Turns jitter off, because the tests assert the length of waits.
fn patient(config: &mut turnwheel::config::AgentLoopConfig) {
    config.rules.retry = Rc::new(RetryConfig { jitter: false, ..RetryConfig::default() });
}

fn with_error(error: ErrorInfo) -> ScriptedAnswer {
    vec![E::Error(error)]
}

/// The beginning of an answer.
fn half(delta: &str) -> ScriptedAnswer {
    let mut answer = text(delta);
    answer.truncate(3);
    answer
}

fn stopping(delta: &str, stop_reason: MessageStopReason) -> ScriptedAnswer {
    let mut answer = text(delta);
    answer.truncate(4);
    answer.push(E::Done { stop_reason, usage: None });
    answer
}

/// A model that records its requests, and the key of each.
fn noting(id: &str, notes: &Notes, given: Vec<ScriptedAnswer>) -> Model {
    let (notes, given, name) = (notes.clone(), RefCell::new(VecDeque::from(given)), id.to_owned());
    model(id, move |request: ModelRequest, _| {
        let asked: Vec<String> = request.messages.iter().cloned().map(|m| brief(&m.into())).collect();
        let key = request.api_key.map(|key| format!(" with {key}")).unwrap_or_default();
        notes.borrow_mut().push(format!("{name}{key}: {}", asked.join(" | ")));
        stream::iter(given.borrow_mut().pop_front().unwrap_or_else(|| text("done"))).boxed_local()
    })
}

#[test]
fn the_servers_own_delay_replaces_back_off() {
    let mut error = ErrorInfo::new(ErrorKind::Throttled, "slow down");
    error.retry_after_ms = Some(7_000);
    let mut stage = stage(vec![with_error(error)], Vec::new(), patient);
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines()[2], "attempt 1 failed, wait 7000");
    assert_eq!(stage.clock.elapsed(), 7_000);
}

#[test]
fn a_delay_above_the_limit_is_no_early_retry_but_an_error_that_names_it() {
    let mut error = ErrorInfo::new(ErrorKind::Throttled, "slow down");
    error.retry_after_ms = Some(90_000);
    let mut stage = stage(vec![with_error(error)], Vec::new(), patient);
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends error: slow down (the server asks to wait 90000 ms)");
    assert_eq!(stage.count("retry_attempt"), 0);
}

#[test]
fn a_body_that_ends_early_is_a_network_failure_and_what_was_shown_is_taken_back() {
    let mut stage = stage(vec![half("hal"), text("whole")], Vec::new(), patient);
    stage.prompt("go").finish().check();
    assert_eq!(
        stage.lines()[2..6],
        ["+hal", "reset: the answer ended before it was complete", "attempt 1 failed, wait 1000", "+whole"]
    );
    assert_eq!(stage.history()[1], "assistant: whole");
}

#[test]
fn an_answer_that_begins_anew_takes_back_what_was_shown() {
    let mut answer = half("void");
    answer.extend([
        E::ToolCallStart { index: 1, call_id: "c".into(), tool_name: "t".into() },
        E::ToolCallDelta { index: 1, delta: "{}".into() },
        E::ToolCallEnd { index: 1, metadata: None },
    ]);
    answer.extend(text("new"));
    let mut stage = stage(vec![answer], Vec::new(), patient);
    stage.prompt("go").finish().check();
    let lines = stage.lines();
    let reset = lines.iter().position(|line| line == "reset: the provider began the answer anew").unwrap();
    assert!(lines[..reset].contains(&"+void".to_owned()) && lines[reset + 1..].contains(&"+new".to_owned()));
    assert_eq!((stage.count("message_reset"), stage.count("message_start")), (1, 1));
    assert_eq!(stage.count("retry_attempt") + stage.count("tool_execution_end"), 0);
    assert_eq!(stage.history()[1..], ["assistant: new"]);
}

#[test]
fn what_failed_attempts_used_counts() {
    let mut first = half("hal");
    first.insert(1, E::Usage(Usage { input: 10, output: 1, ..Usage::default() }));
    first.extend(failure(ErrorKind::Network));
    let mut second = text("whole");
    second.pop();
    let usage = Some(Usage { input: 10, output: 2, ..Usage::default() });
    second.push(E::Done { stop_reason: MessageStopReason::Stop, usage });
    let mut stage = stage(vec![first, second], Vec::new(), patient);
    stage.prompt("go").finish().check();
    assert_eq!(stage.agent.usage().total, 23);
}

#[test]
fn the_watchdog_ends_a_call_that_says_nothing() {
    let clock = Clock::default();
    let silent = model("m", |_, _| stream::pending().boxed_local());
    let mut config = config(&clock, silent, Vec::new());
    config.rules.timeouts = Timeouts { first_chunk: Some(3_000), ..Timeouts::default() };
    config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends error: the model was silent for 3000 ms");
    assert_eq!(stage.clock.elapsed(), 3_000);
}

/// A model that sends something every `every` ms.
fn dripping(clock: &Clock, every: u64, event: fn(usize) -> E, times: usize) -> Model {
    let clock = clock.clone();
    model("m", move |_, _| {
        let clock = clock.clone();
        let drops = stream::unfold(0, move |n| {
            let pause = clock.pause(every);
            async move {
                pause.await;
                (n < times).then(|| (event(n), n + 1))
            }
        });
        drops.chain(stream::iter(text("done"))).boxed_local()
    })
}

#[test]
fn pings_are_life_and_so_is_every_piece() {
    let piece = |n: usize| match n {
        0 => E::Start,
        1 => E::TextStart { index: 0 },
        _ => E::TextDelta { index: 0, delta: "…".to_owned() },
    };
    for event in [|_| E::Ping, piece] {
        let clock = Clock::default();
        let mut config = config(&clock, dripping(&clock, 900, event, 6), Vec::new());
        config.rules.timeouts =
            Timeouts { first_chunk: Some(1_000), chunk: Some(1_000), ..Timeouts::default() };
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(stage.lines().last().unwrap(), "run ends completed");
        assert_eq!(stage.count("retry_attempt"), 0);
    }
}

#[test]
fn the_watchdog_sees_a_pause_between_two_chunks() {
    let clock = Clock::default();
    let mut config = config(&clock, dripping(&clock, 900, |_| E::Ping, 5), Vec::new());
    config.rules.timeouts = Timeouts { first_chunk: Some(1_000), chunk: Some(500), ..Timeouts::default() };
    config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(stage.clock.elapsed(), 1_400);
    assert_eq!(stage.lines().last().unwrap(), "run ends error: the model was silent for 500 ms");
}

#[test]
fn who_spoke_early_may_not_be_silent_for_as_long_as_one_who_has_not_spoken() {
    let clock = Clock::default();
    let stuck = model("m", |_, _| stream::iter([E::Start]).chain(stream::pending()).boxed_local());
    for (model, silence) in [(stuck, 500), (model("m", |_, _| stream::pending().boxed_local()), 60_000)] {
        let clock = clock.clone();
        let before = clock.elapsed();
        let mut config = config(&clock, model, Vec::new());
        config.rules.timeouts =
            Timeouts { first_chunk: Some(60_000), chunk: Some(500), ..Timeouts::default() };
        config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(stage.clock.elapsed() - before, silence);
        let end = format!("run ends error: the model was silent for {silence} ms");
        assert_eq!(stage.lines().last(), Some(&end));
    }
}

#[test]
fn many_signs_of_life_cost_one_timer() {
    let clock = Clock::default();
    let mut config = config(&clock, dripping(&clock, 1, |_| E::Ping, 50), Vec::new());
    config.rules.timeouts = Timeouts { chunk: Some(1_000), ..Timeouts::default() };
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").settle();
    for _ in 0..40 {
        stage.clock.advance();
        stage.settle();
        assert!(stage.clock.alarms() <= 2, "{} alarms", stage.clock.alarms());
    }
}

#[test]
fn every_model_has_its_own_retries_and_the_key_is_asked_once_a_turn_and_provider() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let first = vec![failure(ErrorKind::Network), failure(ErrorKind::Network), failure(ErrorKind::Network)];
    let second = vec![failure(ErrorKind::Throttled), calls(&[("a", "t", "{}")])];
    let mut config = config(&clock, noting("m", &notes, Vec::new()), vec![quick("t")]);
    config.set_models(vec![noting("m", &notes, first), noting("n", &notes, second)]);
    let asked = Notes::default();
    let keys = asked.clone();
    config.ports.keys = Some(Rc::new(Port(move |provider: &str| {
        keys.borrow_mut().push(provider.to_owned());
        ready(Ok(Some(format!("key {}", keys.borrow().len()).into())))
    })));
    patient(&mut config);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(
        *notes.borrow(),
        [
            "m with key 1: user: go",
            "m with key 1: user: go",
            "m with key 1: user: go",
            "n with key 2: user: go",
            "n with key 2: user: go",
            "m with key 3: user: go | assistant: [a] | a: t is done",
        ]
    );
    assert_eq!(*asked.borrow(), ["provider-of-m", "provider-of-n", "provider-of-m"]);
    let answer = stage.answer(1);
    assert_eq!((answer.model.as_str(), answer.provider.as_str()), ("n", "provider-of-n"));
}

#[test]
fn models_of_one_provider_share_its_key() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let first = vec![failure(ErrorKind::Network), failure(ErrorKind::Network), failure(ErrorKind::Network)];
    let mut config = config(&clock, noting("m", &notes, Vec::new()), Vec::new());
    let mut second = noting("n", &notes, vec![text("hi")]);
    second.provider = "provider-of-m".into();
    config.set_models(vec![noting("m", &notes, first), second]);
    let asked = Rc::new(Cell::new(0));
    let times = asked.clone();
    config.ports.keys = Some(Rc::new(Port(move |_: &str| {
        times.set(times.get() + 1);
        ready(Ok(Some("key".into())))
    })));
    patient(&mut config);
    Stage::new(clock, config).prompt("go").finish().check();
    assert_eq!(notes.borrow().last().map(String::as_str), Some("n with key: user: go"));
    assert_eq!(asked.get(), 1);
}

#[test]
fn a_permanent_error_does_not_fall_back() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let mut config = config(&clock, noting("m", &notes, Vec::new()), Vec::new());
    let first = noting("m", &notes, vec![failure(ErrorKind::Auth)]);
    config.set_models(vec![first, noting("n", &notes, Vec::new())]);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["m: user: go"]);
}

#[test]
fn a_key_that_cannot_be_had_is_an_auth_error() {
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        config.ports.keys = Some(Rc::new(Port(|_: &str| ready(Err("the vault is shut".to_owned())))));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends error: the key could not be had: the vault is shut");
}

#[test]
fn failed_and_empty_messages_are_stored_and_left_out_of_requests() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let given =
        vec![failure(ErrorKind::Auth), vec![E::Done { stop_reason: MessageStopReason::Stop, usage: None }]];
    let mut stage = Stage::new(clock.clone(), config(&clock, noting("m", &notes, given), Vec::new()));
    for prompt in ["one", "two", "three"] {
        stage.prompt(prompt).finish();
    }
    stage.check();
    assert_eq!(stage.history()[..4], ["user: one", "assistant:  (error)", "user: two", "assistant: "]);
    assert_eq!(notes.borrow()[2], "m: user: one | user: two | user: three");
}

#[test]
fn an_aborted_message_keeps_its_text_and_is_replayed() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let given = RefCell::new(VecDeque::from([half("so far")]));
    let log = notes.clone();
    let talks = model("m", move |request, _| {
        let asked: Vec<String> = request.messages.iter().cloned().map(|m| brief(&m.into())).collect();
        log.borrow_mut().push(asked.join(" | "));
        match given.borrow_mut().pop_front() {
            Some(begin) => stream::iter(begin).chain(stream::pending()).boxed_local(),
            None => stream::iter(text("done")).boxed_local(),
        }
    });
    let mut stage = Stage::new(clock.clone(), config(&clock, talks, Vec::new()));
    stage.prompt("go").until("message_update");
    stage.cancel.cancel("enough");
    stage.finish();
    stage.prompt("on").finish().check();
    assert_eq!(notes.borrow()[1], "user: go | assistant: so far (aborted) | user: on");
}

#[test]
fn a_whole_call_of_a_cut_answer_gets_its_result_and_a_cut_one_never_happened() {
    let mut answer = calls(&[("a", "t", "{}"), ("b", "t", "{\"n\":")]);
    answer.truncate(answer.len() - 2);
    answer.extend(failure(ErrorKind::Auth));
    let mut stage = stage(vec![answer], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(
        stage.history()[1..],
        ["assistant: [a] (error)", "a!: tool call cancelled: operation aborted"]
    );
}

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

/// A text, and then the error that the conversation is too long.
fn refused_in_the_middle() -> ScriptedAnswer {
    let mut answer = half("hal");
    answer.insert(1, E::Usage(Usage { input: 10, output: 1, ..Usage::default() }));
    answer.extend(failure(ErrorKind::ContextOverflow));
    answer
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
fn what_was_said_before_an_overflow_is_taken_back_where_room_is_made() {
    for has_engine in [true, false] {
        let mut stage = stage(vec![refused_in_the_middle(), text("whole")], Vec::new(), |config| {
            if has_engine {
                config.ports.compaction = Some(Rc::new(Port(|_| ready(Ok(Compaction::default())))));
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
fn whatever_was_tried_again_is_asked_of_the_next_model_too() {
    let unknown_error = || with_error(ErrorInfo::new(ErrorKind::Unknown, "odd"));
    let strategies: [Rc<dyn turnwheel::retry::RetryStrategy>; 2] = [
        Rc::new(RetryConfig { retry_unknown: true, max_attempts: 2, ..RetryConfig::default() }),
        Rc::new(EveryError),
    ];
    for retry in strategies {
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            config.rules.retry = retry;
            let first = native_model("m", vec![unknown_error(), unknown_error()]);
            config.set_models(vec![first, native_model("spare", vec![text("here")])]);
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.history().last().unwrap(), "assistant: here");
    }
}

#[test]
fn an_error_that_nobody_tried_again_is_not_asked_of_the_next_model() {
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        let first = native_model("m", vec![failure(ErrorKind::Network), failure(ErrorKind::Auth)]);
        config.set_models(vec![first, native_model("spare", vec![text("here")])]);
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.count("model_fallback"), 0);
}

#[test]
fn what_another_server_may_do_is_asked_of_the_next_model_without_asking_this_one_again() {
    for kind in [ErrorKind::Server, ErrorKind::Throttled, ErrorKind::Overloaded] {
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            let gone = ErrorInfo { retryable: false, ..ErrorInfo::new(kind, "the quota is spent") };
            let first = native_model("m", vec![with_error(gone)]);
            config.set_models(vec![first, native_model("spare", vec![text("here")])]);
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.history().last().unwrap(), "assistant: here");
        assert_eq!((stage.count("retry_attempt"), stage.count("model_fallback")), (0, 1));
    }
}

#[test]
fn a_conversation_that_nothing_makes_short_enough_is_told_to_the_next_model() {
    for engine in [None, Some(false)] {
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            let first = native_model("small", vec![refused_in_the_middle()]);
            let second = native_model("medium", vec![failure(ErrorKind::ContextOverflow)]);
            config.set_models(vec![first, second, native_model("large", vec![text("here")])]);
            config.ports.compaction = engine.map(|_| {
                Rc::new(Port(|_| ready(Err("no".to_owned())))) as Rc<dyn turnwheel::ports::CompactionEngine>
            });
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.history(), ["user: go", "assistant: here"]);
        assert_eq!((stage.count("message_reset"), stage.count("model_fallback")), (1, 2));
        let messages = stage.agent.messages();
        assert!(matches!(&messages[1], AgentMessage::Assistant(answer) if &*answer.model == "large"));
    }
}

/// Retries every error.
struct EveryError;

impl turnwheel::retry::RetryStrategy for EveryError {
    fn delay(&self, _: &ErrorInfo, attempt: u32, _: u32) -> turnwheel::retry::RetryVerdict {
        use turnwheel::retry::RetryVerdict as V;
        if attempt < 2 { V::Wait(5) } else { V::Stop }
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

/// A clock that fails once the run has started.
struct Broken(Cell<bool>);

impl turnwheel::ports::Timer for Broken {
    fn now(&self) -> u64 {
        assert!(!self.0.replace(true), "the clock broke");
        7
    }

    fn sleep(&self, _: u64) -> futures::future::LocalBoxFuture<'static, ()> {
        crash()
    }
}

#[test]
fn a_clock_that_panics_stands_still() {
    let mut config =
        turnwheel::config::AgentLoopConfig::new(answers(vec![text("hi")]), Rc::new(Broken(Cell::new(false))));
    config.rules.timeouts = Timeouts { total: Some(5), chunk: Some(5), ..Timeouts::default() };
    let mut stage = Stage::new(Clock::default(), config);
    stage.prompt("go").until("turn_start");
    assert!(stage.stream.as_mut().unwrap().checkpoint().own_state().is_some());
    stage.finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends completed");
}

#[test]
fn who_stops_the_run_while_it_asks_for_a_key_pays_for_no_model_call() {
    let notes = Notes::default();
    let clock = Clock::default();
    let mut config = config(&clock, noting("m", &notes, Vec::new()), Vec::new());
    let cancel = CancelToken::new();
    let stops = cancel.clone();
    config.ports.keys = Some(Rc::new(Port(move |_: &str| {
        stops.cancel("no key for this");
        ready(Ok(None))
    })));
    let run = Agent::new(config, Vec::new()).prompt(vec!["go".into()], rig::host::context(), cancel).unwrap();
    let result = clock.run(run.finish()).unwrap();
    assert_eq!((result.stop_reason, notes.borrow().len()), (RunStopReason::Aborted, 0));
}

#[test]
fn an_error_that_nobody_classified_is_judged_by_its_words() {
    for (message, retries) in
        [("HTTP 429", 2), ("you hit the Rate Limit", 2), ("order 14290 failed", 0), ("no", 0)]
    {
        let unknown = || with_error(ErrorInfo::new(ErrorKind::Unknown, message));
        let mut stage = stage(vec![unknown(), unknown(), unknown()], Vec::new(), patient);
        stage.prompt("go").finish().check();
        assert_eq!(stage.count("retry_attempt"), retries, "{message}");
    }
}

#[test]
fn refusals_and_filters_complete_the_turn_and_keep_their_reason() {
    for reason in [MessageStopReason::Refusal, MessageStopReason::ContentFilter] {
        let mut stage = stage(vec![stopping("no", reason)], Vec::new(), |_| {});
        stage.prompt("go").finish().check();
        assert_eq!(stage.lines()[4..], ["turn ends complete", "run ends completed"]);
        let answer = stage.answer(1);
        assert_eq!(answer.stop_reason, reason);
    }
}

#[test]
fn a_pause_means_another_turn_without_a_new_message_five_times_in_a_row_at_most() {
    let given = (0..9).map(|_| stopping("…", MessageStopReason::Pause)).collect();
    let mut stage = stage(given, Vec::new(), |_| {});
    stage.prompt("go").finish().check();
    assert_eq!((stage.count("turn_start"), stage.history().len()), (6, 7));
    // A message in between resets the count.
    let given = (0..12).map(|_| stopping("…", MessageStopReason::Pause)).collect();
    let mut stage = rig::host::stage(given, Vec::new(), |_| {});
    stage.prompt("go").until("turn_end").until("turn_end");
    drop(stage.agent.steer("hurry".into()));
    stage.finish().check();
    assert_eq!((stage.count("turn_start"), stage.history().len()), (8, 10));
    // So do calls in between.
    let mut given: Vec<_> = (0..12).map(|_| stopping("…", MessageStopReason::Pause)).collect();
    given.insert(2, calls(&[("a", "t", "{}")]));
    let mut stage = rig::host::stage(given, vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(stage.count("turn_start"), 9);
}

#[test]
fn an_answer_that_ends_as_an_error_is_one() {
    let mut stage = stage(vec![stopping("hm", MessageStopReason::Error)], Vec::new(), |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines()[3..5], ["assistant: hm (error)", "turn ends error"]);
}

#[test]
fn a_broken_order_of_events_is_an_error_that_says_so() {
    let answer = vec![E::Start, E::TextDelta { index: 3, delta: "lost".to_owned() }];
    let mut stage = stage(vec![answer], Vec::new(), |_| {});
    stage.prompt("go").finish().check();
    let end = stage.lines().pop().unwrap();
    assert!(end.starts_with("run ends error: stream error: `text_delta` for block 3"), "{end}");
}

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

#[test]
fn every_error_end_is_announced_and_told_to_the_error_hook() {
    type Change = fn(&mut turnwheel::config::AgentLoopConfig);
    let broken: [(&str, Change); 5] = [
        ("the context transformer failed: crash", |config| {
            config.rules.transformers.push(Rc::new(|_: &[AgentMessage], _: bool| crash()));
        }),
        ("convert_to_llm failed: crash", |config| {
            config.rules.convert_to_llm = Some(Rc::new(|_, _| crash()))
        }),
        ("the dynamic system prompt failed: crash", |config| {
            config.rules.dynamic_system_prompt = Some(Rc::new(|_| crash()));
        }),
        ("the key could not be had: crash", |config| {
            config.ports.keys = Some(Rc::new(Port(|_: &str| -> std::future::Ready<_> { crash() })));
        }),
        ("crash", |config| config.set_models(vec![model("m", |_, _| crash())])),
    ];
    for (end, change) in broken {
        let errors = Notes::default();
        let notes = errors.clone();
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            change(config);
            config.set_hooks(vec![Rc::new(Port(move |call| {
                if let HookCall::OnError { error } = call {
                    notes.borrow_mut().push(error.message);
                }
                ready(Ok(()))
            }))]);
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.lines().last().unwrap(), &format!("run ends error: {end}"));
        assert_eq!(*errors.borrow(), [end]);
    }
}

fn crash<T>() -> T {
    std::panic::resume_unwind(Box::new("crash".to_owned()))
}

#[test]
fn a_failing_hook_ends_the_run_announced_like_any_other_end() {
    for stage_name in ["before_inference", "after_inference", "before_tool_execution", "after_tool_execution"]
    {
        for panics in [true, false] {
            let mut stage =
                stage(vec![calls(&[("a", "t", "{}"), ("b", "t", "{}")])], vec![quick("t")], |config| {
                    config.set_hooks(vec![Rc::new(Port(move |call: HookCall| {
                        let due = call.stage() == stage_name;
                        async move {
                            match (due, panics) {
                                (true, true) => crash(),
                                (true, false) => Err("crash".to_owned()),
                                _ => Ok(()),
                            }
                        }
                    }))]);
                });
            stage.prompt("go").finish().check();
            assert_eq!(stage.lines().last().unwrap(), "run ends error: a hook failed: crash", "{stage_name}");
        }
    }
}

#[test]
fn hooks_are_told_in_the_order_of_their_registration_one_after_the_other() {
    let notes = Notes::default();
    let clock = Clock::default();
    let mut config = config(&clock, answers(vec![calls(&[("a", "t", "{}")])]), vec![quick("t")]);
    let hook = |name: &'static str| {
        let (notes, clock) = (notes.clone(), clock.clone());
        Port(move |call: HookCall| {
            let (notes, pause) = (notes.clone(), clock.pause(5));
            async move {
                pause.await;
                notes.borrow_mut().push(format!("{name} {}", call.stage()));
                Ok(())
            }
        })
    };
    config.set_hooks(vec![Rc::new(hook("one")), Rc::new(hook("two"))]);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    let stages = [
        "before_inference",
        "after_inference",
        "before_tool_execution",
        "after_tool_execution",
        "before_inference",
        "after_inference",
    ];
    let both: Vec<String> =
        stages.iter().flat_map(|stage| ["one", "two"].map(|name| format!("{name} {stage}"))).collect();
    assert_eq!(*notes.borrow(), both);
}

#[test]
fn the_clock_of_the_host_stamps_every_message() {
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    let stamps: Vec<u64> = stage
        .agent
        .messages()
        .iter()
        .map(|message| match message {
            AgentMessage::User(message) => message.timestamp,
            AgentMessage::Assistant(message) => message.timestamp,
            AgentMessage::ToolResult(message) => message.timestamp,
            AgentMessage::Custom(message) => message.timestamp,
        })
        .collect();
    assert_eq!(stamps, [rig::clock::BEGINNING; 4]);
}

mod structured_output {
    use super::*;
    use turnwheel::machine::OUTPUT_TOOL;

    fn schema(text: &str) -> Option<RawJson> {
        Some(RawJson::parse(text).unwrap())
    }

    /// A stage whose model must answer with an object that has a name.
    fn asked(given: Vec<ScriptedAnswer>) -> Stage {
        stage(given, vec![quick("t")], |config| {
            config.rules.output = schema("{\"type\":\"object\",\"required\":[\"name\"]}");
            config.rules.validator = Some(Rc::new(|spec, call, _| {
                let named = call.arguments.to_value().get("name").is_some();
                if &*spec.schema.name == OUTPUT_TOOL && !named {
                    Err("`name` is missing".to_owned())
                } else {
                    Ok(())
                }
            }));
        })
    }

    fn result(stage: &Stage) -> (Option<String>, String) {
        let result = stage.result();
        (result.output.as_ref().map(|json| json.as_str().to_owned()), result.text.clone())
    }

    #[test]
    fn a_valid_call_is_the_answer_and_ends_the_run() {
        let mut stage = asked(vec![calls(&[("s", OUTPUT_TOOL, "{\"name\": \"Ada\"}")])]);
        stage.prompt("who?").finish().check();
        let json = "{\"name\":\"Ada\"}";
        assert_eq!(result(&stage), (Some(json.to_owned()), json.to_owned()));
        assert_eq!(stage.history()[1..], ["assistant: [s]", &format!("s: {json}")]);
        assert_eq!(stage.lines()[6..], ["turn ends tools_executed", "run ends completed"]);
    }

    #[test]
    fn a_text_that_is_the_json_is_taken_too_fenced_or_not() {
        for answer in ["{\"name\":\"Ada\"}", "```json\n{\"name\":\"Ada\"}\n```"] {
            let mut stage = asked(vec![text(answer)]);
            stage.prompt("who?").finish().check();
            assert_eq!(result(&stage).0.as_deref(), Some("{\"name\":\"Ada\"}"));
        }
    }

    #[test]
    fn an_answer_that_does_not_fit_is_followed_by_another_try() {
        let bad_call = calls(&[("s", OUTPUT_TOOL, "{}")]);
        let mut stage =
            asked(vec![text("Ada"), bad_call, calls(&[("s", OUTPUT_TOOL, "{\"name\":\"Ada\"}")])]);
        stage.prompt("who?").finish().check();
        let history = stage.history();
        assert!(
            history[2].starts_with("user: The answer does not fit the wanted JSON (it is no JSON"),
            "{}",
            history[2]
        );
        assert_eq!(
            history[3..],
            [
                "assistant: [s]",
                "s!: invalid arguments for `__structured_output`: `name` is missing",
                "assistant: [s#2]",
                "s#2: {\"name\":\"Ada\"}",
            ]
        );
    }

    #[test]
    fn tries_are_bounded_and_prose_has_one_more() {
        let unfitting = || text("{\"nom\":\"Ada\"}");
        for (answers, turns) in [
            ((0..9).map(|_| text("no")).collect::<Vec<_>>(), 2),
            ((0..9).map(|_| unfitting()).collect(), 4),
            ([text("no")].into_iter().chain((0..9).map(|_| unfitting())).collect(), 4),
        ] {
            let mut stage = asked(answers);
            stage.prompt("who?").finish().check();
            assert_eq!(stage.count("turn_start"), turns);
            let end = stage.lines().pop().unwrap();
            let why = format!(
                "run ends error: the model gave no answer that fits the output schema in {turns} tries"
            );
            assert!(end.starts_with(&why), "{end}");
            assert_eq!(result(&stage).0, None);
        }
    }

    #[test]
    fn json_between_sentences_is_found() {
        for answer in [
            "Here:\n```json\n{\"name\":\"Ada\"}\n```\nMore?",
            "It is {\"name\":\"Ada\"}.",
            "Of {these}, {\"name\":\"Ada\"} it is {indeed}.",
        ] {
            let mut stage = asked(vec![text(answer)]);
            stage.prompt("who?").finish().check();
            assert_eq!(result(&stage).0.as_deref(), Some("{\"name\":\"Ada\"}"));
        }
    }

    /// What each request asks for: the tools, the choice among them, and whether the schema is in it.
    fn requests(
        native: Option<NativeOutput>,
        tools: &[&'static str],
        kind: &str,
        given: Vec<ScriptedAnswer>,
    ) -> Vec<String> {
        let clock = Clock::default();
        let asked = Rc::new(RefCell::new(Vec::new()));
        let (seen, given) = (asked.clone(), RefCell::new(VecDeque::from(given)));
        let ask = move |request: ModelRequest, _| {
            let mut words: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
            let choice = request.options.tool_choice.as_ref().map(|choice| format!("{choice:?}"));
            words.extend(choice.as_deref());
            words.extend(request.output.as_ref().map(|_| "schema"));
            seen.borrow_mut().push(words.join(" "));
            stream::iter(given.borrow_mut().pop_front().unwrap_or_default()).boxed_local()
        };
        let tools = tools.iter().map(|name| quick(name)).collect();
        let mut config = config(&clock, asking_model("m", native, ask), tools);
        config.rules.output = schema(&format!("{{\"type\":\"{kind}\"}}"));
        let mut stage = Stage::new(clock, config);
        stage.prompt("who?").finish().check();
        asked.take()
    }

    #[test]
    fn the_answer_is_asked_for_the_strictest_way_the_model_has() {
        let forced = "__structured_output Tool(\"__structured_output\")";
        let native = |with_tools, any_root| Some(NativeOutput { with_tools, any_root });
        let (bare, fits) = (|| text("no"), || text("{}"));
        let call = || calls(&[("a", "t", "{}")]);
        // A tool: alone, it must be called; beside others, one of them must be.
        assert_eq!(requests(None, &[], "object", vec![fits()]), [forced]);
        assert_eq!(
            requests(None, &["t"], "object", vec![call(), bare(), fits()]),
            ["t __structured_output Required", "t __structured_output Required", &format!("t {forced}")]
        );
        // The schema itself, beside tools where that is possible.
        assert_eq!(requests(native(true, true), &["t"], "object", vec![call(), fits()]), ["t schema"; 2]);
        assert_eq!(requests(native(false, true), &[], "array", vec![text("[]")]), ["schema"]);
        assert_eq!(
            requests(native(false, true), &["t"], "object", vec![bare(), fits()]),
            ["t __structured_output Required", "schema"]
        );
        // Where the schema must describe an object, a list is wrapped, for the tool.
        let wrapped = || vec![calls(&[("s", OUTPUT_TOOL, "{\"value\":[]}")])];
        assert_eq!(requests(native(true, false), &[], "array", wrapped()), [forced]);
    }

    #[test]
    fn other_tools_may_be_used_before_and_their_schema_stays_the_same_object() {
        let clock = Clock::default();
        let lists = Rc::new(RefCell::new(Vec::new()));
        let seen = lists.clone();
        let given = RefCell::new(VecDeque::from([
            calls(&[("a", "t", "{}")]),
            calls(&[("s", OUTPUT_TOOL, "{\"name\":1}")]),
        ]));
        let asks = model("m", move |request: ModelRequest, _| {
            seen.borrow_mut().push(request.tools);
            stream::iter(given.borrow_mut().pop_front().unwrap_or_default()).boxed_local()
        });
        let mut config = config(&clock, asks, vec![quick("t")]);
        config.rules.output = schema("{\"type\":\"object\"}");
        let mut stage = Stage::new(clock, config);
        stage.prompt("who?").finish().check();
        assert_eq!(result(&stage).0.as_deref(), Some("{\"name\":1}"));
        let lists = lists.borrow();
        assert_eq!(lists[0].iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["t", OUTPUT_TOOL]);
        assert!(Rc::ptr_eq(&lists[0], &lists[1]));
    }

    #[test]
    fn a_schema_that_is_none_of_an_object_is_wrapped_for_the_tool() {
        let mut stage =
            stage(vec![calls(&[("s", OUTPUT_TOOL, "{\"value\":[1,2]}")])], Vec::new(), |config| {
                config.rules.output = schema("{\"type\":\"array\"}");
            });
        stage.prompt("which?").finish().check();
        assert_eq!(result(&stage).0.as_deref(), Some("[1,2]"));
    }

    #[test]
    fn a_model_that_heeds_the_schema_itself_is_told_it_and_offered_no_tool() {
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            config.set_models(vec![native_model("n", vec![text("oops"), text("7")])]);
            config.rules.output = schema("{\"type\":\"number\"}");
        });
        stage.prompt("how many?").finish().check();
        assert_eq!(result(&stage), (Some("7".to_owned()), "7".to_owned()));
        assert!(stage.history()[2].ends_with("Answer with that JSON only."));
    }

    #[test]
    fn the_newest_answer_that_fits_is_the_one() {
        for (second, last) in [("{\"name\":\"Bob\"}", "Bob"), ("You are welcome.", "Ada")] {
            let mut stage = asked(vec![text("{\"name\":\"Ada\"}"), text(second)]);
            drop(stage.agent.follow_up("and now?".into()));
            stage.prompt("who?").finish().check();
            assert_eq!(result(&stage).0, Some(format!("{{\"name\":\"{last}\"}}")));
            assert_eq!(stage.count("turn_start"), 2);
        }
    }

    #[test]
    fn a_refusal_is_not_asked_again() {
        let mut stage = asked(vec![stopping("no", MessageStopReason::Refusal)]);
        stage.prompt("who?").finish().check();
        assert_eq!((stage.count("turn_start"), result(&stage).0), (1, None));
    }

    #[test]
    fn neither_policies_nor_approval_have_a_say_in_the_answer() {
        let mut stage = asked(vec![calls(&[("s", OUTPUT_TOOL, "{\"name\":\"Ada\"}")])]);
        stage.agent.configure(|config| {
            config.rules.approval.mode = turnwheel::approval::ApprovalMode::Enabled;
            config.rules.pre_dispatch.push(Rc::new(|_: &mut turnwheel::policy::DispatchCall<'_>| crash()));
        });
        stage.prompt("who?").finish().check();
        assert!(result(&stage).0.is_some());
    }
}
