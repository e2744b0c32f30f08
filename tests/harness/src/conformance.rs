//! Scenarios of the loop oracle: an engine plays a folder of them and writes one trace each, and a judge
//! compares the traces with the recorded ones. The README beside the scenarios describes both formats.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use loop_judge::{compare, is_failure};
use rig::ports::Route;
use serde_json::Value;

use crate::engines::Engine;

/// The result of comparing two folders of traces.
#[derive(Debug, Default)]
pub struct Judgement {
    pub passed: usize,
    pub failed: usize,
    /// One line for each fault.
    pub complaints: Vec<String>,
}

/// Plays the scenarios of the first folder into the second. With a folder of recorded traces the judge has the
/// last word, otherwise the engine.
///
/// # Errors
/// If a folder cannot be read or written, or the engine cannot be started.
pub fn run(
    engine: &dyn Engine,
    queues: Option<Route>,
    [scenarios, traces]: [&Path; 2],
    golden: Option<&Path>,
) -> Result<bool> {
    std::fs::create_dir_all(traces).with_context(|| format!("cannot make {}", traces.display()))?;
    let played = engine.scenarios(scenarios, traces, queues)?;
    let Some(golden) = golden else { return Ok(played) };
    let judgement = judge(golden, traces)?;
    for complaint in &judgement.complaints {
        println!("{complaint}");
    }
    println!("{} passed, {} failed", judgement.passed, judgement.failed);
    Ok(judgement.failed == 0 && judgement.passed > 0)
}

/// Compares every recorded trace with the one of the same name.
///
/// # Errors
/// If the folder of the recorded traces cannot be read.
pub fn judge(golden: &Path, traces: &Path) -> Result<Judgement> {
    let mut judgement = Judgement::default();
    for entry in std::fs::read_dir(golden).with_context(|| format!("cannot read {}", golden.display()))? {
        let file = entry?.path();
        let name = file.file_name().unwrap_or_default();
        let found = match read_json(&traces.join(name)) {
            Err(error) => vec![format!("{error:#}")],
            Ok(trace) => compare::compare(&read_json(&file)?, &trace, false),
        };
        let before = judgement.complaints.len();
        let faults = found.into_iter().filter(|found| is_failure(found));
        judgement.complaints.extend(faults.map(|fault| format!("{}: {fault}", name.to_string_lossy())));
        let is_clean = judgement.complaints.len() == before;
        *(if is_clean { &mut judgement.passed } else { &mut judgement.failed }) += 1;
    }
    Ok(judgement)
}

/// Returns the `.json` files of a folder, in order.
///
/// # Errors
/// If the folder cannot be read.
pub fn json_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}

/// Reads a trace.
///
/// # Errors
/// If it is not there, or no JSON.
pub fn read_json(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("no trace {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))
}
