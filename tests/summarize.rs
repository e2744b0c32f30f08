//! The built-in compaction: the agent's own model writes the summary.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use futures::stream;
use futures::{FutureExt, StreamExt};
use rig::clock::Clock;
use rig::host::{ScriptedAnswer, Stage, brief, calls, failure, model, text};
use turnwheel::config::{AgentLoopConfig, Model, Timeouts};
use turnwheel::error::ErrorKind;
use turnwheel::message::{AgentMessage, MessageStopReason, Usage};
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest, StreamOptions, ToolChoice};
use turnwheel::summarize::{SUMMARY_HEAD, Summarizer};

type Requests = Rc<RefCell<Vec<ModelRequest>>>;

fn too_long() -> ScriptedAnswer {
    failure(ErrorKind::ContextOverflow)
}

fn notes(text_of_it: &str, usage: u64) -> ScriptedAnswer {
    let mut answer = text(text_of_it);
    answer.pop();
    let usage = Usage { input: usage, output: 1, ..Usage::default() }.totalled();
    answer.push(E::Done { stop_reason: MessageStopReason::Stop, usage: Some(usage) });
    answer
}

/// A model that records its requests; an empty answer is one that never comes.
fn noting(requests: &Requests, answers: Vec<ScriptedAnswer>) -> Model {
    let (requests, answers) = (requests.clone(), RefCell::new(VecDeque::from(answers)));
    model("m", move |request, _| {
        requests.borrow_mut().push(request);
        match answers.borrow_mut().pop_front() {
            Some(answer) if answer.is_empty() => stream::pending().boxed_local(),
            answer => stream::iter(answer.unwrap_or_else(|| text("done"))).boxed_local(),
        }
    })
}

fn history() -> Vec<AgentMessage> {
    (0..20).map(|n| AgentMessage::user(format!("message {n}: {}", "x".repeat(4_000)))).collect()
}

fn stage_of(
    history: Vec<AgentMessage>,
    answers: Vec<ScriptedAnswer>,
    change: impl FnOnce(&mut AgentLoopConfig),
) -> (Stage, Requests) {
    let (requests, clock) = (Requests::default(), Clock::default());
    let mut config = rig::host::config(&clock, noting(&requests, answers), Vec::new());
    change(&mut config);
    if let Some(summarizer) = Summarizer::of(&config) {
        config.ports.compaction.get_or_insert_with(|| Rc::new(summarizer));
    }
    (Stage::over(clock, config, history), requests)
}

fn last_text(request: &ModelRequest) -> String {
    let last = request.messages.last().cloned().map(AgentMessage::from).unwrap();
    brief(&last)
}

#[test]
fn an_overflow_is_answered_by_a_summary_of_what_is_old() {
    let answers = vec![too_long(), notes("they talked", 100), text("done")];
    let (mut stage, requests) = stage_of(history(), answers, |_| {});
    stage.prompt("go on").finish().check();
    let requests = requests.borrow();
    assert_eq!(requests.len(), 3);
    let asked = last_text(&requests[1]);
    assert!(asked.contains("User: message 0: ") && !asked.contains("go on"));
    assert!(requests[1].tools.is_empty() && requests[1].options.max_tokens.is_some());
    let repeated: Vec<String> = requests[2].messages.iter().map(|m| brief(&m.clone().into())).collect();
    assert_eq!(repeated[0], format!("user: {SUMMARY_HEAD}they talked"));
    assert_eq!(repeated.last().unwrap(), "user: go on");
    assert!(repeated.len() < 12 && repeated[1].starts_with("user: message 1"), "{}", repeated.len());
    let result = stage.result();
    assert_eq!((result.usage.input, result.usage.output), (100, 1));
    assert!(stage.names().contains(&"context_compacted"));
    assert_eq!(stage.count("message_start"), 1);
}

#[test]
fn what_a_summary_cost_counts_however_it_is_told_and_what_a_failed_one_cost_too() {
    let used = |input| Usage { input, output: 1, ..Usage::default() }.totalled();
    // The first answer reports its usage along the way and is cut off; the second
    // reports it only along the way.
    let cut = vec![E::Start, E::Usage(used(10)), E::Usage(used(20))];
    let mut metered = text("they talked");
    metered.insert(1, E::Usage(used(300)));
    let (mut stage, requests) = stage_of(history(), vec![too_long(), cut, metered, text("done")], |_| {});
    stage.prompt("go on").finish().check();
    assert_eq!(requests.borrow().len(), 4);
    assert_eq!((stage.result().usage.input, stage.result().usage.output), (320, 2));
}

