//! The machine in random worlds. `TURNWHEEL_RUNS=1000000 cargo test --test machine` plays more of them.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::collections::BTreeMap;

use rig::sim::{Disturbance, Played, play};

fn runs(default: u64) -> u64 {
    std::env::var("TURNWHEEL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(default)
}

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
    let (runs, mut seen) = (runs(40_000), BTreeMap::new());
    for seed in 0..runs {
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
    ] {
        assert!(seen.get(event).is_some_and(|count| *count * 200 > runs), "{event} is rare: {seen:?}");
    }
}

#[test]
fn an_abort_at_any_step_ends_the_run_at_once() {
    for seed in 0..runs(600) {
        let quiet = Disturbance { quiet: true, ..Disturbance::default() };
        for step in 1..=check(seed, quiet).steps.min(60) {
            check(seed, Disturbance { abort_at: Some(step), ..quiet });
        }
    }
}

#[test]
fn steering_at_any_step_is_delivered_or_stays_queued() {
    for seed in 0..runs(600) {
        let quiet = Disturbance { quiet: true, ..Disturbance::default() };
        for step in 1..=check(seed, quiet).steps.min(60) {
            check(seed, Disturbance { steer_at: Some(step), ..quiet });
        }
    }
}

#[test]
fn a_run_goes_on_from_a_checkpoint_of_any_moment() {
    let mut resumed = 0;
    for seed in 0..runs(3_000) {
        let sleeps = 1 + seed % 40;
        let played = check(seed, Disturbance { sleeps, ..Disturbance::default() });
        resumed += played.trace.iter().filter(|event| **event == "run_resumed").count();
    }
    assert!(resumed > 1_000, "only {resumed} times");
}
