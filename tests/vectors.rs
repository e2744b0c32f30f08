//! The golden vectors, played on the rules of this crate by the code of `cargo xtask vectors`.

#[path = "../xtask/src/vectors/mod.rs"]
mod vectors;

use std::path::Path;

#[test]
fn every_golden_vector_is_met() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vectors");
    let report = vectors::run(&dir).unwrap();
    assert_eq!(report.failed, 0, "see the lines above");
    assert!(report.passed >= 220, "only {} cases were played", report.passed);
}
