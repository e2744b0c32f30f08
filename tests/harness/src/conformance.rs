//! `cargo xtask conformance`: plays every scenario of a directory and writes one trace each, to be
//! compared with the recorded traces by a judge.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use loop_judge::{compare, is_failure};
use rig::play::{play, read};
use rig::ports::Route;

use crate::args::{Args, Misuse, unknown};
use crate::run::root;
use crate::{pack, setup};

/// Plays the scenarios. By default the engine polls host queues where a scenario is a single run of the
/// loop, as the recorded engine did, and messages are posted where it uses an agent. With `--judge
/// GOLDEN_DIR` the traces are compared right away, and the command fails if the judge finds a fault;
/// otherwise it fails only if nothing could be played.
///
/// # Errors
/// Misuse, or a folder that cannot be read or written.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--engine", "--queues", "--judge", "--random"])?;
    if let (Some(number), [folder]) = (args.value("--random"), args.positional.as_slice()) {
        let number = number.parse().map_err(|_| Misuse(format!("`{number}` is no number of scenarios")))?;
        return compare_engines(number, Path::new(folder));
    }
    let [scenarios, traces] = args.positional.as_slice() else {
        return Err(Misuse("two folders are needed: scenarios and traces".to_owned()).into());
    };
    let route = match args.value("--queues") {
        None => None,
        Some("inbox") => Some(Route::Inbox),
        Some("provider") => Some(Route::Provider),
        Some(other) => {
            return Err(Misuse(unknown("kind of queues", other, &["inbox", "provider"])).into());
        }
    };
    let (scenarios, traces) = (Path::new(scenarios), Path::new(traces));
    std::fs::create_dir_all(traces).with_context(|| format!("cannot make {}", traces.display()))?;
    let played = match args.value("--engine").unwrap_or("native") {
        "native" => native(scenarios, traces, route)?,
        "wasm" => wasm(scenarios, traces, args.value("--queues"))?,
        other => return Err(Misuse(unknown("engine", other, &["native", "wasm"])).into()),
    };
    match args.value("--judge") {
        None => Ok(played),
        Some(golden) => judge(Path::new(golden), traces),
    }
}

/// Plays random scenarios on both engines. Their traces must be identical.
fn compare_engines(number: u64, folder: &Path) -> Result<ExitCode> {
    let [scenarios, natively, package] = ["scenarios", "native", "wasm"].map(|name| folder.join(name));
    for folder in [&scenarios, &natively, &package] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for seed in 0..number {
        let mut scenario = rig::random::scenario(&rig::dice::Dice::new(seed));
        let name = format!("random_{seed:06}");
        scenario["name"] = name.as_str().into();
        std::fs::write(scenarios.join(name + ".json"), format!("{scenario:#}\n"))?;
    }
    native(&scenarios, &natively, None)?;
    wasm(&scenarios, &package, None)?;
    let (mut passed, mut failed) = (0, 0);
    for seed in 0..number {
        let name = format!("random_{seed:06}.json");
        let [one, other] = [comparable(&natively.join(&name))?, comparable(&package.join(&name))?];
        if one == other {
            passed += 1;
            continue;
        }
        failed += 1;
        let part = |part: &&str| one[*part] != other[*part];
        let parts: Vec<&str> = PARTS.iter().copied().filter(part).collect();
        println!("{name}: the engines differ in {}", parts.join(", "));
    }
    println!("{passed} passed, {failed} failed");
    Ok(ExitCode::from(u8::from(failed > 0 || passed == 0)))
}

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

/// Returns a trace without what two engines may word differently: why they refuse to continue, and
/// everything after a run that waits for ever.
fn comparable(file: &Path) -> Result<serde_json::Value> {
    let mut trace = read_json(file)?;
    let hangs = |event: &serde_json::Value| event["type"] == "oracle_hang";
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

fn read_json(file: &Path) -> Result<serde_json::Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("no trace {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))
}

/// Compares every golden trace with the one of the same name.
fn judge(golden: &Path, traces: &Path) -> Result<ExitCode> {
    let (mut passed, mut failed) = (0, 0);
    for entry in std::fs::read_dir(golden).with_context(|| format!("cannot read {}", golden.display()))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default();
        let problems = match read_json(&traces.join(name)) {
            Err(error) => vec![format!("{error:#}")],
            Ok(trace) => compare::compare(&read_json(&file)?, &trace, false),
        };
        let problems: Vec<String> = problems.into_iter().filter(|problem| is_failure(problem)).collect();
        for problem in &problems {
            println!("{}: {problem}", name.to_string_lossy());
        }
        if problems.is_empty() { passed += 1 } else { failed += 1 }
    }
    println!("{passed} passed, {failed} failed");
    Ok(ExitCode::from(u8::from(failed > 0 || passed == 0)))
}

fn native(scenarios: &Path, traces: &Path, route: Option<Route>) -> Result<ExitCode> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(scenarios)
        .with_context(|| format!("cannot read {}", scenarios.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let (mut written, mut skipped, mut broken) = (0, 0, 0);
    for file in &files {
        let Some(name) = file.file_name() else { continue };
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text) {
            println!("{}: no JSON: {error}", file.display());
            broken += 1;
            continue;
        }
        match read(&text) {
            Ok(scenario) => {
                let natural = Route::natural(&scenario);
                let trace = serde_json::to_string_pretty(&play(scenario, route.unwrap_or(natural)))?;
                std::fs::write(traces.join(name), trace + "\n")?;
                written += 1;
            }
            Err(need) => {
                println!("{}: skipped: needs {need}", file.display());
                skipped += 1;
            }
        }
    }
    if files.is_empty() {
        println!("no scenario in {}: one is a file NAME.json", scenarios.display());
    }
    println!("{written} traces written, {skipped} skipped");
    Ok(ExitCode::from(u8::from(written == 0 || broken > 0)))
}

/// Plays them in Node with the package, which is built if necessary.
fn wasm(scenarios: &Path, traces: &Path, queues: Option<&str>) -> Result<ExitCode> {
    setup::for_build()?;
    pack::build(pack::Kind::Release)?;
    let status = Command::new("node")
        .arg(root().join("tests/js/conformance.mjs"))
        .args(queues.map(|queues| format!("--queues={queues}")))
        .args([scenarios, traces])
        .status()
        .context("cannot start node")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
