//! The crate itself, in this process.

use std::path::Path;

use anyhow::{Context, Result};
use rig::play::{play, play_recorded, read};
use rig::ports::Route;
use rig::replay::trace_of;
use turnwheel::tape::Tape;

use super::Engine;
use crate::conformance::{files_of, json_files};
use crate::fixtures;

pub(super) struct Native;

impl Engine for Native {
    fn scenarios(&self, scenarios: &Path, traces: &Path, queues: Option<Route>) -> Result<bool> {
        play_all([scenarios, traces], None, queues)
    }

    fn record(&self, [scenarios, traces, tapes]: [&Path; 3], queues: Option<Route>) -> Result<bool> {
        play_all([scenarios, traces], Some(tapes), queues)
    }

    fn replay(&self, tapes: &Path, traces: &Path) -> Result<bool> {
        let files = files_of(tapes, "tape")?;
        let mut differs = 0;
        for file in &files {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            let tape = Tape::parse(&text).with_context(|| format!("{} is no tape", file.display()))?;
            match trace_of(&tape) {
                Ok(trace) => write_trace(traces, file, &trace)?,
                Err(fault) => {
                    println!("{}: {fault}", file.display());
                    differs += 1;
                }
            }
        }
        println!("{} tapes replayed, {differs} of them otherwise than they were recorded", files.len());
        Ok(differs == 0 && !files.is_empty())
    }

    fn fixtures(&self, dir: &Path) -> Result<bool> {
        Ok(fixtures::run(dir))
    }
}

fn play_all([scenarios, traces]: [&Path; 2], tapes: Option<&Path>, queues: Option<Route>) -> Result<bool> {
    let files = json_files(scenarios)?;
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
                let route = queues.unwrap_or(natural);
                let trace = match tapes {
                    None => play(scenario, route),
                    Some(tapes) => {
                        let (trace, tape) = play_recorded(scenario, route, false);
                        std::fs::write(tapes.join(name).with_extension("tape"), tape)?;
                        trace
                    }
                };
                write_trace(traces, file, &trace)?;
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
    Ok(written > 0 && broken == 0)
}

fn write_trace(traces: &Path, file: &Path, trace: &serde_json::Value) -> Result<()> {
    let name = Path::new(file.file_name().unwrap_or_default()).with_extension("json");
    let text = serde_json::to_string_pretty(trace)? + "\n";
    std::fs::write(traces.join(&name), text).with_context(|| format!("cannot write {}", name.display()))
}
