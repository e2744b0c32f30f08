//! Attempts and the delays between them.

use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, config, failure, stage, text};
use turnwheel::agent::Agent;
use turnwheel::cancel::CancelToken;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::RunStopReason;
use turnwheel::message::{MessageStopReason, Usage};
use turnwheel::stream::AssistantMessageEvent as E;

use super::kit::{Notes, half, noting, patient, with_error};

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
