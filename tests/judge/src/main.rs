//! Judges traces of an agent loop.
//!
//!     loop-judge all GOLDEN_DIR TRACE_DIR     every golden against the trace of the same file name; a summary last
//!     loop-judge compare [--strict] GOLDEN TRACE
//!     loop-judge lint TRACE...                only the rules that hold for every trace
//!
//! Exit code 0 when nothing was found wrong. The rules are in `tests/data/oracle/README.md`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use loop_judge::{compare, is_failure};
use serde_json::Value;

const USAGE: &str =
    "usage: loop-judge all GOLDEN_DIR TRACE_DIR | compare [--strict] GOLDEN TRACE | lint TRACE...";

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn all(golden_dir: &Path, trace_dir: &Path) -> Result<bool, String> {
    let mut files: Vec<_> = std::fs::read_dir(golden_dir)
        .map_err(|e| format!("{}: {e}", golden_dir.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    let (mut passed, mut failed, mut missing) = (0, 0, 0);
    for golden in files {
        let name = golden.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let trace = trace_dir.join(golden.file_name().unwrap_or_default());
        if !trace.exists() {
            missing += 1;
            println!("{name}: no trace");
            continue;
        }
        let problems = compare::compare(&read(&golden)?, &read(&trace)?, false);
        if problems.iter().any(|p| is_failure(p)) {
            failed += 1;
            for problem in problems {
                println!("{name}: {problem}");
            }
        } else {
            passed += 1;
        }
    }
    println!("{passed} passed, {} failed, {missing} skipped", failed);
    Ok(failed == 0 && missing == 0)
}

fn run(args: &[String]) -> Result<bool, String> {
    let rest: Vec<&String> = args.iter().skip(1).filter(|a| !a.starts_with("--")).collect();
    match (args.first().map(String::as_str), &rest[..]) {
        (Some("all"), [golden_dir, trace_dir]) => all(Path::new(golden_dir), Path::new(trace_dir)),
        (Some("compare"), [golden, trace]) => {
            let strict = args.iter().any(|a| a == "--strict");
            let problems = compare::compare(&read(Path::new(golden))?, &read(Path::new(trace))?, strict);
            for problem in &problems {
                println!("{problem}");
            }
            Ok(!problems.iter().any(|p| is_failure(p)))
        }
        (Some("lint"), traces) if !traces.is_empty() => {
            let mut clean = true;
            for path in traces {
                for problem in compare::invariants(&read(Path::new(path))?) {
                    clean = false;
                    println!("{path}: {problem}");
                }
            }
            Ok(clean)
        }
        _ => Err(USAGE.into()),
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
