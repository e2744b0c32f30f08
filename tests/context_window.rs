//! A model with a known context window: room is made before a request gets too long.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::future::{pending, ready};
use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{Port, ScriptedAnswer, Stage, brief, calls, config, model, quick, text};
use turnwheel::config::{AgentLoopConfig, Model};
use turnwheel::event::CompactionReport;
use turnwheel::message::{AgentMessage, Usage};
use turnwheel::policy::Transform;
use turnwheel::ports::Compaction;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::summarize::Summarizer;

type Requests = Rc<RefCell<Vec<ModelRequest>>>;

/// About a thousand tokens by estimate.
fn long(n: usize) -> AgentMessage {
    AgentMessage::user(format!("message {n}: {}", "x".repeat(4_000)))
}

/// An answer whose prompt had this many tokens.
fn reporting(mut answer: ScriptedAnswer, input: u64) -> ScriptedAnswer {
    if let Some(E::Done { usage, .. }) = answer.last_mut() {
        *usage = Some(Usage { input, ..Usage::default() }.totalled());
    }
    answer
}

/// A model with a window, which records its requests.
fn with_window(window: u64, requests: &Requests, answers: Vec<ScriptedAnswer>) -> Model {
    let (requests, answers) = (requests.clone(), RefCell::new(answers.into_iter()));
    let model = model("m", move |request, _| {
        requests.borrow_mut().push(request);
        stream::iter(answers.borrow_mut().next().unwrap_or_else(|| text("done"))).boxed_local()
    });
    Model { context_window: Some(window), ..model }
}

/// Keeps the newest two messages, and counts the calls.
fn keep_two(config: &mut AgentLoopConfig, asked: &Rc<Cell<u32>>) {
    let asked = asked.clone();
    config.ports.compaction = Some(Rc::new(Port(move |messages: Rc<[AgentMessage]>| {
        asked.set(asked.get() + 1);
        let messages = messages[messages.len().saturating_sub(2)..].to_vec();
        ready(Ok(Compaction { messages, report: Some(CompactionReport::default()), ..Compaction::default() }))
    })));
}

struct Played {
    stage: Stage,
    requests: Requests,
    compactions: u32,
}

fn play(
    window: u64,
    history: Vec<AgentMessage>,
    answers: Vec<ScriptedAnswer>,
    change: impl FnOnce(&mut AgentLoopConfig),
) -> Played {
    let (requests, clock, asked) = (Requests::default(), Clock::default(), Rc::default());
    let mut config = config(&clock, with_window(window, &requests, answers), vec![quick("t")]);
    keep_two(&mut config, &asked);
    change(&mut config);
    let mut stage = Stage::over(clock, config, history);
    stage.prompt("go").finish().check();
    Played { stage, requests, compactions: asked.get() }
}

#[test]
fn room_is_made_before_a_request_that_the_model_could_not_take() {
    let played = play(15_000, (0..20).map(long).collect(), Vec::new(), |_| {});
    assert_eq!(played.stage.lines()[..3], ["run", "turn 0", "compacted (overflow)"]);
    assert_eq!((played.compactions, played.requests.borrow().len()), (1, 1));
    assert_eq!(played.requests.borrow()[0].messages.len(), 2);
    assert_eq!(played.stage.lines().last().unwrap(), "run ends completed");

    let played = play(25_000, (0..20).map(long).collect(), Vec::new(), |_| {});
    assert_eq!((played.compactions, played.requests.borrow()[0].messages.len()), (0, 21));
}

#[test]
fn what_the_provider_counted_goes_before_an_estimate() {
    let call = |id: &str| calls(&[(id, "t", "{}")]);
    // The first answer reports 990 tokens, the second none, the third 20.
    let answers =
        vec![reporting(call("a"), 990), call("b"), reporting(call("c"), 20), reporting(text("done"), 30)];
    let played = play(1_000, vec!["x".repeat(100).as_str().into()], answers, |_| {});
    assert_eq!((played.compactions, played.requests.borrow().len()), (0, 4), "990 and an estimate of 4");

    let answers =
        vec![reporting(call("a"), 999), call("b"), reporting(call("c"), 20), reporting(text("done"), 30)];
    let played = play(1_000, vec!["old".into()], answers, |_| {});
    // The answer that reported 999 is kept, but that count is out of date.
    assert_eq!((played.compactions, played.requests.borrow().len()), (1, 4));
    let shown = &played.requests.borrow()[1].messages;
    assert_eq!(shown.iter().map(|m| brief(&m.clone().into())).collect::<Vec<_>>()[0], "assistant: [a]");
}

#[test]
fn the_answer_needs_room_too() {
    let history = || vec![long(0)];
    let played = play(1_500, history(), Vec::new(), |_| {});
    assert_eq!(played.compactions, 0);
    let played = play(1_500, history(), Vec::new(), |config| {
        let mut options = config.rules.stream_options.as_ref().clone();
        options.max_tokens = Some(600);
        config.rules.stream_options = Rc::new(options);
    });
    assert_eq!(played.compactions, 1);
}

