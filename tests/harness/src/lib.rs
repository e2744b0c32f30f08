//! Plays what is recorded on the engines: scenarios of the loop oracle, golden vectors, providers' answers,
//! random worlds, damaged input. Each player takes any directory of its format, plays a case by its contents
//! and never by its name, and prints a line for each that failed and `N passed, N failed` at the end.
//!
//! `cargo xtask conformance | fixtures | vectors | fuzz` starts the players, and the tests of the crate
//! play the repository's own data with them. The world that they run in is the crate `rig`, the judge of
//! traces is the crate `loop-judge`.

pub mod conformance;
pub mod engines;
mod exact;
pub mod fixtures;
pub mod fuzz;
pub mod journals;
pub mod random;
pub mod show;
pub mod vectors;

use std::path::{Path, PathBuf};

/// Returns a folder of the recorded data, tests/data.
pub fn data(name: &str) -> PathBuf {
    tests().join("data").join(name)
}

/// Returns the folder that this crate lies in.
fn tests() -> PathBuf {
    let harness = Path::new(env!("CARGO_MANIFEST_DIR"));
    harness.parent().unwrap_or(harness).to_path_buf()
}