#[test]
fn what_a_summary_used_that_is_given_up_counts() {
    let used = |input| Usage { input, output: 1, ..Usage::default() }.totalled();
    let cut = vec![E::Start, E::Usage(used(10))];
    let (mut stage, _) = stage_of(history(), vec![too_long(), cut, failure(ErrorKind::Auth)], |_| {});
    stage.prompt("go on").finish().check();
    assert!(stage.lines().last().unwrap().contains("the compaction engine failed"));
    assert_eq!((stage.result().usage.input, stage.result().usage.output), (10, 1));
}

#[test]
fn the_calls_of_a_long_turn_are_summarised_and_the_request_stays() {
    let long = "r".repeat(40_000);
    let given = long.clone();
    let tool = rig::host::tool(rig::host::spec("look"), move |_| {
        std::future::ready(turnwheel::tool::ToolOutcome::Completed(turnwheel::tool::AgentToolResult::text(
            given.as_str(),
        )))
    });
    let (requests, clock) = (Requests::default(), Clock::default());
    let answers = vec![
        calls(&[("a", "look", "{}")]),
        calls(&[("b", "look", "{}"), ("c", "look", "{}")]),
        too_long(),
        notes("looked twice", 7),
    ];
    let mut config = rig::host::config(&clock, noting(&requests, answers), vec![tool]);
    config.ports.compaction = Summarizer::of(&config).map(|summarizer| Rc::new(summarizer) as _);
    let mut stage = Stage::new(clock, config);
    stage.prompt("find it").finish().check();
    let last = requests.borrow().last().unwrap().clone();
    let sent: Vec<String> = last.messages.iter().map(|m| brief(&m.clone().into())).collect();
    assert_eq!(sent[..2], ["user: find it".to_owned(), format!("user: {SUMMARY_HEAD}looked twice")]);
    assert_eq!(sent.len(), 5, "{sent:?}");
}

