//! The loop oracle, and the scenarios of what it could not know: plays all of them on this engine and judges the traces, with
//! the code of `cargo xtask conformance`.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::fs;
use std::path::Path;

use harness::conformance::{json_files, judge, read_json};
use harness::engines::engine;
use rig::ports::Route;

/// Plays the scenarios of a folder, at least so many. Returns what the judge found, and what the world noticed itself.
fn findings(folder: &str, least: usize, route: Option<Route>) -> Vec<String> {
    let oracle = harness::data(folder);
    let traces = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("traces-{folder}-{route:?}"));
    let _ = fs::remove_dir_all(&traces);
    fs::create_dir_all(&traces).unwrap();
    assert!(engine("native").unwrap().scenarios(&oracle.join("scenarios"), &traces, route).unwrap());
    let judgement = judge(&oracle.join("golden"), &traces).unwrap();
    let scenarios = json_files(&oracle.join("scenarios")).unwrap().len();
    assert!(scenarios >= least, "only {scenarios} scenarios");
    assert_eq!(judgement.passed + judgement.failed, scenarios, "each has a recorded trace");
    let mut findings = judgement.complaints;
    for file in json_files(&traces).unwrap() {
        let trace = read_json(&file).unwrap();
        findings.extend(trace.get("faults").map(|faults| format!("{}: {faults}", file.display())));
    }
    findings
}

#[test]
fn every_recorded_scenario_is_played_as_the_judge_wants_it() {
    let findings = findings("oracle", 110, Some(Route::Inbox));
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn it_makes_no_difference_whether_messages_are_posted_or_polled() {
    let findings = findings("oracle", 110, Some(Route::Provider));
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn random_scenarios_go_as_they_went_in_swink_agent() {
    // Its messages are polled. What is posted does not wait for a person.
    let findings = findings("peer", 50, Some(Route::Provider));
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn every_scenario_of_format_2_is_played_as_it_was_read() {
    let findings = findings("scenarios", 80, None);
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
