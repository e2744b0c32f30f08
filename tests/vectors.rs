//! The golden vectors, played on the rules of this crate by the code of `cargo xtask vectors`.

#[path = "../xtask/src/vectors/mod.rs"]
mod vectors;

use std::path::Path;

#[test]
fn every_golden_vector_is_met() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors");
    let report = vectors::run(&dir).unwrap();
    assert_eq!(report.failed, 0, "see the lines above");
    assert!(report.passed >= 286, "only {} cases were played", report.passed);
}

#[test]
fn variations_of_the_golden_runs_go_as_they_went() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/runs");
    let report = vectors::run(&dir).unwrap();
    assert_eq!(report.failed, 0, "see the lines above");
    assert!(report.passed >= 60, "only {} runs were played", report.passed);
}
