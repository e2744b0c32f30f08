//! The crate itself, in this process.

use std::path::Path;

use anyhow::{Context, Result};
use rig::play::{play, read};
use rig::ports::Route;

use super::Engine;
use crate::conformance::json_files;
use crate::fixtures;

pub(super) struct Native;

impl Engine for Native {
    fn scenarios(&self, scenarios: &Path, traces: &Path, queues: Option<Route>) -> Result<bool> {
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
                    let trace = serde_json::to_string_pretty(&play(scenario, queues.unwrap_or(natural)))?;
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
        Ok(written > 0 && broken == 0)
    }

    fn fixtures(&self, dir: &Path) -> Result<bool> {
        Ok(fixtures::run(dir))
    }
}
