//! `cargo xtask conformance`: plays every scenario of a directory and writes one trace each, for a judge to compare
//! with the recorded ones.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use rig::play::{play, read};
use rig::ports::Route;

const USAGE: &str =
    "usage: cargo xtask conformance SCENARIO_DIR TRACE_DIR [--engine native|wasm] [--queues inbox|provider]";

/// Plays the scenarios; fails when one cannot be played.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let mut folders = Vec::new();
    let (mut engine, mut route) = ("native", Route::Inbox);
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        match (arg.split_once('=').unwrap_or((arg, "")), arg.starts_with("--")) {
            (("--engine", value), _) => engine = option(value, &mut args)?,
            (("--queues", value), _) => {
                route = match option(value, &mut args)? {
                    "inbox" => Route::Inbox,
                    "provider" => Route::Provider,
                    other => bail!("no queues named `{other}`; there are `inbox` and `provider`\n{USAGE}"),
                }
            }
            (_, true) => bail!("no option `{arg}`\n{USAGE}"),
            (_, false) => folders.push(PathBuf::from(arg)),
        }
    }
    let [scenarios, traces] = folders.as_slice() else { bail!("two folders are needed\n{USAGE}") };
    std::fs::create_dir_all(traces).with_context(|| format!("cannot make {}", traces.display()))?;
    match engine {
        "native" => native(scenarios, traces, route),
        "wasm" => wasm(scenarios, traces),
        other => bail!("no engine named `{other}`; there are `native` and `wasm`\n{USAGE}"),
    }
}

fn option<'a>(value: &'a str, rest: &mut impl Iterator<Item = &'a str>) -> Result<&'a str> {
    if !value.is_empty() {
        return Ok(value);
    }
    rest.next().with_context(|| format!("an option has no value\n{USAGE}"))
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
    let status = Command::new("node")
        .arg(root.join("tests/js/conformance.mjs"))
        .args([scenarios, traces])
        .status()
        .context("cannot start node")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
