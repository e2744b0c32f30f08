//! Tapes: whatever is played, its tape lived again gives the same trace.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use rig::dice::Dice;
use rig::play::{play_recorded, read};
use rig::ports::Route;
use rig::random::scenario;
use rig::replay::trace_of;
use turnwheel::tape::Tape;

fn runs() -> u64 {
    std::env::var("TURNWHEEL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1_000)
}

/// Plays a scenario, and its tape after it. Returns what differs.
fn difference(text: &str, route: Route, is_bounded: bool) -> Option<String> {
    let (live, tape) = play_recorded(read(text).unwrap(), route, is_bounded);
    let tape = Tape::parse(&tape).unwrap();
    assert!(tape.is_complete());
    match trace_of(&tape) {
        Err(fault) => Some(fault.to_string()),
        Ok(replayed) if replayed.to_string() == live.to_string() => None,
        Ok(replayed) => Some(format!("live {live:#}\nreplayed {replayed:#}")),
    }
}

#[test]
fn every_recorded_scenario_lives_again_from_its_tape() {
    let scenarios = harness::data("oracle").join("scenarios");
    let mut faults = Vec::new();
    for file in harness::conformance::json_files(&scenarios).unwrap() {
        let text = std::fs::read_to_string(&file).unwrap();
        for route in [Route::Inbox, Route::Provider] {
            let fault = difference(&text, route, false);
            faults.extend(fault.map(|fault| format!("{}, {route:?}: {fault}", file.display())));
        }
    }
    assert!(faults.is_empty(), "{} faults, the first: {}", faults.len(), faults[0]);
}

#[test]
fn every_random_world_lives_again_from_its_tape() {
    for seed in 0..runs() {
        let text = scenario(&Dice::new(seed)).to_string();
        for route in [Route::Inbox, Route::Provider] {
            let fault = difference(&text, route, true);
            assert!(fault.is_none(), "seed {seed}, {route:?}: {}", fault.unwrap());
        }
    }
}