#[test]
fn a_compaction_that_fails_or_is_not_there_leaves_the_last_word_to_the_model() {
    for fails in [true, false] {
        let played = play(100, vec![long(0)], Vec::new(), |config| {
            config.ports.compaction = None;
            if fails {
                config.ports.compaction =
                    Some(Rc::new(Port(|_: Rc<[AgentMessage]>| ready(Err("no summary".to_owned())))));
            }
        });
        assert_eq!(
            played.stage.lines(),
            ["run", "turn 0", "+done", "assistant: done", "turn ends complete", "run ends completed"]
        );
        assert_eq!(played.requests.borrow()[0].messages.len(), 2);
    }
}

#[test]
fn transformers_are_told_once_a_turn_and_a_shorter_view_is_enough() {
    let signals: Rc<RefCell<Vec<bool>>> = Rc::default();
    let log = signals.clone();
    let answers = vec![calls(&[("a", "t", "{}")])];
    let played = play(100, vec![long(0)], answers, |config| {
        config.rules.transformers.push(Rc::new(move |messages: &[AgentMessage], overflow: bool| {
            log.borrow_mut().push(overflow);
            let newest = messages[messages.len() - 1..].to_vec();
            Ok(if overflow { Transform::View(newest) } else { Transform::Unchanged })
        }));
    });
    assert_eq!(*signals.borrow(), [false, true, false, true]);
    assert_eq!((played.compactions, played.requests.borrow()[0].messages.len()), (0, 1));

    // A transformer that returns a view anyway gets no signal.
    let signals: Rc<RefCell<Vec<bool>>> = Rc::default();
    let log = signals.clone();
    let played = play(100, vec![long(0)], Vec::new(), |config| {
        config.rules.transformers.push(Rc::new(move |messages: &[AgentMessage], overflow: bool| {
            log.borrow_mut().push(overflow);
            Ok(Transform::View(messages.to_vec()))
        }));
    });
    assert_eq!((signals.borrow().as_slice(), played.compactions), ([false].as_slice(), 0));
}

#[test]
fn no_room_is_made_for_a_call_that_will_not_be() {
    let answers = vec![reporting(calls(&[("a", "t", "{}")]), 500)];
    let played = play(100, Vec::new(), answers, |config| config.rules.max_turns = Some(1));
    assert_eq!(played.compactions, 0);
    assert_eq!(played.stage.lines().last().unwrap(), "run ends max_turns");
}

#[test]
fn steering_still_waits_for_the_first_turn() {
    let (requests, clock, asked) = (Requests::default(), Clock::default(), Rc::default());
    let mut config = config(&clock, with_window(2_000, &requests, Vec::new()), Vec::new());
    keep_two(&mut config, &asked);
    let mut stage = Stage::over(clock, config, (0..5).map(long).collect());
    drop(stage.agent.steer("and this".into()));
    stage.prompt("go").finish().check();
    let asked_with: Vec<usize> = requests.borrow().iter().map(|request| request.messages.len()).collect();
    assert_eq!((asked.get(), asked_with), (1, vec![2, 4]));
}

#[test]
fn an_abort_while_room_is_made_ends_the_run() {
    let (requests, clock) = (Requests::default(), Clock::default());
    let mut config = config(&clock, with_window(10, &requests, Vec::new()), Vec::new());
    config.ports.compaction =
        Some(Rc::new(Port(|_: Rc<[AgentMessage]>| pending::<Result<Compaction, String>>())));
    let mut stage = Stage::over(clock, config, vec![long(0)]);
    stage.prompt("go").settle();
    stage.agent.abort("enough");
    stage.finish().check();
    assert!(stage.lines().last().unwrap().starts_with("run ends aborted"));
    assert_eq!(requests.borrow().len(), 0);
}

#[test]
fn a_summary_for_a_small_window_is_asked_for_in_small_parts() {
    let played = play(8_000, (0..20).map(long).collect(), vec![text("notes")], |config| {
        config.ports.compaction = Summarizer::of(config).map(|summarizer| Rc::new(summarizer) as _);
    });
    let requests = played.requests.borrow();
    let (last, asked) = requests.split_last().unwrap();
    assert!(asked.len() >= 4, "{}", asked.len());
    for request in asked {
        let bytes: usize = request.messages.iter().map(|m| brief(&m.clone().into()).len()).sum();
        assert!(bytes < 24_000 && request.options.max_tokens == Some(1_000), "{bytes}");
    }
    let bytes: usize = last.messages.iter().map(|m| brief(&m.clone().into()).len()).sum();
    assert!(bytes < 16_000, "{bytes}");
}
