//! `cargo xtask conformance`: plays every scenario of a directory and writes one trace each, for a judge to compare
//! with the recorded ones.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use loop_judge::{compare, is_failure};
use rig::play::{play, read};
use rig::ports::Route;

use crate::args::{Args, Misuse, unknown};
use crate::run::root;
use crate::{pack, setup};

/// Plays the scenarios. With `--judge GOLDEN_DIR` the traces are compared at once, and the command fails where the
/// judge finds something wrong; without, it fails only when nothing could be played.
///
/// # Errors
/// Misuse, or a folder that cannot be read or written.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--engine", "--queues", "--judge"])?;
    let [scenarios, traces] = args.words.as_slice() else {
        return Err(Misuse("two folders are needed: scenarios and traces".to_owned()).into());
    };
    let route = match args.value("--queues").unwrap_or("inbox") {
        "inbox" => Route::Inbox,
        "provider" => Route::Provider,
        other => return Err(Misuse(unknown("kind of queues", other, &["inbox", "provider"])).into()),
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

/// Compares every golden trace with the one of the same name.
fn judge(golden: &Path, traces: &Path) -> Result<ExitCode> {
    let read = |file: &Path| -> Result<serde_json::Value> {
        let text = std::fs::read_to_string(file).with_context(|| format!("no trace {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))
    };
    let (mut passed, mut failed) = (0, 0);
    for entry in std::fs::read_dir(golden).with_context(|| format!("cannot read {}", golden.display()))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default();
        let problems = match read(&traces.join(name)) {
            Err(error) => vec![format!("{error:#}")],
            Ok(trace) => compare::compare(&read(&file)?, &trace, false),
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

fn native(scenarios: &Path, traces: &Path, route: Route) -> Result<ExitCode> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(scenarios)
        .with_context(|| format!("cannot read {}", scenarios.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let (mut written, mut skipped) = (0, 0);
    for file in &files {
        let Some(name) = file.file_name() else { continue };
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        match read(&text) {
            Ok(scenario) => {
                let trace = serde_json::to_string_pretty(&play(scenario, route))?;
                std::fs::write(traces.join(name), trace + "\n")?;
                written += 1;
            }
            Err(need) => {
                println!("{}: skipped: needs {need}", file.display());
                skipped += 1;
            }
        }
    }
    println!("{written} traces written, {skipped} skipped");
    Ok(ExitCode::from(u8::from(written == 0)))
}

/// The package, built where it is not, plays them in Node. Unless it is told otherwise, it polls a queue of the host's
/// where a scenario is one run of the loop, and posts to the agent where it is an agent's.
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
