//! `cargo xtask conformance`: plays every scenario of a directory and writes one trace each, for a judge to compare
//! with the recorded ones.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use rig::play::{play, read};
use rig::ports::Route;

use crate::args::{Args, Misuse, unknown};
use crate::run::root;

/// Plays the scenarios; fails when one cannot be played.
///
/// # Errors
/// Misuse, or a folder that cannot be read or written.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--engine", "--queues"])?;
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
    match args.value("--engine").unwrap_or("native") {
        "native" => native(scenarios, traces, route),
        "wasm" => wasm(scenarios, traces),
        other => Err(Misuse(unknown("engine", other, &["native", "wasm"])).into()),
    }
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
    let complete = skipped == 0 && written > 0;
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The built package plays them in Node.
fn wasm(scenarios: &Path, traces: &Path) -> Result<ExitCode> {
    let status = Command::new("node")
        .arg(root().join("tests/js/conformance.mjs"))
        .args([scenarios, traces])
        .status()
        .context("cannot start node")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
