//! What is kept and replayed of an answer, however it ends.

use std::cell::RefCell;
use std::collections::VecDeque;

use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{Stage, brief, calls, config, failure, model, quick, stage, text};
use turnwheel::error::ErrorKind;
use turnwheel::message::{AgentMessage, MessageStopReason};
use turnwheel::stream::AssistantMessageEvent as E;

use super::kit::{Notes, half, noting, stopping};

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
