//! The machine in random worlds. `TURNWHEEL_RUNS=1000000 cargo test --profile fuzz --package rig --test machine`
//! plays more of them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails here says where"
)]

use std::collections::BTreeMap;
use std::rc::Rc;

use rig::sim::{Disturbance, Played, play};
use rig::worlds::{at_least, seeds};
use turnwheel::config::{AgentLoopConfig, Rules};
use turnwheel::event::AgentEvent;
use turnwheel::machine::{Effect, EffectId, Input, LoopState, Output, Reply};
use turnwheel::policy::Transform;
use turnwheel::ports::AgentRunContext;
use turnwheel::scripted::{self, Clock};
use turnwheel::state::SessionState;

/// How many worlds the longest of these tests plays.
const WORLDS: u64 = 40_000;

fn check(seed: u64, disturbance: Disturbance) -> Played {
    let played = play(seed, disturbance);
    assert!(
        played.faults.is_empty(),
        "seed {seed}, {disturbance:?}:\n{}\n{}",
        played.faults.join("\n"),
        played.trace.join(" ")
    );
    played
}

#[test]
fn the_grammar_holds_and_every_call_has_one_result_whatever_happens() {
    let (seeds, mut seen) = (seeds(WORLDS), BTreeMap::new());
    let runs = seeds.end - seeds.start;
    for seed in seeds {
        for event in check(seed, Disturbance::default()).trace {
            *seen.entry(event).or_insert(0) += 1;
        }
    }
    // The worlds are only useful if they reach everything.
    for event in [
        "context_compacted",
        "message_reset",
        "retry_attempt",
        "model_fallback",
        "tool_approval_requested",
        "tool_execution_update",
        "command_refused",
        "transfer_initiated",
        "cache_action",
        "before_llm_call",
        "asked_elsewhere",
        "answered_elsewhere",
    ] {
        let times = seen.get(event).copied().unwrap_or(0);
        assert!(f64::from(times) > at_least(0.005, runs, WORLDS), "{event} is rare: {seen:?}");
    }
}

#[test]
fn an_abort_at_any_step_ends_the_run_at_once() {
    for seed in seeds(600) {
        let quiet = Disturbance { quiet: true, ..Disturbance::default() };
        for step in 1..=check(seed, quiet).steps.min(60) {
            check(seed, Disturbance { abort_at: Some(step), ..quiet });
        }
    }
}

#[test]
fn steering_at_any_step_is_delivered_or_stays_queued() {
    for seed in seeds(600) {
        let quiet = Disturbance { quiet: true, ..Disturbance::default() };
        for step in 1..=check(seed, quiet).steps.min(60) {
            check(seed, Disturbance { steer_at: Some(step), ..quiet });
        }
    }
}

#[test]
fn a_run_goes_on_from_a_checkpoint_of_any_moment() {
    let (seeds, mut resumed) = (seeds(3_000), 0);
    let runs = seeds.end - seeds.start;
    for seed in seeds {
        resumed += sleeping(seed).iter().filter(|event| **event == "run_resumed").count();
    }
    assert!(resumed as u64 * 3 > runs, "only {resumed} times");
}

fn sleeping(seed: u64) -> Vec<&'static str> {
    let sleeps = 1 + seed % 40;
    check(seed, Disturbance { sleeps, ..Disturbance::default() }).trace
}

/// The model had begun to answer when it refused the conversation as too long, and the process ends while room is made.
#[test]
fn what_was_shown_before_a_recovery_is_taken_back_by_the_next_process() {
    let trace = sleeping(207_910_000_092);
    let taken_back = ["message_update", "run_resumed", "message_reset"];
    assert_eq!(trace.windows(3).filter(|events| *events == taken_back).count(), 2, "{trace:?}");
}

/// A run whose transformers are started by the returned effect.
fn preparing() -> (LoopState, Rules, EffectId) {
    let (mut run, rules) = idle();
    let mut out = Vec::new();
    run.step(&rules, 0, Input::Begin(vec!["go".into()]), &mut out);
    let Some(Output::Start { id, effect: Effect::Prepare { .. }, .. }) = out.last() else {
        panic!("{out:?}");
    };
    (run, rules, *id)
}

fn idle() -> (LoopState, Rules) {
    let rules = AgentLoopConfig::new(scripted::model([]), Rc::new(Clock::default())).rules;
    let run = LoopState::new(AgentRunContext::new("run", "session"), Vec::new(), SessionState::default());
    (run, rules)
}

#[test]
fn a_late_reply_to_a_cancelled_effect_changes_nothing() {
    let (mut run, rules, id) = preparing();
    let mut out = Vec::new();
    run.step(&rules, 0, Input::Abort("stop".into()), &mut out);
    assert!(run.is_ended() && matches!(out[0], Output::Cancel(cancelled) if cancelled == id));
    out.clear();
    run.step(&rules, 0, Input::Reply(id, Reply::Prepared(Ok(Transform::default()))), &mut out);
    assert!(out.is_empty(), "{out:?}");
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "no phase waits for Slept")]
fn a_reply_of_the_wrong_kind_is_a_fault_of_the_driver() {
    let (mut run, rules, id) = preparing();
    run.step(&rules, 0, Input::Reply(id, Reply::Slept), &mut Vec::new());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "no phase waits for StreamEnded from effect 77")]
fn a_reply_to_an_effect_that_was_never_started_is_a_fault_of_the_driver() {
    let (mut run, rules, _) = preparing();
    run.step(&rules, 0, Input::Reply(77, Reply::StreamEnded), &mut Vec::new());
}

#[test]
fn a_run_that_is_aborted_before_it_begins_has_one_whole_turn() {
    let (mut run, rules) = idle();
    let mut out = Vec::new();
    for reason in ["the first", "the second"] {
        run.step(&rules, 0, Input::Abort(reason.into()), &mut out);
    }
    assert!(out.is_empty());
    run.step(&rules, 0, Input::Begin(vec!["go".into()]), &mut out);
    let events = out.iter().filter_map(|output| match output {
        Output::Event(event) => Some(event.name()),
        _ => None,
    });
    let turn = ["agent_start", "turn_start", "message_start", "message_end", "turn_end", "agent_end"];
    assert_eq!(events.collect::<Vec<_>>(), turn);
    let Some(Output::Event(AgentEvent::AgentEnd { error: Some(error), .. })) = out.last() else {
        panic!("{out:?}");
    };
    assert_eq!(error.message, "the first");
}
