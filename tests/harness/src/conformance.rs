//! Scenarios of the loop oracle: an engine plays a folder of them and writes one trace each, and a judge
//! compares the traces with the recorded ones. The README beside the scenarios describes both formats.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use loop_judge::{compare, is_failure};
use rig::ports::Route;
use serde_json::Value;

use crate::engines::Engine;
use crate::exact;

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
    judged(traces, golden, played)
}

/// Like [`run`], but the scenarios are recorded, and the traces are those of their tapes: made by another process, which has
/// neither scripts nor tools. Every trace must be that of the run that was recorded, byte for byte.
///
/// # Errors
/// As for [`run`], and if the other process cannot be started.
pub fn run_replayed(
    (name, engine): (&str, &dyn Engine),
    queues: Option<Route>,
    [scenarios, traces]: [&Path; 2],
    golden: Option<&Path>,
) -> Result<bool> {
    std::fs::create_dir_all(traces).with_context(|| format!("cannot make {}", traces.display()))?;
    let [live, tapes] = scratch(name)?;
    let played = engine.record([scenarios, &live, &tapes], queues)?;
    let is_same = replay_elsewhere(name, &tapes, traces)? & is_same(&live, traces)?;
    clear([&live, &tapes]);
    judged(traces, golden, played && is_same)
}

/// Two empty folders that are this process's own.
///
/// # Errors
/// If they cannot be made.
pub fn scratch(name: &str) -> Result<[PathBuf; 2]> {
    let folder = std::env::temp_dir().join(format!("turnwheel-{name}-{}", std::process::id()));
    let folders = ["live", "tapes"].map(|kind| folder.join(kind));
    for folder in &folders {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    Ok(folders)
}

/// Removes what [`scratch`] has made. Whatever is left is in a folder for such things.
pub fn clear(folders: [&Path; 2]) {
    for folder in folders {
        let _ = std::fs::remove_dir_all(folder);
        let _ = folder.parent().map(std::fs::remove_dir);
    }
}

/// Starts this program again, to make the traces of tapes.
///
/// # Errors
/// If it cannot be started.
pub fn replay_elsewhere(engine: &str, tapes: &Path, traces: &Path) -> Result<bool> {
    let mut other = Command::new(std::env::current_exe().context("there is no program")?);
    other.args(["replay", &format!("--engine={engine}")]).args([tapes, traces]);
    Ok(other.status().context("cannot start the other process")?.success())
}

/// Whether two folders hold the same traces. Prints those that differ.
///
/// # Errors
/// If a folder cannot be read.
pub fn is_same(live: &Path, replayed: &Path) -> Result<bool> {
    let (mut same, mut others) = (0, 0);
    for file in json_files(live)? {
        let name = file.file_name().unwrap_or_default();
        if std::fs::read(&file)? == std::fs::read(replayed.join(name)).unwrap_or_default() {
            same += 1;
        } else {
            others += 1;
            println!("{}: the replay's trace is another", name.to_string_lossy());
        }
    }
    println!("{same} replayed traces equal the live one byte for byte, {others} do not");
    Ok(same > 0 && others == 0)
}

fn judged(traces: &Path, golden: Option<&Path>, played: bool) -> Result<bool> {
    let Some(golden) = golden else { return Ok(played) };
    let judgement = judge(golden, traces)?;
    for complaint in &judgement.complaints {
        println!("{complaint}");
    }
    println!("{} passed, {} failed", judgement.passed, judgement.failed);
    Ok(played && judgement.failed == 0 && judgement.passed > 0)
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
            Ok(trace) => {
                let golden = read_json(&file)?;
                if golden["format"] == 2 {
                    exact::compare(golden, trace)
                } else {
                    compare::compare(&golden, &trace, false)
                }
            }
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
    files_of(folder, "json")
}

/// Returns the files of a folder that end so, in order.
///
/// # Errors
/// If the folder cannot be read.
pub fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == extension));
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
