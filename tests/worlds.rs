//! The whole engine, driver and agent included, in random worlds: scripted models, tools, users and
//! policies in virtual time. `TURNWHEEL_RUNS=100000 cargo test --profile fuzz --test worlds` plays more of them. Those with
//! agents inside are in `tests/rig/tests/families.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that fails here says where")]

use loop_judge::compare::invariants;
use rig::dice::Dice;
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