#[test]
fn a_failed_call_is_retried_and_one_that_fails_for_good_ends_the_turn() {
    let flaky = || failure(ErrorKind::Overloaded);
    let (mut stage, requests) =
        stage_of(history(), vec![too_long(), flaky(), flaky(), notes("n", 1)], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(requests.borrow().len(), 5);
    assert_eq!(stage.end().0.last().unwrap(), "assistant: done");

    let (mut stage, _) = stage_of(history(), vec![too_long(), failure(ErrorKind::Auth)], |_| {});
    stage.prompt("go").finish().check();
    assert!(stage.lines().last().unwrap().contains("the compaction engine failed"));
    let (mut stage, _) = stage_of(history(), vec![too_long(), text("  ")], |_| {});
    stage.prompt("go").finish().check();
    assert!(stage.lines().last().unwrap().ends_with("the model gave no summary"));
}

#[test]
fn a_call_that_fails_again_and_again_is_given_up() {
    let mut answers = vec![failure(ErrorKind::Overloaded); 9];
    answers.insert(0, too_long());
    let (mut stage, requests) = stage_of(history(), answers, |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(requests.borrow().len(), 4);
    assert!(stage.lines().last().unwrap().contains("the compaction engine failed"));
}

#[test]
fn what_holds_for_answers_alone_is_not_asked_of_a_summary_and_it_has_an_end() {
    let mut endless = notes("", 1);
    let piece = E::TextDelta { index: 0, delta: "n".repeat(1_000) };
    let at = endless.iter().position(|event| matches!(event, E::TextEnd { .. })).unwrap();
    endless.splice(at..at, vec![piece; 100]);
    let (mut stage, requests) = stage_of(history(), vec![too_long(), endless], |config| {
        config.rules.stream_options = Rc::new(StreamOptions {
            tool_choice: Some(ToolChoice::Required),
            parallel_tool_calls: Some(false),
            stop: vec!["n".to_owned()],
            ..StreamOptions::default()
        });
    });
    stage.prompt("go").finish().check();
    let options = requests.borrow()[1].options.clone();
    assert!(
        options.tool_choice.is_none() && options.parallel_tool_calls.is_none() && options.stop.is_empty()
    );
    assert_eq!(stage.history()[0].len(), format!("user: {SUMMARY_HEAD}").len() + 40_000);
}

#[test]
fn a_refusal_is_no_summary() {
    use MessageStopReason as S;
    for stop_reason in [S::Refusal, S::ContentFilter, S::Error, S::Aborted] {
        let mut refused = notes("I cannot help with that.", 3);
        refused.pop();
        refused.push(E::Done { stop_reason, usage: None });
        let (mut stage, _) = stage_of(history(), vec![too_long(), refused], |_| {});
        stage.prompt("go on").finish().check();
        assert!(stage.lines().last().unwrap().ends_with("the model gave no summary"));
        assert_eq!(stage.history()[..20].len() + 2, stage.history().len(), "nothing of the history is gone");
    }
}

#[test]
fn what_does_not_fit_into_one_call_goes_into_several_and_a_smaller_one_is_tried() {
    let answers = vec![too_long(), too_long(), notes("first", 1), notes("second", 1), notes("third", 1)];
    let (mut stage, requests) = stage_of(history(), answers, |_| {});
    stage.prompt("go").finish().check();
    let requests = requests.borrow();
    let sizes: Vec<usize> = requests[1..requests.len() - 1].iter().map(|r| last_text(r).len()).collect();
    assert!(sizes[0] > 60_000 && sizes[1..].iter().all(|size| *size < 62_000), "{sizes:?}");
    assert!(
        last_text(&requests[3]).contains("\n\n# Your notes of what came before\n\nfirst\n\nUser: message ")
    );
    assert!(!last_text(&requests[2]).contains("notes of what came"));
    assert!(last_text(&requests[3]).contains("first") && !last_text(&requests[3]).contains("message 0:"));
}

#[test]
fn an_abort_ends_a_summary_at_once() {
    let (mut stage, _) = stage_of(history(), vec![too_long(), Vec::new()], |_| {});
    stage.prompt("go").settle();
    assert!(!stage.is_over());
    stage.agent.abort("enough");
    stage.settle();
    assert!(stage.is_over());
    assert!(stage.lines().last().unwrap().starts_with("run ends aborted"));
}

#[test]
fn a_silent_model_does_not_hang_a_summary() {
    let silent = || Vec::new();
    let (mut stage, requests) = stage_of(history(), vec![too_long(), silent(), notes("n", 1)], |config| {
        config.rules.timeouts = Timeouts { first_chunk: Some(1_000), ..Timeouts::default() };
    });
    stage.prompt("go").finish().check();
    assert_eq!(requests.borrow().len(), 4);
    assert_eq!(stage.end().0.last().unwrap(), "assistant: done");
}

#[test]
fn a_slow_model_is_waited_for_from_piece_to_piece() {
    let (clock, requests) = (Clock::default(), Requests::default());
    let answers =
        RefCell::new(VecDeque::from([too_long(), notes("one two three four five", 1), text("done")]));
    let (ticks, asked) = (clock.clone(), requests.clone());
    let slow = model("m", move |request, _| {
        asked.borrow_mut().push(request);
        let ticks = ticks.clone();
        let answer = answers.borrow_mut().pop_front().unwrap();
        stream::iter(answer).then(move |event| ticks.pause(800).map(|_| event)).boxed_local()
    });
    let mut config = rig::host::config(&clock, slow, Vec::new());
    config.rules.timeouts = Timeouts { first_chunk: Some(1_000), chunk: Some(1_000), ..Timeouts::default() };
    config.ports.compaction = Summarizer::of(&config).map(|summarizer| Rc::new(summarizer) as _);
    let mut stage = Stage::over(clock, config, history());
    stage.prompt("go").finish().check();
    assert_eq!(requests.borrow().len(), 3);
    let prompt = last_text(&requests.borrow()[1]);
    assert!(prompt.starts_with("user: # The conversation\n\nUser: message 0: "), "{prompt}");
    assert!(prompt.ends_with("\n\n# Now write the notes."));
    assert_eq!(stage.end().0.last().unwrap(), "assistant: done");
}

#[test]
fn the_newest_exchange_alone_cannot_be_summarised() {
    let long = "y".repeat(100_000);
    let (mut stage, requests) = stage_of(Vec::new(), vec![too_long()], |_| {});
    stage.prompt(&long).finish().check();
    assert_eq!(requests.borrow().len(), 1);
    assert!(stage.lines().last().unwrap().contains("there is nothing to summarise"));
}
