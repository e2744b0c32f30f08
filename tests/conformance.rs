//! The loop oracle: plays every recorded scenario on this engine and judges the traces.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::path::{Path, PathBuf};

use loop_judge::{compare, is_failure};
use rig::play::{play, read};
use rig::ports::Route;
use serde_json::Value;

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/oracle/scenarios");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 110, "only {} scenarios", files.len());
    files
}

fn golden_of(scenario: &Path) -> Value {
    let file = scenario.parent().unwrap().with_file_name("golden").join(scenario.file_name().unwrap());
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn findings(route: Route) -> Vec<String> {
    let mut findings = Vec::new();
    for file in scenarios() {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        match read(&std::fs::read_to_string(&file).unwrap()) {
            Err(need) => findings.push(format!("{name}: needs {need}")),
            Ok(scenario) => {
                let trace = play(scenario, route);
                let problems = compare::compare(&golden_of(&file), &trace, false);
                let problems = problems.into_iter().filter(|problem| is_failure(problem));
                findings.extend(problems.map(|problem| format!("{name}: {problem}")));
                findings.extend(trace.get("faults").map(|faults| format!("{name}: {faults}")));
            }
        }
    }
    findings
}

#[test]
fn every_recorded_scenario_is_played_as_the_judge_wants_it() {
    let findings = findings(Route::Inbox);
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn it_makes_no_difference_whether_messages_are_posted_or_polled() {
    let findings = findings(Route::Provider);
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
