//! The whole engine, driver and agent included, in random worlds: scripted models, tools, users and
//! policies in virtual time. `TURNWHEEL_RUNS=100000 cargo test --profile fuzz --test worlds` plays more of them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails here says where")]

use std::collections::BTreeMap;

use loop_judge::compare::invariants;
use rig::dice::Dice;
use rig::family;
use rig::play::{play, play_bounded, read};
use rig::ports::Route;
use rig::random::scenario;
use serde_json::Value;

fn runs() -> u64 {
    std::env::var("TURNWHEEL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1_500)
}

/// Lists what is wrong with a trace, whatever was played.
fn faults(trace: &Value) -> Vec<String> {
    let mut faults = invariants(trace);
    faults.extend(trace.get("faults").map(ToString::to_string));
    if trace["events"].as_array().is_some_and(|events| events.iter().any(|e| e["type"] == "oracle_hang")) {
        faults.push("it hangs".to_owned());
    }
    faults
}

#[test]
fn no_world_hangs_a_run_breaks_the_grammar_or_leaves_a_call_without_its_result() {
    for seed in 0..runs() {
        let given = scenario(&Dice::new(seed));
        for route in [Route::Inbox, Route::Provider] {
            let text = given.to_string();
            let waits = ["\"forever\"", "\"until_cancelled\""].iter().any(|word| text.contains(word));
            let scenario = read(&text).unwrap();
            // A scenario that never waits for ever must end without being stopped.
            let trace = if waits { play_bounded(scenario, route) } else { play(scenario, route) };
            let faults = faults(&trace);
            assert!(
                faults.is_empty(),
                "seed {seed}, {route:?}: {faults:#?}\n{given:#}\n{:#}",
                trace["events"]
            );
        }
    }
}

#[test]
fn families_keep_their_budgets_lose_no_question_and_do_nothing_twice() {
    families(runs() * 4);
}

#[test]
#[ignore = "plays the family of TURNWHEEL_SEED, to look into a finding"]
fn one_family() {
    let seed = std::env::var("TURNWHEEL_SEED").ok().and_then(|seed| seed.parse().ok());
    play_family(seed.expect("TURNWHEEL_SEED is a number"));
}

#[test]
#[ignore = "long: `cargo xtask e2e worlds` plays it"]
fn so_do_a_hundred_thousand_families() {
    families(100_000);
}

fn families(runs: u64) {
    let mut seen = BTreeMap::new();
    for seed in 0..runs {
        let played = play_family(seed);
        for (what, count) in played.seen {
            *seen.entry(what).or_insert(0) += count;
        }
    }
    // The worlds are only useful if they reach everything.
    for what in [
        "two deep",
        "at once",
        "run_resumed",
        "outlived a process",
        "asked about a call",
        "asked about a call inside",
        "asked for more",
        "asked for more inside",
        "asked by a tool",
        "asked by a tool inside",
        "answered",
        "raised",
        "exceeded",
        "warned",
        "no call left",
        "last call",
        "steered",
        "again",
        "retry_attempt",
        "all is known",
    ] {
        assert!(seen.get(what).is_some_and(|count| *count * 200 > runs), "{what} is rare: {seen:?}");
    }
}

/// Plays the family of a seed: a third of them outlive their processes.
fn play_family(seed: u64) -> family::Played {
    let sleeps = if seed.is_multiple_of(3) { 1 + seed % 60 } else { 0 };
    let played = family::play(seed, sleeps);
    assert!(played.faults.is_empty(), "seed {seed}: {:#?}\n{}", played.faults, played.trace.join("\n"));
    played
}
