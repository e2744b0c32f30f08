//! Random scenarios on two engines. There is no recorded trace to compare with: each is the judge of the other.

use std::path::Path;

use anyhow::{Context, Result};
use rig::dice::Dice;
use rig::random::scenario;
use serde_json::Value;

use crate::conformance::{clear, json_files, read_json, replay_elsewhere, scratch};
use crate::engines::{Engine, engine};

/// The parts of two traces that are compared.
const PARTS: [&str; 8] = [
    "events",
    "final_messages",
    "model_calls",
    "executions",
    "approvals",
    "policy_log",
    "transforms",
    "outcomes",
];

/// Plays random scenarios natively and on another engine, in subfolders of a folder. Their traces must be
/// identical.
///
/// # Errors
/// If a folder cannot be written, or an engine cannot be started.
pub fn compare_engines(number: u64, other: &str, folder: &Path) -> Result<bool> {
    let scenarios = folder.join("scenarios");
    write_scenarios(number, &scenarios)?;
    let played = |name: &str| {
        let traces = folder.join(name);
        std::fs::create_dir_all(&traces).with_context(|| format!("cannot make {}", traces.display()))?;
        let engine: &dyn Engine = engine(name).with_context(|| format!("no engine `{name}`"))?;
        engine.scenarios(&scenarios, &traces, None)?;
        anyhow::Ok(traces)
    };
    let (natively, elsewhere) = (played("native")?, played(other)?);
    are_alike((0..number).map(file_name), [&natively, &elsewhere], "the engines differ")
}

/// Records random scenarios natively and lives them again on another engine, and the other way round. Every trace must be
/// that of the run that was recorded.
///
/// # Errors
/// As for [`compare_engines`].
pub fn exchange_tapes(number: u64, other: &str, folder: &Path) -> Result<bool> {
    let scenarios = folder.join("scenarios");
    write_scenarios(number, &scenarios)?;
    let mut all = true;
    for (from, to) in [("native", other), (other, "native")] {
        println!("recorded by {from}, lived again by {to}:");
        let recording: &dyn Engine = engine(from).with_context(|| format!("no engine `{from}`"))?;
        let [live, tapes] = scratch(from)?;
        recording.record([&scenarios, &live, &tapes], None)?;
        let replayed = folder.join(format!("{from}-by-{to}"));
        std::fs::create_dir_all(&replayed).with_context(|| format!("cannot make {}", replayed.display()))?;
        all &= replay_elsewhere(to, &tapes, &replayed)?;
        let names = json_files(&live)?
            .into_iter()
            .filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
        all &= are_alike(names, [&live, &replayed], "the replay differs")?;
        clear([&live, &tapes]);
    }
    Ok(all)
}

/// Whether two folders hold traces of the same meaning under these names: two engines may write the members of an object in
/// another order. Prints where they do not.
fn are_alike(names: impl Iterator<Item = String>, [one, other]: [&Path; 2], what: &str) -> Result<bool> {
    let (mut passed, mut failed) = (0, 0);
    for name in names {
        let [one, other] = [comparable(&one.join(&name))?, comparable(&other.join(&name))?];
        if one == other {
            passed += 1;
            continue;
        }
        failed += 1;
        let part = |part: &&str| one[*part] != other[*part];
        let parts: Vec<&str> = PARTS.iter().copied().filter(part).collect();
        println!("{name}: {what} in {}", parts.join(", "));
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

fn write_scenarios(number: u64, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for seed in 0..number {
        let mut scenario = scenario(&Dice::new(seed));
        let file = file_name(seed);
        scenario["name"] = file.trim_end_matches(".json").into();
        std::fs::write(folder.join(file), format!("{scenario:#}\n"))?;
    }
    Ok(())
}

fn file_name(seed: u64) -> String {
    format!("random_{seed:06}.json")
}

/// Returns a trace without what two engines may word differently: why they refuse to continue, and
/// everything after a run that waits for ever.
fn comparable(file: &Path) -> Result<Value> {
    let mut trace = read_json(file)?;
    let hangs = |event: &Value| event["type"] == "oracle_hang";
    if let Some(at) = trace["events"].as_array().and_then(|events| events.iter().position(hangs)) {
        let shown = trace["events"].as_array().map(|events| events[..at].to_vec());
        return Ok(serde_json::json!({ "events": shown }));
    }
    for outcome in trace["outcomes"].as_array_mut().into_iter().flatten() {
        if outcome["error"].as_str().is_some_and(|error| error.starts_with("cannot continue")) {
            outcome["error"] = "cannot continue".into();
        }
    }
    let mut parts = serde_json::Map::new();
    for part in PARTS {
        parts.insert(part.to_owned(), trace[part].take());
    }
    Ok(parts.into())
}
