//! The recorded answers of providers in `tests/data/fixtures`, played by the code that `cargo xtask fixtures` runs.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a test that fails"
)]

#[allow(dead_code, unreachable_pub, reason = "the file is a module of xtask, whose `run` prints")]
#[path = "../xtask/src/fixtures.rs"]
mod fixtures;

use std::path::Path;

#[test]
fn every_recorded_answer_comes_out_as_it_should() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures");
    let outcome = fixtures::play(&dir).unwrap();
    assert_eq!(outcome.complaints, [""; 0]);
    assert_eq!(outcome.failed, 0);
    assert!(outcome.not_built.is_empty(), "wires that are not built: {:?}", outcome.not_built);
    assert!(outcome.passed >= 190, "{} cases were found", outcome.passed);
}
